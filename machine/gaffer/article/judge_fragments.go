package article

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// fragmentJudge compares a flow of the fragmentation sample with the reference. Nothing is
// sent again and nothing is acknowledged, so each side is judged by itself:
//
//	near side   numbers its packets one by one; the fragments of a packet leave
//	            together and in order
//	both        a packet that is larger than a fragment travels in fragments, and
//	            no other does; the fragments of a packet have one count, and the
//	            number of the packet within; two copies are the same
type fragmentJudge struct {
	profile *wire.Profile
	rules   *gaffer.Rules
	size    int // data bytes of a fragment
	sides   [2]fragmentSide
	packet  wire.Packet
	inner   wire.Packet
}

// fragmentSide is one side of a flow.
type fragmentSide struct {
	judge.Judged
	met    bool
	newest int64 // its newest sequence number, unwrapped
	last   machine.Instant
	kept   []keptPiece // by packet and fragment
	counts []keptCount // by packet
}

// keptPiece is a datagram that passed: a fragment, or a whole packet.
type keptPiece struct {
	sequence int64
	digest   uint64
	ref      machine.Ref
	id       int
	live     bool
}

// keptCount is a packet of which something passed.
type keptCount struct {
	sequence int64
	ref      machine.Ref
	count    int // of fragments; 0 for a packet that travels whole
	live     bool
}

const (
	// piecesKept is how many fragments of a side the judge remembers, each with a digest
	// of its bytes.
	// Source: bound, the fragments whose bytes are remembered
	piecesKept = 512
	// countsKept is how many packets of a side the judge remembers, each with its fragment
	// count.
	// Source: bound, the packets whose fragment count is remembered
	countsKept = 128
)

func newFragmentJudge(p *wire.Profile, facts machine.Facts) *fragmentJudge {
	j := &fragmentJudge{profile: p, rules: gaffer.RulesOf(p), size: p.FragmentSize}
	if j.size == 0 {
		j.size = 1024 // the article's size
	}
	for i := range j.sides {
		s := &j.sides[i]
		s.Side, s.Rules = machine.Side(i), j.rules
		s.Opinion.Inferred.Tick = facts.Tick[i]
		if facts.Vantage.Near(s.Side) {
			s.Near = &judge.NearSide{}
		}
	}
	return j
}

// Observe judges the next datagram.
func (j *fragmentJudge) Observe(d *machine.Datagram) {
	p := &j.packet
	err := j.profile.Parse(d.Bytes, d.Length, p)
	s := &j.sides[d.From]
	head := p.HeaderOffset + p.HeaderLen // behind it stands whether this is a fragment
	if p.Kind > wire.KindFragment || err != nil && (!errors.Is(err, base.ErrSnapped) ||
		p.Kind == wire.KindFragment && p.FragmentCount == 0 || p.HeaderLen == 0 || len(d.Bytes) <= head) {
		s.PassesOver(d, err)
		return
	}
	if p.Sequence == 0 && s.met && s.newest&0xffff < 0xff00 && d.At.Sub(s.last) >= restartSilence {
		// It may be another program on the same addresses.
		o := s.Opinion
		*s = fragmentSide{
			Judged: judge.Judged{Side: s.Side, Rules: s.Rules, Near: s.Near, Opinion: o}, kept: s.kept,
			counts: s.counts,
		}
		clear(s.kept)
		clear(s.counts)
		s.Opinion.Undecided++
	}
	s.last = d.At
	if s.Opinion.Divergence == nil {
		s.Opinion.Compared++
		v := j.alike(s, d, p)
		if v == nil && s.Near != nil {
			v = s.Number(j.rules, d, p)
			s.ForgetUnread()
		}
		if v == nil {
			v = s.Uneven(d, p)
		}
		s.Opinion.Divergence = v
	}
	s.Sent.Pass(j.rules, p.Sequence, p.Kind == wire.KindFragment)
}

