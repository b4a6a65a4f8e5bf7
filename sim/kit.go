package sim

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Role is the part that an endpoint plays.
type Role int

const (
	Client Role = iota
	Server
	Proxy // between clients and a server
	Roles = iota
)

var roleWords = [Roles]string{"client", "server", "proxy"}

// String returns the word of the logs.
func (r Role) String() string { return roleWords[r] }

// Kit is what a run on real sockets has to know of a protocol: how its endpoints
// are made, what their applications do and how their logs are worded. The kits are
// in the packages below this one.
type Kit interface {
	// End makes the nth endpoint of a role. Own is the address of its host.
	End(role Role, n int, own netip.AddrPort) (*End, error)
	// Rhythm says how the hosts of a role run their endpoints.
	Rhythm(role Role) Rhythm
	// Greets reports whether a stranger's datagram may begin a conversation.
	Greets(b []byte) bool
	// Name is what the logs call an endpoint.
	Name(role Role, n int) string
}

// Rhythm is how a host runs its endpoints.
type Rhythm struct {
	// Frame is the time between two frames of the application.
	Frame time.Duration
	// EventDriven hosts hand on what arrives at once, and wake their endpoint at
	// its deadline. The others do all once a frame, as games do: Wake, then what
	// has arrived, then the application.
	EventDriven bool
	// Shared has one endpoint speak with all peers. Without it each peer gets an
	// endpoint of its own, for which it is peer 0.
	Shared bool
	// Idle is the silence after which an endpoint of one peer's own is let go; 0
	// for never.
	Idle time.Duration
}

// End is one endpoint with its application and its log.
type End struct {
	Endpoint machine.Endpoint
	App      App // nil for none
	Log      Describer
	// Refuse is the share of packets that the application refuses.
	Refuse float64
	// Farewell is what the application asks for at the end of a run on real sockets.
	Farewell []machine.Input
}

// Describer words the log of one endpoint, in the terms of its protocol's truth
// files. Nil lines are left out.
type Describer interface {
	// Opening returns the first lines. Own is invalid where the address is not
	// known yet; to is where a client sends, and invalid of a server.
	Opening(own, to netip.AddrPort) []Line
	// Opened returns the line about an address of its own that became known later.
	Opened(own netip.AddrPort) Line
	// Met returns the line about a peer that is heard of for the first time.
	Met(peer machine.Peer, at netip.AddrPort) Line
	// Step returns the lines about a step.
	Step(step *Step) []Line
	// Final returns the last line.
	Final() Line
}

// Gauges adds an endpoint's own figures to a line.
func Gauges(e machine.Endpoint, line Line) {
	var v machine.View
	e.Inspect(&v)
	for _, g := range v.Gauges {
		line[g.Name] = g.Value
	}
}

// Milliseconds returns a time in nanoseconds as the logs have it: to the microsecond.
func Milliseconds(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e3 }

// Noise draws n random bytes.
func Noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
