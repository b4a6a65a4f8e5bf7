//go:build unix

package bench

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	files "github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
)

// BenchmarkRiptide is BenchmarkDissect over the longest Riptide capture (66,100
// reliable messages) and over a simulated lobby of 4 clients. It also tracks
// the flows' state.
func BenchmarkRiptide(b *testing.B) {
	count := counter(b)
	path := unpacked(b, "u210_rwrap.client.pcap.gz")
	registry := dissect.NewRegistry(riptide.Protocol)
	s := analyzed(b, path, registry)
	packets := int(s.Packets())
	config := s.Flows()[0].Config()
	if config == nil || packets < 100_000 {
		b.Fatalf("%d packets, flow 1 %s: expected more than 100,000 packets of Riptide", packets, s.Flows()[0].Verdict.Reason)
	}
	lobby, lobbyPackets := simulatedRiptide(b, 4, 100*time.Second)
	if n := int(analyzed(b, lobby, registry).Packets()); n != lobbyPackets || n < 100_000 {
		b.Fatalf("%d packets of the lobby, expected the %d that were written, and more than 100,000", n, lobbyPackets)
	}
	for _, c := range []struct {
		name    string
		path    string
		packets int
		run     func()
	}{
		{"dissect", path, packets, func() { dissectAll(b, path, riptide.Protocol, config, 2) }},
		{"flows", path, packets, func() { analyzed(b, path, registry) }},
		{"simulated/dissect", lobby, lobbyPackets, func() { dissectAll(b, lobby, riptide.Protocol, config, 2) }},
		{"simulated/flows", lobby, lobbyPackets, func() { analyzed(b, lobby, registry) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var r ratio
			var allocated uint64
			for b.Loop() {
				theirs := measure(b, count, c.path)
				ours := self(c.run)
				r.add(ours.usage, theirs)
				allocated += ours.mallocs
			}
			b.ReportMetric(r.ours.Seconds()/r.theirs.Seconds(), "x-libpcap")
			b.ReportMetric(float64(r.ours.Nanoseconds())/float64(b.N*c.packets), "cpu-ns/packet")
			b.ReportMetric(float64(allocated)/float64(b.N*c.packets), "allocs/packet")
		})
	}
}

func analyzed(b *testing.B, path string, registry *dissect.Registry) *analyze.Session {
	b.Helper()
	in, err := files.Open([]string{path}, files.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	s, err := analyze.Run(in, analyze.Options{Registry: registry})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// unpacked unpacks a shipped capture, since the C loop reads no gzip.
func unpacked(b *testing.B, name string) string {
	b.Helper()
	packed, err := os.Open(filepath.Join("..", "..", "testdata", "pcaps", name))
	if err != nil {
		b.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "plain.pcap")
	plain, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(plain, z); err != nil {
		b.Fatal(err)
	}
	if err := plain.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}
