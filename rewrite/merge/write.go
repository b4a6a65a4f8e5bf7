package merge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Passage is one packet, according to both captures.
type Passage struct {
	At      machine.Instant // by A's clock, when it passed the first tap that saw it
	Pair    *Pair
	Side    machine.Side   // the side that sent it, as named at tap A
	Frames  [2]machine.Ref // at each tap; zero if it was not seen
	Outcome string         // crossed, lost, missed, undecided, copy or unseen
	Delayed bool           // it was seen at both, so Delay is known
	Delay   time.Duration

	tap int // the tap of At
}

var outcomeWords = [...]string{"", "crossed", "lost", "missed", "undecided", "copy", "unseen"}

// AddrAtB returns the address at tap B of a side, named as at tap A.
func (p *Pair) AddrAtB(s machine.Side) netip.AddrPort { return p.Flows[1].Addr(p.sideAt(1, s)) }

// each yields every packet of the pair, one direction after the other.
func (p *Pair) each(m *Merged, yield func(Passage)) {
	for _, s := range []machine.Side{machine.A, machine.B} {
		first := p.First[s]
		up, down := p.passed(first, s), p.passed(1-first, s)
		times := m.Clock.of
		for i := range up {
			u := &up[i]
			x := Passage{At: times(first, u.at), Pair: p, Side: s, Outcome: outcomeWords[u.outcome], tap: first}
			x.Frames[first] = u.ref
			if u.mate >= 0 {
				x.Frames[1-first] = down[u.mate].ref
				x.Delay, x.Delayed = times(1-first, down[u.mate].at).Sub(x.At), true
			}
			yield(x)
		}
		for i := range down {
			d := &down[i]
			if d.outcome == outcomeCrossed {
				continue
			}
			x := Passage{At: times(1-first, d.at), Pair: p, Side: s, Outcome: outcomeWords[d.outcome], tap: 1 - first}
			x.Frames[1-first] = d.ref
			if d.mate >= 0 { // a copy of that packet
				x.Frames[first] = up[d.mate].ref
				x.Delay, x.Delayed = x.At.Sub(times(first, up[d.mate].at)), true
			}
			yield(x)
		}
	}
}

// Passages returns every packet in the order of time by A's clock.
func (m *Merged) Passages() iter.Seq[Passage] {
	var list []Passage
	for _, p := range m.Pairs {
		p.each(m, func(x Passage) { list = append(list, x) })
	}
	slices.SortStableFunc(list, func(x, y Passage) int { return cmp.Compare(x.At, y.At) })
	return slices.Values(list)
}

// Source is a capture that can be read again.
type Source interface {
	capture.Source
	Rewind() error
}

// remark is a comment on a frame.
type remark struct {
	ref  machine.Ref
	text string
}

// remarks returns the comments on the frames of each tap, in the order of the
// frames.
func (m *Merged) remarks() (list [2][]remark) {
	for _, p := range m.Pairs {
		p.each(m, func(x Passage) {
			other := [2]string{"B", "A"}
			say := func(tap int, format string, args ...any) {
				if x.Frames[tap] != 0 {
					list[tap] = append(list[tap], remark{x.Frames[tap], "ackscope: " + fmt.Sprintf(format, args...)})
				}
			}
			first := x.Pair.First[x.Side]
			switch x.Outcome {
			case "crossed":
				say(first, "at tap %s after %v, in its frame %d", other[first], x.Delay, x.Frames[1-first].Frame())
				say(1-first, "passed tap %s %v before, in its frame %d", other[1-first], x.Delay, x.Frames[first].Frame())
			case "copy":
				say(1-first, "a copy made between the taps, %v after the packet in frame %d of tap %s", x.Delay,
					x.Frames[first].Frame(), other[1-first])
			case "lost":
				say(first, "lost between the taps")
			case "missed":
				say(first, "received, but missed by tap %s", other[first])
			case "unseen":
				say(1-first, "not seen at tap %s: missed there, or made between the taps", other[1-first])
			default:
				say(x.tap, "the other tap was not recording for sure")
			}
		})
	}
	for tap := range list {
		slices.SortStableFunc(list[tap], func(x, y remark) int { return cmp.Compare(x.ref, y.ref) })
	}
	return list
}

// Write calls to for every frame of both captures, in the order of time by A's
// clock, with comments on the frame. Frames of B have file 1 in their Ref.
func (m *Merged) Write(from [2]Source, to func(f *capture.Frame, comments ...string) error) error {
	remarks := m.remarks()
	var frames [2]capture.Frame
	var ends [2]error
	next := func(tap int) {
		f := &frames[tap]
		if ends[tap] = from[tap].Next(f); ends[tap] == nil && tap == 1 {
			f.At = m.Clock.byA(f.At)
		}
	}
	for tap := range from {
		if err := from[tap].Rewind(); err != nil {
			return err
		}
		next(tap)
	}
	var comments []string
	for ends[0] == nil || ends[1] == nil {
		tap := 0
		if ends[0] != nil || ends[1] == nil && frames[1].At < frames[0].At {
			tap = 1
		}
		f := &frames[tap]
		comments = comments[:0]
		for len(remarks[tap]) > 0 && remarks[tap][0].ref <= f.Ref {
			if remarks[tap][0].ref == f.Ref {
				comments = append(comments, remarks[tap][0].text)
			}
			remarks[tap] = remarks[tap][1:]
		}
		f.Ref = machine.MakeRef(tap, f.Ref.Frame())
		if err := to(f, comments...); err != nil {
			return err
		}
		next(tap)
	}
	for tap := range ends {
		if errors.Is(ends[tap], io.EOF) {
			ends[tap] = nil
		}
	}
	return errors.Join(ends[:]...)
}
