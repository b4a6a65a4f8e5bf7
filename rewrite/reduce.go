// Package rewrite makes captures of captures: it reduces one to the few packets
// in which a finding or a divergence still stands, for a bug report.
//
//	all frames ──> those of one flow ──> up to the frame that shows it
//	           ──> without this chunk of them? without that? (delta debugging)
//
// What a smaller capture shows is asked of the whole analysis each time, so what
// comes out shows it to whoever runs the same command on it.
//
// Ring 4 of the house. Source of truth: Zeller and Hildebrandt, "Simplifying and
// Isolating Failure-Inducing Input", for the order in which chunks are tried.
package rewrite

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// Frames is a capture in memory: a source that can be read again.
type Frames struct {
	list []capture.Frame
	next int
}

// maxBytes bounds a capture that is held in memory.
const maxBytes = 1 << 30

// Load reads a source to its end. A capture that is cut short gives what came
// before the cut.
func Load(src capture.Source) (*Frames, error) {
	f := &Frames{}
	size := 0
	for {
		var x capture.Frame
		err := src.Next(&x)
		var cut *capture.CutError
		if errors.Is(err, io.EOF) || errors.As(err, &cut) {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if size += len(x.Data); size > maxBytes {
			return nil, fmt.Errorf("the first %d frames have more than %d bytes: cut the capture before it is reduced", len(f.list)+1, maxBytes)
		}
		x.Data = append([]byte(nil), x.Data...)
		x.Options = nil
		f.list = append(f.list, x)
	}
}

// Len gives the number of frames.
func (f *Frames) Len() int { return len(f.list) }

// At gives frame i, from 0, as it was in its file.
func (f *Frames) At(i int) *capture.Frame { return &f.list[i] }

// Next gives the next frame, under its number in this capture.
func (f *Frames) Next(to *capture.Frame) error {
	if f.next == len(f.list) {
		return io.EOF
	}
	*to = f.list[f.next]
	f.next++
	to.Ref = machine.MakeRef(0, uint64(f.next))
	return nil
}

// Rewind begins anew.
func (f *Frames) Rewind() error { f.next = 0; return nil }

// Close does nothing.
func (f *Frames) Close() error { return nil }

// pick gives the capture of some of the frames.
func (f *Frames) pick(of []int) *Frames {
	p := &Frames{list: make([]capture.Frame, len(of))}
	for i, n := range of {
		p.list[i] = f.list[n]
	}
	return p
}

// Rule says what must still stand: the rule of a finding, or of a divergence
// that replay finds.
type Rule struct {
	ID       string
	Analysis analyze.Options
	Behave   string // replay's behaviour; empty for the suggested one
}

// stands reports whether a capture shows the rule.
func (r *Rule) stands(f *Frames) (bool, error) {
	if err := f.Rewind(); err != nil {
		return false, err
	}
	file, err := replay.Run("", f, replay.Options{Analysis: r.Analysis, Behaviour: r.Behave})
	if err != nil {
		return false, err
	}
	for i := range file.Results {
		if d := file.Results[i].Divergence; d != nil && d.Rule == r.ID {
			return true, nil
		}
	}
	if err := f.Rewind(); err != nil {
		return false, err
	}
	s, err := analyze.RunTwice(f, r.Analysis)
	if err != nil {
		return false, err
	}
	for _, flow := range s.Flows() {
		for _, x := range flow.Findings() {
			if x.Rule.ID == r.ID {
				return true, nil
			}
		}
	}
	return false, nil
}

// Reduced is what Reduce found.
type Reduced struct {
	Frames *Frames
	Trials int  // captures that were analysed
	Least  bool // no frame of it can be left out alone
}

// Reduce finds a small capture in which the rule still stands. trials bounds how
// many captures are analysed on the way; the error says so where the rule does
// not stand in the whole one.
func Reduce(f *Frames, r *Rule, trials int) (*Reduced, error) {
	d := &reduction{all: f, rule: r, left: trials}
	whole := make([]int, f.Len())
	for i := range whole {
		whole[i] = i
	}
	ok, err := d.try(whole)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("--keep %s: neither a finding nor a divergence of that rule stands in the capture", r.ID)
	}
	kept, err := d.flow(whole)
	if err == nil {
		kept, err = d.shorten(kept)
	}
	least := false
	if err == nil {
		kept, least, err = d.thin(kept)
	}
	if err != nil {
		return nil, err
	}
	return &Reduced{f.pick(kept), d.done, least}, nil
}

