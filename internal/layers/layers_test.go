// Package layers holds the gopacket layers of the protocols against the captures
// of the repository.
package layers

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	gopacketlayers "github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/capture"
	gaffer "github.com/ackscope/ackscope/dissect/gaffer/layers"
	riptide "github.com/ackscope/ackscope/dissect/riptide/layers"
	srdp "github.com/ackscope/ackscope/dissect/srdp/layers"
	"github.com/ackscope/ackscope/dissect/stack"
	"github.com/ackscope/ackscope/internal/testenv"
)

// layer is what the layers of all protocols are.
type layer interface {
	gopacket.SerializableLayer
	Payload() []byte
}

// recognisers decode a packet if they know its flow.
func recognisers() map[string]func(gopacket.Packet) (layer, bool, error) {
	g, r, s := gaffer.NewClassifier(), riptide.NewClassifier(), srdp.NewClassifier()
	return map[string]func(gopacket.Packet) (layer, bool, error){
		"gaffer":  func(p gopacket.Packet) (layer, bool, error) { l, err := g.Decode(p); return l, l != nil, err },
		"riptide": func(p gopacket.Packet) (layer, bool, error) { l, err := r.Decode(p); return l, l != nil, err },
		"srdp":    func(p gopacket.Packet) (layer, bool, error) { l, err := s.Decode(p); return l, l != nil, err },
	}
}

// TestSerializeWhatWasDecoded: a datagram of every capture, decoded in the
// dialect that its classifier finds, is written as the same bytes.
func TestSerializeWhatWasDecoded(t *testing.T) {
	most := uint64(150)
	if testenv.Whole() {
		most = 1 << 40
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures: %v", len(paths), err)
	}
	paths = append(paths, simulated(t, "srdp"), simulated(t, "srdp:proxied-le"))
	same, unread := map[string]int{}, map[string]int{}
	for _, path := range paths {
		if !strings.HasSuffix(path, ".replay") {
			roundTrip(t, path, most, same, unread)
		}
	}
	t.Logf("the same: %v; not read in the dialect of their flow: %v", same, unread)
	for name, least := range map[string]int{"gaffer": 3000, "riptide": 3000, "srdp": 250} {
		if same[name] < least {
			t.Errorf("%s: %d datagrams, expected at least %d", name, same[name], least)
		}
	}
}

func TestMain(m *testing.M) { testenv.Main(m) }

// simulated returns a capture of a simulated session: the repository has none of
// SRDP.
func simulated(t *testing.T, protocol string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.pcapng")
	testenv.Output(t, testenv.Ackscope(t), "simulate", "--protocol", protocol, "--seed", "3", "-w", path)
	return path
}

func roundTrip(t *testing.T, path string, most uint64, same, unread map[string]int) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	known := recognisers()
	for f := (capture.Frame{}); f.Ref.Frame() < most; {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s := stack.Decode(&f, stack.Chosen{})
		udp, ok := s.Packet.TransportLayer().(*gopacketlayers.UDP)
		if !ok || s.Packet.Metadata().Truncated {
			continue
		}
		for name, decode := range known {
			l, ok, err := decode(s.Packet)
			if err != nil {
				unread[name]++
			}
			if !ok {
				continue
			}
			b := gopacket.NewSerializeBuffer()
			if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, l, gopacket.Payload(l.Payload())); err != nil {
				t.Fatalf("%s frame %d: %s: %v", path, f.Ref.Frame(), name, err)
			}
			if !bytes.Equal(b.Bytes(), udp.Payload) {
				t.Fatalf("%s frame %d: %s wrote\n% x\nof\n% x", path, f.Ref.Frame(), name, b.Bytes(), udp.Payload)
			}
			same[name]++
		}
	}
}
