package replay_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

func (s *subject) srdpTeller() func(rng *rand.Rand, at int) []change {
	c, ok := s.flow.Config().Profile.(*srdp.Settings)
	if !ok {
		return nil
	}
	return func(rng *rand.Rand, at int) []change { return s.srdpLies(c, rng, at) }
}

// srdpLies changes any field of a packet's header. The packets alone tell which changes no
// correct endpoint sends. A copy is the same as the first. An acknowledgement answers what
// came. The command and the mark say the same.
func (s *subject) srdpLies(c *srdp.Settings, rng *rand.Rand, at int) (list []change) {
	d, p := &s.list[at], &c.Wire
	var k wire.Packet
	if !p.Fits(d.Bytes, d.Length, &k) {
		return nil
	}
	copied, used, wait := false, map[uint16]bool{}, map[uint16]int{}
	for i := range s.list[:at] {
		var x wire.Packet
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
	p.Walk(d.Bytes, d.Length, func(f wire.Field, place, size int, value uint64) {
		if f == wire.FieldSourceAddress || f == wire.FieldSourcePort || f == wire.FieldDestinationAddress ||
			f == wire.FieldDestinationPort {
			return // it speaks for another then
		}
		b := bytes.Clone(d.Bytes)
		v := drawn(rng, value, 8*size)
		if f == wire.FieldCommand && rng.IntN(2) == 0 {
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
		switch id := uint16(v) &^ wire.AckMark; {
		case f == wire.FieldCommand:
			x.sure = v == uint64(p.DataCommand) || v == uint64(p.AckCommand)
		case f == wire.FieldFlags:
			x.sure = copied
		case uint16(v)&wire.AckMark != uint16(value)&wire.AckMark:
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
	p := wire.Default().In([]wire.Form{wire.Direct, wire.Proxied}[seed%2])
	for _, d := range srdpRun(t, &p, ends, seed) {
		frames = append(frames, framed(&d, ends, 1+len(frames)))
	}
	return frames
}

// framed returns the n-th frame of a capture, which carries a datagram between two ends.
func framed(d *machine.Datagram, ends [2]netip.AddrPort, n int) capture.Frame {
	from, to := ends[d.From], ends[d.From.Other()]
	b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0}
	b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(d.Bytes)))
	b = append(append(b, 0, 0), d.Bytes...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	binary.BigEndian.PutUint16(b[10:], checksum(b[:20]))
	return capture.Frame{At: d.At, LinkType: 101, Length: len(b), Data: b}
}
