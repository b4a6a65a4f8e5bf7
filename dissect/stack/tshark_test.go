package stack

import (
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

var update = flag.Bool("update", false, "write testdata/layers/kinds.pcap anew")

// kinds is a capture with a frame of each sample, for the tests and the docs.
func kinds(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w, err := capture.NewClassicWriter(&b, capture.LinkEthernet, 0xffff, capture.Microseconds, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples(t) {
		f := capture.Frame{
			LinkType: capture.LinkEthernet, At: machine.Instant(int64(i+1) * 1e9), Data: s.bytes,
			Length: len(s.bytes),
		}
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(testenv.Module(t), "testdata", "layers", "kinds.pcap")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(committed, b.Bytes()) {
		t.Fatalf("%s is not what gopacket writes of the samples (%v): go test ./dissect/stack -update", path, err)
	}
	return path
}

// pdml is tshark's -T pdml: every field with its place.
type pdml struct {
	Packets []struct {
		Protos []pdmlField `xml:"proto"`
	} `xml:"packet"`
}

type pdmlField struct {
	Name   string      `xml:"name,attr"`
	Pos    int         `xml:"pos,attr"`
	Size   int         `xml:"size,attr"`
	Value  string      `xml:"value,attr"`
	Whole  string      `xml:"unmaskedvalue,attr"` // of a field of a few bits: its bytes
	Fields []pdmlField `xml:"field"`
	Protos []pdmlField `xml:"proto"`
}

// flat calls yield for each field.
func (f *pdmlField) flat(yield func(*pdmlField)) {
	yield(f)
	for i := range f.Fields {
		f.Fields[i].flat(yield)
	}
	for i := range f.Protos {
		f.Protos[i].flat(yield)
	}
}

// placed is a field and where it begins.
type placed struct {
	name string
	pos  int
}

// all returns every field of a stack and of what it quotes.
func (s *Stack) all() (list []Field) {
	for i := range s.Layers {
		list = append(list, s.Fields(i)...)
		if q := s.Layers[i].Quoted; q != nil {
			list = append(list, q.all()...)
		}
	}
	return list
}

// TestFieldsAsTshark compares each field with tshark's, by name and place, over
// a frame of each kind. What tshark shows of a header of these names, in a
// quoted packet too, has to be here.
func TestFieldsAsTshark(t *testing.T) {
	path := kinds(t)
	tshark := testenv.Need(t, "tshark")
	var theirs pdml
	if err := xml.Unmarshal(testenv.Output(t, tshark, "-r", path, "-T", "pdml"), &theirs); err != nil {
		t.Fatal(err)
	}
	list := samples(t)
	if len(theirs.Packets) != len(list) {
		t.Fatalf("tshark has %d packets of %d", len(theirs.Packets), len(list))
	}
	vocabulary := map[string]bool{}
	for _, s := range list {
		for _, f := range stackOf(s).all() {
			vocabulary[f.Name] = vocabulary[f.Name] || f.Bits > 0
		}
	}
	same, known := 0, map[string]bool{}
	for i, s := range list {
		fields := map[placed]*pdmlField{}
		for n := range theirs.Packets[i].Protos {
			theirs.Packets[i].Protos[n].flat(func(f *pdmlField) {
				if f.Size > 0 && f.Value != "" {
					fields[placed{f.Name, f.Pos}] = f
				}
			})
		}
		ours := map[placed]bool{}
		for _, f := range stackOf(s).all() {
			if f.Bits == 0 {
				continue
			}
			key := placed{f.Name, f.Bit / 8}
			ours[key] = true
			their := at(fields, key)
			if their == nil {
				continue
			}
			ours[placed{their.Name, their.Pos}] = true
			known[f.Name] = true
			got, want := values(&f, their, s.bytes)
			if f.Name == "dhcp.option.type" {
				want = want[:2] // tshark has the whole option there
			}
			if got != want {
				t.Errorf("%s: %s at byte %d: %s, tshark has %s (%+v)", s.name, f.Name, f.Bit/8, got, want, *their)
			}
			same++
		}
		for key, f := range fields {
			if vocabulary[key.name] && !ours[key] && !slices.Contains(elsewhere, key.name) {
				t.Errorf("%s: tshark has %s at byte %d (%s), which is missing here", s.name, key.name, key.pos, f.Value)
			}
		}
	}
	for name := range vocabulary {
		if !known[name] && vocabulary[name] && !slices.Contains(ownNames, name) {
			t.Errorf("tshark has no field %s at any of its places", name)
		}
	}
	t.Logf("%d fields of %d names are the same", same, len(known))
	if same < 1000 {
		t.Errorf("only %d fields were compared", same)
	}
}

// at returns tshark's field of a name that holds a byte. A field of a few bits
// has the place of the word that they are in.
func at(fields map[placed]*pdmlField, key placed) *pdmlField {
	for pos := key.pos; pos >= key.pos-3; pos-- {
		if f := fields[placed{key.name, pos}]; f != nil && pos+f.Size > key.pos {
			return f
		}
	}
	return nil
}

// elsewhere are fields that tshark also has where another one is here: the
// version of IPv6 is ipv6.version, and one value is dhcp.option.dhcp.
var elsewhere = []string{"ip.version", "dhcp.option.value"}

// ownNames are fields with a place for which tshark has no name, or one for each
// kind of option.
var ownNames = []string{"ipv6.opt.data", "tcp.option.data", "gre.flags.ack"}

func stackOf(s sample) *Stack {
	return Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: s.bytes, Length: len(s.bytes)}, Chosen{})
}

// values returns our value and tshark's, as hexadecimal digits: of a field that
// tshark masks the number, of all others the bytes that hold it.
func values(f *Field, their *pdmlField, data []byte) (ours, theirs string) {
	if their.Whole == "" {
		return hex.EncodeToString(data[f.Bit/8 : (f.Bit+f.Bits+7)/8]), their.Value
	}
	v, err := strconv.ParseUint(their.Value, 16, 64)
	if err != nil {
		return "a number", their.Value
	}
	return fmt.Sprintf("%x", bitsAt(data, f.Bit, f.Bits)), fmt.Sprintf("%x", v)
}

// TestAllKindsDecode: gopacket understands what it wrote.
func TestAllKindsDecode(t *testing.T) {
	for _, s := range samples(t) {
		k := stackOf(s)
		if k.Problem != nil {
			t.Errorf("%s: %v", s.name, k.Problem)
		}
		if kind, _, _ := strings.Cut(s.name, " "); (kind == "icmp" || kind == "icmpv6") && len(k.Layers) < 3 {
			t.Errorf("%s: %d layers", s.name, len(k.Layers))
		}
	}
}
