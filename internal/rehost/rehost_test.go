package rehost

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/capture"
)

// TestSpread: each client of a lobby has a host of its own, and every datagram keeps its time and its bytes.
func TestSpread(t *testing.T) {
	from := filepath.Join("..", "..", "testdata", "pcaps", "u221_lobby.server.pcap.gz")
	list := datagrams(t, from)
	server := list[0].dst.Port()
	path := filepath.Join(t.TempDir(), "spread.pcapng")
	var b bytes.Buffer
	packets, err := Copy(&b, from, Spread(server))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	spread := datagrams(t, path)
	if len(spread) != len(list) || packets != len(list) {
		t.Fatalf("%d datagrams, said to be %d, expected %d", len(spread), packets, len(list))
	}
	ends, hosts := map[netip.AddrPort]netip.AddrPort{}, map[netip.Addr]bool{}
	for i := range list {
		want, got := &list[i], &spread[i]
		if !bytes.Equal(got.bytes, want.bytes) || got.at != want.at {
			t.Fatalf("datagram %d is not the same", i+1)
		}
		for _, pair := range [][2]netip.AddrPort{{want.src, got.src}, {want.dst, got.dst}} {
			if to, known := ends[pair[0]]; known && to != pair[1] {
				t.Fatalf("datagram %d: %v is now %v, and was %v", i+1, pair[0], pair[1], to)
			}
			ends[pair[0]], hosts[pair[1].Addr()] = pair[1], true
		}
	}
	if len(hosts) != len(ends) || len(ends) < 3 {
		t.Errorf("%d ends at %d hosts, expected as many, and 3 at least", len(ends), len(hosts))
	}
}

type datagram struct {
	at       int64
	src, dst netip.AddrPort
	bytes    []byte
}

func datagrams(t *testing.T, path string) (list []datagram) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if decoder.Decode(&f, &p); p.Transport == capture.UDP {
			list = append(list, datagram{int64(p.At), p.Src, p.Dst, bytes.Clone(p.Payload)})
		}
	}
}
