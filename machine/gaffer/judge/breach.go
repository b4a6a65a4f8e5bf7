package judge

import (
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// withdrawn looks for packets that are received and in range, and that the header leaves out.
func (n *NearSide) withdrawn(d *machine.Datagram, c gaffer.Claims) *machine.Divergence {
	r := n.base.Rules
	for k := range min(c.Width, 64) {
		q := (c.Newest - uint32(k)) & r.Mask()
		if !r.Omits(c, k) || !n.base.Has(q) || r.NoStaleClear && r.Distance(n.base.NewestReceived(), q) < 0 {
			continue
		}
		frames := gaffer.Refs(n.last)
		if n.arrived != nil && n.arrived[q%64].sequence == q {
			frames = gaffer.Refs(n.arrived[q%64].ref, n.last)
		}
		want := c
		want.Named |= 1 << uint(k)
		return n.diverge2(d, c, n.expected(c), AckWithdrawn, machine.RestsOnOwn,
			fmt.Sprintf("an earlier header acked packet %d; this header covers that number and does not ack it", q), frames)
	}
	return nil
}

// neverArrived returns the divergence of a header that names packet q, which the side cannot
// have received. All of its reasons rest on an absence. Even a packet that was dropped as too
// old may have had an earlier copy that the capture lacks.
func (n *NearSide) neverArrived(peer *Judged, d *machine.Datagram, c gaffer.Claims, q uint32) *machine.Divergence {
	what := "no packet of that number was captured on its way to this side"
	switch peer.passage(n.base.Rules, q) {
	case passedAhead:
		what = "its peer had not sent a packet of that number"
	case passedFragments:
		what = "not all of its fragments were captured on their way to this side"
	case passedWhole:
		what = "this side dropped it: it was too old, refused, or had a message type out of range"
	}
	frames := gaffer.Refs(n.last)
	return n.diverge2(d, c, n.expected(c), AckNeverArrived, machine.RestsOnBoth,
		fmt.Sprintf("the header acks packet %d, but %s", q, what), frames)
}

// expected returns the claims of the reference that come nearest to those of a header. The
// reference reads the socket datagram by datagram, and the claims with the fewest wrong bits
// win.
func (n *NearSide) expected(c gaffer.Claims) gaffer.Claims {
	r := n.base.Rules
	attempt := n.base.Clone()
	best, least := attempt.Claims(), 1000
	weigh := func() {
		w := attempt.Claims()
		off := 0
		if w.Newest != c.Newest {
			off = 100 + min(max(r.Distance(w.Newest, c.Newest), r.Distance(c.Newest, w.Newest)), 100)
		}
		if off += bits.OnesCount64(w.Named ^ c.Named); off < least {
			best, least = w, off
		}
	}
	weigh()
	for i := range n.queue.n {
		n.read(&attempt, n.queue.at(i), false)
		weigh()
	}
	return best
}

// nearest returns expected as a state, of which only the claims are set.
func (n *NearSide) nearest(c gaffer.Claims) *gaffer.State {
	want := n.expected(c)
	s := gaffer.NewState(n.base.Rules)
	s.Join(want)
	return &s
}

func (n *NearSide) diverge(
	d *machine.Datagram, c gaffer.Claims, want *gaffer.State,
	rule *machine.Rule, rests machine.RestsOn, because string, frames ...machine.Ref,
) *machine.Divergence {
	return n.diverge2(d, c, want.Claims(), rule, rests, because, frames)
}

func (n *NearSide) diverge2(
	d *machine.Datagram, got, want gaffer.Claims,
	rule *machine.Rule, rests machine.RestsOn, because string, frames []machine.Ref,
) *machine.Divergence {
	r := n.base.Rules
	return &machine.Divergence{
		Ref: d.Ref, At: d.At, Rule: rule, RestsOn: rests, Mismatch: mismatchOf(r, want, got),
		Because: because, Frames: frames, Reference: picture(r, want), Captured: picture(r, got),
	}
}

// lacking names the first packet that want names and got does not.
func lacking(r *gaffer.Rules, want, got gaffer.Claims) string {
	for k := range min(want.Width, 64) {
		q := (want.Newest - uint32(k)) & r.Mask()
		if want.Named>>uint(k)&1 == 1 && !got.Names(r, q) {
			return fmt.Sprintf("packet %d", q)
		}
	}
	return "nothing"
}
