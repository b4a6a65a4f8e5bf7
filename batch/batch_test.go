package batch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// TestStates: the schema of a status lists every state that a run gives, and no other.
func TestStates(t *testing.T) {
	var want []string
	for _, s := range append(unit.States(), Unread, TimedOut, Quarantined) {
		want = append(want, string(s))
	}
	for _, s := range export.Objects() {
		for _, c := range s.Columns {
			if s.Name == "status" && c.Name == "state" && slices.Equal(c.Words, want) {
				return
			}
		}
	}
	t.Errorf("expected that the schema status has the states %q", want)
}

func TestFolder(t *testing.T) {
	label := func(name, value string) unit.Label { return unit.Label{Name: name, Value: value} }
	for want, labels := range map[string][]unit.Label{
		".":                                {{Name: "player", Value: "7", Carried: true}},
		"build=1.4.2/region=eu":            {label("build", "1.4.2"), label("region", "eu")},
		"build=__HIVE_DEFAULT_PARTITION__": {label("build", "")},
		"build=..%2F..%2Fetc":              {label("build", "../../etc")},
		"build=a%3Db%25%20%00%C3%A9%5C":    {label("build", "a=b% \x00é\\")},
		"build=..":                         {label("build", "..")},
	} {
		if got := Folder(labels); got != want {
			t.Errorf("%v: %q, expected %q", labels, got, want)
		}
	}
}

// TestShares: every capture belongs to one share and one part, and both divide evenly, also together.
func TestShares(t *testing.T) {
	const shares, parts, captures = 4, 4, 20_000
	var count [shares][parts]int
	for i := range captures {
		name := fmt.Sprintf("captures/%06d.pcapng", i)
		in := 0
		for s := range shares {
			if (Share{s, shares}).Has(name) {
				count[s][Part(name, parts)]++
				in++
			}
		}
		if in != 1 || !(Share{}).Has(name) {
			t.Fatalf("%s is in %d shares", name, in)
		}
	}
	for s := range count {
		for p, n := range count[s] {
			if want := captures / shares / parts; n < want*9/10 || n > want*11/10 {
				t.Errorf("share %d, part %d: %d captures, expected about %d", s, p, n, want)
			}
		}
	}
}

