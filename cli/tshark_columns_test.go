package cli

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// unlikeTshark are values that differ from tshark 4.0's, by column and frame of
// kinds.pcap.
var unlikeTshark = map[string]map[string]string{
	"icmp.unused":      {"9": "tshark shows no field for these four bytes", "18": "as 9"},
	"dhcp.option.type": {"37": "the option that ends the list is 255, which tshark writes as 0"},
	"gre.flags.ack":    {"39": "tshark has the field in version 1 only"},
}

// ownColumns are columns of layers for which tshark has no name, or one for each
// kind of option.
var ownColumns = []string{"ip.opt.data", "ipv6.opt.data", "tcp.option.data", "icmpv6.opt.data", "dns.resp.value"}

// layerColumns returns the columns that only layers have and both programs know.
func layerColumns(t *testing.T, tshark string) (names []string) {
	t.Helper()
	theirs := tsharkFields(t, tshark)
	for _, f := range (&app.App{Registry: protocols()}).Table().Columns() {
		switch {
		case !f.ColumnOnly() || slices.Contains(ownColumns, f.Name):
		case !theirs[f.Name]:
			t.Errorf("tshark knows no field %s", f.Name)
		default:
			names = append(names, f.Name)
		}
	}
	if len(names) < 150 {
		t.Errorf("%d columns, expected 150 at least", len(names))
	}
	return names
}

// TestColumnsAsTshark compares every column of headers with tshark's, over a
// frame of each kind: ICMP with the packets that it quotes, tunnels, ARP, DHCP.
func TestColumnsAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	kinds := filepath.Join(testenv.Module(t), "testdata", "layers", "kinds.pcap")
	names := both(t, tshark)
	sameColumns(t, tshark, kinds, ofRecords(names), nil)
	names = append(names, layerColumns(t, tshark)...)
	if filled := sameColumns(t, tshark, kinds, names, unlikeTshark); filled < 150 {
		t.Errorf("%d columns have a value somewhere, expected 150 at least", filled)
	}
	for _, occurrence := range []string{"f", "l"} {
		args := []string{
			"-T", "fields", "-E", "occurrence=" + occurrence,
			"-e", "ip.src", "-e", "udp.port", "-e", "icmp.code",
		}
		theirs := string(testenv.Output(t, tshark, append([]string{"-r", kinds}, args...)...))
		diffLines(t, occurrence, theirs, output(t, append(append([]string{"packets"}, args...), kinds)...))
	}
	for _, format := range []string{"json", "ek"} {
		sameDocuments(t, tshark, kinds, anyKey, 150, "-T", format, "-e", "frame.number", "-e", "icmp.type", "-e", "ip.src",
			"-e", "arp.opcode", "-e", "icmpv6.checksum")
	}
}

// ofRecords leaves out udp.length, which makes the program take frames apart that
// need it for no other column.
func ofRecords(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "udp.length" })
}

// TestRareColumnsAsTshark is TestColumnsAsTshark for headers that no frame of
// kinds.pcap has.
func TestRareColumnsAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	path := rare(t)
	names := append(both(t, tshark), layerColumns(t, tshark)...)
	unlike := map[string]map[string]string{"gre.flags.ack": {"5": "tshark has the field in version 1 only"}}
	if filled := sameColumns(t, tshark, path, names, unlike); filled < 60 {
		t.Errorf("%d columns have a value somewhere, expected 60 at least", filled)
	}
	args := []string{"packets", "-T", "fields"}
	want := []string{
		"ip.opt.type", "ip.opt.len", "ah.spi", "ah.sequence", "arp.src.hw", "arp.dst.proto", "icmp.num_addrs",
		"icmp.lifetime", "gre.checksum", "gre.offset", "dns.qry.name",
	}
	for _, n := range want {
		args = append(args, "-e", n)
	}
	found := map[string]bool{}
	for row := range strings.Lines(output(t, append(args, path)...)) {
		for i, v := range strings.Split(strings.TrimSuffix(row, "\n"), "\t") {
			found[want[i]] = found[want[i]] || v != ""
		}
	}
	for _, n := range want {
		if !found[n] {
			t.Errorf("%s has no value in any frame", n)
		}
	}
}

// sameColumns compares columns of both programs, row by row. It returns how many
// have a value in some row.
func sameColumns(t *testing.T, tshark, path string, names []string, but map[string]map[string]string) (filled int) {
	t.Helper()
	args := []string{"-T", "fields"}
	for _, n := range names {
		args = append(args, "-e", n)
	}
	theirs := strings.Split(string(testenv.Output(t, tshark, append([]string{"-r", path}, args...)...)), "\n")
	ours := strings.Split(output(t, append(append([]string{"packets"}, args...), path)...), "\n")
	if len(ours) != len(theirs) {
		t.Fatalf("%d rows, tshark has %d", len(ours), len(theirs))
	}
	some := map[string]bool{}
	for i := range ours {
		a, b := strings.Split(ours[i], "\t"), strings.Split(theirs[i], "\t")
		if len(a) != len(b) {
			t.Fatalf("row %d: %d columns, tshark has %d", i+1, len(a), len(b))
		}
		for k := range a {
			if a[k] != b[k] && but[names[k]][a[0]] == "" {
				t.Errorf("frame %s: %s is %q, tshark has %q", a[0], names[k], a[k], b[k])
			}
			some[names[k]] = some[names[k]] || a[k] != ""
		}
	}
	for _, is := range some {
		if is {
			filled++
		}
	}
	return filled
}

