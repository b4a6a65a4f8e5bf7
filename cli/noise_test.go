package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	foreign "github.com/ackscope/ackscope/internal/noise"
	"github.com/ackscope/ackscope/machine"
)

// No protocol claims flows of other protocols in one capture. Each flow has a
// reason.
func TestNoiseIsClaimedByNone(t *testing.T) {
	names := slices.Sorted(maps.Keys(foreign.Protocols))
	path := filepath.Join(t.TempDir(), "noise.pcapng")
	writeNoise(t, path, names)
	var out, errs bytes.Buffer
	if code := runKnown([]string{"flows", "--json", path},
		app.Streams{In: bytes.NewReader(nil), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	flows := 0
	for d := json.NewDecoder(&out); ; flows++ {
		var f struct {
			Flow     int     `json:"flow"`
			B        string  `json:"b"`
			Protocol *string `json:"protocol"`
			Dialect  *string `json:"dialect"`
			Reason   string  `json:"reason"`
		}
		if err := d.Decode(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if f.Protocol != nil {
			t.Errorf("%s: classified as %s: %s", names[f.Flow-1], *f.Protocol, f.Reason)
		}
		if f.Reason == "" {
			t.Errorf("%s: no reason is given", names[f.Flow-1])
		}
	}
	if flows != len(names) {
		t.Errorf("%d flows of %d are listed", flows, len(names))
	}
}

// writeNoise writes a capture with one flow for each name, in turn.
func writeNoise(t *testing.T, path string, names []string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := capture.NewWriter(f, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{LinkType: 1}); err != nil {
		t.Fatal(err)
	}
	flows := make([]func(int, machine.Side) []byte, len(names))
	for i, name := range names {
		flows[i] = foreign.Protocols[name](rand.New(rand.NewPCG(uint64(i), 1)))
	}
	at := machine.Instant(1_700_000_000 * int64(time.Second))
	for n := range 300 {
		for i := range flows {
			side := machine.Side(n % 2)
			frame := udpFrame(t, uint16(20000+i), side, flows[i](n, side))
			at = at.Add(time.Millisecond)
			if err := w.WriteFrame(&capture.Frame{At: at, LinkType: 1, Length: len(frame), Data: frame}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// udpFrame returns a payload in a frame between 192.0.2.1 and 192.0.2.2:9999.
func udpFrame(t *testing.T, port uint16, from machine.Side, payload []byte) []byte {
	t.Helper()
	src, dst := layers.UDPPort(port), layers.UDPPort(9999)
	ip := &layers.IPv4{
		Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 1},
		DstIP: []byte{192, 0, 2, 2},
	}
	if from == machine.B {
		src, dst, ip.SrcIP, ip.DstIP = dst, src, ip.DstIP, ip.SrcIP
	}
	udp := &layers.UDP{SrcPort: src, DstPort: dst}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	eth := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip,
		udp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Bytes())
}
