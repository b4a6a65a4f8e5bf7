package ring

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// sent is a frame of a test, and the pair of its packet: that of the quoted one, for an ICMP error.
type sent struct {
	*capture.Frame
	src, dst netip.AddrPort
}

// ip wraps a payload in IPv4. offset counts bytes.
func ip(src, dst netip.Addr, id uint16, protocol byte, offset int, more bool, payload []byte) []byte {
	b := make([]byte, 20, 20+len(payload))
	b[0], b[8], b[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
	binary.BigEndian.PutUint16(b[4:], id)
	fragment := uint16(offset / 8)
	if more {
		fragment |= 0x2000
	}
	binary.BigEndian.PutUint16(b[6:], fragment)
	s, d := src.As4(), dst.As4()
	copy(b[12:], s[:])
	copy(b[16:], d[:])
	return append(b, payload...)
}

func udp(src, dst uint16, payload []byte) []byte {
	b := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(b, src)
	binary.BigEndian.PutUint16(b[2:], dst)
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
	return append(b, payload...)
}

// traffic returns datagrams between three hosts on a few ports. Some are whole, and some come as
// fragments in any order, between others. A router sends ICMP errors.
func traffic(r *rand.Rand, n int) (list []sent) {
	hosts := []netip.Addr{hostA, hostB, hostC}
	router := netip.MustParseAddr("192.0.2.1")
	var late []sent // fragments that come later
	now := start
	add := func(s sent) {
		now = now.Add(time.Duration(r.IntN(2_000_000)))
		s.At = now
		list = append(list, s)
	}
	for i := range n {
		i := uint16(i + 1)
		x := r.IntN(3)
		src := netip.AddrPortFrom(hosts[x], uint16(1000+r.IntN(2)))
		dst := netip.AddrPortFrom(hosts[(x+1+r.IntN(2))%3], uint16(1000+r.IntN(2)))
		payload := make([]byte, 16+r.IntN(200))
		for k := range payload {
			payload[k] = byte(r.Uint32())
		}
		whole := udp(src.Port(), dst.Port(), payload)
		make := func(b []byte) sent { return sent{frame(0, b), src, dst} }
		switch r.IntN(4) {
		case 0: // fragments
			var parts []sent
			for offset := 0; offset < len(whole); offset += 40 {
				end := min(offset+40, len(whole))
				parts = append(parts, make(ip(src.Addr(), dst.Addr(), i, 17, offset, end < len(whole), whole[offset:end])))
			}
			r.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
			for _, part := range parts {
				if r.IntN(3) == 0 {
					late = append(late, part)
				} else {
					add(part)
				}
			}
		case 1: // an error about a datagram
			quoted := ip(src.Addr(), dst.Addr(), i, 17, 0, false, whole)
			icmp := append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, quoted[:28]...)
			add(make(ip(router, src.Addr(), i, 1, 0, false, icmp)))
		default:
			add(make(ip(src.Addr(), dst.Addr(), i, 17, 0, false, whole)))
		}
		for len(late) > 0 && r.IntN(3) > 0 {
			add(late[0])
			late = late[1:]
		}
	}
	for _, s := range late {
		add(s)
	}
	return list
}

// naive reports whether a frame belongs to a pair, by what its sender knew.
func naive(s *sent, p Pair) bool {
	is := func(want, have netip.AddrPort) bool {
		return want.Addr() == have.Addr() && (want.Port() == 0 || want.Port() == have.Port())
	}
	return p == Pair{} || is(p.A, s.src) && is(p.B, s.dst) || is(p.B, s.src) && is(p.A, s.dst)
}

