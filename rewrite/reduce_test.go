package rewrite_test

import (
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/rewrite"
)

// TestReduce: the stale entries of a run of 7,000 frames, in a few of them.
func TestReduce(t *testing.T) {
	in, err := capture.Open([]string{"../testdata/pcaps/plain-le-stalebug-loss98.server.pcap.gz"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := rewrite.Load(in)
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
		if d := file.Results[i].Divergence; d != nil && d.Rule == "ack-never-arrived" {
			found = true
		}
	}
	if !found {
		t.Error("the reduced capture does not show it")
	}
	if _, err := rewrite.Reduce(f, &rewrite.Rule{ID: "no-such-rule", Analysis: o}, 10); err == nil {
		t.Error("a rule that does not stand: expected an error")
	}
	t.Logf("%d frames of %d after %d trials, least %v", r.Frames.Len(), f.Len(), r.Trials, r.Least)
}
