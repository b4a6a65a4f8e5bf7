package replay_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/ackscope/ackscope/capture"
	protocol "github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	gaffer "github.com/ackscope/ackscope/wire/gaffer"
	riptide "github.com/ackscope/ackscope/wire/riptide"
	srdpwire "github.com/ackscope/ackscope/wire/srdp"
)

// teller gives the lies that can be told in a datagram of the flow; nil where none
// can be written.
func (s *subject) teller(t *testing.T) func(rng *rand.Rand, at int) []change {
	t.Helper()
	switch profile := s.flow.Config().Profile.(type) {
	case *gaffer.Profile:
		if !profile.HasAcks() {
			return nil
		}
		return func(rng *rand.Rand, at int) []change { return s.gafferLies(profile, rng, at) }
	case *protocol.Settings:
		return func(rng *rand.Rand, at int) []change { return s.riptideLies(profile, rng, at) }
	case *srdp.Settings:
		return func(rng *rand.Rand, at int) []change { return s.srdpLies(profile, rng, at) }
	}
	return nil
}

// drawn gives another value of a field of so many bits: a bit of it flipped, a
// little more or less, or any.
func drawn(rng *rand.Rand, was uint64, width int) uint64 {
	mask := uint64(1)<<width - 1
	for {
		v := was
		switch rng.IntN(6) {
		case 0, 1:
			v ^= 1 << rng.IntN(width)
		case 2:
			v += 1 + uint64(rng.IntN(3))
		case 3:
			v -= 1 + uint64(rng.IntN(3))
		case 4:
			v += uint64(rng.IntN(600)) - 300
		default:
			v = rng.Uint64()
		}
		if v &= mask; v != was&mask {
			return v
		}
	}
}