// TestColumnsOfRecords: the columns that a record can fill are those that its
// layers fill, in every shipped capture. A column that only layers have makes
// the program take each frame apart.
func TestColumnsOfRecords(t *testing.T) {
	if n := sameByLayers(t, sampler(t, 6, everyFrame)); n < 1000 {
		t.Errorf("%d rows, expected 1000 at least", n)
	}
}

// sameByLayers compares the columns that both can fill. It returns the rows.
func sameByLayers(t *testing.T, path string) int {
	t.Helper()
	header := regexp.MustCompile(`^(eth|vlan|ieee8021ad|ip|ipv6|udp|tcp)\.`)
	var args []string
	for _, f := range (&app.App{Registry: protocols()}).Table().Fields() {
		// The header says udp.length otherwise than the record, if it lies.
		if header.MatchString(f.Name) && !strings.HasSuffix(f.Name, ".stream") && f.Name != "udp.length" {
			args = append(args, "-e", f.Name)
		}
	}
	args = append([]string{"packets", "-T", "fields"}, args...)
	records := output(t, append(slices.Clone(args), path)...)
	layers := output(t, append(slices.Clone(args), "-e", "pppoe.code", path)...)
	layers = regexp.MustCompile(`(?m)\t[^\t\n]*$`).ReplaceAllString(layers, "")
	diffLines(t, "records and layers", layers, records)
	return strings.Count(records, "\n")
}

// TestUnknownColumns: a name that only columns have is no field of a filter.
func TestUnknownColumns(t *testing.T) {
	kinds := filepath.Join(testenv.Module(t), "testdata", "layers", "kinds.pcap")
	for _, c := range []struct{ flag, text, want string }{
		{"-e", "icmp.typ", "-e icmp.typ: no field is named so; did you mean icmp.type?"},
		{"-e", "vni", "-e vni: no field is named so; did you mean vxlan.vni?"},
		{"-Y", "icmp.type == 3", "filter, column 1: expected a field that filters know, found icmp.type, " +
			"which only columns have (packets -e icmp.type)"},
		{"-Y", "udp && arp.opcode", "filter, column 8: expected a field that filters know, found arp.opcode"},
	} {
		var out, complaint bytes.Buffer
		code := runKnown([]string{"packets", "-T", "fields", "-e", "frame.number", c.flag, c.text, kinds},
			app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint})
		if code != 2 || !strings.Contains(complaint.String(), c.want) {
			t.Errorf("%s %s: exit %d, %s, expected %s", c.flag, c.text, code, complaint.String(), c.want)
		}
	}
}

// rare writes a capture with headers that kinds.pcap lacks. They are options of
// IPv4, authentication, ARP between strange addresses, a router's advertisement,
// a checksum of GRE, and a question for the root of DNS.
func rare(t *testing.T) string {
	t.Helper()
	udp := []byte{0x9c, 0x40, 0x1e, 0x61, 0, 12, 0, 0, 'g', 'a', 'm', 'e'}
	four := func(protocol byte, options, payload []byte) []byte {
		n := 20 + len(options)
		head := []byte{
			0x40 | byte(n/4), 0, 0, byte(n + len(payload)), 0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0,
			0, 2,
		}
		return slices.Concat(head, options, payload)
	}
	ether := func(kind uint16, payload []byte) []byte {
		return slices.Concat([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, byte(kind >> 8), byte(kind)}, payload)
	}
	auth := slices.Concat([]byte{17, 4, 0, 0, 0, 0, 1, 2, 0, 0, 0, 9}, make([]byte, 12), udp)
	return framesFile(t, capture.LinkEthernet,
		ether(0x0800, four(17, []byte{0x94, 4, 0, 0}, udp)),
		ether(0x0800, four(51, nil, auth)),
		ether(0x0806, slices.Concat([]byte{0, 6, 8, 0, 8, 6, 0, 1}, []byte("sender's"), []byte("source"),
			[]byte("target's"), []byte("sought"))),
		ether(0x0800, four(1, nil, []byte{9, 0, 0, 0, 1, 2, 7, 8, 10, 0, 0, 1, 0, 0, 0, 0})),
		ether(0x0800, four(47, nil, slices.Concat([]byte{0x80, 0, 8, 0, 0x12, 0x34, 0, 0}, four(17, nil, udp)))),
		ether(0x0800, four(17, nil, []byte{
			0x9c, 0x40, 0, 53, 0, 25, 0, 0, 0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1,
		})),
	)
}

// TestColumnsOnNoise: no bytes make a column panic, and each frame has its row.
// Where a record fills a column, it does so as the layers do.
func TestColumnsOnNoise(t *testing.T) {
	in, err := capture.Open([]string{filepath.Join(testenv.Module(t), "testdata", "layers", "kinds.pcap")},
		capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := rand.New(rand.NewPCG(15, 2))
	var frames [][]byte
	var f capture.Frame
	for in.Next(&f) == nil {
		for range 60 {
			b := bytes.Clone(f.Data)
			for range 1 + r.IntN(6) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			frames = append(frames, b[:len(b)-r.IntN(4)*r.IntN(len(b)/4)])
		}
	}
	args := []string{"packets", "-T", "fields"}
	for _, c := range (&app.App{Registry: protocols()}).Table().Columns() {
		if c.Needs == 0 {
			args = append(args, "-e", c.Name)
		}
	}
	path := framesFile(t, capture.LinkEthernet, frames...)
	if n := strings.Count(output(t, append(args, path)...), "\n"); n != len(frames) || n < 3000 {
		t.Errorf("%d rows of %d frames, expected as many, and 3000 at least", n, len(frames))
	}
	sameByLayers(t, path)
}
