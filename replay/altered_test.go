package replay_test

import (
	"bytes"
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
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// altered is a capture of which frames are missing or come twice: a source that
// can be read again.
type altered struct {
	frames []capture.Frame
	next   int
	lost   uint64 // that its file counts as dropped by the capturing system
}

func (a *altered) Next(f *capture.Frame) error {
	if a.next == len(a.frames) {
		return io.EOF
	}
	*f = a.frames[a.next]
	a.next++
	f.Ref = machine.MakeRef(0, uint64(a.next))
	return nil
}

func (a *altered) Rewind() error { a.next = 0; return nil }

func (a *altered) Close() error { return nil }

// Dropped is what the file says.
func (a *altered) Dropped() uint64 { return a.lost }
func (a *altered) Counted() bool   { return a.lost > 0 }

// alterations are what may befall a capture of honest endpoints.
var alterations = []struct {
	name string
	do   func(rng *rand.Rand, list []capture.Frame) *altered
}{
	{"joined in the middle", func(_ *rand.Rand, list []capture.Frame) *altered {
		return &altered{frames: list[len(list)*37/100:]}
	}},
	{"cut short", func(_ *rand.Rand, list []capture.Frame) *altered { return &altered{frames: list[:len(list)*3/5]} }},
	{"every frame twice", func(_ *rand.Rand, list []capture.Frame) *altered {
		a := &altered{}
		for _, f := range list {
			a.frames = append(a.frames, f, f)
		}
		return a
	}},
	{"some frames twice", func(rng *rand.Rand, list []capture.Frame) *altered {
		a := &altered{}
		for _, f := range list {
			a.frames = append(a.frames, f)
			if rng.IntN(20) == 0 {
				a.frames = append(a.frames, f)
			}
		}
		return a
	}},
	{"7 bytes of each datagram over IPv4", snapped(49)},
	{"7 bytes of each datagram over IPv6", snapped(69)},
	{"3 % lost and counted", func(rng *rand.Rand, list []capture.Frame) *altered {
		a := &altered{}
		for _, f := range list {
			if rng.IntN(100) < 3 {
				a.lost++
				continue
			}
			a.frames = append(a.frames, f)
		}
		return a
	}},
	{"3 % lost", func(rng *rand.Rand, list []capture.Frame) *altered {
		a := &altered{}
		for _, f := range list {
			if rng.IntN(100) >= 3 {
				a.frames = append(a.frames, f)
			}
		}
		return a
	}},
}

// snapped keeps so many bytes of each frame.
func snapped(most int) func(*rand.Rand, []capture.Frame) *altered {
	return func(_ *rand.Rand, list []capture.Frame) *altered {
		a := &altered{frames: slices.Clone(list)}
		for i := range a.frames {
			f := &a.frames[i]
			f.Data = slices.Clip(f.Data[:min(most, len(f.Data))])
		}
		return a
	}
}

// framesOf reads a capture into memory.
func framesOf(t *testing.T, path string) (list []capture.Frame) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for {
		var f capture.Frame
		if err := in.Next(&f); err != nil {
			return list // some are cut short on purpose
		}
		f.Data, f.Options = bytes.Clone(f.Data), nil
		list = append(list, f)
	}
}

