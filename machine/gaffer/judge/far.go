package judge

import (
	"fmt"
	"hash/crc32"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// farSide is what the headers of a side away from the tap have said. Each header is a
// snapshot of what the side had received. In the order of their numbers, each snapshot must
// contain the one before it.
type farSide struct {
	ring  []farHeader // by sequence modulo its size
	count int
	met   bool
	top   uint32
}

// farHeader is one header of the side.
type farHeader struct {
	ref      machine.Ref
	claims   gaffer.Claims
	sum      uint32 // checksum of the datagram
	sequence uint32
	live     bool
}

// farFirst and farHeaders are how many headers of a far side the judge has room for, at
// first and at most.
// Source: bound, the headers of a far side that are kept
const farFirst, farHeaders = 8, 64

// at returns the header of a packet; nil where it is not kept.
func (f *farSide) at(q uint32) *farHeader {
	if h := &f.ring[int(q)&(len(f.ring)-1)]; h.live && h.sequence == q {
		return h
	}
	return nil
}

// enter keeps a header. The ring grows with use, up to farHeaders.
func (f *farSide) enter(h farHeader) {
	if f.count++; f.count > len(f.ring) && len(f.ring) < farHeaders {
		old := f.ring
		f.ring = make([]farHeader, 2*len(old))
		for _, o := range old {
			if o.live {
				f.ring[int(o.sequence)&(len(f.ring)-1)] = o
			}
		}
	}
	f.ring[int(h.sequence)&(len(f.ring)-1)] = h
}

// farDiverge returns the divergence of the header that is judged from the claims that
// the reference would have made.
type farDiverge func(
	want gaffer.Claims, rule *machine.Rule, rests machine.RestsOn, because string, frames ...machine.Ref,
) *machine.Divergence

// judge compares a header of the side with its other headers, and with what passed the tap
// towards the side.
func (f *farSide) judge(r *gaffer.Rules, s, peer *Judged, d *machine.Datagram, h wire.Header) *machine.Divergence {
	c := s.claims(h)
	if f.ring == nil {
		f.ring = make([]farHeader, farFirst)
	}
	ahead := 1
	if f.met {
		ahead = r.Distance(h.Sequence, f.top)
	}
	var diverge farDiverge = func(
		want gaffer.Claims, rule *machine.Rule, rests machine.RestsOn, because string, frames ...machine.Ref,
	) *machine.Divergence {
		return &machine.Divergence{
			Ref: d.Ref, At: d.At, Rule: rule, RestsOn: rests, Mismatch: mismatchOf(r, want, c),
			Because: because, Frames: gaffer.Refs(frames...), Reference: picture(r, want), Captured: picture(r, c),
		}
	}
	u := unsent{rules: r, side: s, peer: peer, number: h.Sequence, claims: c, at: d.At, diverge: diverge}
	if -ahead >= len(f.ring) {
		// The headers that were sent just before and after it are no longer kept.
		if top := f.at(f.top); top != nil {
			u.before = &top.claims
			if v := u.judge(); v != nil {
				return v
			}
		}
		s.Opinion.Undecided++
		return nil
	}
	if old := f.at(h.Sequence); ahead <= 0 && old != nil {
		switch {
		case old.claims != c:
			return diverge(old.claims, SequenceReuse, machine.RestsOnOwn,
				fmt.Sprintf("packet %d was sent before with other acks: it is another packet under the same number", h.Sequence),
				old.ref)
		case old.sum != sumOf(d.Bytes):
			v := diverge(old.claims, SequenceReuse, machine.RestsOnOwn,
				fmt.Sprintf("packet %d was sent before with other content: it is another packet under the same number", h.Sequence),
				old.ref)
			v.Mismatch = machine.Differ("gaffer.sequence", "another number", h.Sequence)
			return v
		}
		return nil // a copy by the network
	}
	before, after := f.neighbours(r, h.Sequence, ahead)
	if before != nil && c.Newest != r.Mask() {
		if moved := r.Distance(c.Newest, before.claims.Newest); moved >= 0 && moved < 64 {
			u.told = before.claims.Named << uint(moved)
		}
	}
	if before != nil {
		u.before = &before.claims
	}
	if v := u.judge(); v != nil {
		return v
	}
	if before != nil {
		if want, ok := contains(r, c, before.claims); !ok {
			return diverge(want, AckForgotten, machine.RestsOnOwn,
				fmt.Sprintf("packet %d, which was sent before, acks more", before.sequence), before.ref)
		}
	}
	if after != nil {
		if _, ok := contains(r, after.claims, c); !ok {
			return diverge(after.claims, AckForgotten, machine.RestsOnOwn,
				fmt.Sprintf("packet %d, which was sent later though it came earlier, acks less", after.sequence), after.ref)
		}
	}
	if f.open(r, peer, c) {
		s.Opinion.Undecided++
	}
	if ahead > 0 {
		f.met, f.top = true, h.Sequence
	}
	f.enter(farHeader{d.Ref, c, sumOf(d.Bytes), h.Sequence, true})
	return nil
}

// sumOf returns a checksum that tells datagrams apart.
func sumOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// neighbours returns the kept headers that were sent just before and just after a packet;
// nil for none.
func (f *farSide) neighbours(r *gaffer.Rules, sequence uint32, ahead int) (before, after *farHeader) {
	if !f.met {
		return nil, nil
	}
	if ahead > 0 {
		return f.at(f.top), nil
	}
	for n := uint32(1); n < uint32(len(f.ring)); n++ {
		if h := f.at((sequence - n) & r.Mask()); h != nil {
			before = h
			break
		}
	}
	for n := 1; n <= -ahead; n++ {
		if h := f.at((sequence + uint32(n)) & r.Mask()); h != nil {
			return before, h
		}
	}
	return before, nil
}

// contains reports whether a later snapshot contains an earlier one. If it does not, want is
// the least that it must say.
func contains(r *gaffer.Rules, later, earlier gaffer.Claims) (want gaffer.Claims, ok bool) {
	if earlier.Nothing(r) {
		return later, true
	}
	ahead := r.Distance(later.Newest, earlier.Newest)
	if later.Nothing(r) || ahead < 0 {
		return earlier, false
	}
	if ahead >= 64 {
		return later, true
	}
	must := earlier.Named << uint(ahead)
	if later.Width < 64 {
		must &= 1<<uint(later.Width) - 1
	}
	if must &^= r.Silent(later); must&^later.Named == 0 {
		return later, true
	}
	want = later
	want.Named |= must
	return want, false
}

// open reports whether a header leaves open what became of a packet that passed the tap
// towards the side: the header does not name it.
func (f *farSide) open(r *gaffer.Rules, peer *Judged, c gaffer.Claims) bool {
	if !peer.Sent.met {
		return false
	}
	if c.Nothing(r) || c.Newest != peer.Sent.top {
		return true
	}
	for n := range min(c.Width, 64) {
		if c.Named>>uint(n)&1 == 1 {
			continue
		}
		switch peer.passage(r, (c.Newest-uint32(n))&r.Mask()) {
		case passedWhole, passedFragments:
			return true
		}
	}
	return false
}
