package machine

import (
	"fmt"
	"slices"
	"time"
)

// Judge holds what both sides of one flow sent against what a reference would
// have sent that received the same. It is fed in the order of the capture and
// is deterministic.
//
// Of a side at the tap all that it can have received passed the tap in the order
// of its socket, so its reference is driven strictly. Of a side far from the tap
// only what its own later packets prove is delivered to the reference; what they
// leave open is counted, not judged.
type Judge interface {
	// Observe takes the next datagram of the flow.
	Observe(d *Datagram)
	// Finish settles what is still open when the flow ends.
	Finish()
	// Opinion returns what is found of side s; valid after Finish.
	Opinion(s Side) *Opinion
}

// Behaviour is a named way in which an implementation of a protocol behaves:
// what a reference is run as.
type Behaviour struct {
	Name string // "reliable@2017"
	Doc  string // one sentence
}

// Opinion is what a Judge finds of one side.
type Opinion struct {
	Compared  uint64 // packets that were held against the reference's
	Undecided uint64 // of them, those that the capture cannot settle
	Why       string // what was left open, in words; empty for nothing
	Inferred  Inferred
	// Divergence is the first packet that no reference of this behaviour explains;
	// nil where there is none.
	Divergence *Divergence
}

// Verdict returns the contract's word.
func (o *Opinion) Verdict() string {
	switch {
	case o.Divergence != nil:
		return "diverges"
	case o.Undecided > 0:
		return "consistent"
	}
	return "conforms"
}

// Inferred is what the application chose, as far as the capture shows it: the
// reference was made to choose the same.
type Inferred struct {
	Submitted uint64        // packets or messages that it asked for
	Refused   uint64        // packets that it was handed and did not take
	Tick      time.Duration // its frame; 0 unknown
}

// Divergence is a packet that the reference would not have sent.
type Divergence struct {
	Ref      Ref
	At       Instant
	Rule     string // what was broken: "ack-never-arrived"
	Field    string // as in the decode tree: "gaffer.ack_bits"
	Expected string
	Got      string
	Because  string // in one sentence
	// Frames is the smallest set of earlier frames from which it follows that the
	// packet is wrong, oldest first.
	Frames []Ref
	// States are the reference's and the captured side's, as its packet tells it:
	// lines of text.
	Reference, Captured string
}

// Mismatch is a field that a packet has otherwise than the reference would.
type Mismatch struct {
	Field         string // as in the decode tree
	Expected, Got string
}

// Differ returns the mismatch of a field, with both values as text.
func Differ(field string, expected, got any) Mismatch {
	return Mismatch{Field: field, Expected: fmt.Sprint(expected), Got: fmt.Sprint(got)}
}

// Diverge returns the divergence of a datagram that the reference would not have
// sent. frames are those that it follows from, in any order; 0 is none.
func Diverge(d *Datagram, rule string, m Mismatch, because string, frames ...Ref) *Divergence {
	v := &Divergence{Ref: d.Ref, At: d.At, Rule: rule, Field: m.Field, Expected: m.Expected, Got: m.Got, Because: because}
	for _, f := range frames {
		if f != 0 {
			v.Frames = append(v.Frames, f)
		}
	}
	slices.Sort(v.Frames)
	v.Frames = slices.Compact(v.Frames)
	return v
}