// gafferLies changes the acks, the number, and what fragments say of themselves.
func (s *subject) gafferLies(p *gaffer.Profile, rng *rand.Rand, at int) (list []change) {
	d := &s.list[at]
	var k gaffer.Packet
	if p.Parse(d.Bytes, d.Length, &k) != nil || k.Kind > gaffer.KindFragment {
		return nil
	}
	payload := d.Bytes[k.PayloadOffset : k.PayloadOffset+k.PayloadLen]
	add := func(field string, do func(x *gaffer.Packet)) {
		x := k
		do(&x)
		list = append(list, change{field: field, bytes: p.Append(nil, &x, payload)})
	}
	add("sequence", func(x *gaffer.Packet) {
		x.Sequence = uint32(drawn(rng, uint64(x.Sequence), 16))
		x.Header.Sequence = x.Sequence
	})
	if k.HasHeader {
		add("ack", func(x *gaffer.Packet) { x.Header.Ack = uint32(drawn(rng, uint64(x.Header.Ack), 16)) })
		width := p.AckBitsWidth()
		add("ack_bits set", func(x *gaffer.Packet) { x.Header.AckBits |= 1 << rng.IntN(width) })
		add("ack_bits cleared", func(x *gaffer.Packet) { x.Header.AckBits &^= 1 << rng.IntN(width) })
		add("ack_bits", func(x *gaffer.Packet) { x.Header.AckBits = drawn(rng, x.Header.AckBits, width) })
	}
	if k.Kind == gaffer.KindFragment {
		add("fragment.id", func(x *gaffer.Packet) { x.FragmentID = int(drawn(rng, uint64(x.FragmentID), 8)) })
		add("fragment.count", func(x *gaffer.Packet) {
			x.FragmentCount = 1 + int(drawn(rng, uint64(x.FragmentCount-1), 8))
		})
	}
	raw := bytes.Clone(d.Bytes)
	if p.Form == gaffer.FormReliable {
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

// wrongAt gives the first datagram that no correct endpoint sends, with one changed.
func (s *subject) wrongAt(p *gaffer.Profile, at int, b []byte) int {
	was := s.list[at]
	defer func() { s.list[at] = was }()
	s.list[at].Bytes, s.list[at].Length = b, len(b)
	return (&socketModel{profile: p}).firstWrong(s.list, s.side)
}

// riptideLies changes any field of a message's header.
func (s *subject) riptideLies(c *protocol.Settings, rng *rand.Rand, at int) (list []change) {
	d := &s.list[at]
	codec := c.Senders[s.side].Codec
	var m riptide.Message
	if codec.Parse(d.Bytes, d.Length, &m) != nil {
		return nil
	}
	codec.WalkMessage(d.Bytes, d.Length, &m, func(f riptide.Field, bit, width int, value uint64) {
		b := bytes.Clone(d.Bytes)
		v := drawn(rng, value, width)
		for i := range width {
			n := bit + i
			b[n/8] = b[n/8]&^(1<<(n%8)) | byte(v>>i&1)<<(n%8)
		}
		list = append(list, change{field: fmt.Sprintf("%s %s", m.Type, f), bytes: b})
	})
	return list
}

// srdpLies changes any field of a packet's header. Which of them nobody tells is
// known from the packets alone: a copy is a copy, an acknowledgement answers what
// came, and the command and the mark say the same.
func (s *subject) srdpLies(c *srdp.Settings, rng *rand.Rand, at int) (list []change) {
	d, p := &s.list[at], &c.Wire
	var k srdpwire.Packet
	if !p.Fits(d.Bytes, d.Length, &k) {
		return nil
	}
	copied, used, wait := false, map[uint16]bool{}, map[uint16]int{}
	for i := range s.list[:at] {
		var x srdpwire.Packet
		switch x0 := &s.list[i]; {
		case !p.Fits(x0.Bytes, x0.Length, &x):
		case x0.From == s.side && !x.Ack:
			used[x.ID] = true
			copied = copied || bytes.Equal(x0.Bytes, d.Bytes)
		case x0.From == s.side:
			wait[x.ID]--
		case !x.Ack:
			wait[x.ID]++
		}
	}
	what := "data"
	switch {
	case k.Ack:
		what = "ack"
	case copied:
		what = "copy"
	}
	p.Walk(d.Bytes, d.Length, func(f srdpwire.Field, place, size int, value uint64) {
		if f == srdpwire.FieldSourceAddress || f == srdpwire.FieldSourcePort || f == srdpwire.FieldDestinationAddress || f == srdpwire.FieldDestinationPort {
			return // it speaks for another then
		}
		b := bytes.Clone(d.Bytes)
		v := drawn(rng, value, 8*size)
		if f == srdpwire.FieldCommand && rng.IntN(2) == 0 {
			v = uint64(p.DataCommand) ^ uint64(p.AckCommand) ^ value
		}
		for i := range size {
			shift := 8 * i
			if !p.LittleEndian {
				shift = 8 * (size - 1 - i)
			}
			b[place+i] = byte(v >> shift)
		}
		x := change{field: what + " " + f.String(), bytes: b}
		switch id := uint16(v) &^ srdpwire.AckMark; {
		case f == srdpwire.FieldCommand:
			x.sure = v == uint64(p.DataCommand) || v == uint64(p.AckCommand)
		case f == srdpwire.FieldFlags:
			x.sure = copied
		case uint16(v)&srdpwire.AckMark != uint16(value)&srdpwire.AckMark:
			x.sure = k.Ack // data that bears the mark may be of another protocol on this port
		case k.Ack:
			x.sure = wait[id] <= 0 // no copy of it waits for one
		default:
			x.sure = used[id]
		}
		list = append(list, x)
	})
	return list
}

// srdpCapture is what a tap at a sees of two right endpoints, as frames.
func srdpCapture(t *testing.T, seed uint64) (frames []capture.Frame) {
	t.Helper()
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}
	p := srdpwire.Default().In([]srdpwire.Form{srdpwire.Direct, srdpwire.Proxied}[seed%2])
	for _, d := range srdpRun(t, &p, ends, seed) {
		from, to := ends[d.From], ends[d.From.Other()]
		b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0}
		b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
		b = binary.BigEndian.AppendUint16(b, from.Port())
		b = binary.BigEndian.AppendUint16(b, to.Port())
		b = binary.BigEndian.AppendUint16(b, uint16(8+len(d.Bytes)))
		b = append(append(b, 0, 0), d.Bytes...)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint16(b[4:], uint16(1+len(frames)))
		binary.BigEndian.PutUint16(b[10:], checksum(b[:20]))
		frames = append(frames, capture.Frame{At: d.At, LinkType: 101, Length: len(b), Data: b})
	}
	return frames
}
