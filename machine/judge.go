package machine

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Judge compares what both sides of one flow sent with what a reference would
// have sent, had it received the same. It takes datagrams in the order of the
// capture and is deterministic.
//
// A side at the tap received only what passed the tap, in the order of its
// socket. So its reference takes exactly these inputs. A side far from the tap
// proves what it received by its own later packets. Its reference takes what
// they prove; the judge counts what they leave open as undecided.
type Judge interface {
	// Observe takes the next datagram of the flow.
	Observe(d *Datagram)
	// Finish settles what is still open when the flow ends.
	Finish()
	// Opinion returns what the judge found of side s. It is valid after Finish.
	Opinion(s Side) *Opinion
}

// Behaviour is a named way in which an implementation of a protocol behaves. A
// reference runs as one behaviour.
type Behaviour struct {
	Name string // "reliable@2017"
	Doc  string // one sentence
}

// NotCapturedHere is the Why of a side that the capture knows by its packets only.
const NotCapturedHere = "this side was not captured here: what the capture shows may have reached it late or not at all"

// Opinion is what a Judge found of one side.
type Opinion struct {
	Compared  uint64 // packets that were compared with the reference's
	Undecided uint64 // of Compared: those that the capture cannot settle
	Why       string // what was left open, as a sentence; empty if nothing
	Inferred  Inferred
	// Divergence is the first packet that no reference of this behaviour
	// explains. It is nil when the side has none.
	Divergence *Divergence
}

// Verdict returns the word that output uses.
func (o *Opinion) Verdict() string {
	switch {
	case o.Divergence != nil:
		return "diverges"
	case o.Undecided > 0:
		return "consistent"
	}
	return "conforms"
}

// Inferred is what the application chose, as far as the capture shows it. The
// reference was made to choose the same.
type Inferred struct {
	Submitted uint64        // packets or messages that it asked to send
	Refused   uint64        // packets that it received and refused
	Tick      time.Duration // its frame time; 0 if unknown
	// Resend is when its messages go out again, as the protocol names such a policy:
	// "100ms". It is empty where it is unknown, or where the profile says it.
	Resend      string
	ResendKnown Certainty
}

// Divergence is a packet that the reference would not have sent.
type Divergence struct {
	Ref     Ref
	At      Instant
	Rule    *Rule // what was broken, one of the protocol's divergence rules: "ack-never-arrived"
	RestsOn RestsOn
	// Assumed is set where a limit decided that no test measures (docs/thresholds.md).
	// Such a divergence is likely at most.
	Assumed bool
	// Inferred says which policy decided that was inferred from the side's own packets.
	// For example, it is "100ms: 99.0 to 101.0 ms, 124 of 126 repeats agree". Such a
	// divergence is likely at most. It is empty for all others.
	Inferred string
	Mismatch        // the first field in which the packet differs
	Because  string // in one sentence
	// Frames is the smallest set of earlier frames from which it follows that the
	// packet is wrong, oldest first.
	Frames []Ref
	// States are the reference's and the captured side's, as its packet tells it:
	// lines of text.
	Reference, Captured string
}

// Mismatch is a field in which a packet differs from the reference's.
type Mismatch struct {
	Field         string // as in the decode tree: "gaffer.ack_bits"
	Expected, Got string // as text
	// ExpectedBits and GotBits are the values of a field whose bits matter, such as
	// ack_bits. Their Width is 0 for other fields.
	ExpectedBits, GotBits Bits
}

// Bits is a value whose single bits matter.
type Bits struct {
	Value uint64
	Width int // in bits, as String writes them: 4 for each digit
}

// Hex returns a value that String writes with so many hexadecimal digits at least.
func Hex(value uint64, digits int) Bits {
	return Bits{Value: value, Width: 4 * max(digits, (bits.Len64(value)+3)/4)}
}

// String returns the value in hexadecimal: "0x0f".
func (b Bits) String() string { return fmt.Sprintf("0x%0*x", b.Width/4, b.Value) }

// Differ returns the mismatch of a field. It formats both values as text, and keeps
// those of type Bits as they are too.
func Differ(field string, expected, got any) Mismatch {
	m := Mismatch{Field: field, Expected: fmt.Sprint(expected), Got: fmt.Sprint(got)}
	m.ExpectedBits, _ = expected.(Bits)
	m.GotBits, _ = got.(Bits)
	return m
}

// Diverge returns the divergence of a datagram that the reference would not have
// sent, with what its reason rests on. It follows from the given frames, which can
// be in any order; 0 stands for none.
func Diverge(
	d *Datagram, rule *Rule, rests RestsOn, m Mismatch, because string, frames ...Ref,
) *Divergence {
	v := &Divergence{Ref: d.Ref, At: d.At, Rule: rule, RestsOn: rests, Mismatch: m, Because: because}
	for _, f := range frames {
		if f != 0 {
			v.Frames = append(v.Frames, f)
		}
	}
	slices.Sort(v.Frames)
	v.Frames = slices.Compact(v.Frames)
	return v
}