// plan reads a manifest beside some captures.
func plan(t *testing.T, manifest []byte, s Selection) (*Plan, error) {
	t.Helper()
	s.Manifest = filepath.Join(t.TempDir(), "of[1]", "captures.csv")
	for name, text := range map[string][]byte{
		"captures.csv": manifest, "a.pcap": nil, "b c.pcap": nil, "eu/x.pcap": nil, "eu/y.pcap": nil,
	} {
		path := filepath.Join(filepath.Dir(s.Manifest), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return NewPlan(s)
}

func TestManifest(t *testing.T) {
	for _, c := range []struct {
		text      string
		partition []string
		want      string // name[labels] of each capture, or a part of the error
	}{
		{"capture,build\na.pcap,1\n\"b c.pcap\",\"2,\"\"x\"\"\"\n", nil, `a.pcap[build=1] b c.pcap[build=2,"x"]`},
		{"\ufeffbuild,capture\r\n1,a.pcap\r\n", nil, "a.pcap[build=1]"},
		{"capture\na.pcap\n", nil, "a.pcap[]"},
		{"capture,build,player\na.pcap,1,7\n", []string{"build"}, "a.pcap[build=1 player=7-]"},
		{"capture,build\neu,1\na.pcap,2\n", nil, "a.pcap[build=2] eu/x.pcap[build=1] eu/y.pcap[build=1]"},
		{"capture,build\neu/*.pcap,1\n", nil, "eu/x.pcap[build=1] eu/y.pcap[build=1]"},
		{"capture,build\nnone.pcap,1\n", nil, "none.pcap[build=1]"}, // reading it reports the problem
		{"capture,build\n../of[1]/a.pcap,1\n", nil, "../of[1]/a.pcap[build=1]"},
		{"", nil, "is empty"},
		{"build\n1\n", nil, `no column "capture"`},
		{"capture,build,Build\na,1,2\n", nil, "twice"},
		{"capture,protocol\na,1\n", nil, "a column of this name"},
		{"capture,RTT_ms_a\na,1\n", nil, "a column of this name"},
		{"capture,../x\na,1\n", nil, "letters, digits"},
		{"capture,a;drop\na,1\n", nil, "letters, digits"},
		{"capture,build\na.pcap\n", nil, "wrong number of fields"},
		{"capture,build\n,1\n", nil, "line 2: \"\": expected the path"},
		{"capture,build\na\x00.pcap,1\n", nil, "expected the path"},
		{"capture,build\na.pcap,\xff\n", nil, "is not UTF-8"},
		{"capture,build\na.pcap," + strings.Repeat("ü", 80) + "\n", nil, "too long for the name of a folder"},
		{"capture,build\na.pcap,__HIVE_DEFAULT_PARTITION__\n", nil, "stands for no value"},
		{"capture,build\na.pcap,1\n./a.pcap,2\n", nil, "line 3: \"./a.pcap\" is named by an earlier row"},
		{"capture,build\na.pcap,1\n*.pcap,2\n", nil, "is named by an earlier row"},
		{"capture,build\na.pcap,1\n", []string{"region"}, `no column "region"`},
		{"capture,build\n\"a.pcap,1\n", nil, "quote"},
		{"capture" + strings.Repeat(",x", 70) + "\n", nil, "columns"},
		{"capture,build\na.pcap," + strings.Repeat("x", 2<<20) + "\n", nil, "a line has more than"},
	} {
		p, err := plan(t, []byte(c.text), Selection{Partition: c.partition})
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.60q: %v, expected %q", c.text, err, c.want)
			}
			continue
		}
		var got []string
		for _, x := range p.Captures {
			var labels []string
			for _, l := range x.Labels {
				labels = append(labels, l.Name+"="+l.Value+map[bool]string{true: "-"}[l.Carried])
			}
			got = append(got, fmt.Sprintf("%s[%s]", x.Name, strings.Join(labels, " ")))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%.60q: %q, expected %q", c.text, got, c.want)
		}
	}
}

