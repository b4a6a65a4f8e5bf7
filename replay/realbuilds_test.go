package replay_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
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
		"resetclient.client",   // the client resets its endpoint, and the server goes on to ack packet 298
		"resetclient.server",   //
		"clean5.client.drop14", // 1 % of its frames are missing
	} {
		holdHonest(t, name, framesOf(t, realBuild(name)), nil)
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

// TestCutCaptures cuts captures of honest builds at random frames, as if the capture had begun
// in the middle. No side diverges for packets that had passed the tap by then, or had overtaken
// others. `make honest` cuts more.
func TestCutCaptures(t *testing.T) {
	cuts, seed := 20, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("ACKSCOPE_CUTS")); err == nil {
		cuts, seed = n, 2
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	paths := []string{
		filepath.Join(pcaps, "reliable-frag-heavy.server.pcap.gz"), filepath.Join(pcaps, "reliable-dup10.client.pcap.gz"),
		filepath.Join(pcaps, "reliable-jitter80.server.pcap.gz"), filepath.Join(pcaps, "reliable-sparse-acks.server.pcap.gz"),
		filepath.Join(pcaps, "reliable-loss40.server.pcapng.gz"),
	}
	names := []string{"clean1.client", "clean1.server", "clean3.client", "clean3.server", "clean9.client.cut18"}
	for _, name := range names {
		paths = append(paths, realBuild(name))
	}
	for _, path := range paths {
		all := framesOf(t, path)
		for range cuts {
			from := rng.IntN(len(all) - 100)
			holdHonest(t, fmt.Sprintf("%s from frame %d", filepath.Base(path), from+1), all[from:], nil)
		}
	}
}

// TestCutAfterOvertaking cuts where a packet had just overtaken another one, or lay unread in
// its socket.
func TestCutAfterOvertaking(t *testing.T) {
	for _, x := range []struct {
		path string
		from int
	}{
		{realBuild("clean3.client"), 507},        // 257 had overtaken 256
		{realBuild("clean3.client"), 527},        // 268 had overtaken 267, and lay in the socket
		{realBuild("clean3.client"), 601},        // 309 had overtaken 308; the tap is away from the side
		{realBuild("clean1.server"), 3},          // packet 1 lay in the socket of a side that had just begun
		{realBuild("clean9.client.cut18"), 1249}, // four packets left before the side read its socket
		{filepath.Join(pcaps, "reliable-sparse-acks.server.pcap.gz"), 22},
	} {
		all := framesOf(t, x.path)
		holdHonest(t, fmt.Sprintf("%s from frame %d", filepath.Base(x.path), x.from), all[x.from-1:], nil)
	}
}

// TestUndecidedCounts: of the packets of a side, no more are undecided than were compared. Here the
// capture lacks packets, and the judge begins anew behind each of them. No side diverges for
// certain.
func TestUndecidedCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	all := framesOf(t, filepath.Join(pcaps, "reliable-sparse-acks.client.pcap.gz"))
	for run := range 30 {
		frames := slices.DeleteFunc(slices.Clone(all), func(capture.Frame) bool { return rng.IntN(100) == 0 })
		o := replay.Options{Analysis: analyze.Options{Registry: registry()}}
		f, err := replay.Run("thinned", &altered{frames: frames}, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Results {
			r := &f.Results[i]
			if r.Undecided > r.Compared || r.Certainty() == machine.Certain {
				t.Errorf("run %d: %s: %d of %d packets undecided, diverges %v", run, r.Side, r.Undecided, r.Compared, r.Certainty())
			}
		}
	}
}
