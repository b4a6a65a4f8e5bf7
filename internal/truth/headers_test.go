package truth

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestHeaders: every header that passed the tap is decoded as its sender wrote
// it, according to the sender's log. All headers of the endpoint at the tap are
// found.
func TestHeaders(t *testing.T) {
	program := testenv.Ackscope(t)
	for _, c := range captures(t) {
		t.Run(c.name+"."+c.tap, func(t *testing.T) {
			c.span(t)
			r := readRun(t, c.name)
			packets := readPackets(t, program, c.path)
			if faults := checkHeaders(r, &c, packets); len(faults) > 0 {
				t.Errorf("%d headers differ from the log: %s", len(faults), strings.Join(faults[:min(len(faults), 5)], "; "))
			}
		})
	}
}

// TestHeadersCatches changes the program's output, and checks that the oracle
// finds the fault.
func TestHeadersCatches(t *testing.T) {
	c := captured{path: testenv.Capture(t, "reliable-loss10.server.pcap.gz"), name: "reliable-loss10", tap: "server"}
	c.span(t)
	r, good := readRun(t, c.name), readPackets(t, testenv.Ackscope(t), c.path)
	for name, plant := range map[string]func([]header) []header{
		"ack":           func(hs []header) []header { hs[700].ack++; return hs },
		"ack_bits":      func(hs []header) []header { hs[701].bits ^= 1 << 31; return hs },
		"sequence":      func(hs []header) []header { hs[702].sequence += 3000; return hs },
		"bytes":         func(hs []header) []header { hs[703].payload = []byte{0, 1, 2, 3}; return hs },
		"a packet less": func(hs []header) []header { return hs[:len(hs)-300] },
	} {
		if faults := checkHeaders(r, &c, plant(slices.Clone(good))); len(faults) == 0 {
			t.Errorf("a wrong %s is not caught", name)
		}
	}
}

// header is one packet with a header, as ackscope decodes it.
type header struct {
	frame         int
	time          float64
	from, to      netip.AddrPort
	sequence, ack int
	bits          uint64
	payload       []byte // the captured part of the datagram
}

func readPackets(t *testing.T, program, path string) (out []header) {
	t.Helper()
	columns := []string{
		"frame.number", "frame.time_epoch", "ip.src", "ipv6.src", "udp.srcport", "ip.dst", "ipv6.dst", "udp.dstport",
		"gaffer.sequence", "gaffer.ack", "gaffer.ack_bits", "udp.payload",
	}
	args := []string{"packets", "-T", "fields", "-E", "occurrence=l", "-Y", "gaffer.ack && !(gaffer.fragment.id > 0)"}
	for _, c := range columns {
		args = append(args, "-e", c)
	}
	for l := range strings.Lines(string(testenv.Output(t, program, append(args, path)...))) {
		v := strings.Split(strings.TrimSuffix(l, "\n"), "\t")
		if len(v) != len(columns) {
			t.Fatalf("%d columns in %q, expected %d", len(v), l, len(columns))
		}
		number := func(s string, base int) uint64 {
			n, err := strconv.ParseUint(s, base, 64)
			if err != nil {
				t.Fatalf("%v in %q", err, l)
			}
			return n
		}
		at, err := strconv.ParseFloat(v[1], 64)
		if err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		end := func(v4, v6, port string) netip.AddrPort {
			addr, err := netip.ParseAddr(v4 + v6)
			if err != nil {
				t.Fatalf("%v in %q", err, l)
			}
			return netip.AddrPortFrom(addr, uint16(number(port, 10)))
		}
		h := header{
			frame: int(number(v[0], 10)), time: at, from: end(v[2], v[3], v[4]), to: end(v[5], v[6], v[7]),
			sequence: int(number(v[8], 10)), ack: int(number(v[9], 10)), bits: number(strings.TrimPrefix(v[10], "0x"), 16),
		}
		if h.payload, err = hex.DecodeString(strings.ReplaceAll(v[11], ":", "")); err != nil {
			t.Fatalf("%v in frame %d", err, h.frame)
		}
		out = append(out, h)
	}
	return out
}

func checkHeaders(r *run, c *captured, packets []header) (faults []string) {
	type end struct {
		endpoint string
		conn     int
	}
	sent := map[end]map[int]line{}
	lines := func(e end) map[int]line {
		if sent[e] == nil {
			sent[e] = map[int]line{}
			for _, l := range r.by[who{e.endpoint, e.conn, "sent"}] {
				sent[e][l.Seq] = l // no sequence occurs twice in any of these captures
			}
		}
		return sent[e]
	}
	seen := map[end]map[int]bool{}
	for _, h := range packets {
		endpoint, conn, at, ok := r.near(c.tap, h.from, h.to)
		if !ok {
			faults = append(faults, fmt.Sprintf("frame %d between %v and %v: no endpoint of the run", h.frame, h.from, h.to))
			continue
		}
		e := end{endpoint, conn}
		if seen[e] == nil {
			seen[e] = map[int]bool{}
		}
		if at == h.from {
			seen[e][h.sequence] = true
		} else {
			e = end{other(endpoint), r.farConn(endpoint, conn)}
		}
		l, logged := lines(e)[h.sequence]
		bits, _ := strconv.ParseUint(l.AckBits, 16, 64)
		switch {
		case !logged && h.time < firstLine(r, e.endpoint, e.conn)+0.005:
			// Captured before its sender began to log.
		case !logged:
			faults = append(faults, fmt.Sprintf("frame %d: %s never sent sequence %d", h.frame, e.endpoint, h.sequence))
		case h.ack != l.Ack || h.bits != bits:
			faults = append(faults, fmt.Sprintf("frame %d: sequence %d: ack %d, ack_bits %08x; the log has %d, %08x", h.frame,
				h.sequence, h.ack, h.bits, l.Ack, bits))
		case !h.begins(l.Hex):
			faults = append(faults, fmt.Sprintf("frame %d: sequence %d: the datagram begins %.20x, the log has %s", h.frame,
				h.sequence, h.payload, l.Hex))
		case at == h.from && (h.time-l.T < -0.005 || h.time-l.T > 0.005):
			faults = append(faults, fmt.Sprintf("frame %d: sequence %d passed the tap %.1f ms after the log's line", h.frame,
				h.sequence, (h.time-l.T)*1000))
		}
	}
	for e, have := range seen {
		for seq, l := range lines(e) {
			if !have[seq] && l.T > c.first && l.T < c.last-0.005 {
				faults = append(faults, fmt.Sprintf("%s sent sequence %d, no frame has its header", e.endpoint, seq))
			}
		}
	}
	return faults
}

// begins reports whether the datagram begins with the logged header bytes, as
// far as the snap length left them. A first fragment begins with its own
// header, followed by the packet's.
func (h *header) begins(logged string) bool {
	want, err := hex.DecodeString(logged)
	if err != nil {
		return false
	}
	n := min(len(want), len(h.payload))
	return string(want[:n]) == string(h.payload[:n])
}

func firstLine(r *run, endpoint string, conn int) float64 {
	if lines := r.by[who{endpoint, conn, "sent"}]; len(lines) > 0 {
		return lines[0].T
	}
	return 0
}
