// Package rewrite makes small captures from large ones. For a bug report, it
// reduces a capture to the few packets in which a finding or a divergence still
// occurs:
//
//	all frames ──> those of one flow ──> up to the frame that shows it
//	           ──> without this chunk of them? without that? (delta debugging)
//
// It runs the whole analysis on each candidate. So the same command shows the
// same problem in the result: the same rule, of the same endpoint and side, with
// the same figures. For example, a burst of 30 lost packets over 517
// ms stays one of 27 to 33 packets. The result shows no other finding and no
// other divergence than the whole, and none with more certainty. If frames
// cannot be left out for that reason, they stay.
//
// A divergence must stay as certain as it was. A finding may become likely,
// because it may need much of a capture to be certain.
//
// Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
// Input", for the order in which chunks are tried.
package rewrite

import (
	"fmt"
	"maps"
	"slices"
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

	// Why frames stayed that the rule alone does not need. Without them the figures
	// are others (Changed), or rules show that the whole capture does not show.
	Changed bool
	New     []string // their names, sorted
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
	changed, refused := d.changed, slices.Sorted(maps.Keys(d.new))
	// Once more, to see how it occurs in the remaining frames.
	if ok, err := d.try(kept); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%s does not stand in the %d frames in which it stood before: a fault of ackscope itself",
			r.ID, len(kept))
	}
	return &Reduced{
		Frames: f.pick(kept), Shows: d.shows, Was: d.was, Attempts: d.done, Least: least, Changed: changed,
		New: refused,
	}, nil
}

// reduction is the state of a Reduce.
type reduction struct {
	all   *Frames
	rule  *Rule
	aims  map[mark][]Occurrence      // one of these must still occur
	whole seen                       // all that the whole capture shows
	finds func(*Frames, *seen) error // finds divergences, or findings
	rest  func(*Frames, *seen) error // finds the other of them
	shows Occurrence                 // the occurrence in the newest capture that was tried
	was   machine.Certainty          // its certainty in the whole capture
	left  int
	done  int

	changed bool            // a capture was refused because its figures are others
	new     map[string]bool // rules because of which one was refused
}

// aim searches the whole capture for what must still occur.
func (d *reduction) aim() error {
	d.left--
	d.done++
	d.finds, d.rest = d.rule.divergences, d.rule.findings
	if err := d.finds(d.all, &d.whole); err != nil {
		return err
	}
	if len(d.whole.occurrences) == 0 {
		d.finds, d.rest = d.rest, d.finds
		if err := d.finds(d.all, &d.whole); err != nil {
			return err
		}
	}
	if len(d.whole.occurrences) == 0 {
		return &AbsentError{d.rule.ID, d.whole.others}
	}
	d.aims, d.new = map[mark][]Occurrence{}, map[string]bool{}
	for _, x := range d.whole.occurrences {
		d.aims[x.mark] = append(d.aims[x.mark], x)
	}
	return d.rest(d.all, &d.whole)
}

// try reports whether a capture of some of the frames shows the same as the
// whole.
func (d *reduction) try(of []int) (bool, error) {
	d.left--
	d.done++
	if d.rule.Tell != nil {
		d.rule.Tell(d.done, len(of))
	}
	f := d.all.pick(of)
	var s seen
	if err := d.finds(f, &s); err != nil {
		return false, err
	}
	if !d.same(&s) {
		return false, nil
	}
	if err := d.rest(f, &s); err != nil {
		return false, err
	}
	same := true
	for c, sure := range s.claims {
		if was, ok := d.whole.claims[c]; !ok || sure > was {
			d.new[c.rule] = true
			same = false
		}
	}
	if same { // what refused other captures need not refuse smaller ones than this
		d.changed = false
		clear(d.new)
	}
	return same, nil
}

// same reports whether a capture shows what must still occur, with its figures.
func (d *reduction) same(s *seen) bool {
	shown := false
	for _, x := range s.occurrences {
		for _, was := range d.aims[x.mark] {
			enough := was.Certainty
			if !x.Diverges {
				enough = min(enough, machine.Likely)
			}
			if x.Certainty < enough {
				continue
			}
			if x.figures.like(&was.figures) {
				d.shows, d.was = x, was.Certainty
				return true
			}
			shown = true
		}
	}
	d.changed = d.changed || shown
	return false
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
