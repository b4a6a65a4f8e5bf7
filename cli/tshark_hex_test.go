package cli

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// TestJoinedHexAsTshark: -x writes the bytes that a frame completes as tshark
// does, with its headings: over IPv4 and IPv6, UDP and ICMP.
func TestJoinedHexAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	line := regexp.MustCompile(`(?m)^([0-9a-f]{4}  .*|Frame \(.*|Reassembled .*)$`)
	for path, least := range map[string]int{fragments(t): 4, testenv.Capture(t, "reliable-ipfrag.client.pcap.gz"): 20} {
		theirs := line.FindAllString(string(testenv.Output(t, tshark, "-r", path, "-x")), -1)
		ours := line.FindAllString(output(t, "packets", "-x", path), -1)
		diffLines(t, path, strings.Join(theirs, "\n"), strings.Join(ours, "\n"))
		if n := strings.Count(strings.Join(ours, "\n"), "Reassembled"); n < least {
			t.Errorf("%s: %d frames complete a packet, expected %d at least", path, n, least)
		}
	}
}

// fragments writes a capture with packets in two fragments each: UDP and ICMP
// over IPv4 and IPv6.
func fragments(t *testing.T) string {
	t.Helper()
	body := bytes.Repeat([]byte("fragment"), 8)
	udp := append([]byte{0x9c, 0x40, 0x1e, 0x61, 0, byte(8 + len(body)), 0, 0}, body...)
	echo := func(kind byte) []byte { return append([]byte{kind, 0, 0, 0, 0, 7, 0, 9}, body...) }
	var frames [][]byte
	for id, x := range []struct {
		protocol byte
		payload  []byte
		six      bool
	}{{17, udp, false}, {1, echo(8), false}, {17, udp, true}, {58, echo(128), true}} {
		for _, from := range []int{0, 40} {
			part, more := x.payload[from:], 0
			if from == 0 {
				part, more = x.payload[:40], 1
			}
			if x.six {
				head := append([]byte{0x60, 0, 0, 0, 0, byte(8 + len(part)), 44, 64}, make([]byte, 32)...)
				head[8], head[23], head[24], head[39] = 0xfd, 1, 0xfd, 2
				frames = append(frames, slices.Concat(head, []byte{x.protocol, 0, 0, byte(from | more), 0, 0, 0, byte(id)}, part))
				continue
			}
			head := []byte{0x45, 0, 0, byte(20 + len(part)), 0, byte(id), 0, 0, 64, x.protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
			binary.BigEndian.PutUint16(head[6:], uint16(from/8|more<<13))
			frames = append(frames, append(head, part...))
		}
	}
	return framesFile(t, capture.LinkRaw, frames...)
}

// framesFile writes frames to a capture.
func framesFile(t *testing.T, link uint32, frames ...[]byte) string {
	t.Helper()
	var b bytes.Buffer
	w, err := capture.NewClassicWriter(&b, link, 0xffff, capture.Microseconds, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, frame := range frames {
		f := capture.Frame{LinkType: link, At: machine.Instant(i+1) * 1e9, Data: frame, Length: len(frame)}
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
