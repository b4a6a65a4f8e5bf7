package replay_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/replay"
)

// BenchmarkReplay measures a replay against the analysis of the same capture:
// ACKSCOPE_REPLAY_BENCH names one; by default a shared one of two clients.
func BenchmarkReplay(b *testing.B) {
	path := os.Getenv("ACKSCOPE_REPLAY_BENCH")
	if path == "" {
		path = pcaps + "/reliable-wrap-fast.client.pcap.gz"
	}
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	for _, what := range []string{"analyze", "replay"} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			packets := uint64(0)
			for range b.N {
				if err := in.Rewind(); err != nil {
					b.Fatal(err)
				}
				if what == "analyze" {
					s, err := analyze.Run(in, analyze.Options{Registry: registry()})
					if err != nil {
						b.Fatal(err)
					}
					packets = s.Packets()
					continue
				}
				f, err := replay.Run(path, in, replay.Options{Analysis: analyze.Options{Registry: registry()}})
				if err != nil {
					b.Fatal(err)
				}
				if len(f.Results) == 0 {
					b.Fatal(fmt.Errorf("%s: nothing was compared", path))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(packets), "ns/packet")
		})
	}
}
