package judge

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ownFragments is the packet that a near side is sending in fragments.
type ownFragments struct {
	next  int // the fragment that is due; 0 for none
	count int
	ref   machine.Ref
}

// Number checks the sequence number and the fragments of a near side's datagram. The next
// packet has the next number, and fragments leave together and in order.
func (s *Judged) Number(r *gaffer.Rules, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	f := &s.frag
	due := (s.Sent.top + 1) & r.Mask()
	diverge := func(
		rule *machine.Rule, rests machine.RestsOn, field string, expected, got any, because string,
	) *machine.Divergence {
		return &machine.Divergence{
			Ref: d.Ref, At: d.At, Rule: rule, RestsOn: rests,
			Mismatch: machine.Differ(field, expected, got), Because: because, Frames: gaffer.Refs(f.ref),
			Reference: fmt.Sprintf("next sequence %d", due), Captured: fmt.Sprintf("sequence %d", p.Sequence),
		}
	}
	defer func() { f.ref = d.Ref }()
	if v := s.leftOut(d, p, due); v != nil {
		return v
	}
	if s.cutOut(p, due) {
		if f.next = 0; p.Kind == wire.KindFragment && p.FragmentID+1 < p.FragmentCount {
			f.count, f.next = p.FragmentCount, p.FragmentID+1
		}
		return nil
	}
	if f.next > 0 {
		switch {
		case p.Kind != wire.KindFragment || p.Sequence != s.Sent.top:
			return diverge(Fragments, stepsTo(r.Distance(p.Sequence, s.Sent.top)), "gaffer.sequence", s.Sent.top, p.Sequence,
				fmt.Sprintf("fragment %d of %d of packet %d is due: the fragments of a packet leave together", f.next,
					f.count, s.Sent.top))
		case p.FragmentCount != f.count:
			return diverge(Fragments, machine.RestsOnOwn, "gaffer.fragment.count", f.count, p.FragmentCount,
				"all fragments of a packet name the same count")
		case p.FragmentID != f.next:
			return diverge(Fragments, stepsTo(p.FragmentID-f.next), "gaffer.fragment.id", f.next, p.FragmentID,
				"fragments leave in their order")
		}
		f.next++
		if f.next == f.count {
			f.next = 0
		}
		return nil
	}
	if s.Sent.met && p.Sequence != due {
		return diverge(Sequence, stepsTo(r.Distance(p.Sequence, due)), "gaffer.sequence", due, p.Sequence,
			"the sequence number steps by one from packet to packet")
	}
	if p.Kind != wire.KindFragment {
		return nil
	}
	if p.FragmentID != 0 && s.Sent.met {
		return diverge(Fragments, machine.RestsOnAbsence, "gaffer.fragment.id", 0, p.FragmentID,
			"a packet begins with its fragment 0")
	}
	f.count, f.next = p.FragmentCount, p.FragmentID+1
	if f.next >= f.count {
		f.next = 0
	}
	return nil
}

// emptyLast returns the divergence of a last fragment without a byte. A packet of size bytes has
// as many fragments as it takes to hold them: ⌈size / bytes of a fragment⌉.
func emptyLast(d *machine.Datagram, p *wire.Packet, whole bool) *machine.Divergence {
	if p.Kind != wire.KindFragment || !whole || p.FragmentID != p.FragmentCount-1 || p.PayloadLen > 0 {
		return nil
	}
	return &machine.Divergence{
		Ref: d.Ref, At: d.At, Rule: Fragments, RestsOn: machine.RestsOnOwn,
		Mismatch:  machine.Differ("gaffer.payload.length", "1 or more", p.PayloadLen),
		Because:   "the last fragment of a packet holds what the others leave over, which is at least one byte",
		Reference: fmt.Sprintf("%d fragments", p.FragmentCount-1),
		Captured:  fmt.Sprintf("fragment %d of %d has no byte", p.FragmentID, p.FragmentCount),
	}
}

// stepsTo returns what the divergence of a number rests on, by how far it lies ahead of the
// one that is due. If 9 comes where 7 is due, the capture may lack 7 and 8. If 5 comes where
// 7 is due, no missing packet explains it.
func stepsTo(ahead int) machine.RestsOn {
	if ahead > 0 {
		return machine.RestsOnAbsence
	}
	return machine.RestsOnOwn
}

// fragmentSize is the size of a side's fragments. All of them have one size, but for the last
// one of each packet, which is no larger.
type fragmentSize struct {
	size int         // in bytes; 0 until a fragment passed that is not the last of its packet
	ref  machine.Ref // the first such fragment
}

// odd reports whether a fragment is not of the size that the first one showed.
func (f *fragmentSize) odd(d *machine.Datagram, p *wire.Packet) bool {
	last := p.FragmentID == p.FragmentCount-1
	if f.size == 0 && !last {
		f.size, f.ref = p.PayloadLen, d.Ref
	}
	return f.size > 0 && (!last && p.PayloadLen != f.size || p.PayloadLen > f.size)
}

// Uneven returns the divergence of a fragment that is not of the size of those before.
func (s *Judged) Uneven(d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	f := &s.parts
	if p.Kind != wire.KindFragment || !f.odd(d, p) {
		return nil
	}
	because := "all fragments but the last of a packet are of one size: it says where in the packet each belongs"
	if p.FragmentID == p.FragmentCount-1 {
		because = "all fragments of a packet but the last are of one size, and the last is no larger"
	}
	return &machine.Divergence{
		Ref: d.Ref, At: d.At, Rule: Fragments, RestsOn: machine.RestsOnOwn,
		Mismatch:  machine.Differ("gaffer.payload.length", f.size, p.PayloadLen),
		Because:   because,
		Frames:    gaffer.Refs(f.ref),
		Reference: fmt.Sprintf("fragments of %d bytes", f.size),
		Captured:  fmt.Sprintf("fragment %d of %d has %d bytes", p.FragmentID, p.FragmentCount, p.PayloadLen),
	}
}
