package stream

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// TestMillionSegments checks that memory stays flat.
func TestMillionSegments(t *testing.T) {
	testenv.Long(t, "a million segments")
	s := newSource(10, 2000, 300, &toyFormats[0])
	c := New(toyFormats, Limits{})
	var out Output
	c.Feed(machine.A, s.syn(), &out)
	at, from, count := uint32(0), 0, 0
	var base, worst uint64
	for n := range 1_000_000 {
		to := min(from+1+s.rng.Intn(200), len(s.stream))
		p := capture.Packet{
			Ref: machine.MakeRef(0, uint64(n)+2), TCPSeq: s.isn + 1 + at, TCPFlags: ack,
			Payload: s.stream[from:to], Length: to - from,
		}
		p.Spans = []capture.Span{{Ref: p.Ref, Length: p.Length}}
		at += uint32(p.Length)
		from = to % len(s.stream)
		switch n % 100 {
		case 3: // never captured; the receiver has it
			continue
		case 7: // captured twice
			c.Feed(machine.A, &p, &out)
			count += len(out.Messages)
		}
		c.Feed(machine.A, &p, &out)
		count += len(out.Messages)
		answer := capture.Packet{Ref: p.Ref, TCPFlags: ack, TCPAck: p.TCPSeq + uint32(p.Length)}
		c.Feed(machine.B, &answer, &out)
		count += len(out.Messages)
		if n%50_000 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			if n == 50_000 {
				base = m.HeapAlloc
			}
			if n > 50_000 {
				worst = max(worst, m.HeapAlloc)
			}
		}
	}
	if worst > base+256<<10 {
		t.Errorf("heap grew from %d to %d bytes", base, worst)
	}
	if c.Size() > 256<<10 {
		t.Errorf("a clone would take %d bytes", c.Size())
	}
	t.Logf("%d messages, %+v, heap %d then at most %d", count, c.Counts(machine.A), base, worst)
}

// FuzzConn feeds arbitrary segments. Nothing may panic, and memory must stay
// bounded.
func FuzzConn(f *testing.F) {
	s := newSource(3, 20, 40, &toyFormats[0])
	var seed []byte
	for _, p := range append([]*capture.Packet{s.syn()}, s.impair(s.segments(0, 30), 0.3)...) {
		seed = append(seed, 0, p.TCPFlags, byte(p.Length), 0)
		seed = binary.BigEndian.AppendUint32(seed, p.TCPSeq)
		seed = append(seed, p.Payload...)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		c := New(toyFormats, Limits{Pieces: 16, Bytes: 4096, Search: 1024})
		var out Output
		n := uint64(0)
		for len(b) >= 8 {
			n++
			side, size := machine.Side(b[0]&1), min(int(b[2]), len(b)-8)
			p := &capture.Packet{
				Ref: machine.MakeRef(0, n), At: machine.Instant(n), Transport: capture.TCP, TCPFlags: b[1],
				TCPSeq: binary.BigEndian.Uint32(b[4:]), TCPAck: binary.BigEndian.Uint32(b[4:]) + uint32(b[3]),
				Payload: b[8 : 8+size], Length: size + int(b[3]&7),
				Src: netip.AddrPort{},
			}
			b = b[8+size:]
			c.Feed(side, p, &out)
			for _, m := range out.Messages {
				total := 0
				for _, sp := range m.Spans {
					total += sp.Length
				}
				if total != len(m.Bytes) || len(m.Bytes) > m.Length {
					t.Fatalf("%+v", m)
				}
			}
			if c.Size() > 1<<20 {
				t.Fatalf("holds %d bytes after %d segments", c.Size(), n)
			}
			if n%5 == 0 {
				c = c.Clone()
			}
		}
		c.Finish(&out)
	})
}

func BenchmarkFeed(b *testing.B) {
	for _, size := range []int{50, 500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := newSource(1, 1000, size, &toyFormats[0])
			packets := s.segments(0, 1400)
			c := New(toyFormats, Limits{})
			var out Output
			c.Feed(machine.A, s.syn(), &out)
			var p capture.Packet
			at, n := uint32(0), 0
			b.ReportAllocs()
			b.SetBytes(int64(len(s.stream) / len(packets)))
			for i := 0; b.Loop(); i++ {
				p = *packets[i%len(packets)]
				p.TCPSeq = s.isn + 1 + at
				at += uint32(p.Length)
				c.Feed(machine.A, &p, &out)
				n += len(out.Messages)
			}
			b.ReportMetric(float64(n)/float64(b.N), "messages/op")
		})
	}
}
