//go:build unix

package bench

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	files "github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
	reference "github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// BenchmarkSRDP: the same as BenchmarkRiptide over simulated SRDP: a server and
// 32 clients that send each other 30 packets a second, a twentieth of all
// datagrams lost.
func BenchmarkSRDP(b *testing.B) {
	count := counter(b)
	path := simulatedSRDP(b)
	registry := dissect.NewRegistry(srdp.Protocol)
	s := analyzed(b, path, registry)
	packets := int(s.Packets())
	for _, f := range s.Flows() {
		if f.Config() == nil {
			b.Fatalf("%s: expected SRDP", f.Verdict.Reason)
		}
	}
	config := s.Flows()[0].Config()
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"dissect", func() { dissectAll(b, path, srdp.Protocol, config, 4) }},
		{"flows", func() { analyzed(b, path, registry) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var r ratio
			var allocated uint64
			for b.Loop() {
				theirs := measure(b, count, path)
				ours := self(c.run)
				r.add(ours.usage, theirs)
				allocated += ours.mallocs
			}
			b.ReportMetric(r.ours.Seconds()/r.theirs.Seconds(), "x-libpcap")
			b.ReportMetric(float64(r.ours.Nanoseconds())/float64(b.N*packets), "cpu-ns/packet")
			b.ReportMetric(float64(allocated)/float64(b.N*packets), "allocs/packet")
		})
	}
}

// simulatedSRDP writes a capture of reference endpoints, taken at the server.
func simulatedSRDP(b *testing.B) string {
	b.Helper()
	const clients = 32
	seconds := 120 // close to half a million packets
	if testing.Short() {
		seconds = 4
	}
	path := filepath.Join(b.TempDir(), "srdp.pcapng")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w, err := files.NewWriter(file, files.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.AddInterface(files.Interface{LinkType: 101}); err != nil {
		b.Fatal(err)
	}
	profile := wire.Default()
	world := sim.New(1)
	end := machine.Instant(seconds) * machine.Instant(time.Second)
	host := func(name string, peers machine.Peer) *sim.Host {
		e, err := reference.NewEndpoint(reference.Options{Profile: &profile})
		if err != nil {
			b.Fatal(err)
		}
		return world.AddHost(name, e, sim.HostOptions{Frame: time.Second / 30, App: func(f *sim.Frame) {
			for p := range peers {
				if f.Now < end {
					f.Do(reference.Request{To: p, Bytes: make([]byte, 60+f.Rand.IntN(60)), Flags: uint8(f.Rand.IntN(2))}.Submit())
				}
			}
		}})
	}
	server := host("server", clients)
	var packet []byte
	for i := range clients {
		link := world.Connect(host(fmt.Sprint("client ", i), 1), server, sim.Path{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.05}, sim.Path{Delay: 20 * time.Millisecond, Loss: 0.05})
		ends := [2]netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 30000), netip.MustParseAddrPort("10.0.0.1:40000")}
		link.Tap(1, func(t sim.Tapped) {
			from, to := 0, 1
			if t.From == server {
				from, to = 1, 0
			}
			packet, err = files.AppendUDP(packet[:0], files.Envelope{Src: ends[from], Dst: ends[to], TTL: 64}, t.Bytes)
			if err == nil {
				err = w.WriteFrame(&files.Frame{At: t.At + 1_767_225_600_000_000_000, LinkType: 101, Length: len(packet), Data: packet})
			}
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	if err := world.Run(end.Add(time.Second)); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}
