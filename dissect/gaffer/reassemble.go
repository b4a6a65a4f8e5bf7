package gaffer

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
	"github.com/ackscope/ackscope/wire/seq"
)

// Reassembler joins the fragments of packets and the slices of blocks, for display. Of
// each side it keeps at most as many packets as the dialect's own receivers do, and at
// most maxHeld bytes. It also joins what the receiver would have dropped. The tracker
// reports what was dropped.
type Reassembler struct {
	profile *wire.Profile
	sides   [2]assembly
}

// Whole is a packet or a block that was joined. Bytes and Sizes are valid until the next Add.
type Whole struct {
	Kind     wire.Kind // KindFragment: Bytes is a packet, to be parsed; KindSlice: the data of a block
	Sequence uint32    // of the packet, or the number of the block
	Pieces   int
	Sizes    []int // of the pieces, which end Bytes
	Bytes    []byte
}

const (
	maxHeld    = 4 << 20 // bytes of unfinished packets of one side
	maxPartial = 64      // unfinished packets of one side
	keptBlocks = 2       // blocks of one side: the present one and the previous one
)

type assembly struct {
	partial *seq.Ring[partial]
	blocks  [keptBlocks]partial
	held    int
	joined  []byte
	sizes   []int
}

// partial is a packet or block of which some pieces have arrived.
type partial struct {
	number  uint32
	count   int
	missing int
	header  wire.Header // of reliable's fragment 0
	pieces  [][]byte
	done    bool
}

// NewReassembler returns a Reassembler for a flow that p reads.
func NewReassembler(p *wire.Profile) *Reassembler {
	r := &Reassembler{profile: p}
	size := maxPartial
	if p.ReassemblyBuffer > 0 {
		size = min(p.ReassemblyBuffer, maxPartial)
	}
	for i := range r.sides {
		a := &r.sides[i]
		a.partial = seq.NewRing[partial](p.Space(), size)
		a.partial.Forget = a.drop
	}
	return r
}

// Add takes a datagram of the flow and returns what it completes. Datagrams that are
// malformed, cut by the snap length, or whole by themselves complete nothing.
func (r *Reassembler) Add(d *machine.Datagram) (Whole, bool) {
	var pk wire.Packet
	if len(d.Bytes) < d.Length || r.profile.Parse(d.Bytes, d.Length, &pk) != nil {
		return Whole{}, false
	}
	a := &r.sides[d.From]
	data := d.Bytes[pk.PayloadOffset : pk.PayloadOffset+pk.PayloadLen]
	switch pk.Kind {
	case wire.KindFragment:
		p, _ := a.partial.Enter(pk.Sequence)
		if p == nil {
			return Whole{}, false
		}
		if pk.HasHeader {
			p.header = pk.Header
		}
		if !a.keep(p, pk.FragmentID, pk.FragmentCount, data) {
			return Whole{}, false
		}
		a.joined = a.joined[:0]
		if r.profile.Form == wire.FormReliable {
			a.joined = r.profile.AppendHeader(a.joined, p.header)
		}
		return a.join(p, Whole{Kind: wire.KindFragment, Sequence: pk.Sequence}), true
	case wire.KindSlice:
		p := a.block(uint32(pk.Chunk))
		if !a.keep(p, pk.SliceID, pk.SliceCount, data) {
			return Whole{}, false
		}
		a.joined = a.joined[:0]
		return a.join(p, Whole{Kind: wire.KindSlice, Sequence: uint32(pk.Chunk)}), true
	default:
		if pk.Kind == wire.KindRegular && r.profile.Fragments != wire.FragmentsNone {
			a.partial.Advance(pk.Sequence)
		}
		return Whole{}, false
	}
}

// keep stores a piece. It reports whether that was the last one missing.
func (a *assembly) keep(p *partial, id, count int, data []byte) bool {
	if p.count == 0 {
		p.count, p.missing, p.pieces = count, count, make([][]byte, count)
	}
	if p.done || count != p.count || p.pieces[id] != nil || a.held+len(data) > maxHeld {
		return false
	}
	p.pieces[id] = append(make([]byte, 0, len(data)), data...)
	a.held += len(data)
	p.missing--
	return p.missing == 0
}

// join appends the pieces to a.joined and forgets them.
func (a *assembly) join(p *partial, w Whole) Whole {
	a.sizes = a.sizes[:0]
	for _, piece := range p.pieces {
		a.joined, a.sizes = append(a.joined, piece...), append(a.sizes, len(piece))
		a.held -= len(piece)
	}
	p.pieces, p.done = nil, true
	w.Pieces, w.Sizes, w.Bytes = p.count, a.sizes, a.joined
	return w
}

// block returns the entry of a block. A new one replaces the oldest.
func (a *assembly) block(number uint32) *partial {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.count > 0 && b.number == number {
			return b
		}
	}
	oldest := &a.blocks[keptBlocks-1]
	a.drop(oldest)
	copy(a.blocks[1:], a.blocks[:keptBlocks-1])
	a.blocks[0] = partial{number: number}
	return &a.blocks[0]
}

func (a *assembly) drop(p *partial) {
	for _, piece := range p.pieces {
		a.held -= len(piece)
	}
	*p = partial{}
}

// packets is a Reassembler as a dissect.Assembly. It returns packets that can be
// dissected, not blocks.
type packets struct {
	r  *Reassembler
	dg machine.Datagram
}

func newAssembly(c *dissect.Config) dissect.Assembly {
	p, ok := c.Profile.(*wire.Profile)
	if !ok || p.Fragments == wire.FragmentsNone {
		return nil
	}
	return &packets{r: NewReassembler(p)}
}

// Add returns the packet that a datagram completes.
func (p *packets) Add(d *machine.Datagram) *machine.Datagram {
	w, ok := p.r.Add(d)
	if !ok || w.Kind != wire.KindFragment {
		return nil
	}
	p.dg = machine.Datagram{At: d.At, Ref: d.Ref, From: d.From, Bytes: w.Bytes, Length: len(w.Bytes)}
	return &p.dg
}
