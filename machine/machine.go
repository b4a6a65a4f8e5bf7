// Package machine holds the words that every protocol machine shares: what an
// instant, a side, a datagram, an event, a tracker and a view are.
//
// It is ring 1 of the house (see ARCHITECTURE.md): it knows no protocol, no
// clock, no file and no terminal. Two kinds of machine speak these words:
//
//	Tracker    reads datagrams off a capture and rebuilds what both sides knew,
//	           as far as the evidence allows;
//	Endpoint   is a reference implementation: it chooses what to send.
//
// Both drive the same transitions (machine/<protocol>/state.go), so an event
// means the same in a simulation's log, in a capture's record and on a screen.
package machine

import (
	"time"

	"github.com/ackscope/ackscope/scale"
)

// Instant is a point in time in nanoseconds since the source's epoch: the Unix
// epoch for captures, the start of the run for simulations. Machines compare
// and subtract instants; they never ask for the present one.
type Instant int64

// Add returns the instant d later, at most the greatest there is: a capture may
// hold any time.
func (t Instant) Add(d time.Duration) Instant { return scale.Add(t, d) }

// Sub returns the time from u to t; of two that are more than 292 years apart, the
// longest there is.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(scale.Sub(t, u)) }

// Time returns t as a wall-clock time in UTC; it is meaningful only where the
// source's epoch is the Unix epoch.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// Side names one of the two endpoints of a flow.
type Side uint8

const (
	A Side = iota // spoke first, or is the client of the handshake
	B             // answered
)

// Other returns the opposite side.
func (s Side) Other() Side { return s ^ 1 }

// String returns the contract's word: "a" or "b".
func (s Side) String() string {
	if s == A {
		return "a"
	}
	return "b"
}

// Ref points at a frame of a capture: which file (0-based, in the order given)
// and which frame of it (1-based, as tshark numbers them). The zero Ref points
// at no frame.
type Ref uint64

const refFrameBits = 40 // 10^12 frames a file, 2^24 files

// MakeRef returns the Ref of a frame.
func MakeRef(file int, frame uint64) Ref { return Ref(uint64(file)<<refFrameBits | frame) }

// File returns the 0-based index of the file.
func (r Ref) File() int { return int(r >> refFrameBits) }

// Frame returns the 1-based number of the frame within its file; 0 for none.
func (r Ref) Frame() uint64 { return uint64(r) & (1<<refFrameBits - 1) }

// Datagram is one UDP payload as it passed the tap.
type Datagram struct {
	At     Instant
	Ref    Ref // the frame that completed it
	From   Side
	Bytes  []byte // what was captured of it; valid during the call only
	Length int    // its length on the wire, more than len(Bytes) where a snap length cut it
	Place  Place  // its place in all that its sender sends, as the sender's Scope has it
	Behind bool   // of a stream that was left with a hole before it: its receiver cannot have read it
}

// Certainty grades an inferred fact. Its words are a closed list (spec/contract.md).
type Certainty uint8

const (
	Unknown  Certainty = iota // the capture does not say
	Possible                  // nothing contradicts it
	Likely                    // the usual reading, but another is open
	Certain                   // the capture proves it
)

var certaintyWords = [...]string{"unknown", "possible", "likely", "certain"}

func (c Certainty) String() string { return certaintyWords[c] }

// Severity ranks a finding. Its words are a closed list (spec/contract.md).
type Severity uint8

const (
	Note Severity = iota
	Warn
	Error
)

var severityWords = [...]string{"note", "warn", "error"}

func (s Severity) String() string { return severityWords[s] }

// Vantage says where the tap stood. Its words are a closed list (spec/contract.md).
type Vantage uint8

const (
	VantageUnknown Vantage = iota
	VantageA               // at side A: what passed the tap towards A, A received
	VantageB               // at side B
	VantageBoth            // both endpoints at the tap, as on loopback
	VantageBetween         // somewhere on the path
)

var vantageWords = [...]string{"unknown", "a", "b", "both", "between"}

func (v Vantage) String() string { return vantageWords[v] }

// ParseVantage reads one of the contract's words.
func ParseVantage(word string) (Vantage, bool) {
	for i, w := range vantageWords {
		if w == word {
			return Vantage(i), true
		}
	}
	return VantageUnknown, false
}

// Near reports whether the tap stands at side s, so that what passed the tap
// towards s arrived there.
func (v Vantage) Near(s Side) bool {
	return v == VantageBoth || v == VantageA && s == A || v == VantageB && s == B
}
