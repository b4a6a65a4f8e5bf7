package hostile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// said is what a session reports about a real flow.
type said struct {
	events, findings []string
	summary          string
}

func registry() *dissect.Registry {
	return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
}

// genuine reads captures of real flows of all protocols.
func genuine(t testing.TB) (frames []capture.Frame) {
	srdpFile := filepath.Join(t.TempDir(), "srdp.pcap")
	testenv.Output(t, testenv.Ackscope(t), "simulate", "--protocol", "srdp", "--seed", "4", "--clients", "2", "--loss",
		"15%", "--delay", "20ms", "--jitter", "5ms",
		"--services", "any", "--duration", "6s", "--rate", "20", "--tap", "a", "-w", srdpFile)
	epoch := machine.Instant(1_700_000_000 * int64(time.Second))
	for i, name := range []string{
		testenv.Capture(t, "reliable-ipv6.server.pcapng.gz"), testenv.Capture(t, "u210_loss10.client.pcapng.gz"),
		testenv.Capture(t, "tpy_clean.client.pcap.gz"), testenv.Capture(t, "yojimbo-testmsgs-loss10.client.pcap.gz"),
		srdpFile,
	} {
		in, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		begun := machine.Instant(0)
		for f := (capture.Frame{}); ; {
			if err := in.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if begun == 0 {
				begun = f.At
			}
			c := f
			c.Data, c.Ref, c.At = append([]byte(nil), f.Data...), machine.MakeRef(i, f.Ref.Frame()), epoch+f.At-begun
			frames = append(frames, c)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(frames, func(a, b capture.Frame) int { return cmp.Compare(a.At, b.At) })
	return frames
}

// run analyses frames, with so many forged packets of a kind before each. It
// returns the reports about the real flows, the heap of the session at its end,
// and the average time of a forged packet.
func run(t testing.TB, frames []capture.Frame, kind, each int, limits analyze.Limits) (out map[string]*said,
	s *analyze.Session, heap int64, took time.Duration,
) {
	return runAgain(t, frames, kind, each, limits, nil)
}

// runAgain is run with a survey of an earlier run.
func runAgain(t testing.TB, frames []capture.Frame, kind, each int, limits analyze.Limits,
	survey *analyze.Survey,
) (out map[string]*said, s *analyze.Session, heap int64, took time.Duration) {
	t.Helper()
	out = map[string]*said{}
	of := func(f *analyze.Flow) *said {
		if f.B == victim || f.A == victim {
			return nil
		}
		k := fmt.Sprint(f.A, f.B, f.Transport, f.Session)
		if out[k] == nil {
			out[k] = &said{}
		}
		return out[k]
	}
	before := heapNow()
	s = analyze.NewSession(analyze.Options{
		Registry: registry(), Limits: limits, Survey: survey,
		Sink: func(r *analyze.Record) {
			if r.Flow == nil || len(r.Events) == 0 {
				return
			}
			if x := of(r.Flow); x != nil {
				for _, e := range r.Events {
					x.events = append(x.events, fmt.Sprint(e))
				}
			}
		},
	})
	d := capture.NewDecoder(capture.DecodeOptions{})
	forger := &forger{rng: rand.New(rand.NewPCG(1, 2))}
	forger.learn(frames)
	var p capture.Packet
	forgeries := 0
	for i := range frames {
		begun := time.Now()
		for range each {
			forgeries++
			b := forger.next(kind)
			f := capture.Frame{
				At: frames[i].At, Ref: machine.MakeRef(9, uint64(forgeries)), LinkType: capture.LinkEthernet,
				Data: b, Length: len(b), Offset: -1,
			}
			d.Decode(&f, &p)
			s.Feed(&f, &p)
		}
		took += time.Since(begun)
		d.Decode(&frames[i], &p)
		s.Feed(&frames[i], &p)
	}
	kept := 0
	for _, x := range out {
		kept += len(x.events)
	}
	heap = heapNow() - before - int64(kept)*160 // less what the test itself keeps, roughly
	runtime.KeepAlive(d)
	s.Finish()
	for _, f := range s.Flows() {
		x := of(f)
		if x == nil {
			continue
		}
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		x.summary = fmt.Sprint(f.Protocol != nil, f.Packets, f.Bytes, a, b)
		for _, found := range f.Findings() {
			x.findings = append(x.findings,
				fmt.Sprint(found.Rule.ID, found.Side, found.Certainty, found.Count, found.Refs, found.Figures))
		}
	}
	return out, s, heap, took / time.Duration(max(1, forgeries))
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// recognised checks that the flows which turn hostile were recognised as their
// protocols. Otherwise their trackers would not be tested.
func recognised(t *testing.T, s *analyze.Session) {
	t.Helper()
	for of, want := range map[int]string{
		knownGaffer: "gaffer", knownRiptide: "riptide", knownStream: "riptide",
		knownSRDP: "srdp",
	} {
		a, is := turnedFrom(of), ""
		for _, f := range s.Flows() {
			if (f.A == a || f.B == a) && f.Protocol != nil {
				is = f.Protocol.Name
			}
		}
		if is != want {
			t.Errorf("the flow of %s is classified as %q, expected %s", a, is, want)
		}
	}
}

// beyondFlows limits the memory of a session beyond the state of its flows:
// held datagrams, fragments, the flows' own records.
const beyondFlows = 96 << 20

// TestFlood puts many forged packets before each packet of real flows. Memory
// stays below its limit, and the reports about the real flows are the same, to
// the last event. ACKSCOPE_FLOOD=1000000 makes a million packets of each kind.
func TestFlood(t *testing.T) {
	testenv.Grid(t, "floods of every kind")
	frames := genuine(t)
	alone, _, _, _ := run(t, frames, -1, 0, analyze.LiveLimits)
	if len(alone) < 5 {
		t.Fatalf("%d real flows, expected 5 at least", len(alone))
	}
	for k, x := range alone {
		if len(x.events) < 100 {
			t.Fatalf("%d events of %s, expected more", len(x.events), k)
		}
	}
	small := analyze.Limits{Flows: 1 << 12, Idle: time.Minute, Bytes: 8 << 20}
	try := func(name string, kind, each int, limits analyze.Limits) {
		t.Run(name, func(t *testing.T) { flooded(t, frames, alone, kind, each, limits) })
	}
	try("all", -1, 12, analyze.LiveLimits)
	try("all, little room", -1, 12, small)
	flood, err := strconv.Atoi(os.Getenv("ACKSCOPE_FLOOD"))
	if err != nil {
		return
	}
	try("all", -1, flood/len(frames)+1, analyze.LiveLimits)
	for kind := range forgeries {
		try(forgeries[kind].name, kind, flood/len(frames)+1, analyze.LiveLimits)
	}
}

// TestFloodTwice reads a flood twice, like a file. What the first run learned
// of the real flows reaches them in the second run, though their numbers can
// differ.
func TestFloodTwice(t *testing.T) {
	frames := genuine(t)
	_, s, _, _ := run(t, frames, -1, 0, analyze.Limits{})
	alone, _, _, _ := runAgain(t, frames, -1, 0, analyze.Limits{}, s.Survey())
	limits := analyze.Limits{Flows: 1 << 9, Bytes: 8 << 20, Room: true}
	_, s, _, _ = run(t, frames, -1, 3, limits)
	if s.LetGo(analyze.ReasonFlows) == 0 || s.LetGo(analyze.ReasonSession) > 0 {
		t.Fatalf("%d flows were discarded for lack of room, %d because another session began", s.LetGo(analyze.ReasonFlows),
			s.LetGo(analyze.ReasonSession))
	}
	mixed, _, _, _ := runAgain(t, frames, -1, 3, limits, s.Survey())
	for k, x := range alone {
		y := mixed[k]
		if y == nil {
			t.Errorf("nothing is said of %s", k)
			continue
		}
		if x.summary != y.summary || !slices.Equal(x.findings, y.findings) || !slices.Equal(x.events, y.events) {
			t.Errorf("for %s %d events are reported, %d without the flood; findings %v, without %v; %s, without %s",
				k, len(y.events), len(x.events), y.findings, x.findings, y.summary, x.summary)
		}
	}
}

// flooded compares the reports about the real flows with and without forged
// packets before each of theirs.
func flooded(t *testing.T, frames []capture.Frame, alone map[string]*said, kind, each int, limits analyze.Limits) {
	t.Helper()
	mixed, s, heap, took := run(t, frames, kind, each, limits)
	t.Logf("%8d packets, %v each; %7d flows, %6d remembered, state %4d MiB, heap %4d MiB", each*len(frames), took,
		s.Begun(), len(s.Flows()), s.StateBytes()>>20, heap>>20)
	if len(s.Flows()) > limits.Flows {
		t.Errorf("%d flows are remembered, at most %d were asked for", len(s.Flows()), limits.Flows)
	}
	if heap > int64(limits.Bytes+beyondFlows) {
		t.Errorf("the heap is %d MiB, expected at most %d for the flows and %d beside them", heap>>20, limits.Bytes>>20,
			beyondFlows>>20)
	}
	if kind < 0 {
		recognised(t, s)
	}
	for k, x := range alone {
		y := mixed[k]
		if y == nil {
			t.Errorf("nothing is said of %s", k)
			continue
		}
		if x.summary != y.summary || !slices.Equal(x.findings, y.findings) || !slices.Equal(x.events, y.events) {
			t.Errorf("for %s %d events are reported, %d without the flood; findings %v, without %v; %s, without %s",
				k, len(y.events), len(x.events), y.findings, x.findings, y.summary, x.summary)
		}
	}
}