// TestManifestOfParquet: a manifest of Parquet reads as that of CSV, and a damaged one is an error.
func TestManifestOfParquet(t *testing.T) {
	s := &export.Schema{Name: "m", Columns: []export.Column{
		{Name: "build", Type: export.Text},
		{Name: "capture", Type: export.Text},
		{Name: "players", Type: export.Uint, Absent: export.Null},
	}}
	var b bytes.Buffer
	e := parquet.New(&b, s)
	for i, name := range []string{"a.pcap", "b c.pcap"} {
		cells := s.Cells()
		cells[0] = export.Cell{Set: true, Bytes: []byte("1.4")}
		cells[1] = export.Cell{Set: true, Bytes: []byte(name)}
		cells[2] = export.Cell{Set: i > 0, Uint: 7}
		if err := e.Encode(cells); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := plan(t, b.Bytes(), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	label := func(name, value string) unit.Label { return unit.Label{Name: name, Value: value} }
	first := []unit.Label{label("build", "1.4"), label("players", "")}
	second := []unit.Label{label("build", "1.4"), label("players", "7")}
	if len(p.Captures) != 2 || !reflect.DeepEqual(p.Captures[0].Labels, first) ||
		!reflect.DeepEqual(p.Captures[1].Labels, second) {
		t.Errorf("it reads as %+v", p.Captures)
	}
	random := rand.New(rand.NewPCG(5, 6))
	failed := 0
	for range 300 { // no panic and no hang
		bad := bytes.Clone(b.Bytes())
		for range 1 + random.IntN(4) {
			bad[4+random.IntN(len(bad)-4)] ^= byte(1 + random.IntN(255))
		}
		if _, err := plan(t, bad[:4+random.IntN(len(bad)-3)], Selection{}); err != nil {
			failed++
		}
	}
	if failed < 100 {
		t.Errorf("only %d of 300 damaged manifests were refused", failed)
	}
}

// TestSegments: of a segment that is torn at any byte, the records before are read.
func TestSegments(t *testing.T) {
	folder := t.TempDir()
	s, err := NewSegment(&outfile.Outputs{}, folder)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for i := range 3 {
		r := &unit.Result{
			Status: unit.Status{Capture: fmt.Sprint(i), State: unit.OK},
			Flows:  []unit.Row{{Cells: []byte("first")}, {Cells: nil}, {Cells: bytes.Repeat([]byte("x"), 300)}},
		}
		at, length, err := s.addResult(Key{byte(i)}, r)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, at+int64(length))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, s.name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (keys []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var at place
		x, err := openStore(folder, func(_ byte, key Key, p place) { keys, at = append(keys, key[0]), p })
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if len(keys) > 0 {
			status, err := x.status(at)
			if err != nil || status.Capture != fmt.Sprint(keys[len(keys)-1]) {
				t.Fatalf("%+v, %v", status, err)
			}
			flows, err := x.read(at, partFlows, nil)
			var list []string
			if err == nil {
				err = rows(flows, func(b []byte) error { list = append(list, string(b)); return nil })
			}
			if err != nil || len(list) != 3 || list[0] != "first" || len(list[2]) != 300 {
				t.Fatalf("%q, %v", list, err)
			}
		}
		return keys
	}
	for n := range len(whole) + 1 {
		want := 0
		for _, end := range ends {
			if int64(n) >= end {
				want++
			}
		}
		if got := read(whole[:n]); len(got) != want {
			t.Fatalf("torn at %d: %d records, expected %d", n, len(got), want)
		}
	}
	for n := range whole { // a bit that fell over
		bad := bytes.Clone(whole)
		bad[n] ^= 1
		if got := read(bad); len(got) >= 3 && n >= len(segmentMagic) {
			t.Fatalf("with a wrong byte at %d: %d records", n, len(got))
		}
	}
}

// TestSummaryMerges: summaries merge in any order and grouping to the same value, and read back.
func TestSummaryMerges(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	one := func(i int) *Summary {
		h := make(unit.Histogram, unit.Buckets)
		h[i%unit.Buckets] = uint64(i)
		value := fmt.Sprint(i % 3)
		return &Summary{Partitions: []*Partition{{
			Folder: "build=" + value, Labels: []Label{{"build", &value}}, Captures: 1, Flows: 4,
			States: map[unit.State]uint64{unit.OK: 1},
			Protocols: []*Protocol{{
				Protocol: fmt.Sprint("p", i%2), Captures: 1, Flows: 4, FlowsSquared: 16,
				Dialects: []*Dialect{{Dialect: fmt.Sprint("d", i%5), Captures: 1, Flows: 4, RTT: h}},
				Rules: []*Rule{{
					Rule: fmt.Sprint("r", i%7), Severity: "warn", Captures: 1, Flows: 2, FlowsSquared: 4, FlowsProduct: 8,
					Example: Example{fmt.Sprint("c", i), uint64(i)},
				}},
			}},
		}}}
	}
	want := &Summary{}
	for i := range 60 {
		want.Merge(one(i))
	}
	for range 20 {
		groups := []*Summary{{}, {}, {}}
		for _, i := range random.Perm(60) {
			groups[random.IntN(3)].Merge(one(i))
		}
		got := &Summary{}
		for _, i := range random.Perm(3) {
			got.Merge(groups[i])
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatal("another order gives another summary")
		}
	}
	before := fmt.Sprintf("%+v", *want.Partitions[0].Protocols[0].Dialects[0])
	total := want.Total(func(*Partition) bool { return true })
	if total.Captures != 60 || total.Protocols[0].Flows+total.Protocols[1].Flows != 240 {
		t.Errorf("the total is %+v", total)
	}
	if after := fmt.Sprintf("%+v", *want.Partitions[0].Protocols[0].Dialects[0]); after != before {
		t.Errorf("Total changed the summary: %s, before %s", after, before)
	}
}
