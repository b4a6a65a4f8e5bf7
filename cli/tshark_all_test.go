package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/internal/testenv"
)

// headerFilters name fields of frames and headers, each in another way.
var headerFilters = append([]string{
	"frame.len > 60 and frame.cap_len == frame.len",
	"frame.len in {40..60, 100, 1400..1600} || frame.cap_len < 40",
	"frame.number & 1",
	"frame[0:2] == 00:00 or frame[-1] == 00",
	"frame contains 00:00:00:01",
	"eth", "eth.dst == ff:ff:ff:ff:ff:ff", "eth.addr[0] == ff || eth.type == 0x0806",
	"ip", "ip.src != ip.dst", "ip.addr == 127.0.0.0/8 || ip.addr == 10.20.0.0/16",
	"ip.addr in {10.20.1.1, 10.77.0.0..10.77.1.1}",
	"ip.src > 10.50.0.0", "ip.dst[3] == 02", "ip.len > 100 and ip.hdr_len == 20",
	"ip.ttl < 64", "ip.proto == 17", "ip.proto != 17", "ip.version == 4", "ip.dsfield == 0",
	"ip.flags.df == 0", "not ip.flags.df",
	"ipv6", "ipv6.nxt == 17 && ipv6.plen > 40", "ipv6.src == ipv6.dst", "ipv6.addr[0:2] == fd:77",
	"udp", "udp.port in {7800..7850}",
	"udp.srcport == 40000 || udp.dstport != 40000", "udp.length == 19 and not udp.port < 10000",
	"udp contains 00:00:00 and not ip.frag_offset > 0", "udp.payload[0:4] contains 00", "udp.payload[1] < 80",
	"udp.payload[1:2] != 00:00", "udp.payload[5] == udp.payload[6]",
	"udp.payload[2:]", "!(udp.payload[1:] == 00)", "udp.payload > 20:00:00", "udp.payload[-3:2] != 00",
	"len(udp.payload) > 1000", "count(udp.port) == 2",
	"udp.payload matches \"^\\\\x3e\"", "udp.payload[0:2] > 20:00",
	"tcp", "tcp.port == 7840 || tcp.srcport > 50000", "tcp.len > 0", "tcp.len == 0 and tcp.ack_raw > 1000",
	"tcp.seq_raw >= 2147483648", "tcp.payload[0:4] == 00:00:00:07 || len(tcp.payload) < 20",
	"any udp.port < 30000", "all udp.port > 30000", "udp.port !== 40000", "udp.port === 40000",
	"! udp and ! tcp", "(ip or ipv6) and not (udp or tcp)",
	"ip and udp or tcp and ip", "!ip and !ipv6 and !eth",
	"udp.length - 8 > 20", "udp.length + 8 == 40 || udp.length * 2 > 100", "udp.length / 2 > 30 && udp.length % 2 == 1",
	"{udp.length + 2} * 2 > 100",
	"udp.srcport - udp.dstport < 0", "udp.srcport - udp.dstport > 0", "-udp.length < 0 and max(udp.port) == 40000",
	"min(udp.port, 30000) < 20000", "frame.len == udp.length + 36",
	"frame.number % 2 == 0", "frame.len > 60 + 10", "frame.time_relative + 1 > 2", "udp.payload[0] & 1",
	"frame[0:2] & 00:04 || ip.dst[3] & 1",
	"tcp.flags.syn == 1", "tcp.flags.ack && tcp.flags.push == 0", "tcp.flags == 0x018 || tcp.flags & 0x01",
	"tcp.window_size_value > 1000 && tcp.hdr_len == 32", "ip.dsfield.dscp == 0 && ip.dsfield.ecn == 0",
	"ip.checksum > 0x4000", "ipv6.tclass == 0", "arp or icmp or icmpv6",
	"ip.flags == 2", "ip.proto == UDP", `ip.proto == "TCP"`, `udp.payload matches "\\xff"`,
	`udp.payload matches "^.{4}\\x00"`, `udp.payload matches "(?s)^.{4}\\x00"`, `frame matches "[\\x80-\\xff]{3}"`,
	`string(udp.port) matches "^4"`, "udp.port == 0x9c40 or udp.length ge 30 and udp.length le 60",
	"frame.time_relative < 1.5", "frame.time_delta >= 0.001 && frame.time_delta < 0.005", "frame.time_epoch > 1795238643",
}, tsharkFilters...)