// alike compares a datagram with the others of its packet, and keeps it.
func (j *fragmentJudge) alike(s *fragmentSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	if s.kept == nil {
		s.kept, s.counts = make([]keptPiece, piecesKept), make([]keptCount, countsKept)
	}
	q := int64(p.Sequence)
	if s.met {
		q = j.profile.Space().Unwrap(p.Sequence, s.newest)
	}
	s.newest, s.met = max(s.newest, q), true
	id, count := -1, 0
	if p.Kind == wire.KindFragment {
		id, count = p.FragmentID, p.FragmentCount
	}
	c := &s.counts[uint64(q)%countsKept]
	if !c.live || c.sequence != q {
		if c.live && c.sequence > q {
			return nil // too old: its fragments are no longer kept
		}
		*c = keptCount{sequence: q, ref: d.Ref, count: count, live: true}
		s.Opinion.Inferred.Submitted++
	}
	first := c.ref
	switch {
	case c.count != count && (c.count == 0 || count == 0):
		return diverges(d, judge.SequenceReuse, machine.RestsOnOwn,
			machine.Differ("gaffer.sequence", "another number", p.Sequence),
			fmt.Sprintf("packet %d was sent twice: once whole and once in fragments", p.Sequence), first)
	case c.count != count:
		return diverges(d, judge.Fragments, machine.RestsOnOwn, machine.Differ("gaffer.fragment.count", c.count, count),
			"all fragments of a packet name the same count", first)
	case count == 0 && d.Length > j.size:
		return diverges(d, PacketTooLarge, machine.RestsOnOwn,
			machine.Differ("gaffer.payload.length", fmt.Sprintf("fragments of %d bytes", j.size),
				fmt.Sprintf("%d bytes", d.Length)), "a packet that is larger than a fragment travels in fragments")
	case count == 1:
		return diverges(d, FragmentNeedless, machine.RestsOnOwn, machine.Differ("gaffer.fragment.count", "2 at least", 1),
			"a packet that fits into one fragment travels whole")
	}
	b := d.Bytes[min(p.PayloadOffset, len(d.Bytes)):]
	if v := j.within(d, p, b); v != nil {
		return v
	}
	if len(d.Bytes) < d.Length {
		return nil
	}
	e, digest := &s.kept[uint64(q*257+int64(id))%piecesKept], machine.Digest(2, b)
	if e.live && e.sequence == q && e.id == id && e.digest != digest {
		return diverges(d, judge.SequenceReuse, machine.RestsOnOwn,
			machine.Differ("gaffer.payload", "the bytes that were sent before", "other bytes"),
			fmt.Sprintf("packet %d was sent before with other content: it is another packet under the same number", p.Sequence),
			e.ref)
	}
	if !e.live || e.sequence <= q {
		*e = keptPiece{q, digest, d.Ref, id, true}
	}
	return nil
}

// within compares the number of a first fragment with that of the packet that it begins.
func (j *fragmentJudge) within(d *machine.Datagram, p *wire.Packet, b []byte) *machine.Divergence {
	if p.Kind != wire.KindFragment || p.FragmentID != 0 {
		return nil
	}
	// The packet is cut off where the fragment ends, so only its header can be read.
	_ = j.profile.Parse(b, len(b)+1, &j.inner)
	if j.inner.HeaderLen == 0 && j.inner.PayloadOffset == 0 || j.inner.Sequence == p.Sequence {
		return nil
	}
	return diverges(d, FragmentHeader, machine.RestsOnOwn, machine.Differ("gaffer.sequence", j.inner.Sequence, p.Sequence),
		fmt.Sprintf("the packet that the fragment begins has number %d by its own header", j.inner.Sequence))
}

// Finish ends the flow: what is still open counts as undecided.
func (j *fragmentJudge) Finish() {
	for i := range j.sides {
		o := &j.sides[i].Opinion
		switch {
		case j.sides[i].Near == nil:
			o.Undecided = o.Compared
			o.Why = machine.NotCapturedHere
		case o.Undecided > 0:
			o.Why = "numbers begin anew: it may be another program on the same addresses"
		}
	}
}

// Opinion returns what is found of a side.
func (j *fragmentJudge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].Opinion }
