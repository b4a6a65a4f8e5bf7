package threads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/internal/traffic"
	"github.com/ackscope/ackscope/machine"
)

// patience is how long a run of some milliseconds may take before it counts as one that hangs.
const patience = time.Minute

// planted is the text of the panics.
const planted = "planted in the test"

// ahead is a capture that other goroutines than the caller's may read.
type ahead struct{ *capture.Input }

func (ahead) MayReadAhead() bool { return true }

// faulty is a tracker that panics at its n-th datagram.
type faulty struct {
	machine.Tracker
	left int
}

func (f *faulty) Observe(d *machine.Datagram, out *machine.Effects) {
	if f.left--; f.left == 0 {
		panic(planted)
	}
	f.Tracker.Observe(d, out)
}

// faultsAfter is after how many datagrams the trackers of a run panic; 0 for never.
type faultsAfter struct{ datagrams int }

// registry returns the Gaffer protocol with these trackers. The survey of a run names the protocol
// of each flow, so a run with faults and the one before it need the same protocol.
func (a *faultsAfter) registry() *dissect.Registry {
	p := *gaffer.Protocol
	p.NewTracker = func(c *dissect.Config) machine.Tracker {
		return &faulty{gaffer.Protocol.NewTracker(c), a.datagrams}
	}
	return dissect.NewRegistry(&p)
}

// TestPanicEndsRun: the caller of a run sees a panic of any goroutine, and no goroutine waits for another one then.
// The panic comes early, so many chunks are still to be read.
func TestPanicEndsRun(t *testing.T) {
	const after = 20 // datagrams of a flow, or records
	path := synthetic(t, traffic.Options{Packets: 30_000, Flows: 24, Loss: 0.05, Seed: 1})
	var faults faultsAfter
	registry := faults.registry()
	survey := surveyOf(t, path, registry)
	sink := func() analyze.Sink {
		left := after
		return func(*analyze.Record) {
			if left--; left == 0 {
				panic(planted)
			}
		}
	}
	for _, c := range []struct {
		name    string
		tracker int // datagrams after which it panics
		options func() analyze.Options
	}{
		{"tracker", after, func() analyze.Options { return analyze.Options{} }},
		{"tracker, with copies of records", after, func() analyze.Options {
			return analyze.Options{Survey: survey, Detached: true, Sink: func(*analyze.Record) {}}
		}},
		{"sink of a shard", 0, func() analyze.Options { return analyze.Options{Survey: survey, Split: sink} }},
		{"sink of the caller", 0, func() analyze.Options {
			return analyze.Options{Survey: survey, Detached: true, Sink: sink()}
		}},
	} {
		faults.datagrams = c.tracker
		for _, threads := range counts {
			t.Run(fmt.Sprintf("%s/%d", c.name, threads), func(t *testing.T) {
				o := c.options()
				o.Registry, o.Threads = registry, threads
				if got := panicOf(t, path, o); !strings.Contains(got, planted) {
					t.Errorf("the run ended with %q, expected the panic %q", got, planted)
				}
			})
		}
	}
}

// surveyOf returns what a first run over a capture learns.
func surveyOf(t *testing.T, path string, registry *dissect.Registry) *analyze.Survey {
	t.Helper()
	s, err := analyze.Run(opened(t, path), analyze.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	return s.Survey()
}

// panicOf returns the text of the panic that ends a run. It fails if the run does not end.
func panicOf(t *testing.T, path string, o analyze.Options) string {
	t.Helper()
	src, ended := opened(t, path), make(chan string, 1)
	go func() {
		defer func() { ended <- fmt.Sprint(recover()) }()
		_, _ = analyze.Run(src, o)
	}()
	select {
	case text := <-ended:
		return text
	case <-time.After(patience):
		t.Fatalf("the run has not ended after %v", patience)
		return ""
	}
}

func opened(t *testing.T, path string) ahead {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return ahead{in}
}
