package gaffer

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// maxPieces bounds the bytes of changed pieces that are kept for a flow. Packets beyond
// it are changed piece by piece, as bytes.
const maxPieces = 256 << 20

// pieces changes connection packets that are sent in fragments as whole packets. A
// first reading joins and changes them. A second reading looks up what each fragment
// becomes.
type pieces struct {
	secured *secured
	join    *Reassembler
	changed map[piece][]byte
	kept    int
	d       dissect.Dissection
}

// piece identifies one fragment. Copies of a fragment are equal.
type piece struct {
	from     machine.Side
	sequence uint32
	id       int
	digest   uint64
}

func newPieces(c *dissect.Config) dissect.Pieces {
	x, ok := c.Profile.(*secured)
	if !ok {
		return nil // fragments then hold nothing but content
	}
	return &pieces{secured: x, join: NewReassembler(x.layers.Reliable), changed: map[piece][]byte{}}
}

// opened returns the decrypted packet of a datagram. It returns false if there is none.
func (p *pieces) opened(dg *machine.Datagram) (machine.Datagram, bool) {
	var pk wire.Packet
	if p.secured.layers.Netcode.Parse(dg.Bytes, dg.Length, &pk) != nil || pk.NetcodeType != wire.NetcodePayload {
		return machine.Datagram{}, false
	}
	plain, err := p.secured.open(dg, &pk)
	if err != nil {
		return machine.Datagram{}, false
	}
	return machine.Datagram{At: dg.At, Ref: dg.Ref, From: dg.From, Bytes: plain, Length: len(plain)}, true
}

// Learn implements dissect.Pieces.
func (p *pieces) Learn(ctx dissect.Context, dg *machine.Datagram,
	change func(b []byte, d *dissect.Dissection, seal func([]byte)),
) {
	plain, ok := p.opened(dg)
	if !ok {
		return
	}
	whole, ok := p.join.Add(&plain)
	if !ok || whole.Kind != wire.KindFragment || p.kept+len(whole.Bytes) > maxPieces {
		return
	}
	b := append([]byte(nil), whole.Bytes...)
	p.d.Reset()
	t := tree{p: p.secured.layers.Reliable, b: whole.Bytes, length: len(whole.Bytes), d: &p.d}
	p.secured.payload(ctx, &t)
	change(b, &p.d, nil)
	at := len(whole.Bytes)
	for _, n := range whole.Sizes {
		at -= n
	}
	for id, n := range whole.Sizes {
		p.changed[piece{dg.From, whole.Sequence, id, machine.Digest(0, whole.Bytes[at:at+n])}] = b[at : at+n : at+n]
		at += n
	}
	p.kept += len(b)
}

// put writes what a fragment becomes into b. The decrypted packet before the change is
// was.
func (p *pieces) put(from machine.Side, was, b []byte) {
	var pk wire.Packet
	if p.secured.layers.Reliable.Parse(was, len(was), &pk) != nil || pk.Kind != wire.KindFragment {
		return
	}
	end := pk.PayloadOffset + pk.PayloadLen
	if r, ok := p.changed[piece{from, pk.Sequence, pk.FragmentID, machine.Digest(0, was[pk.PayloadOffset:end])}]; ok {
		copy(b[pk.PayloadOffset:end], r)
	}
}

// piecesOf returns the pieces of a context. It returns nil if there are none.
func piecesOf(ctx dissect.Context) *pieces {
	p, _ := ctx.Pieces.(*pieces)
	return p
}
