package capture

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// captures returns the paths of the shipped captures whose names contain one of
// the words. Without words it returns all.
func captures(t testing.TB, words ...string) (paths []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if len(words) == 0 ||
			slices.ContainsFunc(words, func(w string) bool { return strings.Contains(filepath.Base(path), w) }) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatalf("testdata/pcaps has no capture named like %v", words)
	}
	return paths
}

// row formats a frame as tshark does.
func row(f *Frame, p *Packet) string {
	addresses := func(is func(netip.Addr) bool) string {
		if p.Src.IsValid() && is(p.Src.Addr()) {
			return p.Src.Addr().String() + "\t" + p.Dst.Addr().String()
		}
		return "\t"
	}
	s := fmt.Sprintf("%d\t%d.%09d\t%d\t%d\t%s\t%s", f.Ref.Frame(), f.At/1e9, f.At%1e9, f.Length, len(f.Data),
		addresses(netip.Addr.Is4), addresses(netip.Addr.Is6))
	id, ttl, limit := "", "", ""
	if p.Src.IsValid() && p.Src.Addr().Is4() {
		id, ttl = fmt.Sprintf("0x%04x", p.IPID), fmt.Sprint(p.TTL)
	} else if p.Src.IsValid() {
		limit = fmt.Sprint(p.TTL)
	}
	s += "\t" + id + "\t" + ttl + "\t" + limit
	switch p.Transport {
	case UDP:
		s += fmt.Sprintf("\t%d\t%d\t%d\t%s\t\t\t\t", p.Src.Port(), p.Dst.Port(), p.Length+8, hex.EncodeToString(p.Payload))
	case TCP:
		s += fmt.Sprintf("\t\t\t\t\t%d\t%d\t%d\t%s", p.Src.Port(), p.Dst.Port(), p.Length, hex.EncodeToString(p.Payload))
	default:
		s += "\t\t\t\t\t\t\t\t"
	}
	return s
}

// TestAsTshark compares captures of every format, link type and oddity with
// tshark: numbers, times, lengths, addresses, ports and payloads.
func TestAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	paths := captures(t)
	if !testenv.Required() {
		paths = captures(t, "linktype-", "loss40.", "be-loss20-reorder.client", "ipfrag.client", "snap60.client", "ipv6.",
			"dup10.client", "reliable-loss10.", "reliable-clean.client", "loopback", "article-connect.client", "u210_dup",
			"u210_plain_any", "u210_ipv6_lo", "t210_small_mtu")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			out := testenv.Output(t, tshark, "-n", "-r", path, "-Y", "!icmp && !icmpv6", "-o", "tcp.desegment_tcp_streams:FALSE",
				"-T", "fields", "-E", "occurrence=f",
				"-e", "frame.number", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.cap_len",
				"-e", "ip.src", "-e", "ip.dst", "-e", "ipv6.src", "-e", "ipv6.dst", "-e", "ip.id", "-e", "ip.ttl",
				"-e", "ipv6.hlim",
				"-e", "udp.srcport", "-e", "udp.dstport", "-e", "udp.length", "-e", "udp.payload",
				"-e", "tcp.srcport", "-e", "tcp.dstport", "-e", "tcp.len", "-e", "tcp.payload")
			lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
			in, err := Open([]string{path}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }()
			d := NewDecoder(DecodeOptions{})
			var f Frame
			var p Packet
			compared := 0
			for {
				err := in.Next(&f)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				d.Decode(&f, &p)
				if compared == len(lines) || !strings.HasPrefix(lines[compared], fmt.Sprintf("%d\t", f.Ref.Frame())) {
					if p.Transport != NoTransport {
						t.Fatalf("frame %d carries %v, and tshark says it is ICMP", f.Ref.Frame(), p.Transport)
					}
					continue
				}
				if got, want := row(&f, &p), lines[compared]; got != want {
					t.Fatalf("frame %d:\n%s\ntshark:\n%s", f.Ref.Frame(), got, want)
				}
				compared++
			}
			if compared != len(lines) {
				t.Errorf("%d frames compared, tshark has %d", compared, len(lines))
			}
		})
	}
}

// datagrams returns the payloads and addresses of a capture, without the link
// layer.
func datagrams(t testing.TB, path string, n int) (list []string) {
	t.Helper()
	in, err := Open([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	d := NewDecoder(DecodeOptions{})
	var f Frame
	var p Packet
	for range n {
		err := in.Next(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if d.Decode(&f, &p); p.Transport == UDP {
			list = append(list, fmt.Sprintf("%d %s %s %d %d %x %x", f.At/1000, p.Src, p.Dst, p.Length, p.TTL, p.IPID, p.Payload))
		}
	}
	return list
}

func TestLinkTypesCarryTheSame(t *testing.T) {
	want := datagrams(t, testenv.Capture(t, "linktype-vlan.pcap.gz"), 300)
	if len(want) != 300 {
		t.Fatalf("%d datagrams in 300 frames", len(want))
	}
	for _, path := range captures(t, "linktype-") {
		if got := datagrams(t, path, 300); !slices.Equal(got, want) {
			t.Errorf("%s carries %d datagrams that are not those of linktype-vlan", filepath.Base(path), len(got))
		}
	}
}

// TestRealDuplicatesStay: no shipped capture contains a datagram that the tap
// captured twice. Datagrams that a relay or an endpoint sent twice must not be
// mistaken for such. Nor must the two legs of a path through loopback.
func TestRealDuplicatesStay(t *testing.T) {
	for _, path := range captures(t) {
		in, err := Open([]string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDecoder(DecodeOptions{})
		var f Frame
		var p Packet
		for in.Next(&f) == nil {
			if d.Decode(&f, &p); p.Duplicate {
				t.Errorf("%s: frame %d is taken for a second capture of one before it", filepath.Base(path), f.Ref.Frame())
			}
		}
		_ = in.Close()
	}
}
