//go:build unix

package bench

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	files "github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// peersCapture writes a capture taken at a server with so many peers. In each
// round the server sends a packet to every peer, with one counter for all, and
// gets one from each.
func peersCapture(tb testing.TB, peers, rounds int) (path string, packets int) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "peers.pcapng")
	file, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	w, err := files.NewWriter(file, files.WriterOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.AddInterface(files.Interface{LinkType: 101}); err != nil {
		tb.Fatal(err)
	}
	p := wire.Default()
	server := netip.MustParseAddrPort("192.0.2.1:7000")
	var frame, payload []byte
	send := func(at machine.Instant, from, to netip.AddrPort, pk wire.Packet, text string) {
		payload = p.Append(payload[:0], &pk, []byte(text))
		if frame, err = files.AppendUDP(frame[:0], files.Envelope{Src: from, Dst: to}, payload); err != nil {
			tb.Fatal(err)
		}
		if err := w.WriteFrame(&files.Frame{At: at, LinkType: 101, Length: len(frame), Data: frame}); err != nil {
			tb.Fatal(err)
		}
		packets++
	}
	at, id := machine.Instant(1_700_000_000*int64(time.Second)), 0
	for round := range rounds {
		for i := range peers {
			peer := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 7001)
			n, own := uint16(id)&^wire.AckMark, uint16(round)
			send(at, server, peer, wire.Packet{Command: p.DataCommand, ID: n}, "the state of the world")
			send(at+10e3, peer, server, wire.Packet{Command: p.AckCommand, Ack: true, ID: n}, "")
			send(at+10e3, peer, server, wire.Packet{Command: p.DataCommand, ID: own, Flags: p.DontDuplicate}, "input")
			send(at+15e3, server, peer, wire.Packet{Command: p.AckCommand, Ack: true, ID: own}, "")
			at = at.Add(20 * time.Microsecond)
			id++
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return path, packets
}

// TestManyPeers: one endpoint has 10,000 peers, and all are tracked. No id is
// missing over all of them together, although the ids wrap.
func TestManyPeers(t *testing.T) {
	testenv.Grid(t, "10,000 flows")
	program := testenv.Ackscope(t)
	const peers = 10_000
	path, _ := peersCapture(t, peers, 4)
	if n := bytes.Count(testenv.Output(t, program, "flows", "--json", path), []byte(`"protocol":"srdp"`)); n != peers {
		t.Errorf("%d flows of SRDP, expected %d", n, peers)
	}
	text := testenv.Output(t, program, "state", "--flow", "7000", "--side", "a", path)
	for _, want := range []string{
		fmt.Sprintf("endpoint: flows that it sends data in %d flows", peers),
		"endpoint: of them, in no flow of this capture 0 ids",
		"sent  next 37000 ", // the flow's fourth packet
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the state of a flow does not say %q:\n%s", want, text)
		}
	}
}

// BenchmarkPeers measures 10,000 peers of one endpoint, with the memory of a
// peer.
func BenchmarkPeers(b *testing.B) {
	const peers = 10_000
	path, packets := peersCapture(b, peers, 6)
	program := testenv.Ackscope(b)
	var u usage
	for b.Loop() {
		u = measure(b, 1, program, "flows", path)
	}
	b.ReportMetric(float64(u.peak)/peers, "B/peer")
	b.ReportMetric(float64(u.cpu.Nanoseconds())/float64(packets), "cpu-ns/packet")
}