// reduction is a Reduce at work.
type reduction struct {
	all  *Frames
	rule *Rule
	left int
	done int
}

func (d *reduction) try(of []int) (bool, error) {
	d.left--
	d.done++
	return d.rule.stands(d.all.pick(of))
}

// flow keeps the frames of one flow where the rule stands in it alone: the
// shortest such.
func (d *reduction) flow(of []int) ([]int, error) {
	byFlow := map[int][]int{}
	o := d.rule.Analysis
	o.NoEvents = true
	o.Sink = func(r *analyze.Record) {
		if r.Packet == nil || r.Flow == nil {
			return
		}
		last := byFlow[r.Flow.ID]
		if n := int(r.Frame.Ref.Frame()) - 1; len(last) == 0 || last[len(last)-1] != n {
			byFlow[r.Flow.ID] = append(last, n)
		}
	}
	if err := d.all.Rewind(); err != nil {
		return nil, err
	}
	if _, err := analyze.RunTwice(d.all, o); err != nil {
		return nil, err
	}
	ids := make([]int, 0, len(byFlow))
	for id := range byFlow {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		if a, b := len(byFlow[ids[i]]), len(byFlow[ids[j]]); a != b {
			return a < b
		}
		return ids[i] < ids[j]
	})
	for _, id := range ids {
		if d.left <= 0 {
			break
		}
		if ok, err := d.try(byFlow[id]); err != nil || ok {
			return byFlow[id], err
		}
	}
	return of, nil
}

// shorten leaves out what comes after the frame that shows it, and what comes
// before all that it needs.
func (d *reduction) shorten(of []int) ([]int, error) {
	var failed error
	search := func(n int, holds func(k int) []int) int {
		return sort.Search(n, func(k int) bool {
			if failed != nil || d.left <= 0 {
				return k == n
			}
			ok, err := d.try(holds(k))
			failed = err
			return ok
		})
	}
	end := search(len(of), func(k int) []int { return of[:k] })
	if ok, err := d.confirm(of[:end], failed); err != nil {
		return nil, err
	} else if ok {
		of = of[:end]
	}
	back := search(len(of), func(k int) []int { return of[len(of)-k:] })
	if ok, err := d.confirm(of[len(of)-back:], failed); err != nil {
		return nil, err
	} else if ok {
		of = of[len(of)-back:]
	}
	return of, nil
}

// confirm tries once more what a search has found, since what it searched need
// not have one turning point.
func (d *reduction) confirm(of []int, failed error) (bool, error) {
	if failed != nil || len(of) == 0 {
		return false, failed
	}
	return d.try(of)
}

// thin leaves out chunks, large ones first, until no single frame can go.
func (d *reduction) thin(of []int) (kept []int, least bool, err error) {
	chunk := max(1, len(of)/2)
	for {
		removed := false
		for at := 0; at < len(of) && d.left > 0; {
			end := min(at+chunk, len(of))
			without := append(append([]int(nil), of[:at]...), of[end:]...)
			ok, err := false, error(nil)
			if len(without) > 0 {
				ok, err = d.try(without)
			}
			switch {
			case err != nil:
				return nil, false, err
			case ok:
				of, removed = without, true
			default:
				at = end
			}
		}
		switch {
		case d.left <= 0:
			return of, false, nil
		case chunk > 1:
			chunk = max(1, chunk/2)
		case !removed:
			return of, true, nil
		}
	}
}
