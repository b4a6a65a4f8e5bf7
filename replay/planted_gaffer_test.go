package replay_test

import (
	"bytes"
	"math/rand/v2"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

func (s *subject) gafferTeller() func(rng *rand.Rand, at int) []change {
	p, ok := s.flow.Config().Profile.(*wire.Profile)
	if !ok || !p.HasAcks() {
		return nil
	}
	return func(rng *rand.Rand, at int) []change { return s.gafferLies(p, rng, at) }
}

// gafferLies changes the acks, the number, and what fragments say of themselves.
func (s *subject) gafferLies(p *wire.Profile, rng *rand.Rand, at int) (list []change) {
	d := &s.list[at]
	var k wire.Packet
	if p.Parse(d.Bytes, d.Length, &k) != nil || k.Kind > wire.KindFragment {
		return nil
	}
	payload := d.Bytes[k.PayloadOffset : k.PayloadOffset+k.PayloadLen]
	add := func(field string, do func(x *wire.Packet)) {
		x := k
		do(&x)
		list = append(list, change{field: field, bytes: p.Append(nil, &x, payload)})
	}
	add("sequence", func(x *wire.Packet) {
		x.Sequence = uint32(drawn(rng, uint64(x.Sequence), 16))
		x.Header.Sequence = x.Sequence
	})
	if k.HasHeader {
		add("ack", func(x *wire.Packet) { x.Header.Ack = uint32(drawn(rng, uint64(x.Header.Ack), 16)) })
		width := p.AckBitsWidth()
		add("ack_bits set", func(x *wire.Packet) { x.Header.AckBits |= 1 << rng.IntN(width) })
		add("ack_bits cleared", func(x *wire.Packet) { x.Header.AckBits &^= 1 << rng.IntN(width) })
		add("ack_bits", func(x *wire.Packet) { x.Header.AckBits = drawn(rng, x.Header.AckBits, width) })
	}
	if k.Kind == wire.KindFragment {
		add("fragment.id", func(x *wire.Packet) { x.FragmentID = int(drawn(rng, uint64(x.FragmentID), 8)) })
		add("fragment.count", func(x *wire.Packet) {
			x.FragmentCount = 1 + int(drawn(rng, uint64(x.FragmentCount-1), 8))
		})
	}
	raw := bytes.Clone(d.Bytes)
	if p.Form == wire.FormReliable {
		raw[0] ^= 1 << rng.IntN(8)
		list = append(list, change{field: "prefix", bytes: raw})
	} else if k.HeaderOffset > 0 {
		raw[rng.IntN(k.HeaderOffset)] ^= 1 << rng.IntN(8)
		list = append(list, change{field: "before the header", bytes: raw})
	}
	for i := range list {
		list[i].sure = s.wrongAt(p, at, list[i].bytes) == at
	}
	return list
}

// wrongAt returns the first datagram that no correct endpoint sends, with one changed.
func (s *subject) wrongAt(p *wire.Profile, at int, b []byte) int {
	was := s.list[at]
	defer func() { s.list[at] = was }()
	s.list[at].Bytes, s.list[at].Length = b, len(b)
	return (&socketModel{profile: p}).firstWrong(s.list, s.side)
}
