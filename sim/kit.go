package sim

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Role is what an endpoint is in a run.
type Role int

const (
	Client Role = iota
	Server
	Proxy // between clients and a server
	Roles = iota
)

var roleWords = [Roles]string{"client", "server", "proxy"}

// String returns the word that logs use.
func (r Role) String() string { return roleWords[r] }

// Kit is what a run on real sockets needs of a protocol: its endpoints, their
// applications, and their logs. The packages below this one implement it.
type Kit interface {
	// End makes endpoint n of a role. own is the address of its host.
	End(role Role, n int, own netip.AddrPort) (*End, error)
	// Rhythm returns how the hosts of a role run their endpoints.
	Rhythm(role Role) Rhythm
	// Greets reports whether a datagram from an unknown address may start a
	// conversation.
	Greets(b []byte) bool
	// Name returns the name of an endpoint in the logs.
	Name(role Role, n int) string
}

// Rhythm is how a host runs its endpoints.
type Rhythm struct {
	// Frame is the time between two frames of the application.
	Frame time.Duration
	// EventDriven hosts pass on at once what arrives, and wake their endpoint
	// at its deadline. Other hosts do everything once a frame, as games do:
	// first Wake, then everything that has arrived, then the application.
	EventDriven bool
	// Shared means that one endpoint serves all peers. Without it each peer
	// gets its own endpoint, for which it is peer 0.
	Shared bool
	// Idle is the silence after which the endpoint of a single peer is removed;
	// 0 means never.
	Idle time.Duration
}

// End is one endpoint with its application and its log.
type End struct {
	Endpoint machine.Endpoint
	App      App // nil if there is none
	Log      Describer
	// Refuse is the share of packets that the application refuses.
	Refuse float64
	// Farewell is what the application requests at the end of a run on real
	// sockets.
	Farewell []machine.Input
}

// Describer formats the log of one endpoint, in the format of its protocol's
// truth files. The caller leaves out nil lines.
type Describer interface {
	// Opening returns the first lines. own is invalid while the address is
	// unknown. to is where a client sends; it is invalid for a server.
	Opening(own, to netip.AddrPort) []Line
	// Opened returns the line about an own address that became known later.
	Opened(own netip.AddrPort) Line
	// Met returns the line about a peer's first appearance.
	Met(peer machine.Peer, at netip.AddrPort) Line
	// Step returns the lines about a step.
	Step(step *Step) []Line
	// Final returns the last line.
	Final() Line
}

// Gauges adds an endpoint's gauges to a line.
func Gauges(e machine.Endpoint, line Line) {
	var v machine.View
	e.Inspect(&v)
	for _, g := range v.Gauges {
		line[g.Name] = g.Value
	}
}

// Milliseconds converts nanoseconds to milliseconds, rounded to 1 µs as in the
// logs.
func Milliseconds(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e3 }

// Noise draws n random bytes.
func Noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
