package tracker

import (
	"runtime"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// traffic returns what a tap at A sees of two 60 Hz endpoints. The path loses the share
// loss of their packets.
func traffic(b testing.TB, profile string, packets int, loss float64) (*wire.Profile, []machine.Datagram) {
	p, _, err := wire.Builtin(profile)
	if err != nil {
		b.Fatal(err)
	}
	tick := time.Second / 60
	w := newWorld(1, gaffer.RulesOf(p), worldConfig{
		tap: machine.VantageA, tick: [2]time.Duration{tick, tick}, delay: 25 * time.Millisecond, jitter: 3 * time.Millisecond,
		loss: loss, length: time.Duration(packets/2+1) * tick,
	})
	w.run()
	// The bytes are contiguous in memory, as a reader has them, so the loop below does not
	// wait for them.
	out := make([]machine.Datagram, len(w.seen))
	raw := make([]byte, 0, 16*len(w.seen))
	for i := range w.seen {
		s := &w.seen[i]
		n := len(raw)
		raw = p.AppendHeader(raw, wire.Header{Sequence: s.sequence, Ack: s.ack, AckBits: s.ackBits})
		out[i] = machine.Datagram{
			At: s.at, Ref: s.ref, From: s.from, Bytes: raw[n:len(raw):len(raw)],
			Length: len(raw) - n + 100,
		}
	}
	return p, out
}

func BenchmarkObserve(b *testing.B) {
	for _, c := range []struct {
		name, profile string
		loss          float64
		vantage       machine.Vantage
		quiet         bool
	}{
		{"article", wire.Article, 0, machine.VantageA, false},
		{"article-loss5", wire.Article, 0.05, machine.VantageA, false},
		{"article-loss5-quiet", wire.Article, 0.05, machine.VantageA, true},
		{"article-loss5-between", wire.Article, 0.05, machine.VantageBetween, false},
		{"reliable", wire.Reliable, 0, machine.VantageA, false},
		{"reliable-loss5", wire.Reliable, 0.05, machine.VantageA, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, datagrams := traffic(b, c.profile, 20000, c.loss)
			b.ReportAllocs()
			out := machine.Effects{NoEvents: c.quiet}
			var t machine.Tracker
			for i := range b.N {
				n := i % len(datagrams)
				if n == 0 {
					t = New(p, machine.Facts{Vantage: c.vantage})
				}
				out.Reset()
				t.Observe(&datagrams[n], &out)
			}
		})
	}
}

// BenchmarkParse measures the part of BenchmarkObserve that reads headers.
func BenchmarkParse(b *testing.B) {
	for _, name := range []string{wire.Article, wire.Reliable} {
		b.Run(name, func(b *testing.B) {
			p, datagrams := traffic(b, name, 1000, 0)
			var out wire.Packet
			b.ReportAllocs()
			for i := range b.N {
				d := &datagrams[i%len(datagrams)]
				if err := p.Parse(d.Bytes, d.Length, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkManyFlows takes 64 flows in turn, as a server's capture has them.
func BenchmarkManyFlows(b *testing.B) {
	p, datagrams := traffic(b, wire.Article, 20000, 0.05)
	var trackers [64]machine.Tracker
	b.ReportAllocs()
	var out machine.Effects
	for i := range b.N {
		flow, n := i%64, i/64%len(datagrams)
		if n == 0 {
			trackers[flow] = New(p, machine.Facts{})
		}
		out.Reset()
		trackers[flow].Observe(&datagrams[n], &out)
	}
}

// BenchmarkShortFlows measures 10 packets of a flow: the time, the memory that stays
// until the flow ends, and the memory that stays after.
func BenchmarkShortFlows(b *testing.B) {
	p, datagrams := traffic(b, wire.Article, 1000, 0)
	trackers := make([]machine.Tracker, b.N)
	var before, held, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	b.ResetTimer()
	var out machine.Effects
	for i := range trackers {
		trackers[i] = New(p, machine.Facts{})
		for n := range 10 {
			out.Reset()
			trackers[i].Observe(&datagrams[n], &out)
		}
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&held)
	for i := range trackers {
		out.Reset()
		trackers[i].Finish(&out)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(held.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/flow")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/finished-flow")
	runtime.KeepAlive(trackers)
}

func BenchmarkClone(b *testing.B) {
	p, datagrams := traffic(b, wire.Article, 4000, 0)
	t := New(p, machine.Facts{Vantage: machine.VantageA})
	var out machine.Effects
	for i := range datagrams {
		out.Reset()
		t.Observe(&datagrams[i], &out)
	}
	b.ReportAllocs()
	b.ReportMetric(float64(t.Size()), "B/clone")
	for range b.N {
		t.Clone()
	}
}
