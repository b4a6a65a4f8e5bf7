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
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// Frames is a capture in memory: a source that can be read again.
type Frames struct {
	list []capture.Frame
	next int
	// How many packets the capture lacks; see analyze.Dropper.
	dropped uint64
	counted bool
	ended   error
}

// maxBytes bounds a capture that is held in memory.
const maxBytes = 1 << 30

// frameCost is the memory of a frame without its bytes.
const frameCost = int(unsafe.Sizeof(capture.Frame{}))

// LoadWithin reads a source to its end. Of a capture that is cut short it
// returns the part before the cut. If the capture takes more than most bytes,
// or more than a GiB, LoadWithin returns an error.
func LoadWithin(src capture.Source, most int) (*Frames, error) {
	most = min(most, maxBytes)
	f := &Frames{}
	size := 0
	for {
		var x capture.Frame
		err := src.Next(&x)
		var cut *capture.CutError
		if errors.As(err, &cut) {
			f.ended = err
		}
		if errors.Is(err, io.EOF) || f.ended != nil {
			if d, ok := src.(analyze.Dropper); ok {
				f.dropped, f.counted = d.Dropped(), d.Counted()
			}
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if size += frameCost + len(x.Data) + len(x.Options); size > most {
			return nil, fmt.Errorf("the first %d frames take more than %d bytes: cut the capture before it is reduced",
				len(f.list)+1, most)
		}
		x.Data = append([]byte(nil), x.Data...)
		x.Options = append([]byte(nil), x.Options...)
		f.list = append(f.list, x)
	}
}

// Len returns the number of frames.
func (f *Frames) Len() int { return len(f.list) }

// Ended returns a capture.CutError if the capture is cut short, otherwise nil.
func (f *Frames) Ended() error { return f.ended }

// Dropped returns how many packets the capture is known to lack.
func (f *Frames) Dropped() uint64 { return f.dropped }

// Counted reports whether the capture counted all packets that it lacks.
func (f *Frames) Counted() bool { return f.counted }

// At returns frame i, from 0, as it was in its file.
func (f *Frames) At(i int) *capture.Frame { return &f.list[i] }

// Next returns the next frame, with its number in this capture.
func (f *Frames) Next(to *capture.Frame) error {
	if f.next == len(f.list) {
		return io.EOF
	}
	*to = f.list[f.next]
	f.next++
	to.Ref = machine.MakeRef(0, uint64(f.next))
	return nil
}

// Rewind restarts at the first frame.
func (f *Frames) Rewind() error { f.next = 0; return nil }

// Close does nothing.
func (f *Frames) Close() error { return nil }

// pick returns the capture of some of the frames.
func (f *Frames) pick(of []int) *Frames {
	p := &Frames{list: make([]capture.Frame, len(of)), dropped: f.dropped, counted: f.counted}
	for i, n := range of {
		p.list[i] = f.list[n]
	}
	return p
}

// Rule is what must still occur: the rule of a finding, or of a divergence that
// replay finds.
type Rule struct {
	ID       string
	Analysis analyze.Options
	Behave   string // replay's behaviour; empty for the suggested one
	// Tell, if not nil, is called for every capture that is tried, with the number
	// of the attempt and the number of frames.
	Tell func(attempt, frames int)
}

// mark identifies a finding or a divergence.
type mark struct {
	diverges        bool
	protocol        string
	side            machine.Side
	own, peer       netip.AddrPort
	behaviour, name string // of a divergence: the behaviour of the reference, and the field
	severity        machine.Severity
}

// Occurrence is where a capture shows the rule: a finding or a divergence.
type Occurrence struct {
	Diverges  bool // replay finds it; otherwise it is a finding
	Side      machine.Side
	Addr      netip.AddrPort
	Certainty machine.Certainty
	Frame     uint64 // the first frame that shows it, in the smaller capture
	Message   string // in words
	mark      mark
}

// seen is what a capture shows of a rule, and all the rules that it shows.
type seen struct {
	occurrences []Occurrence
	others      []string // sorted by name, without duplicates
}

// divergences adds what replay finds.
func (r *Rule) divergences(f *Frames, to *seen) error {
	if err := f.Rewind(); err != nil {
		return err
	}
	file, err := replay.Run("", f, replay.Options{Analysis: r.Analysis, Behaviour: r.Behave})
	if err != nil {
		return err
	}
	for i := range file.Results {
		x := &file.Results[i]
		d := x.Divergence
		if d == nil || !x.Expected {
			continue
		}
		to.other(d.Rule.ID)
		if d.Rule.ID != r.ID {
			continue
		}
		m := mark{
			diverges: true, protocol: x.Flow.Protocol.Name, side: x.Side, own: x.Flow.Addr(x.Side),
			peer: x.Flow.Addr(x.Side.Other()), behaviour: x.Behaviour, name: d.Field,
		}
		to.occurrences = append(to.occurrences, Occurrence{
			Diverges: true, Side: x.Side, Addr: m.own, Certainty: x.Certainty(), Frame: d.Ref.Frame(), mark: m,
			Message: fmt.Sprintf("%s: %s expected %s, got %s", x.Behaviour, d.Field, d.Expected, d.Got),
		})
	}
	return nil
}

// findings adds what the analysis finds.
func (r *Rule) findings(f *Frames, to *seen) error {
	if err := f.Rewind(); err != nil {
		return err
	}
	s, err := analyze.RunTwice(f, r.Analysis)
	if err != nil {
		return err
	}
	for _, flow := range s.Flows() {
		for _, x := range flow.Findings() {
			to.other(x.Rule.ID)
			if x.Rule.ID != r.ID {
				continue
			}
			m := mark{side: x.Side, own: flow.Addr(x.Side), peer: flow.Addr(x.Side.Other()), severity: x.Rule.Severity}
			if flow.Protocol != nil {
				m.protocol = flow.Protocol.Name
			}
			found := Occurrence{Side: x.Side, Addr: m.own, Certainty: x.Certainty, Message: x.Message(), mark: m}
			if len(x.Refs) > 0 {
				found.Frame = x.Refs[0].Frame()
			}
			to.occurrences = append(to.occurrences, found)
		}
	}
	return nil
}

func (s *seen) other(id string) {
	if i, found := slices.BinarySearch(s.others, id); !found {
		s.others = slices.Insert(s.others, i, id)
	}
}

// AbsentError says that a rule does not occur in a capture.
type AbsentError struct {
	Rule  string
	Shown []string // the names of the rules that do occur
}

func (e *AbsentError) Error() string {
	if len(e.Shown) == 0 {
		return fmt.Sprintf("%s: neither a finding nor a divergence of that rule stands in the capture, nor one of any other",
			e.Rule)
	}
	return fmt.Sprintf("%s: neither a finding nor a divergence of that rule stands in the capture: these do: %s", e.Rule,
		strings.Join(e.Shown, ", "))
}

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
