package captureloss

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// thin copies a capture without some of its frames, chosen at random, as if a
// tap had dropped them. With reported set, the interface statistics say so.
func thin(t *testing.T, from, to string, share float64, reported bool) (dropped uint64) {
	t.Helper()
	in, err := capture.Open([]string{from}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	w, err := capture.NewWriter(file, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	ids := map[int]int{}
	for f := (capture.Frame{}); ; {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if rng.Float64() < share {
			dropped++
			continue
		}
		id, ok := ids[f.Interface]
		if !ok {
			if id, err = w.AddInterface(capture.Interface{LinkType: f.LinkType, Resolution: capture.Nanoseconds}); err != nil {
				t.Fatal(err)
			}
			ids[f.Interface] = id
		}
		c := f
		c.Interface, c.Ref, c.Options = id, 0, nil
		if err := w.WriteFrame(&c); err != nil {
			t.Fatal(err)
		}
	}
	if reported {
		w.SetStatistics(ids[0], capture.Statistics{OSDropped: dropped, Known: capture.KnownOSDropped})
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return dropped
}

var protocols = dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)

// accused counts what ackscope says against endpoints and the network. The map
// rules counts the findings that are more than possible. The number diverge
// counts the sides that diverge from every reference.
func accused(t *testing.T, path string) (rules map[string]uint64, diverge int, why []string) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	o := analyze.Options{Registry: protocols}
	s, err := analyze.RunTwice(in, o)
	if err != nil {
		t.Fatal(err)
	}
	rules = map[string]uint64{}
	for _, f := range s.Flows() {
		for _, x := range f.Findings() {
			if x.Rule.Severity > machine.Note && x.Certainty > machine.Possible || x.Rule.ID == "capture-dropped" {
				rules[x.Rule.ID] += x.Count
			}
		}
	}
	if err := in.Rewind(); err != nil {
		t.Fatal(err)
	}
	file, err := replay.Run(path, in, replay.Options{Analysis: o})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Results {
		if r.Divergence != nil {
			diverge++
		}
		why = append(why, r.Why)
	}
	return rules, diverge, why
}

// TestCaptureLossIsNoNetworkLoss removes frames from captures of correct
// endpoints, for all protocols. If the file says that its tap dropped packets,
// ackscope accuses no endpoint of what a missing packet explains. If the file
// does not say so, it accuses some: otherwise this test would show nothing.
func TestCaptureLossIsNoNetworkLoss(t *testing.T) {
	dir := t.TempDir()
	simulated := filepath.Join(dir, "srdp.pcap")
	testenv.Output(t, testenv.Ackscope(t), "simulate", "--protocol", "srdp", "--seed", "3", "--clients", "2", "--loss",
		"5%", "--delay", "20ms", "--jitter", "5ms",
		"--services", "any", "--duration", "20s", "--rate", "20", "--tap", "b", "-w", simulated)
	for protocol, captures := range map[string][]string{
		"gaffer": {
			testenv.Capture(t, "reliable-loss10.client.pcap.gz"),
			testenv.Capture(t, "plain-le-clean.server.pcap.gz"),
		},
		"riptide": {testenv.Capture(t, "u210_clean.client.pcap.gz"), testenv.Capture(t, "u21n_clean.server.pcapng.gz")},
		"srdp":    {simulated},
	} {
		unsaid := 0
		for _, sound := range captures {
			name := filepath.Base(sound)
			before, sides, _ := accused(t, sound)
			if sides > 0 {
				t.Errorf("%s: %d sides diverge before anything is taken out", name, sides)
			}
			path := filepath.Join(dir, name+".pcapng")
			dropped := thin(t, sound, path, 0.03, true)
			rules, diverge, why := accused(t, path)
			if diverge > 0 {
				t.Errorf("%s: without %d frames that the file says are missing, %d sides diverge", name, dropped, diverge)
			}
			if rules["capture-dropped"] == 0 {
				t.Errorf("%s: no finding says that the tap dropped %d packets", name, dropped)
			}
			delete(rules, "capture-dropped")
			for rule, n := range rules {
				if n > before[rule] {
					t.Errorf("%s: %s %d times, %d times in the whole capture: the tap dropped the packets", name, rule, n,
						before[rule])
				}
			}
			if !slices.ContainsFunc(why, func(w string) bool { return strings.Contains(w, "the capturing host dropped") }) {
				t.Logf("%s: nothing that replay had to excuse (%q)", name, why)
			}
			thin(t, sound, path, 0.03, false)
			rules, diverge, why = accused(t, path)
			unsaid += diverge
			if slices.ContainsFunc(why, func(w string) bool { return strings.Contains(w, "lacks packets") }) {
				unsaid++ // an endpoint would be accused, unless both ends agree on the missing packets
			}
			for rule, n := range rules {
				if n > before[rule] {
					unsaid++
				}
			}
		}
		if unsaid == 0 {
			t.Errorf("%s: no endpoint is accused if the file hides its drops: these captures test nothing", protocol)
		}
	}
}
