package replay_test

import (
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// realBuild returns the path of a capture of real builds over a lossy relay.
func realBuild(name string) string { return filepath.Join(pcaps, "realbuilds", name+".pcap.gz") }

// TestHonestBuilds: real builds without a mistake are not accused. Each of these captures once
// showed a fault of the judge.
func TestHonestBuilds(t *testing.T) {
	for _, name := range []string{
		"clean9.client.cut18",  // begins where a fragment of packet 181 had moved ack, and packet 181 was not whole
		"clean5.client.drop14", // 1 % of its frames are missing
	} {
		f := replayed(t, realBuild(name), replay.Options{})
		holdHonest(t, name, f)
	}
}

// TestEmptyLastFragment: the client sends one empty fragment more where the size of a packet is a
// multiple of the fragment size. It diverges at the first one, at both taps.
func TestEmptyLastFragment(t *testing.T) {
	for name, frame := range map[string]uint64{"fragcount14.client": 125, "fragcount14.server": 124} {
		f := replayed(t, realBuild(name), replay.Options{})
		for i := range f.Results {
			r := &f.Results[i]
			d := r.Divergence
			if r.Side == machine.B {
				if d != nil {
					t.Errorf("%s: B diverges in frame %d: %s", name, d.Ref.Frame(), d.Rule.ID)
				}
				continue
			}
			if d == nil || d.Ref.Frame() != frame || d.Rule.ID != "fragments" || d.Field != "gaffer.payload.length" ||
				r.Certainty() != machine.Certain {
				t.Errorf("%s: %+v, expected the length of a fragment in frame %d, certain", name, d, frame)
			}
		}
	}
}

// holdHonest fails where a side of a capture of right endpoints is accused.
func holdHonest(t *testing.T, name string, f *replay.File) {
	t.Helper()
	for i := range f.Results {
		r := &f.Results[i]
		if d := r.Divergence; d != nil {
			t.Errorf("%s: flow %d %s: frame %d: %v: %s: %s expected %s, got %s: %s", name, r.Flow.ID, r.Side, d.Ref.Frame(),
				r.Certainty(), d.Rule.ID, d.Field, d.Expected, d.Got, d.Because)
		}
		if r.Undecided > r.Compared {
			t.Errorf("%s: flow %d %s: %d of %d packets could not be decided", name, r.Flow.ID, r.Side, r.Undecided, r.Compared)
		}
		if r.Side == machine.B {
			continue
		}
		for _, x := range r.Flow.Findings() {
			if x.Rule.Severity == machine.Error {
				t.Errorf("%s: flow %d: %v finding %s of %s, %d times, first in frame %d", name, r.Flow.ID, x.Certainty, x.Rule.ID,
					x.Side, x.Count, x.Refs[0].Frame())
			}
		}
	}
}