// TestCutIsTheNaiveFilter: a cut has exactly the frames of its span and its pair. The filter of the
// test knows which datagram each frame is of, since it made them.
func TestCutIsTheNaiveFilter(t *testing.T) {
	fragments := 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		o := small()
		o.Bytes, o.FileBytes = 1<<20, 16<<10
		r := open(t, t.TempDir(), o)
		all := traffic(random, 500)
		for i := range all {
			write(t, r, all[i].Frame)
		}
		last := all[len(all)-1].At
		for range 20 {
			port := func() uint16 { return []uint16{0, 1000, 1001}[random.IntN(3)] }
			span := Span{From: start, To: last}
			if random.IntN(2) == 0 {
				span.From = start.Add(time.Duration(random.Int64N(int64(last - start))))
				span.To = span.From.Add(time.Duration(random.Int64N(int64(last - start))))
			}
			if random.IntN(8) > 0 {
				span.Pair = Pair{netip.AddrPortFrom(hostA, port()), netip.AddrPortFrom(hostB, port())}
			}
			var want []*capture.Frame
			for i := range all {
				if x := &all[i]; x.At >= span.From && x.At <= span.To && naive(x, span.Pair) {
					want = append(want, x.Frame)
					if x.Data[6]&0x20 != 0 {
						fragments++
					}
				}
			}
			c, list, _ := cut(t, r, span)
			// What came behind the span, or before its first file, may leave a datagram open. Its
			// fragments are then selected by their hosts.
			if c.Unjoined == 0 {
				same(t, list, want)
				continue
			}
			if !contains(list, want) || uint64(len(list)-len(want)) > c.Unjoined {
				t.Fatalf("seed %d: found %d frames with %d unjoined, expected %d", seed, len(list), c.Unjoined, len(want))
			}
		}
	}
	if fragments < 1000 {
		t.Errorf("%d fragments were wanted: expected more to check", fragments)
	}
}

// contains reports whether list has all of want, in order.
func contains(list, want []*capture.Frame) bool {
	for _, f := range list {
		if len(want) > 0 && f.At == want[0].At {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// TestSelectorIsBounded: fragments without end, and whose datagrams never become whole, keep the
// memory within its bound, and all come out.
func TestSelectorIsBounded(t *testing.T) {
	emitted := uint64(0)
	s := newSelector(Pair{netip.AddrPortFrom(hostA, 1), netip.AddrPortFrom(hostB, 2)},
		func(*capture.Frame, int) error { emitted++; return nil })
	payload := make([]byte, 1480)
	const n = 20_000
	for i := range n {
		if i%3 == 0 {
			payload = payload[:8+i%170*8]
		} else {
			payload = payload[:1480]
		}
		f := frame(start+machine.Instant(i), ip(hostA, hostB, uint16(i), 17, 8*(i%4), true, payload))
		if err := s.take(f, 0); err != nil {
			t.Fatal(err)
		}
		if s.bytes > waitBytes {
			t.Fatalf("%d bytes wait", s.bytes)
		}
	}
	if err := s.finish(); err != nil || emitted != n || s.unjoined != n {
		t.Fatalf("%d of %d frames, %d unjoined: %v", emitted, n, s.unjoined, err)
	}
}

// TestFragmentsCapturedTwice: a tap that sees each fragment twice does not select those of another
// flow, nor lose those of its own.
func TestFragmentsCapturedTwice(t *testing.T) {
	r := open(t, t.TempDir(), small())
	whole := udp(1, 2, make([]byte, 72))
	other := udp(3, 2, make([]byte, 72))
	want := 0
	for i, b := range [][]byte{whole, other, whole, other} {
		for k, offset := range []int{0, 40} {
			f := frame(at(time.Duration(10*i+k)*time.Millisecond),
				ip(hostA, hostB, uint16(i+1), 17, offset, offset == 0, b[offset:offset+40]))
			again := *f
			again.At, again.Interface = f.At+1000, 1
			write(t, r, f, &again)
			want += 2 * (1 - i%2)
		}
	}
	c, list, _ := cut(t, r, Span{
		From: start, To: at(time.Minute), Pair: Pair{netip.AddrPortFrom(hostA, 1), netip.AddrPortFrom(hostB, 2)},
	})
	if len(list) != want || c.Unjoined != 0 {
		t.Errorf("found %d frames, %d unjoined, expected %d", len(list), c.Unjoined, want)
	}
}

func addr(port uint16) netip.AddrPort { return netip.AddrPortFrom(hostA, port) }
