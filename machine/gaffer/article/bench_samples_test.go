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

// BenchmarkSampleJudge judges slices and acks, at the sender and away from it, in a
// long flow: nothing is allocated for a packet.
func BenchmarkSampleJudge(b *testing.B) {
	p := gaffertest.Builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
	w := sim.New(1)
	var hosts [2]*sim.Host
	for i, name := range []string{"a", "b"} {
		e, err := article.NewBlocks(article.BlockOptions{Profile: p, Side: machine.Side(i), AsSample: true})
		if err != nil {
			b.Fatal(err)
		}
		app := func(f *sim.Frame) {
			if i == 0 && e.Idle() {
				f.Do(machine.Submit{Channel: article.ChannelBlock, Payload: make([]byte, 32768)})
			}
		}
		hosts[i] = w.AddHost(name, e, sim.HostOptions{Frame: 16 * time.Millisecond, App: app})
	}
	path := sim.Path{Delay: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.25}
	var seen []machine.Datagram
	w.Connect(hosts[0], hosts[1], path, path).Tap(0, func(s sim.Tapped) {
		seen = append(seen,
			machine.Datagram{
				At: s.At, Ref: machine.MakeRef(0, uint64(len(seen)+1)), From: machine.Side(s.From.Index),
				Bytes: s.Bytes, Length: len(s.Bytes),
			})
	})
	if err := w.Run(machine.Instant(60 * time.Second)); err != nil {
		b.Fatal(err)
	}
	for _, tap := range sampleTaps[:2] {
		b.Run(fmt.Sprint(tap), func(b *testing.B) {
			b.ReportAllocs()
			var j machine.Judge
			for i := range b.N {
				n := i % len(seen)
				if n == 0 {
					var err error
					if j, err = article.NewJudge(p, machine.Facts{Vantage: tap},
						[2]string{"gaffer@article-sample", "gaffer@article"}); err != nil {
						b.Fatal(err)
					}
				}
				j.Observe(&seen[n])
			}
		})
	}
}
