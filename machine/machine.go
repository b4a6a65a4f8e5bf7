// Package machine defines the types that all protocol machines share: instant,
// side, datagram, event, tracker, endpoint and view.
//
// For example, a tracker of Gaffer reads a [Datagram] and appends an [Event] to
// [Effects]: side A received packet 17, certain, shown by frame 31.
//
// The package depends on no protocol, no clock, no file and no terminal
// (ARCHITECTURE.md lists what may import what). There are two kinds of machine:
//
//	Tracker    reads datagrams off a capture and rebuilds what both sides knew,
//	           as far as the evidence allows;
//	Endpoint   is a reference implementation: it chooses what to send.
//
// Both use the same transitions (machine/<protocol>/state.go). An event
// therefore means the same in a simulation's log, in a capture's record and on
// a screen.
package machine

import (
	"time"

	"github.com/ackscope/ackscope/scale"
)

// Instant is a point in time in nanoseconds since the source's epoch. That is
// the Unix epoch for captures, and the start of the run for simulations.
// Machines compare and subtract instants; they never read a clock.
type Instant int64

// Add returns the instant d later. It saturates at the ends of the range, since
// a capture may hold any time.
func (t Instant) Add(d time.Duration) Instant { return scale.Add(t, d) }

// Sub returns the time from u to t. It saturates when they are more than 292
// years apart.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(scale.Sub(t, u)) }

// Time returns t as a wall-clock time in UTC. It is meaningful only when the
// source's epoch is the Unix epoch.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// Side names one of the two endpoints of a flow.
type Side uint8

const (
	A Side = iota // sent the first packet, or is the client of the handshake
	B             // the other side
)

// Other returns the opposite side.
func (s Side) Other() Side { return s ^ 1 }

// String returns the word that output uses: "a" or "b".
func (s Side) String() string {
	if s == A {
		return "a"
	}
	return "b"
}

// Ref names a frame of a capture. It holds the file (0-based, in the order
// given) and the frame within it (1-based, as tshark numbers them). The zero
// Ref names no frame.
type Ref uint64

// refFrameBits is how many bits of a Ref hold the frame. They suffice for 10^12
// frames in each file. The other 24 bits hold the file.
// Source: bound, the frames of a file (10^12) and the files of a run (2^24)
const refFrameBits = 40

// MakeRef returns the Ref of a frame.
func MakeRef(file int, frame uint64) Ref { return Ref(uint64(file)<<refFrameBits | frame) }

// File returns the 0-based index of the file.
func (r Ref) File() int { return int(r >> refFrameBits) }

// Frame returns the 1-based number of the frame within its file. It returns 0
// for the zero Ref.
func (r Ref) Frame() uint64 { return uint64(r) & (1<<refFrameBits - 1) }

// Datagram is one UDP payload as it passed the tap.
type Datagram struct {
	At     Instant
	Ref    Ref // the frame that completed it
	From   Side
	Bytes  []byte // the captured part; valid during the call only
	Length int    // its length on the wire, more than len(Bytes) when a snap length cut it
	Place  Place  // its position among all that its sender sends, from the sender's Scope
	Behind bool   // follows a gap in its stream, so its receiver cannot have read it
	Gaps   bool   // the capture lacks bytes that passed before it, in either direction of its stream
	Prefix Prefix // of a message from a stream: how its length stands before it
}

// Prefix is how the length of a message stands before it in a stream. Bytes is 0 for a datagram.
type Prefix struct {
	Bytes     uint8 // 2 or 4
	BigEndian bool
}

// Certainty grades an inferred fact. Output uses a closed list of words for it.
type Certainty uint8

const (
	Unknown  Certainty = iota // the capture does not say
	Possible                  // nothing contradicts it
	Likely                    // the usual explanation, but another one is possible
	Certain                   // the capture proves it
)

var certaintyWords = [...]string{"unknown", "possible", "likely", "certain"}

func (c Certainty) String() string { return certaintyWords[c] }

// Severity ranks a finding. Output uses a closed list of words for it.
type Severity uint8

const (
	Note Severity = iota
	Warn
	Error
)

var severityWords = [...]string{"note", "warn", "error"}

func (s Severity) String() string { return severityWords[s] }

// Vantage is where the tap was. Output uses a closed list of words for it.
type Vantage uint8

const (
	VantageUnknown Vantage = iota
	VantageA               // at side A: whatever passed the tap towards A, A received
	VantageB               // at side B
	VantageBoth            // both endpoints at the tap, as on loopback
	VantageBetween         // somewhere on the path
)

var vantageWords = [...]string{"unknown", "a", "b", "both", "between"}

func (v Vantage) String() string { return vantageWords[v] }

// ParseVantage returns the vantage that a word of output names. It returns
// false when there is none.
func ParseVantage(word string) (Vantage, bool) {
	for i, w := range vantageWords {
		if w == word {
			return Vantage(i), true
		}
	}
	return VantageUnknown, false
}

// Near reports whether the tap is at side s. Whatever passed the tap towards s
// then arrived there.
func (v Vantage) Near(s Side) bool {
	return v == VantageBoth || v == VantageA && s == A || v == VantageB && s == B
}
