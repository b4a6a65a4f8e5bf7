// Package rewrite makes small captures from large ones. For a bug report, it
// reduces a capture to the few packets in which a finding or a divergence still
// occurs:
//
//	all frames ──> those of one flow ──> up to the frame that shows it
//	           ──> without this chunk of them? without that? (delta debugging)
//
// It runs the whole analysis on each candidate. So the same command shows the
// same problem in the result: the same rule, for the same endpoint, on the same
// side. A divergence must stay as certain as it was. A finding may become
// likely, because it may need much of a capture to be certain.
//
// Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
// Input", for the order in which chunks are tried.
package rewrite

import (
	"fmt"
	"sort"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Reduced is the result of Reduce.
type Reduced struct {
	Frames   *Frames
	Shows    Occurrence        // how the rule occurs in Frames
	Was      machine.Certainty // its certainty in the whole capture
	Attempts int               // number of captures that were analysed
	Least    bool              // every single frame of it is needed
}

// Reduce finds a small capture in which the rule still occurs. That is a
// divergence if replay finds one of that name in the whole capture, otherwise a
// finding. The parameter attempts bounds how many captures are analysed. The
// error is an AbsentError if the rule does not occur in the whole capture.
func Reduce(f *Frames, r *Rule, attempts int) (*Reduced, error) {
	d := &reduction{all: f, rule: r, left: attempts}
	whole := make([]int, f.Len())
	for i := range whole {
		whole[i] = i
	}
	if err := d.aim(); err != nil {
		return nil, err
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
	// Once more, to see how it occurs in the remaining frames.
	if ok, err := d.try(kept); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%s does not stand in the %d frames in which it stood before: a fault of ackscope itself",
			r.ID, len(kept))
	}
	return &Reduced{f.pick(kept), d.shows, d.aims[d.shows.mark], d.done, least}, nil
}

// reduction is the state of a Reduce.
type reduction struct {
	all   *Frames
	rule  *Rule
	aims  map[mark]machine.Certainty // one of these must still occur, by certainty in the whole capture
	finds func(*Frames, *seen) error // finds divergences, or findings
	shows Occurrence                 // the occurrence in the newest capture that was tried
	left  int
	done  int
}

// aim searches the whole capture for what must still occur.
func (d *reduction) aim() error {
	var s seen
	d.left--
	d.done++
	d.finds = d.rule.divergences
	if err := d.finds(d.all, &s); err != nil {
		return err
	}
	if len(s.occurrences) == 0 {
		d.finds = d.rule.findings
		if err := d.finds(d.all, &s); err != nil {
			return err
		}
	}
	if len(s.occurrences) == 0 {
		return &AbsentError{d.rule.ID, s.others}
	}
	d.aims = map[mark]machine.Certainty{}
	for _, x := range s.occurrences {
		d.aims[x.mark] = max(d.aims[x.mark], x.Certainty)
	}
	return nil
}

func (d *reduction) try(of []int) (bool, error) {
	d.left--
	d.done++
	if d.rule.Tell != nil {
		d.rule.Tell(d.done, len(of))
	}
	var s seen
	if err := d.finds(d.all.pick(of), &s); err != nil {
		return false, err
	}
	for _, x := range s.occurrences {
		was, ok := d.aims[x.mark]
		if !x.Diverges {
			was = min(was, machine.Likely)
		}
		if ok && x.Certainty >= was {
			d.shows = x
			return true, nil
		}
	}
	return false, nil
}

// flow keeps only the frames of one flow, if they still show the rule. If there
// are several such flows, it keeps the shortest.
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

// shorten removes the frames after the one that shows it, and the frames before
// all that it needs.
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

// confirm tries the result of a search once more, because a binary search may
// be wrong if there is more than one turning point.
func (d *reduction) confirm(of []int, failed error) (bool, error) {
	if failed != nil || len(of) == 0 {
		return false, failed
	}
	return d.try(of)
}

// thin removes chunks, large ones first, until every single frame is needed.
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
