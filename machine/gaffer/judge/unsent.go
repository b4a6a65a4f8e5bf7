package judge

import (
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// unsent looks for packets that a header of a far side names and that the side cannot have
// received.
type unsent struct {
	rules   *gaffer.Rules
	side    *Judged // the sender of the header
	peer    *Judged // the sender of these packets
	number  uint32  // of the packet with the header
	claims  gaffer.Claims
	told    uint64         // packets that the header before named: they were looked at then
	before  *gaffer.Claims // of the header before; nil for none
	at      machine.Instant
	diverge farDiverge
}

func (u *unsent) judge() *machine.Divergence {
	r, c, peer := u.rules, u.claims, u.peer
	if c.Nothing(r) || !peer.Sent.met {
		return nil // what it names may have come before the capture
	}
	// An endpoint that has just begun has the largest number as its newest. Packets from
	// before the wrap look older to it.
	edge := c.Newest == r.Mask() && c.Named&1 == 0
	ahead := !edge && peer.passage(r, c.Newest) == passedAhead
	if u.before == nil && !edge {
		peer.goesOn(u.number, c)
	}
	if v := u.names(ahead); v != nil {
		return v
	}
	if r.AckBelow || edge || c.Named&1 == 1 || u.ofEarlier(c.Newest) {
		return nil
	}
	// A first fragment moves ack before its packet is received. Nothing else does.
	want := c
	switch how := peer.passage(r, c.Newest); {
	case how == passedWhole:
		want.Named |= 1
		return u.diverge(want, AckWithoutBit, machine.RestsOnPeer, withoutBit(c.Newest))
	case how == passedNone && r.Partial == 0 && !peer.mayHavePassed(c.Newest):
		want = gaffer.Claims{Newest: peer.Sent.top, Width: c.Width}
		if c.Named != 0 {
			n := bits.TrailingZeros64(c.Named)
			want.Newest, want.Named = (c.Newest-uint32(n))&r.Mask(), c.Named>>uint(n)
		}
		return u.never(want, c.Newest, fmt.Sprintf("ack names packet %d, which was not captured", c.Newest))
	}
	return nil
}

// names judges the packets that the header names. ahead says that ack itself is newer than all
// that passed.
func (u *unsent) names(ahead bool) *machine.Divergence {
	r, c, peer := u.rules, u.claims, u.peer
	want := c
	lied, what, older := uint32(0), "", true
	for left := c.Named &^ u.told; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		q := (c.Newest - uint32(n)) & r.Mask()
		says := ""
		switch how := peer.passage(r, q); {
		case how == passedAhead:
			says = "had not been sent"
		case how == passedNone && !r.NoStaleClear:
			says = "was not captured on its way to this side"
		case how == passedBefore && peer.neverSent(q):
			says = "is older than packet 0, with which its peer began"
		}
		if says == "" || u.lacks(q) {
			continue
		}
		want.Named &^= 1 << uint(n)
		lied, what, older = q, says, older && peer.neverSent(q)
	}
	switch {
	case ahead && !u.lacks(c.Newest):
		want = gaffer.Claims{Newest: peer.Sent.top, Named: 0, Width: c.Width}
		if behind := r.Distance(c.Newest, peer.Sent.top); behind < 64 {
			want.Named = c.Named >> uint(behind)
		}
		return u.never(want, c.Newest,
			fmt.Sprintf("ack names packet %d, and its peer's newest is %d", c.Newest, peer.Sent.top))
	case want.Named != c.Named:
		v := u.never(want, lied, fmt.Sprintf("the header names packet %d, which %s", lied, what))
		if older && u.current() {
			v.RestsOn &^= machine.RestsOnAbsence
		}
		return v
	}
	return nil
}

// current reports whether the side knows of no session before the capture. It has just begun, or its
// header before names a packet of this session that passed the tap.
func (u *unsent) current() bool {
	if u.peer.before.earlier.Known() {
		return false
	}
	if u.side.before.young {
		return true
	}
	if u.before == nil {
		return false
	}
	how := u.peer.passage(u.rules, u.before.Newest)
	return how == passedWhole || how == passedFragments
}

// never returns the divergence of a header that names packet q, which the side cannot have
// received.
func (u *unsent) never(want gaffer.Claims, q uint32, because string) *machine.Divergence {
	v := u.diverge(want, AckUnsent, machine.RestsOnBoth, because)
	v.Assumed = u.peer.assumes(q)
	return v
}

// lacks reports whether the capture may lack a packet. It may have passed before the capture, or
// belong to the session before.
func (u *unsent) lacks(q uint32) bool { return u.peer.mayHavePassed(q) || u.ofEarlier(q) }

// ofEarlier reports whether a packet may belong to the session before. The side learns of such
// packets while they are under way. Later it can only repeat them.
func (u *unsent) ofEarlier(q uint32) bool {
	e := &u.peer.before.earlier
	return e.Has(q) && (u.before == nil || u.before.Newest == q || e.UnderWay(u.at))
}

// withoutBit is the reason of AckWithoutBit.
func withoutBit(q uint32) string {
	return fmt.Sprintf("ack names packet %d and bit 0 does not, though it is no packet of fragments", q)
}
