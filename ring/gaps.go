package ring

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// view is a file as it was when a cut began.
type view struct {
	of     *file
	path   string
	number uint64
	told
	open   bool
	counts map[int]capture.Statistics // of the open file, by interface
}

// views returns the files, with the times of all that can be read.
func (r *Ring) views() ([]view, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(); err != nil {
		return nil, err
	}
	var list []view
	for _, f := range r.files {
		v := view{of: f, path: f.path, number: f.number, told: f.told, open: f.ended.IsZero()}
		if v.open {
			v.counts = r.counts(r.open)
		}
		list = append(list, v)
	}
	return list, nil
}

// survey reads the times of the files of an earlier run. Each is read once.
func (r *Ring) survey(list []view) {
	r.surveys.Lock()
	defer r.surveys.Unlock()
	for i := range list {
		v := &list[i]
		if v.known {
			continue
		}
		r.mu.Lock()
		v.told = v.of.told
		r.mu.Unlock()
		if v.known {
			continue
		}
		v.told = survey(v.path)
		r.mu.Lock()
		v.of.told = v.told
		r.mu.Unlock()
	}
}

// survey reads a file to its end.
func survey(path string) told {
	t := told{known: true}
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.err = err
		return t
	}
	defer in.Close()
	var f capture.Frame
	for {
		if err := in.Next(&f); err != nil {
			t.run = runOf(in)
			if !errors.Is(err, io.EOF) {
				t.err = err
			}
			return t
		}
		t.add(f.At)
	}
}

// runOf returns which run wrote a file, or "".
func runOf(in *capture.Input) string {
	for _, s := range in.Sections(0) {
		for _, comment := range s.Comments {
			if rest, ok := strings.CutPrefix(comment, runWords); ok {
				run, _, _ := strings.Cut(rest, ",")
				return run
			}
		}
	}
	return ""
}

// String returns the reason in words.
func (r Reason) String() string {
	return [...]string{
		"the ring begins later", "the ring ends earlier", "the capture ended and began again", "files are gone",
		"a file ends within a record", "a file cannot be read", "the cut has reached its bound",
	}[r]
}

// String says what is missing.
func (g *Gap) String() string {
	const clock = time.RFC3339Nano
	text := fmt.Sprintf("missing: %s to %s: %s", g.From.Time().Format(clock), g.To.Time().Format(clock), g.Reason)
	if g.File != "" {
		text += " (" + filepath.Base(g.File) + ")"
	}
	if g.Err != nil {
		text += ": " + g.Err.Error()
	}
	return printable.String(text)
}

// gaps returns what the files lack of a span, as far as it is known before they are read.
func gaps(list []view, from, to machine.Instant) (missing []Gap) {
	add := func(reason Reason, x, y machine.Instant, v *view) {
		if x > y { // a clock that stepped back
			x, y = y, x
		}
		if x > to || y < from {
			return
		}
		g := Gap{Reason: reason, From: max(x, from), To: min(y, to)}
		if v != nil {
			g.File, g.Err = v.path, v.err
		}
		missing = append(missing, g)
	}
	first, last, some := machine.Instant(0), machine.Instant(0), false
	for i := range list {
		if v := &list[i]; v.frames > 0 {
			if !some {
				first, last, some = v.first, v.last, true
			}
			first, last = min(first, v.first), max(last, v.last)
		}
	}
	if !some {
		add(ReasonAfter, from, to, nil)
		first, last = from, to
	}
	if from < first {
		add(ReasonBefore, from, first-1, nil)
	}
	before := first // of the last frame so far
	for i := range list {
		v := &list[i]
		after := last // the next frame behind this file
		for _, x := range list[i+1:] {
			if x.frames > 0 {
				after = x.first
				break
			}
		}
		if i > 0 {
			begin := after
			if v.frames > 0 {
				begin = v.first
			}
			if v.number != list[i-1].number+1 {
				add(ReasonRemoved, before, begin, nil)
			}
			if v.run != "" && list[i-1].run != "" && v.run != list[i-1].run {
				add(ReasonRestart, before, begin, nil)
			}
		}
		if v.frames > 0 {
			before = v.last
		}
		if v.err != nil {
			reason := ReasonDamaged
			if isCut(v) {
				reason = ReasonCut
			}
			add(reason, before, after, v)
		}
	}
	if last < to {
		add(ReasonAfter, max(last+1, from), to, nil)
	}
	return missing
}

// isCut reports whether a file ends early, as after a kill. A file that was killed before its first
// write is empty.
func isCut(v *view) bool {
	var cut *capture.CutError
	if errors.As(v.err, &cut) {
		return true
	}
	return v.frames == 0 && v.of.Bytes == 0
}