// TestAltered: no side of an honest capture diverges because of what befell the capture. It was joined
// late, cut short, took frames twice or only their first bytes, or lost some and says so. Of one that
// lost some and does not say so, what is found rests on what did not pass the tap,
// and says that.
func TestAltered(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pcaps, "*.pcap*"))
	if err != nil || len(paths) < 100 {
		t.Fatal(len(paths), err)
	}
	step := 7 // a part of them
	switch {
	case testing.Short():
		step = 25
	case testenv.Required():
		step = 3
	}
	registry := dissect.NewRegistry(gaffer.Protocol, riptide.Protocol)
	silent, told := 0, 0
	for n := 0; n < len(paths); n += step {
		path := paths[n]
		if info, err := os.Stat(path); strings.Contains(path, "stalebug") || err != nil || info.Size() > 400<<10 {
			continue // the faulty run, and what only takes long
		}
		list := framesOf(t, path)
		for _, c := range alterations {
			rng := rand.New(rand.NewPCG(3, uint64(len(path))))
			f, err := replay.Run(path, c.do(rng, list), replay.Options{Analysis: analyze.Options{Registry: registry}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Results {
				r := &f.Results[i]
				d := r.Divergence
				switch {
				case d == nil && c.name == "3 % lost" && r.Why != "" && strings.Contains(r.Why, "lacks packets"):
					told++
				case d == nil:
				case c.name == "3 % lost" && d.RestsOn.Absence():
					silent++
				default:
					t.Errorf("%s, %s: flow %d %s: frame %d: %s: %s expected %s, got %s: %s", filepath.Base(path), c.name, r.Flow.ID,
						r.Side, d.Ref.Frame(), d.Rule, d.Field, d.Expected, d.Got, d.Because)
				}
			}
		}
	}
	if t.Logf("3 %% lost, not counted: %d sides known to lack packets, %d diverge by what is missing", told,
		silent); step == 3 && told < 30 {
		t.Errorf("%d sides are known to lack packets, expected most", told)
	}
}

// TestExplained: fed the frames that a divergence names, and the divergent one, the
// judge says the same; without any one of them it does not.
func TestExplained(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	explained, frames := 0, 0
	for _, name := range []string{
		"reliable-loss10.client.pcap.gz", "plain-le-clean.client.pcap.gz",
		"u210_loss10.client.pcapng.gz", "plain-le-stalebug-loss98.client.pcap.gz",
	} {
		path := filepath.Join(pcaps, name)
		list, flow := flowOf(t, path)
		side := machine.A
		if flow.Facts().Vantage.Near(machine.B) {
			side = machine.B
		}
		for range 8 {
			source := &altered{frames: framesOf(t, path)}
			if !strings.Contains(name, "stalebug") {
				// One byte of the head of one datagram of the side at the tap.
				k := len(list)/4 + rng.IntN(len(list)/2)
				for list[k].From != side {
					k++
				}
				at := list[k].Ref.Frame() - 1
				data := source.frames[at].Data
				head := bytes.Index(data, list[k].Bytes)
				if head < 0 {
					t.Fatalf("%s: frame %d has not the bytes of its datagram", name, at+1)
				}
				data[head+rng.IntN(min(6, len(list[k].Bytes)))] ^= 1 << rng.IntN(8)
			}
			o := replay.Options{Analysis: analyze.Options{Registry: registry()}}
			if strings.Contains(name, "stalebug") {
				o.Behaviour = "gaffer@article"
			}
			f, err := replay.Run(name, source, o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Results {
				if r := &f.Results[i]; r.Divergence != nil {
					explained++
					frames += len(r.Divergence.Frames)
					holdExplanation(t, source, f, r)
				}
			}
		}
	}
	if explained < 20 {
		t.Errorf("%d divergences, expected most of the changed bytes to show", explained)
	}
	t.Logf("%d divergences, explained by %.1f frames each", explained, float64(frames)/float64(explained))
}

// holdExplanation feeds a judge the frames of an explanation alone.
func holdExplanation(t *testing.T, source *altered, f *replay.File, r *replay.Result) {
	t.Helper()
	d := r.Divergence
	var list []machine.Datagram
	if err := source.Rewind(); err != nil {
		t.Fatal(err)
	}
	if _, err := analyze.RunTwice(source, analyze.Options{Registry: registry(), Sink: func(rec *analyze.Record) {
		if rec.Packet != nil && rec.Flow != nil && rec.Flow.ID == r.Flow.ID {
			x := rec.Datagram
			x.Bytes = bytes.Clone(x.Bytes)
			list = append(list, x)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	var behaviours [2]string
	for i := range f.Results {
		if f.Results[i].Flow == r.Flow {
			behaviours[f.Results[i].Side] = f.Results[i].Behaviour
		}
	}
	says := func(frames []machine.Ref) bool {
		j, err := r.Flow.Protocol.NewJudge(r.Flow.Config(), behaviours)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if x := &list[i]; x.Ref == d.Ref || slices.Contains(frames, x.Ref) {
				j.Observe(x)
			}
		}
		v := j.Opinion(r.Side).Divergence
		return v != nil && v.Ref == d.Ref && v.Rule == d.Rule && v.Expected == d.Expected && v.Got == d.Got
	}
	if !says(d.Frames) {
		t.Errorf("%s frame %d %s: its frames %v do not suffice", f.Name, d.Ref.Frame(), d.Rule, d.Frames)
	}
	for i := range d.Frames {
		if says(slices.Delete(slices.Clone(d.Frames), i, i+1)) {
			t.Errorf("%s frame %d %s: frame %d of %v is not needed", f.Name, d.Ref.Frame(), d.Rule,
				d.Frames[i].Frame(), d.Frames)
		}
	}
	if d.Reference == "" || d.Captured == "" || d.Field == "" || d.Expected == "" || d.Got == "" {
		t.Errorf("%s frame %d %s: a state is missing: %+v", f.Name, d.Ref.Frame(), d.Rule, d)
	}
}
