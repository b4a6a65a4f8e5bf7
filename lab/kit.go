package lab

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Role is the part that an endpoint plays.
type Role int

const (
	Client Role = iota
	Server
	Proxy // of SRDP
)

var roleWords = [...]string{"client", "server", "proxy"}

// String gives the word of the logs.
func (r Role) String() string { return roleWords[r] }

// Kit is what the lab has to know of a protocol: how its endpoints are made,
// what their applications do and how their logs are worded.
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

// Scribe words the log of one endpoint, in the terms of the truth files of its
// protocol. Nil lines are left out.
type Scribe interface {
	// Opening gives the first lines. Own is invalid where the address is not
	// known yet; to is where a client sends, and invalid of a server.
	Opening(own, to netip.AddrPort) []Line
	// Opened gives the line about a stream that now stands, by its own address.
	Opened(own netip.AddrPort) Line
	// Met gives the line about a peer that is heard of for the first time.
	Met(peer machine.Peer, at netip.AddrPort) Line
	// Tell gives the lines about a step.
	Tell(step *sim.Step) []Line
	// Final gives the last line.
	Final() Line
}

// Rhythm is how a host runs its endpoints.
type Rhythm struct {
	// Frame is the time between two turns of the application.
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

// End is one endpoint and its application.
type End struct {
	Endpoint machine.Endpoint
	Log      Scribe
	// App is called once a frame; false once it has nothing more to do. Nil for
	// an application that only reads.
	App func(t *Turn) (more bool, err error)
	// Refuse is the share of packets that the application refuses.
	Refuse float64
	// Farewell is what the application asks for at the end of the run.
	Farewell []machine.Input
}

// Turn is one frame of an application.
type Turn struct {
	Now       machine.Instant
	Number    int
	Rand      *rand.Rand         // the application's own
	Peers     int                // that are known: 0 to Peers-1
	Delivered []machine.Delivery // since the last turn; valid during the call
	Do        func(in machine.Input) error
}
