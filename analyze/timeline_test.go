package analyze

import (
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// foldTracker hashes every byte, time and frame that it observes. Any omitted,
// repeated, moved or changed datagram shows.
type foldTracker struct {
	testTracker
	seed maphash.Seed
	fold uint64
}

func (t *foldTracker) Observe(d *machine.Datagram, _ *machine.Effects) {
	h := maphash.Bytes(t.seed, d.Bytes)
	t.fold = (t.fold ^ h ^ uint64(d.At) ^ uint64(d.Ref)<<20 ^ uint64(d.From) ^ uint64(d.Length)<<40) * 0x9E3779B97F4A7C15
}
func (t *foldTracker) Clone() machine.Tracker { c := *t; return &c }

func TestStateAtEqualsAFoldFromTheStart(t *testing.T) {
	seed := maphash.MakeSeed()
	fold := &dissect.Protocol{
		Name: "fold",
		Framings: []dissect.Framing{{
			Name: "any", Prefix: 4, Max: 4096, Usual: 1231,
			Weigh: func(_ []byte, length int) float64 {
				return map[bool]float64{true: 20, false: -1}[length > 0 && length < 2000]
			},
		}},
		Classify:   func() dissect.Classifier { return &everything{} },
		NewTracker: func(*dissect.Config) machine.Tracker { return &foldTracker{seed: seed} },
	}
	pcaps := "../testdata/pcaps/"
	for name, paths := range map[string][]string{
		"two clients":  {pcaps + "reliable-two-clients.server.pcap.gz"},
		"ip fragments": {pcaps + "reliable-ipfrag.client.pcap.gz"},
		"tcp":          {pcaps + "t210_rechunk.client.pcap.gz"},
		"merged":       {pcaps + "reliable-dup10.client.pcap.gz", pcaps + "reliable-dup10.server.pcap.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := capture.Open(paths, capture.Options{Keep: capture.KeepAll})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }()
			timeline := NewTimeline(in)
			type kept struct {
				flow int
				at   int // index of the frame after which it was known
				d    machine.Datagram
			}
			var all []kept
			var frames []machine.Ref
			var s *Session
			o := Options{Registry: dissect.NewRegistry(fold), Sink: func(r *Record) {
				timeline.Record(r)
				if r.Frame != nil && (len(frames) == 0 || frames[len(frames)-1] != r.Frame.Ref) {
					frames = append(frames, r.Frame.Ref)
				}
				if r.Flow == nil || r.Packet != nil && r.Packet.Duplicate || r.Flow.Transport == capture.TCP && !r.Message {
					return
				}
				r.Datagram.Bytes = slices.Clone(r.Datagram.Bytes)
				all = append(all, kept{r.Flow.ID, len(frames) - 1, r.Datagram})
			}}
			s, err = RunTwice(in, o)
			if err != nil {
				t.Fatal(err)
			}
			timeline.Attach(s)
			if timeline.Len() != len(frames) || len(frames) < 500 {
				t.Fatalf("timeline has %d frames of %d", timeline.Len(), len(frames))
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				f := s.Flows()[rng.IntN(len(s.Flows()))]
				if f.Protocol == nil {
					continue
				}
				at := rng.IntN(len(frames))
				got, err := timeline.StateAt(f, frames[at])
				if err != nil {
					t.Fatal(err)
				}
				want := &foldTracker{seed: seed}
				for _, k := range all {
					if k.flow == f.ID && k.at <= at {
						want.Observe(&k.d, nil)
					}
				}
				if got.(*foldTracker).fold != want.fold {
					t.Errorf("flow %d at frame %d: state differs from a fold over its packets up to there", f.ID, frames[at].Frame())
				}
			}
			if n := len(timeline.tracks[0].checkpoints); n == 0 {
				t.Error("no checkpoint was made: the test did not try them")
			}
			if _, err := timeline.StateAt(s.Flows()[0], machine.MakeRef(0, uint64(len(frames))+1)); err == nil {
				t.Error("a frame past the end has a state")
			}
		})
	}
}

// everything claims every flow at its first datagram.
type everything struct{}

func (everything) Reset()                 {}
func (everything) Feed(*machine.Datagram) {}
func (everything) Sure() bool             { return true }
func (everything) Verdict() dissect.Verdict {
	return dissect.Verdict{Config: &dissect.Config{Dialect: "any"}, Bits: 100, Settled: true}
}
