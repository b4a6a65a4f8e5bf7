package article_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestBlockArrival compares when blocks were sent and arrived with what the endpoints did. The
// network loses, overtakes and doubles, and the tap stands at each place.
func TestBlockArrival(t *testing.T) {
	p := gaffertest.Builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
	delivered, certain := 0, 0
	for seed := range uint64(gaffertest.Seeds(60, 12)) {
		vantage := []machine.Vantage{
			machine.VantageA, machine.VantageB, machine.VantageBetween, machine.VantageUnknown,
		}[seed%4]
		place := []float64{0, 1, 0.5, 0.3}[seed%4]
		w := sim.New(seed)
		var hosts [2]*sim.Host
		var sent, arrived []machine.Instant
		for i, name := range []string{"a", "b"} {
			e, err := article.NewBlocks(article.BlockOptions{Profile: p, Side: machine.Side(i), AsSample: seed%3 == 0})
			if err != nil {
				t.Fatal(err)
			}
			app := func(f *sim.Frame) {
				if i == 0 && e.Idle() {
					f.Do(machine.Submit{Channel: article.ChannelBlock, Payload: make([]byte, 500+7000*(len(sent)%4))})
				}
			}
			hosts[i] = w.AddHost(name, e, sim.HostOptions{Frame: 16 * time.Millisecond, App: app})
		}
		w.Watch(func(s *sim.Step) {
			for _, x := range s.Out.Transmit {
				var k wire.Packet
				if err := p.Parse(x.Bytes, len(x.Bytes), &k); err != nil {
					t.Fatal(err)
				}
				if k.Kind == wire.KindSlice && int(k.Chunk) == len(sent) {
					sent = append(sent, s.At)
				}
			}
			if s.Host.Index == 1 {
				for range s.Out.Deliver {
					arrived = append(arrived, s.At)
				}
			}
		})
		path := sim.Path{Delay: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.25, Duplicate: 0.05}
		var seen []machine.Datagram
		w.Connect(hosts[0], hosts[1], path, path).Tap(place, func(s sim.Tapped) {
			seen = append(seen, machine.Datagram{
				At: s.At, Ref: machine.MakeRef(0, uint64(len(seen)+1)), From: machine.Side(s.From.Index), Bytes: s.Bytes,
				Length: len(s.Bytes),
			})
		})
		if err := w.Run(machine.Instant(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		tr := article.NewTracker(p, machine.Facts{Vantage: vantage})
		var out machine.Effects
		for i := range seen {
			d := seen[i]
			tr.Observe(&d, &out)
		}
		tr.Finish(&out)
		if n := len(out.Messages); n != len(sent) && n != len(sent)-1 { // no slice of the last one may have passed
			t.Errorf("seed %d: %d blocks told, %d sent", seed, n, len(sent))
		}
		for i := range out.Messages {
			m := &out.Messages[i]
			who := fmt.Sprintf("seed %d, tap %v, block %d", seed, vantage, m.ID)
			within(t, who+" sent", &m.Sent, sent, int(m.ID))
			within(t, who+" arrived", &m.Arrived, arrived, int(m.ID))
			if m.Delivered == machine.Yes && m.ID > 0 { // the first one may have begun before the capture
				delivered++
				if m.Arrived.Certainty == machine.Certain {
					certain++
				}
			}
		}
	}
	if t.Logf("%d of %d blocks have certain bounds", certain, delivered); certain < delivered*9/10 || delivered < 100 {
		t.Errorf("%d of %d blocks have certain bounds, expected 90%% of at least 100", certain, delivered)
	}
}

// within checks certain bounds against the true times of all blocks.
func within(t *testing.T, what string, s *machine.Span, truth []machine.Instant, n int) {
	t.Helper()
	switch {
	case s.From > s.To:
		t.Errorf("%s between %v and %v, which is earlier", what, s.From, s.To)
	case s.Certainty != machine.Certain:
	case n >= len(truth):
		t.Errorf("%s for certain, and it was not", what)
	case truth[n] < s.From || truth[n] > s.To:
		t.Errorf("%s at %v, for certain between %v and %v", what, truth[n], s.From, s.To)
	}
}
