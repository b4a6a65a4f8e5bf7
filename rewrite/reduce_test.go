package rewrite_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/rewrite"
)

// TestReduce reduces a run of 7,000 frames with stale entries to a few frames.
func TestReduce(t *testing.T) {
	in, err := capture.Open([]string{"../testdata/pcaps/plain-le-stalebug-loss98.server.pcap.gz"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := rewrite.LoadWithin(in, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	o := analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)}
	r, err := rewrite.Reduce(f, &rewrite.Rule{ID: "ack-never-arrived", Analysis: o}, 400)
	if err != nil {
		t.Fatal(err)
	}
	if r.Frames.Len() > f.Len()/20 || r.Frames.Len() < 2 {
		t.Errorf("%d frames of %d, expected a small share", r.Frames.Len(), f.Len())
	}
	if err := r.Frames.Rewind(); err != nil {
		t.Fatal(err)
	}
	file, err := replay.Run("", r.Frames, replay.Options{Analysis: o})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for i := range file.Results {
		if d := file.Results[i].Divergence; d != nil && d.Rule.ID == "ack-never-arrived" {
			found = true
		}
	}
	if !found {
		t.Error("the reduced capture does not show it")
	}
	if _, err := rewrite.Reduce(f, &rewrite.Rule{ID: "no-such-rule", Analysis: o}, 10); err == nil {
		t.Error("a rule that does not stand: expected an error")
	}
	t.Logf("%d frames of %d after %d trials, least %v", r.Frames.Len(), f.Len(), r.Attempts, r.Least)
}

// TestReduceSame: a small capture shows the same as the whole one: the rule for
// the same endpoint, on the same side. That holds even if frames of the other
// side are needed to identify the side.
func TestReduceSame(t *testing.T) {
	o := analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)}
	for _, c := range []struct {
		file, rule string
		most       int
	}{
		{"reliable-reject-truncate.server.pcap.gz", "malformed", 8},
		{"reliable-ipv6.client.pcap.gz", "out-of-order", 9},
		{"reliable-ipfrag.client.pcap.gz", "oversize", 8},
		{"plain-le-wrap-loss90.server.pcap.gz", "loss-burst", 16}, // the burst keeps its length
	} {
		in, err := capture.Open([]string{"../testdata/pcaps/" + c.file}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := rewrite.LoadWithin(&commented{Source: in}, math.MaxInt)
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
		r, err := rewrite.Reduce(f, &rewrite.Rule{ID: c.rule, Analysis: o}, 400)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		was, is := findingsOf(t, f, o, c.rule), findingsOf(t, r.Frames, o, c.rule)
		shown := r.Shows.Side.String() + " " + r.Shows.Addr.String()
		if len(is) == 0 || !slices.Contains(was, shown) || !slices.Contains(is, shown) || r.Shows.Diverges {
			t.Errorf("%s: %s is shown of %v, was of %v, and the reduction tells of %q", c.file, c.rule, is, was, shown)
		}
		for i := range r.Frames.Len() {
			if x := r.Frames.At(i); string(x.Options) != fmt.Sprintf("comment %d", x.Ref.Frame()) {
				t.Errorf("%s: frame %d of the whole comes with the options %q", c.file, x.Ref.Frame(), x.Options)
			}
		}
		if r.Frames.Len() > c.most {
			t.Errorf("%s: %d frames, expected at most %d", c.file, r.Frames.Len(), c.most)
		}
	}
}

// commented gives each frame its own options.
type commented struct {
	capture.Source
	buf []byte
}

func (c *commented) Next(f *capture.Frame) error {
	err := c.Source.Next(f)
	c.buf = fmt.Appendf(c.buf[:0], "comment %d", f.Ref.Frame())
	f.Options = c.buf
	return err
}

// findingsOf returns the side and address of each finding of a rule.
func findingsOf(t *testing.T, f *rewrite.Frames, o analyze.Options, rule string) (list []string) {
	t.Helper()
	if err := f.Rewind(); err != nil {
		t.Fatal(err)
	}
	s, err := analyze.RunTwice(f, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, flow := range s.Flows() {
		for _, x := range flow.Findings() {
			if x.Rule.ID == rule {
				list = append(list, x.Side.String()+" "+flow.Addr(x.Side).String())
			}
		}
	}
	return list
}

// TestReduceAbsent: the error names a rule that does not occur, and those that
// do.
func TestReduceAbsent(t *testing.T) {
	in, err := capture.Open([]string{"../testdata/pcaps/reliable-ipv6.client.pcap.gz"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := rewrite.LoadWithin(in, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rewrite.Reduce(f,
		&rewrite.Rule{ID: "stale-entry", Analysis: analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)}}, 10)
	var absent *rewrite.AbsentError
	if !errors.As(err, &absent) || absent.Rule != "stale-entry" || !slices.Contains(absent.Shown, "out-of-order") ||
		slices.Contains(absent.Shown, "stale-entry") {
		t.Errorf("%v, expected that the rule is absent and out-of-order is not", err)
	}
}
