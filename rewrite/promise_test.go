package rewrite_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/rewrite"
)

// told is what a capture shows: the figures of each finding, and what each
// divergence expected and got, by rule, endpoint and side.
type told struct {
	findings    map[string][][3]float64
	divergences map[string][]string
}

// tell analyses and replays a capture.
func tell(t testing.TB, f *rewrite.Frames, o analyze.Options) told {
	t.Helper()
	out := told{map[string][][3]float64{}, map[string][]string{}}
	if err := f.Rewind(); err != nil {
		t.Fatal(err)
	}
	s, err := analyze.RunTwice(f, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, flow := range s.Flows() {
		for _, x := range flow.Findings() {
			at := fmt.Sprintf("%s %s %s %s", x.Rule.ID, x.Side, flow.Addr(x.Side), flow.Addr(x.Side.Other()))
			out.findings[at] = append(out.findings[at], x.Figures)
		}
	}
	if err := f.Rewind(); err != nil {
		t.Fatal(err)
	}
	file, err := replay.Run("", f, replay.Options{Analysis: o})
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.Results {
		x := &file.Results[i]
		if d := x.Divergence; d != nil && x.Expected {
			at := fmt.Sprintf("%s %s %s %s", d.Rule.ID, x.Side, x.Flow.Addr(x.Side), x.Flow.Addr(x.Side.Other()))
			out.divergences[at] = append(out.divergences[at], d.Field)
		}
	}
	return out
}

// rules lists the rules of what a capture shows.
func (x *told) rules() map[string]bool {
	names := map[string]bool{}
	for at := range x.findings {
		names[firstWord(at)] = true
	}
	for at := range x.divergences {
		names[firstWord(at)] = true
	}
	return names
}

func firstWord(s string) (word string) {
	_, _ = fmt.Sscan(s, &word)
	return word
}

// hold reports what a reduced capture shows against the promise of Reduce.
func (x *told) hold(t *testing.T, whole *told, rule string, shows *rewrite.Occurrence) {
	t.Helper()
	for at := range x.findings {
		if whole.findings[at] == nil {
			t.Errorf("it shows the finding %q, and the whole does not", at)
		}
	}
	for at := range x.divergences {
		if whole.divergences[at] == nil {
			t.Errorf("it shows the divergence %q, and the whole does not", at)
		}
	}
	if shows.Diverges {
		return
	}
	for at, list := range x.findings {
		if firstWord(at) != rule {
			continue
		}
		for _, is := range list {
			if slices.ContainsFunc(whole.findings[at], func(was [3]float64) bool {
				for i := range is {
					if math.Abs(is[i]-was[i]) > 0.1*math.Abs(was[i]) {
						return false
					}
				}
				return true
			}) {
				return
			}
		}
	}
	t.Errorf("%s has other figures than in the whole: %v, was %v", rule, x.findings, whole.findings)
}

// TestReduceKeepsItsPromise reduces captures to each rule that they show. The
// result shows it with the figures of the whole, and nothing that the whole
// does not show.
func TestReduceKeepsItsPromise(t *testing.T) {
	largest, attempts := int64(12<<10), 40
	if testenv.Whole() {
		largest, attempts = 1<<20, 200
	}
	o := analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol)}
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() <= largest {
			sizes[path] = info.Size()
		}
	}
	small := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	held := map[string]bool{}
	for _, path := range small {
		f := load(t, path)
		whole := tell(t, f, o)
		for _, rule := range slices.Sorted(maps.Keys(whole.rules())) {
			if held[rule] {
				continue
			}
			held[rule] = true
			t.Run(filepath.Base(path)+"/"+rule, func(t *testing.T) {
				r, err := rewrite.Reduce(f, &rewrite.Rule{ID: rule, Analysis: o}, attempts)
				if err != nil {
					t.Fatal(err)
				}
				is := tell(t, r.Frames, o)
				is.hold(t, &whole, rule, &r.Shows)
				t.Logf("%d of %d frames: %s (figures %v, new %v)", r.Frames.Len(), f.Len(), r.Shows.Message, r.Changed, r.New)
			})
		}
	}
	if len(held) < 20 {
		t.Errorf("the captures show %d rules, expected 20 or more", len(held))
	}
	t.Logf("%d rules of %d captures", len(held), len(small))
}

func load(t testing.TB, path string) *rewrite.Frames {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := rewrite.LoadWithin(in, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
