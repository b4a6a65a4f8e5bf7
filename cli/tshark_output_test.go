package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/internal/testenv"
)

// sampler writes the first frames of every capture to one file: all their link
// types, oddities and protocols. Every frame keeps the metadata of its own
// file, except its number. It leaves out the frames that skip reports.
func sampler(t *testing.T, each int, skip func(*capture.Packet) bool) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(testenv.Capture(t, "README.md")), "*.pcap*"))
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d captures (%v), expected 100 at least", len(paths), err)
	}
	path := filepath.Join(t.TempDir(), "all.pcapng")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := capture.NewWriter(out, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		in, err := capture.Open([]string{p}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[int]int{}
		decoder := capture.NewDecoder(capture.DecodeOptions{})
		var f capture.Frame
		var packet capture.Packet
		for range each {
			if err := in.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			if decoder.Decode(&f, &packet); skip(&packet) {
				continue
			}
			id, ok := ids[f.Interface]
			if !ok {
				described := in.Interfaces(0)[f.Interface]
				if id, err = w.AddInterface(described); err != nil {
					t.Fatal(err)
				}
				ids[f.Interface] = id
			}
			f.Interface = id
			if err := w.WriteFrame(&f); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func everyFrame(*capture.Packet) bool { return false }

// quoting reports whether a packet may be an error that quotes another one,
// which tshark's whole layers show in another way.
func quoting(p *capture.Packet) bool {
	return p.Transport == capture.NoTransport && slices.ContainsFunc(p.Layers, func(l capture.Layer) bool {
		return l.Kind == capture.LayerIPv4 || l.Kind == capture.LayerIPv6
	})
}

// tsharkFields returns the names of all fields that tshark knows.
func tsharkFields(t *testing.T, tshark string) map[string]bool {
	t.Helper()
	theirs := map[string]bool{}
	for line := range strings.Lines(string(testenv.Output(t, tshark, "-G", "fields"))) {
		if c := strings.Split(line, "\t"); len(c) > 2 && c[0] == "F" {
			theirs[c[2]] = true
		}
	}
	return theirs
}

// both returns the fields of frames and headers that filters and tshark know
// under the same names.
func both(t *testing.T, tshark string) (names []string) {
	t.Helper()
	theirs := tsharkFields(t, tshark)
	header := regexp.MustCompile(`^(frame|eth|vlan|ieee8021ad|ip|ipv6|udp|tcp)\.`)
	for _, f := range (&app.App{Registry: protocols()}).Table().Fields() {
		// The number of a conversation needs analysis, which counts TCP by
		// messages. TestAsTshark checks it.
		if header.MatchString(f.Name) && f.Name != "frame.file" && !strings.HasSuffix(f.Name, ".stream") {
			if !theirs[f.Name] {
				t.Errorf("tshark knows no field %s", f.Name)
			}
			names = append(names, f.Name)
		}
	}
	return names
}

// Every column that both programs know has tshark's text, in all shipped
// captures.
func TestFieldsAsTsharkEverywhere(t *testing.T) {
	testenv.Grid(t, "tshark over all captures")
	tshark := testenv.Need(t, "tshark")
	all := sampler(t, 60, everyFrame)
	names := both(t, tshark)
	sameColumns(t, tshark, all, ofRecords(names), nil)
	// Some captures have other payloads at port 53, of which tshark shows what it
	// can, and gopacket nothing.
	names = slices.DeleteFunc(append(names, layerColumns(t, tshark)...), func(n string) bool {
		return strings.HasPrefix(n, "dns.")
	})
	if n := sameColumns(t, tshark, all, names, nil); n < 80 {
		t.Errorf("%d columns have a value somewhere, expected 80 at least", n)
	}
}

// A frame of 802.3 has a length in the place of the type: filters find no type.
func TestLengthIsNoType(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	kinds := filepath.Join(testenv.Module(t), "testdata", "layers", "kinds.pcap")
	args := []string{"-Y", "!eth.type", "-T", "fields", "-e", "frame.number"}
	theirs := string(testenv.Output(t, tshark, append([]string{"-r", kinds}, args...)...))
	ours := output(t, append(append([]string{"packets"}, args...), kinds)...)
	if diffLines(t, "!eth.type", theirs, ours); ours == "" {
		t.Error("no frame is without a type, expected the one with LLC")
	}
}

// The options of -E have the effect of tshark's.
func TestFieldOptionsAsTshark(t *testing.T) {
	testenv.Grid(t, "tshark for every option")
	tshark := testenv.Need(t, "tshark")
	path := testenv.Capture(t, "t210_clean.client.pcap.gz")
	columns := []string{
		"-c", "3", "-T", "fields", "-e", "frame.number", "-e", "ip.addr", "-e", "udp.port",
		"-e", "tcp.port",
	}
	for _, options := range []string{
		"quote=s separator=; aggregator=/s", "quote=n separator=ab occurrence=l header=n", "separator=/s occurrence=f bom=n",
		"bom=y header=y quote=d separator=, aggregator=; occurrence=a",
	} {
		args := columns
		for o := range strings.FieldsSeq(options) {
			args = append(slices.Clip(args), "-E", o)
		}
		theirs := string(testenv.Output(t, tshark, append([]string{"-r", path}, args...)...))
		diffLines(t, options, theirs, output(t, append(append([]string{"packets"}, args...), path)...))
	}
	for _, wrong := range []string{"quote=x", "header=x", "occurrence=b", "separator=", "bom", "nothing=y"} {
		var out, complaint bytes.Buffer
		if code := runKnown([]string{"packets", "-T", "fields", "-e", "frame.number", "-E", wrong, path},
			app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}); code != 2 {
			t.Errorf("-E %s: exit %d, expected 2", wrong, code)
		}
	}
}

// The time column has tshark's text, whatever the resolution of the file's
// clock.
func TestTimesAsTshark(t *testing.T) {
	testenv.Grid(t, "tshark for every format of times")
	tshark := testenv.Need(t, "tshark")
	for _, name := range []string{"reliable-loss10.client.pcap.gz", "u210_loss10.client.pcapng.gz"} {
		path := testenv.Capture(t, name)
		formats := listing.TimeFormats
		if strings.HasSuffix(name, ".pcap.gz") {
			formats = []string{"r", "ud"} // the clock ticks in microseconds
		}
		for _, format := range formats {
			args := []string{"-t", format, "-Y", "frame.number in {2, 3, 7, 11}"}
			column := func(text string) (list []string) {
				for line := range strings.Lines(text) {
					cells := strings.Fields(line)
					if strings.Contains(cells[1], "-") || strings.Contains(cells[1], "/") {
						cells[1] += " " + cells[2]
					}
					list = append(list, cells[1])
				}
				return list
			}
			theirs := column(string(testenv.Output(t, tshark, append([]string{"-r", path}, args...)...)))
			if ours := column(output(t, append(append([]string{"packets"}, args...), path)...)); !slices.Equal(theirs, ours) ||
				len(ours) != 4 {
				t.Errorf("%s: -t %s: %q, tshark has %q", name, format, ours, theirs)
			}
		}
	}
}

// The bytes of -x are tshark's, except for its line between packets.
func TestHexAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	path := testenv.Capture(t, "reliable-loss10.client.pcap.gz")
	dump := regexp.MustCompile(`(?m)^[0-9a-f]{4}  .*$`)
	theirs := dump.FindAllString(string(testenv.Output(t, tshark, "-r", path, "-c", "50", "-x")), -1)
	ours := dump.FindAllString(output(t, "packets", "-c", "50", "-x", path), -1)
	if !slices.Equal(theirs, ours) || len(ours) < 100 {
		t.Errorf("%d lines of bytes, tshark has %d, or they differ", len(ours), len(theirs))
	}
}

// -T json and -T ek have tshark's structure, and every common key has tshark's
// value.
func TestJSONAsTshark(t *testing.T) {
	testenv.Grid(t, "tshark over a sample of all captures")
	tshark := testenv.Need(t, "tshark")
	all := sampler(t, 2, quoting)
	sameDocuments(t, tshark, all, anyKey, 3000, "-T", "json")
	sameDocuments(t, tshark, all, anyKey, 3000, "-T", "ek")
	columns := []string{"-e", "frame.number", "-e", "ip.addr", "-e", "udp.payload", "-e", "ip.flags.df"}
	sameDocuments(t, tshark, all, anyKey, 500, append([]string{"-T", "json"}, columns...)...)
	sameDocuments(t, tshark, all, anyKey, 500, append([]string{"-T", "ek"}, columns...)...)
}

// The layers that gopacket decodes have tshark's keys and values too. The capture
// has ICMP of every type with the packets that it quotes, ARP, DNS and tunnels.
func TestLayersJSONAsTshark(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	kinds := filepath.Join(testenv.Module(t), "testdata", "layers", "kinds.pcap")
	sameDocuments(t, tshark, kinds, layerKey, 500, "-T", "json")
	sameDocuments(t, tshark, kinds, layerKey, 500, "-T", "ek")
}

// layerKey matches the keys of layers that gopacket decodes. Columns write the
// others, and do not look into tunnels.
var layerKey = regexp.MustCompile(`/layers/(arp|icmp|icmpv6|dns|gre|vxlan|llc|pppoe|ppp)/`)

var anyKey = regexp.MustCompile("")

// sameDocuments runs both programs over a capture. The keys that both have, of
// those that match, must have the same values; they are at least so many.
func sameDocuments(t *testing.T, tshark, path string, keys *regexp.Regexp, least int, format ...string) {
	t.Helper()
	args := append([]string{"-r", path}, format...)
	if format[1] == "json" {
		args = append(args, "--no-duplicate-keys")
	}
	theirs := map[string]map[string]string{}
	for _, o := range documents(t, testenv.Output(t, tshark, args...)) {
		theirs[o[frameKey]] = o
	}
	ours := documents(t, []byte(output(t, append(append([]string{"packets"}, format...), path)...)))
	same := 0
	frames := map[string]bool{}
	for _, o := range ours {
		frames[o[frameKey]] = true
		for key, v := range o {
			w, ok := theirs[o[frameKey]][key]
			ok = ok && keys.MatchString(key) && !strings.HasSuffix(key, "eth_eth_addr") // tshark writes this key twice
			if ok && w != v {
				t.Errorf("%q: frame %s: %s is %s, tshark has %s", format, o[frameKey], key, v, w)
			}
			if ok {
				same++
			}
		}
	}
	if len(frames) != len(theirs) {
		t.Errorf("%q: %d frames, tshark has %d", format, len(frames), len(theirs))
	}
	if same < least {
		t.Errorf("%q: %d keys have the same values, expected %d at least", format, same, least)
	}
}

// frameKey is the key of a frame's number in the objects of documents.
const frameKey = "frame"

// documents reads JSON or JSON Lines and flattens each object. A key is the
// path to its value, without the trees in which tshark puts single bits.
func documents(t *testing.T, text []byte) (list []map[string]string) {
	t.Helper()
	var whole []any
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if l, ok := v.([]any); ok {
			whole = append(whole, l...)
			continue
		}
		whole = append(whole, v)
	}
	for _, v := range whole {
		values := map[string][]string{}
		var walk func(way string, v any)
		walk = func(way string, v any) {
			if o, ok := v.(map[string]any); ok {
				for k, x := range o {
					if strings.HasSuffix(k, "_tree") {
						walk(way, x)
						continue
					}
					walk(way+"/"+k, x)
				}
				return
			}
			if l, ok := v.([]any); ok {
				for _, x := range l {
					walk(way, x)
				}
				return
			}
			values[way] = append(values[way], fmt.Sprint(v))
		}
		walk("", v)
		flat := map[string]string{}
		for way, l := range values {
			slices.Sort(l) // values from several trees have no order
			flat[way] = strings.Join(l, " ")
		}
		for way, value := range flat {
			if last := way[strings.LastIndexByte(way, '/')+1:]; strings.HasSuffix(last, "frame.number") ||
				strings.HasSuffix(last, "frame_number") {
				flat[frameKey] = value
			}
		}
		if flat[frameKey] != "" {
			list = append(list, flat)
		}
	}
	return list
}
