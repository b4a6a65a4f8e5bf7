package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// tsharkFilters use fields that both programs know: frames and their headers.
// Each tests a point of the language.
var tsharkFilters = []string{
	"udp.port == 40000 && frame.len > 100",
	"ip.addr != 10.77.1.1",
	"!(ip.addr == 10.77.1.1)",
	"udp.port !== 40000 || ipv6",
	"udp.port === 40000 or not udp",
	"ip.src == 10.77.0.0/16 and ip.ttl in {1..63, 64}",
	"udp.length in {20, 30..40, 100..120} || frame.number in {1..50}",
	"all udp.port > 10000 && any udp.port < 31000",
	"udp.payload[0:1] == 3e or frame[0:2] == 00:04",
	"udp.payload[-1] > 7f && udp.payload[1-2] != 00:00",
	"udp.payload contains 01:00:00 && frame.time_relative > 0.5",
	`frame.time_delta > 0.01 && frame.time_epoch < 1795238643.9 || frame.time_delta == 0`,
	`frame.time >= "2026-11-21 05:24:30Z"`,
	"count(udp.port) == 2 && count(ip.addr) == 2",
	"ip.id & 1 && ip.flags.df == 1",
	"ip.frag_offset > 0 || ip.flags.mf == 1",
	"ipv6.hlim == 64 && ipv6.addr == fd77:2::/64",
	"udp.srcport > udp.dstport and udp.length < 60",
	"ip.id == 0x3d3d || len(udp.payload) == 100",
	`eth.src[0:3] == 2a:13:78 || vlan.id == 42 && ieee8021ad.id == 7 && eth.dst contains 4e`,
}

// flowFilters need analysis, or fields that Wireshark knows in few captures.
var flowFilters = []string{
	"udp.stream == 0", "udp.stream > 0", "udp.stream % 2 == 0 && udp.length > 30",
	"data.data contains 01:00 && data.len > 20 && !(ip.flags.mf == 1)",
}

// The filters pass as many frames and bytes as in tshark, and columns have the
// same text.
func TestAsTshark(t *testing.T) {
	testenv.Grid(t, "tshark for every filter")
	tshark := testenv.Need(t, "tshark")
	columns := strings.Fields(
		"frame.number frame.len frame.cap_len frame.time_epoch frame.time_relative frame.time_delta " +
			"eth.src eth.dst eth.type vlan.id vlan.priority ieee8021ad.id " +
			"ip.src ip.dst ip.addr ip.ttl ip.id ip.len ip.hdr_len ip.dsfield ip.proto ip.flags.df ip.flags.mf ip.frag_offset " +
			"ipv6.src ipv6.dst ipv6.plen ipv6.nxt ipv6.hlim udp.srcport udp.dstport udp.port udp.length udp.payload")
	for _, name := range []string{
		"linktype-vlan.pcap.gz", "reliable-ipfrag.client.pcap.gz", "reliable-ipv6.server.pcapng.gz",
		"reliable-loss10.client.pcap.gz", "linktype-qinq.pcap.gz",
	} {
		t.Run(name, func(t *testing.T) {
			path := testenv.Capture(t, name)
			fields := []string{"-T", "fields"}
			for _, f := range columns {
				fields = append(fields, "-e", f)
			}
			theirs := testenv.Output(t, tshark, append([]string{"-r", path}, fields...)...)
			diffLines(t, strings.Join(columns, " "), string(theirs),
				output(t, append(append([]string{"packets"}, fields...), path)...))

			// One run of tshark counts for all filters: frames and bytes below each.
			count := []string{"-q", "-r", path}
			filters := slices.Concat(tsharkFilters, flowFilters)
			for _, filter := range filters {
				count = append(count, "-z", "io,phs,"+filter)
			}
			sums := phsSums(string(testenv.Output(t, tshark, count...)))
			passed := 0
			for _, filter := range filters {
				var ours sum
				for line := range strings.Lines(output(t, "packets", "-T", "fields", "-e", "frame.len", "-Y", filter, path)) {
					n, err := strconv.Atoi(strings.TrimSpace(line))
					if err != nil {
						t.Fatal(err)
					}
					ours.frames++
					ours.bytes += n
				}
				if theirs, ok := sums[filter]; !ok || theirs != ours {
					t.Errorf("%s: tshark (said so: %v) %+v, ackscope %+v", filter, ok, theirs, ours)
				}
				passed += ours.frames
			}
			if passed == 0 {
				t.Error("no filter passed a frame: the comparison shows nothing")
			}
		})
	}
}

type sum struct{ frames, bytes int }

// phsSums parses tshark's protocol hierarchies, by their filters. The lines
// without indentation count whole frames.
func phsSums(text string) map[string]sum {
	sums := map[string]sum{}
	filter := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if f, ok := strings.CutPrefix(line, "Filter: "); ok {
			filter = f
			sums[filter] = sum{}
		}
		_, counts, ok := strings.Cut(line, " frames:")
		if !ok || strings.HasPrefix(line, " ") {
			continue
		}
		s := sums[filter]
		var frames, bytes int
		if _, err := fmt.Sscanf(counts, "%d bytes:%d", &frames, &bytes); err == nil {
			s.frames += frames
			s.bytes += bytes
		}
		sums[filter] = s
	}
	return sums
}

// output runs a command that must succeed, in this process.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, complaint bytes.Buffer
	if code := runKnown(args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}); code != 0 {
		t.Fatalf("ackscope %q: exit %d: %s", args, code, complaint.String())
	}
	return out.String()
}

// diffLines reports the first lines that differ.
func diffLines(t *testing.T, what, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		x, y := "(none)", "(none)"
		if i < len(w) {
			x = w[i]
		}
		if i < len(g) {
			y = g[i]
		}
		if x != y {
			at := 0
			for at < len(x) && at < len(y) && x[at] == y[at] {
				at++
			}
			from := max(0, at-40)
			x, y = x[from:min(len(x), at+40)], y[from:min(len(y), at+40)]
			t.Errorf("%s: line %d:\ntshark   …%s\nackscope …%s\n(%d and %d lines)", what, i+1, x, y, len(w), len(g))
			return
		}
	}
}
