package judge

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// stateMost is how many ids a drawn state lists.
// Source: bound, the ids that a drawn state lists
const stateMost = 6

// draw writes both states into a divergence.
func (s *judged) draw(j *Judge, d *machine.Datagram, v *machine.Divergence) {
	if v == nil || v.Captured != "" {
		return
	}
	v.Captured = s.told(&j.config.Profile, d, &j.pk)
	v.Reference = s.state(d, s.pairOf(&j.pk))
}

// state draws what the reference of a side knows when a datagram diverges. At a tap at the side,
// that is what it has to acknowledge. Everywhere it is where its own packets stand.
func (s *judged) state(d *machine.Datagram, lane srdp.Pair) string {
	var parts []string
	if s.near && !s.stream {
		parts = append(parts, "to acknowledge: "+
			listed(len(s.asked), func(i int) string { return fmt.Sprint(s.asked[i].id) }))
	}
	l := s.known(lane)
	if l == nil || !l.met {
		return strings.Join(append(parts, "no data sent"), "; ")
	}
	var open []string
	l.sent.each(func(e *outgoing) {
		if e.acks > 0 || e.ref == d.Ref {
			return
		}
		text := fmt.Sprint(e.id)
		if e.copies > 1 {
			text += fmt.Sprintf(" (%d copies)", e.copies)
		}
		open = append(open, text)
	})
	// The oldest ones may have been given up, so the newest say more.
	skipped := max(0, len(open)-stateMost)
	text := listed(len(open)-skipped, func(i int) string { return open[skipped+i] })
	if skipped > 0 {
		text += fmt.Sprintf(" and %d older", skipped)
	}
	parts = append(parts, "sent and not acknowledged: "+text)
	if l.plain {
		parts = append(parts, fmt.Sprintf("newest id %d", l.top))
	}
	if l.waits {
		parts = append(parts, fmt.Sprintf("in order: %d", l.ordered))
	}
	return strings.Join(parts, "; ")
}

// listed formats the first of n words.
func listed(n int, word func(i int) string) string {
	if n <= 0 {
		return "none"
	}
	var b strings.Builder
	for i := range min(n, stateMost) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(word(i))
	}
	if n > stateMost {
		fmt.Fprintf(&b, " and %d more", n-stateMost)
	}
	return b.String()
}

// told draws the captured side as its datagram says it.
func (s *judged) told(p *wire.Profile, d *machine.Datagram, pk *wire.Packet) string {
	var b strings.Builder
	switch {
	case !p.Fits(d.Bytes, max(d.Length, len(d.Bytes)), pk):
		fmt.Fprintf(&b, "%d bytes, the first % x", d.Length, d.Bytes[:min(len(d.Bytes), p.HeaderLen())])
		return b.String()
	case pk.Ack:
		fmt.Fprintf(&b, "acknowledgement of %d", pk.ID)
	default:
		fmt.Fprintf(&b, "data %d", pk.ID)
		if l := s.known(s.pairOf(pk)); l != nil {
			if e := l.sent.find(pk.ID); e != nil && e.ref != d.Ref {
				fmt.Fprintf(&b, ", copy %d of frame %d", e.copies+1, e.ref.Frame())
				fmt.Fprintf(&b, ", %.0f ms after the one before", machine.Milliseconds(d.At.Sub(e.lastAt)))
			}
		}
		if pk.Flags&p.Order != 0 {
			b.WriteString(", keeps order")
		}
		if pk.Flags&p.DontDuplicate != 0 {
			b.WriteString(", once")
		}
	}
	if s.proxied {
		fmt.Fprintf(&b, ", %s to %s", pk.Source, pk.Destination)
	}
	return b.String()
}
