package cli

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
)

// markedCopy copies a simulated capture and marks each packet of one address as outgoing, and all
// others as incoming, as dumpcap does at that address.
func markedCopy(t *testing.T, path, address string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "marked.pcapng")
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := capture.NewWriter(file, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := capture.NewDecoder(capture.DecodeOptions{})
	frames, id := readFrames(t, path), 0
	if id, err = w.AddInterface(capture.Interface{LinkType: frames[0].LinkType}); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		f, p := frames[i], capture.Packet{}
		d.Decode(&f, &p)
		flags := byte(1) // epb_flags: inbound
		if p.Src.Addr() == netip.MustParseAddr(address) {
			flags = 2
		}
		f.Interface, f.BigEndian, f.Options = id, false, []byte{2, 0, 4, 0, flags, 0, 0, 0}
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

// judgedSide is what `replay --json` says of one side.
type judgedSide struct {
	Addr, Verdict, Vantage, Rule, Certainty string
}

// judgedSides returns what replay says of the sides of a capture of one flow.
func judgedSides(t *testing.T, path string) (of []judgedSide) {
	t.Helper()
	text, _, _ := outcome("replay", "-q", "--json", path)
	for line := range strings.Lines(text) {
		var x judgedSide
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		of = append(of, x)
	}
	return of
}

// TestMarks: an endpoint at the tap that is wrong looks as if the tap stood elsewhere. The
// directions in the file place the tap at it all the same, and its fault is found. Without them
// replay says which flag does that.
func TestMarks(t *testing.T) {
	const own = "10.0.0.1"
	const slow, quick = "--loss 5% --jitter 40ms --event-clock --seed 5", "--delay 300us --event-clock --seed 5"
	for _, c := range []struct{ args, rule string }{
		{"--protocol riptide:2.2.1 --fault ack-bits-reversed --loss 10% " + quick, "ack"},
		{"--protocol gaffer:reliable --fault ack-last-not-newest " + slow, "ack-omitted"},
		{"--protocol srdp --fault ack-twice --loss 5% --rate 60 " + quick, "ack-unasked"},
	} {
		path := simulated(t, "-q --tap a "+c.args)[0]
		for _, x := range judgedSides(t, path) {
			if x.Vantage != "between" {
				t.Fatalf("%s: without marks the tap is said to stand %s: expected between", c.args, x.Vantage)
			}
		}
		if text, _, _ := outcome("replay", "-q", path); !strings.Contains(text, "    if you captured at ") {
			t.Errorf("%s: replay names no flag:\n%s", c.args, text)
		}
		for _, x := range judgedSides(t, markedCopy(t, path, own)) {
			switch mine := strings.HasPrefix(x.Addr, own+":"); {
			case mine && (x.Verdict != "diverges" || x.Rule != c.rule):
				t.Errorf("%s: with marks its side %s, %s: expected %s", c.args, x.Verdict, x.Rule, c.rule)
			case !mine && x.Verdict == "diverges":
				t.Errorf("%s: with marks the other side diverges: %s", c.args, x.Rule)
			}
		}
	}
}

// TestMarksWrong: marks can be those of a relay on the address of an endpoint. Where a network lies
// between, and the packets show it, the tap is not placed there and no side diverges.
func TestMarksWrong(t *testing.T) {
	for _, args := range []string{
		"--protocol gaffer:reliable --loss 5% --delay 30ms --jitter 10ms",
		"--protocol gaffer:article --loss 5% --delay 3ms --jitter 2ms --dup 3%",
		"--protocol riptide:2.2.1 --loss 5% --delay 30ms",
		"--protocol srdp --loss 5% --delay 40ms --jitter 10ms",
	} {
		path := simulated(t, "-q --tap between --seed 4 "+args)[0]
		for _, at := range []string{"10.0.0.1", "10.0.0.2"} {
			for _, x := range judgedSides(t, markedCopy(t, path, at)) {
				if x.Vantage != "between" || x.Verdict == "diverges" {
					t.Errorf("%s, marked at %s: the tap stands %s, %s %s %s: expected between", args, at, x.Vantage, x.Addr,
						x.Verdict, x.Rule)
				}
			}
		}
	}
}
