package bench

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// points of the growth. The flows of the second row have 12 packets each, but those of a million flows have 4.
var (
	growthPackets = []int{10_000, 100_000, million, 10 * million}
	growthFlows   = []int{64, 1_000, 10_000, 100_000, million}
	growthLoss    = []int{0, 5, 10, 20, 30, 40, 50} // percent
)

// BenchmarkGrowth measures how the cost of `flows` and `findings` grows with packets, flows, loss and cores. Where
// ACKSCOPE_BENCH_PLOT names a file, it draws them there (make growth).
func BenchmarkGrowth(b *testing.B) {
	scenes := []struct {
		chart  chart
		points []int
		make   func(n int) input
	}{
		{
			chart{title: "Packets, in 64 flows", x: "packets", y: "CPU ns a packet", powers: true},
			growthPackets,
			func(n int) input { return synthetic(b, n, 64, 0.05) },
		},
		{
			chart{title: "Flows, 1.2 million packets or more", x: "flows", y: "CPU ns a packet", powers: true},
			growthFlows,
			func(n int) input { return synthetic(b, max(1_200_000, 4*n), n, 0.05) },
		},
		{
			chart{title: "Loss, 64 flows", x: "% lost", y: "CPU ns a packet"},
			growthLoss,
			func(n int) input { return synthetic(b, 300_000, 64, float64(n)/100) },
		},
	}
	program := testenv.Ackscope(b)
	var charts []*chart
	for i := range scenes {
		s := &scenes[i]
		charts = append(charts, &s.chart)
		for _, n := range s.points {
			in := s.make(n)
			for _, command := range []string{"flows", "findings"} {
				s.chart.point(b, command, float64(n), "cpu-ns/packet", func() float64 {
					return float64(measure(b, 1, program, command, in.path).cpu.Nanoseconds()) / float64(in.packets)
				})
			}
			if err := os.Remove(in.path); err != nil { // the largest have gigabytes
				b.Fatal(err)
			}
		}
	}
	charts = append(charts, coresOf(b, program))
	if path := os.Getenv("ACKSCOPE_BENCH_PLOT"); path != "" {
		if err := os.WriteFile(path, drawing(charts), 0o644); err != nil { //nolint:gosec // documentation
			b.Fatal(err)
		}
	}
}

// coresOf measures the wall time of a million packets against that of one thread, and a pure CPU loop beside it.
func coresOf(b *testing.B, program string) *chart {
	b.Helper()
	c := &chart{title: "Wall time by threads, a million packets", x: "threads", y: "of one thread"}
	in := synthetic(b, million, 64, 0.05)
	for n := 1; n <= max(2, min(8, runtime.NumCPU())); n++ {
		for _, command := range []string{"flows", "findings"} {
			c.point(b, command, float64(n), "wall/one", func() float64 {
				one := measure(b, 1, program, command, in.path).wall
				return measure(b, n, program, command, in.path).wall.Seconds() / one.Seconds()
			})
		}
		c.point(b, "CPU loop", float64(n), "wall/one", func() float64 { return spun(n) / spun(1) })
	}
	return c
}

// point measures one point of a line: the median of three.
func (c *chart) point(b *testing.B, line string, x float64, unit string, once func() float64) {
	b.Helper()
	b.Run(fmt.Sprintf("%s/%s/%.0f", c.x, line, x), func(b *testing.B) {
		f := figures{}
		for b.Loop() {
			for range 3 {
				f.add(unit, once())
			}
		}
		b.ReportMetric(f.median(unit), unit)
		c.add(line, x, f.median(unit))
	})
}
