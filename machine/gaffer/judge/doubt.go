package judge

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// doubt is a packet that was read and that the next header did not name: its
// application refused it, or the header is wrong. If the header after it names it
// without another copy having come, the header was wrong; if several spoke of it and
// did not name it, the one that does is.
type doubt struct {
	sequence   uint32
	arrived    machine.Ref
	headers    int  // that had passed by then
	ahead      bool // it is newer than the header's ack, which so is wrong by itself
	divergence *machine.Divergence
}

// resolve returns what follows from a header that names a doubted packet.
func (n *NearSide) resolve(x *doubt, d *machine.Datagram, c gaffer.Claims) *machine.Divergence {
	if x.ahead || n.headers-x.headers < 2 {
		return x.divergence
	}
	return n.diverge(d, c, n.nearest(c), "ack-refused",
		fmt.Sprintf("packet %d was read before frame %d, whose header and those since do not name it, and no other copy "+
			"has come", x.sequence, x.divergence.Ref.Frame()), x.arrived, x.divergence.Ref)
}

// Source: bound, the doubts that are kept
const DoubtsMost = 64

// refuse takes it that the application refused a packet, with what is to be said
// should a later header name it all the same.
func (n *NearSide) refuse(d *machine.Datagram, c gaffer.Claims, p pendingPacket) {
	if len(n.doubts) == DoubtsMost {
		n.refused++ // the oldest, which gives way
	}
	r := n.base.Rules
	want := c
	rule := "ack-omitted"
	switch behind := r.Distance(c.Newest, p.sequence); {
	case behind >= 0 && behind < 64:
		want.Named |= 1 << uint(behind)
	case behind < 0:
		want.Newest, want.Named = p.sequence, c.Named<<uint(min(-behind, 64))|1
		if want.Width < 64 {
			want.Named &= 1<<uint(want.Width) - 1
		}
	}
	field, expected, got := fieldsOf(r, want, c)
	n.doubts = machine.KeepNewest(n.doubts,
		doubt{p.sequence, p.ref, n.headers, r.Distance(c.Newest, p.sequence) < 0, &machine.Divergence{
			Ref: d.Ref, At: d.At, Rule: rule, Field: field, Expected: expected, Got: got,
			Because: fmt.Sprintf("packet %d was read before this header, which names later ones and not it; a later header "+
				"names it without another copy of it", p.sequence),
			Frames: gaffer.Refs(p.ref), Reference: picture(r, want), Captured: picture(r, c),
		}}, DoubtsMost)
}

// retire drops the doubts that headers speak of no more: those were refused.
func (n *NearSide) retire(c gaffer.Claims) {
	r := n.base.Rules
	kept := n.doubts[:0]
	for _, x := range n.doubts {
		if r.Distance(c.Newest, x.sequence) < c.Width {
			kept = append(kept, x)
		} else {
			n.refused++
		}
	}
	n.doubts = kept
}

// doubted returns the doubt about a packet, nil for none.
func (n *NearSide) doubted(q uint32) *doubt {
	for i := range n.doubts {
		if n.doubts[i].sequence == q {
			return &n.doubts[i]
		}
	}
	return nil
}
