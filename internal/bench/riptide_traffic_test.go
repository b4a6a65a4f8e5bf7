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
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
)

// simulatedRiptide writes what a tap at the server of a lobby sees. Reference
// endpoints of release 2.2.1 send every kind of message over a network that
// loses 2 % and duplicates 1 %. It also returns the number of packets.
func simulatedRiptide(b *testing.B, clients int, length time.Duration) (path string, packets int) {
	b.Helper()
	version, _ := riptide.LookupVersion("2.2.1")
	path = filepath.Join(b.TempDir(), "riptide.pcapng")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	to, err := files.NewWriter(file, files.WriterOptions{})
	if err == nil {
		_, err = to.AddInterface(files.Interface{LinkType: 101})
	}
	if err != nil {
		b.Fatal(err)
	}
	w := sim.New(1)
	host := func(name string, server bool, peers int) *sim.Host {
		o := endpoint.Options{Version: version, Slots: clients, Limits: endpoint.Limits{Off: true}}
		build := endpoint.NewClient
		if server {
			o.Side, build = machine.B, endpoint.NewServer
		}
		e, err := build(o)
		if err != nil {
			b.Fatal(err)
		}
		app := func(f *sim.Frame) {
			if f.Number == 0 && !server {
				f.Do(machine.Command{Kind: machine.Connect})
			}
			for p := range peers {
				if !e.Connected(machine.Peer(p)) {
					continue
				}
				channel := [...]uint8{
					riptide.ChannelReliable, riptide.ChannelUnreliable, riptide.ChannelReliable,
					riptide.ChannelNotify,
				}[f.Number%4]
				f.Do(machine.Submit{To: machine.Peer(p), Channel: channel, Type: 7, Payload: make([]byte, 10+f.Rand.IntN(60))})
			}
		}
		return w.AddHost(name, e, sim.HostOptions{Frame: 10 * time.Millisecond, FrameJitter: time.Millisecond, App: app})
	}
	server := host("server", true, clients)
	network := sim.Path{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.02, Duplicate: 0.01}
	addr := func(h *sim.Host) netip.AddrPort {
		port := uint16(30000)
		if h == server {
			port = 7777
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + h.Index)}), port)
	}
	var packet []byte
	for i := range clients {
		link := w.Connect(host(fmt.Sprint("client", i), false, 1), server, network, network)
		link.Tap(1, func(t sim.Tapped) {
			packets++
			if packet, err = files.AppendUDP(packet[:0], files.Envelope{Src: addr(t.From), Dst: addr(t.To), ID: uint16(packets)},
				t.Bytes); err != nil {
				b.Fatal(err)
			}
			if err := to.WriteFrame(&files.Frame{
				At: t.At + 1_767_225_600_000_000_000, LinkType: 101, Length: len(packet),
				Data: packet,
			}); err != nil {
				b.Fatal(err)
			}
		})
	}
	if err := w.Run(machine.Instant(length)); err != nil {
		b.Fatal(err)
	}
	if err := to.Close(); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return path, packets
}