// For the beginning of every shipped capture, each filter passes as many frames
// and bytes as in tshark. ACKSCOPE_SOAK extends this to whole captures.
func TestAsTsharkEverywhere(t *testing.T) {
	testenv.Grid(t, "tshark over all captures")
	tshark := testenv.Need(t, "tshark")
	frames := 150
	if os.Getenv("ACKSCOPE_SOAK") != "" {
		frames = 1 << 30
	}
	path := begins(t, frames)
	count := []string{"-q", "-r", path}
	for _, f := range headerFilters {
		count = append(count, "-z", "io,phs,"+f)
	}
	theirs := phsSums(string(testenv.Output(t, tshark, count...)))
	ours := passing(t, path, headerFilters)
	idle := 0
	for _, f := range headerFilters {
		if theirs[f] != ours[f] {
			t.Errorf("%s: tshark %+v, ackscope %+v", f, theirs[f], ours[f])
		}
		if ours[f].frames == 0 {
			idle++
		}
	}
	if idle > len(headerFilters)/8 {
		t.Errorf("%d of %d filters pass nothing", idle, len(headerFilters))
	}
}

// begins writes the first frames of every shipped capture to one file.
func begins(t *testing.T, most int) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures: %v", len(paths), err)
	}
	slices.Sort(paths)
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, ".replay") })
	in, err := capture.Open(paths, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out := filepath.Join(t.TempDir(), "begins.pcapng")
	s, err := reader.NewSave((&app.App{}), "-w", out, reader.OriginOf(in))
	if err != nil {
		t.Fatal(err)
	}
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if decoder.Decode(&f, &p); f.Ref.Frame() > uint64(most) || icmp(&f, &p) {
			continue // tshark decodes the headers that an ICMP error quotes as the packet's own
		}
		if err := s.Write(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// icmp reports whether a frame contains an ICMP packet.
func icmp(f *capture.Frame, p *capture.Packet) bool {
	for _, l := range p.Layers {
		if l.Kind == capture.LayerIPv4 && f.Data[l.Offset+9] == 1 || l.Kind == capture.LayerIPv6 && f.Data[l.Offset+6] == 58 {
			return true
		}
	}
	return false
}

// passing counts the frames that pass each filter, in one reading.
func passing(t *testing.T, path string, filters []string) map[string]sum {
	t.Helper()
	table := (&app.App{Registry: protocols()}).Table()
	compiled := make([]*filter.Filter, len(filters))
	for i, text := range filters {
		var err error
		if compiled[i], err = table.Compile(text); err != nil {
			t.Fatal(err)
		}
		if compiled[i].Needs() != 0 {
			t.Errorf("%s: needs an analysis (%b), which headers do not", text, compiled[i].Needs())
		}
	}
	src, err := reader.Open(&app.App{}, reader.File(path), reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	sums, decoder := map[string]sum{}, capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	var reading filter.Reading
	r := analyze.Record{Frame: &f, Packet: &p}
	for src.Next(&f) == nil {
		decoder.Decode(&f, &p)
		r.Datagram.At, r.Datagram.Ref, r.Datagram.Bytes, r.Datagram.Length = p.At, p.Ref, p.Payload, p.Length
		reading.Start, reading.Previous = src.Start, src.Previous
		x := reading.Take(&r)
		for i, c := range compiled {
			if c.Match(x) {
				s := sums[filters[i]]
				sums[filters[i]] = sum{s.frames + 1, s.bytes + f.Length}
			}
		}
	}
	return sums
}
