package judge

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// doubt is a packet that was read and that the next header leaves out. Either the
// application refused it, or the header is wrong.
//
// A later header that names the packet settles it, unless another copy came in between. If
// it is the next header, the one that left the packet out was wrong. If several headers left
// the packet out, the one that names it is wrong.
type doubt struct {
	sequence   uint32
	arrived    machine.Ref
	headers    int  // headers of the side that had passed by then
	ahead      bool // it is newer than the header's ack, so that header alone is wrong
	divergence *machine.Divergence
}

// resolve returns the divergence that follows from a header that names a doubted packet.
func (n *NearSide) resolve(x *doubt, d *machine.Datagram, c gaffer.Claims) *machine.Divergence {
	if x.ahead || n.headers-x.headers < 2 {
		return x.divergence
	}
	return n.diverge(d, c, n.nearest(c), AckRefused, machine.RestsOnBoth,
		fmt.Sprintf("the side had read packet %d before frame %d, and no header since then acked it; no other copy "+
			"has come", x.sequence, x.divergence.Ref.Frame()), x.arrived, x.divergence.Ref)
}

// DoubtsMost is how many doubts about a side its judge keeps.
// Source: bound, the doubts that are kept
const DoubtsMost = 64

// refuse records that the application may have refused a packet. The doubt holds the
// divergence for the case that a later header names it.
func (n *NearSide) refuse(d *machine.Datagram, c gaffer.Claims, p pendingPacket) {
	n.refusals.add(&p)
	if len(n.doubts) == DoubtsMost {
		n.refused++ // the oldest doubt is dropped: that packet was refused
	}
	r := n.base.Rules
	want := c
	switch behind := r.Distance(c.Newest, p.sequence); {
	case behind >= 0 && behind < 64:
		want.Named |= 1 << uint(behind)
	case behind < 0:
		want.Newest, want.Named = p.sequence, c.Named<<uint(min(-behind, 64))|1
		if want.Width < 64 {
			want.Named &= 1<<uint(want.Width) - 1
		}
	}
	n.doubts = machine.KeepNewest(n.doubts,
		doubt{p.sequence, p.ref, n.headers, r.Distance(c.Newest, p.sequence) < 0, &machine.Divergence{
			Ref: d.Ref, At: d.At, Rule: AckOmitted, RestsOn: machine.RestsOnBoth,
			Mismatch: mismatchOf(r, want, c),
			Because: fmt.Sprintf("the side had read packet %d before this header, which acks later packets only; a later "+
				"header "+
				"acks it, though no other copy had come", p.sequence),
			Frames: gaffer.Refs(p.ref), Reference: picture(r, want), Captured: picture(r, c),
		}}, DoubtsMost)
}

// retire drops the doubts that headers no longer reach: those packets were refused.
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

// doubted returns the doubt about a packet; nil for none.
func (n *NearSide) doubted(q uint32) *doubt {
	for i := range n.doubts {
		if n.doubts[i].sequence == q {
			return &n.doubts[i]
		}
	}
	return nil
}
