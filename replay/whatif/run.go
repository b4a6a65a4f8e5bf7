package whatif

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Change is one setting as the user wrote it: "resend" and "50ms".
type Change struct{ Name, Value string }

// ParseChanges parses "resend=50ms,window=64". It returns an error when a part
// is not NAME=VALUE, or when a name is set twice.
func ParseChanges(text string) (list []Change, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("%q: expected NAME=VALUE, such as resend=50ms", part)
		}
		if slices.ContainsFunc(list, func(c Change) bool { return c.Name == name }) {
			return nil, fmt.Errorf("%q: %s is set twice", text, name)
		}
		list = append(list, Change{name, value})
	}
	return list, nil
}

// Check returns an error for a change that no protocol has, or whose value no
// protocol accepts.
func Check(changes []Change, registry *dissect.Registry) error {
	for _, c := range changes {
		var wrong error
		var names []string
		taken := false
		for _, p := range registry.Protocols() {
			for i := range p.Parameters {
				x := &p.Parameters[i]
				if !slices.Contains(names, x.Name) {
					names = append(names, x.Name)
				}
				if x.Name != c.Name {
					continue
				}
				if _, err := x.Read(c.Value); err == nil {
					taken = true
				} else if wrong == nil {
					wrong = err
				}
			}
		}
		switch {
		case taken:
		case wrong != nil:
			return wrong
		default:
			return &UnknownError{c.Name, names}
		}
	}
	return nil
}

// UnknownError names a setting that does not exist.
type UnknownError struct {
	Name  string
	Names []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%q: expected one of %s", e.Name, strings.Join(e.Names, ", "))
}

// Flow is the estimate for one flow.
type Flow struct {
	Flow     *analyze.Flow
	Vantage  machine.Vantage
	Settings []machine.Setting // the capture's own
	Changed  []machine.Setting // the settings of the run that differ
	Assumed  []string
	Sides    [2]Side
	// Silences counts the times for which the flow was silent for longer than
	// its endpoints can be while they work. The runs skip all of these but
	// their first seconds: together, Silent.
	Silences int
	Silent   time.Duration
	Steps    int // inputs that the references took in both runs: the cost of the estimate
}

// Side is the estimate for what one side sends.
type Side struct {
	Original  Outcome // what the capture shows
	Rehearsal Outcome // a run with the capture's own settings
	WhatIf    Outcome
	Fit       float64 // see the function Fit: how far Rehearsal is from Original; 0 is perfect
}

// Skipped is a flow that cannot run again.
type Skipped struct {
	Flow   *analyze.Flow
	Reason string
}

// File is the estimate for one capture.
type File struct {
	Flows   []Flow
	Skipped []Skipped
	Ended   error // why the reading ended early: a capture.CutError; nil when it did not
}

// Run reads a capture and runs each flow again with the changes. It returns an
// error for an unreadable file, a failure of the program, or a setting that no
// flow has.
func Run(src analyze.Rewinder, o analyze.Options, changes []Change) (*File, error) {
	s, err := analyze.Learn(src, o)
	if err != nil {
		return nil, err
	}
	r := &collector{changes: changes, flows: map[int]*recorder{}, reasons: map[int]string{}, room: math.MaxInt}
	if o.Limits.Bytes > 0 {
		r.room = o.Limits.Bytes / 2
	}
	second := o
	second.Survey, second.Sink = s.Survey(), r.record
	second.Gone = func(f *analyze.Flow, why analyze.Reason) {
		if o.Gone != nil {
			o.Gone(f, why)
		}
		r.forget(f)
	}
	s, err = analyze.Run(src, second)
	if err != nil && !partial(err) {
		return nil, err
	}
	f := &File{Ended: err}
	return f, r.finish(s, f)
}

func partial(err error) bool {
	var cut *capture.CutError
	return errors.As(err, &cut)
}

// collector records the flows of one capture.
type collector struct {
	changes []Change
	flows   map[int]*recorder // by the flow's number
	reasons map[int]string    // of flows that cannot be run again
	room    int               // bytes that recorders may still use, approximately
}

// forget drops what was recorded of a flow.
func (r *collector) forget(f *analyze.Flow) {
	if x := r.flows[f.ID]; x != nil {
		r.room += x.size()
	}
	delete(r.flows, f.ID)
	delete(r.reasons, f.ID)
}

func (r *collector) record(rec *analyze.Record) {
	f := rec.Flow
	if f == nil || f.Protocol == nil || rec.Packet != nil && rec.Packet.Duplicate {
		return
	}
	x := r.flows[f.ID]
	if x == nil {
		if r.reasons[f.ID] != "" {
			return
		}
		var reason string
		if x, reason = begin(f); x == nil {
			r.reasons[f.ID] = reason
			return
		}
		r.flows[f.ID] = x
	}
	before := x.size()
	x.observe(rec)
	if r.room -= x.size() - before; r.room < 0 {
		r.forget(f)
		r.reasons[f.ID] = "its datagrams take too much memory (--memory gives more): cut a part of the capture out"
	}
}

// begin makes the recorder of a flow, or returns the reason why there is none.
func begin(f *analyze.Flow) (*recorder, string) {
	switch {
	case f.Transport == capture.TCP:
		return nil, "it is a TCP stream: nothing of it is sent again by the protocol"
	case f.Protocol.NewStage == nil:
		return nil, "the protocol " + f.Protocol.Name + " has no settings to change"
	}
	stage, err := f.Protocol.NewStage(f.Config())
	if err != nil {
		return nil, err.Error()
	}
	x := &recorder{flow: f, stage: stage, vantage: f.Config().Facts.Vantage, seed: maphash.MakeSeed()}
	if x.vantage == machine.VantageUnknown && f.Config().OneHost {
		x.vantage = machine.VantageBoth
	}
	return x, ""
}

// finish runs the flows.
func (r *collector) finish(s *analyze.Session, out *File) error {
	taken := map[string]bool{}
	for _, f := range s.Flows() {
		if f.Protocol == nil {
			continue
		}
		reason := "none of its packets could be read"
		if rec := r.flows[f.ID]; rec != nil {
			x, err := rec.estimate(r.changes, taken)
			if err == nil {
				out.Flows = append(out.Flows, *x)
				continue
			}
			reason = err.Error()
		} else if r.reasons[f.ID] != "" {
			reason = r.reasons[f.ID]
		}
		out.Skipped = append(out.Skipped, Skipped{f, reason})
	}
	for _, c := range r.changes {
		if len(out.Flows) > 0 && !taken[c.Name] {
			return fmt.Errorf("%s=%s: no flow that can be run again has such a setting: they have %s", c.Name,
				c.Value, r.names())
		}
	}
	return nil
}

// names lists the settings of the recorded flows.
func (r *collector) names() string {
	var list []string
	for _, id := range slices.Sorted(maps.Keys(r.flows)) {
		x := r.flows[id]
		for _, p := range x.stage.Parameters() {
			if !slices.Contains(list, p.Name) {
				list = append(list, p.Name)
			}
		}
	}
	return strings.Join(list, ", ")
}

// estimate runs the flow with its own settings, and with the changes.
func (r *recorder) estimate(changes []Change, taken map[string]bool) (*Flow, error) {
	t, cuts, err := r.trace()
	if err != nil {
		return nil, err
	}
	x := &Flow{Flow: r.flow, Vantage: r.vantage, Silences: len(cuts.list), Silent: cuts.removed()}
	for _, c := range changes {
		for _, p := range r.stage.Parameters() {
			if p.Name != c.Name {
				continue
			}
			v, err := p.Read(c.Value)
			if err != nil {
				return nil, err
			}
			taken[c.Name] = true
			x.Changed = append(x.Changed, v)
		}
	}
	if len(x.Changed) == 0 {
		return nil, r.without(changes)
	}
	own, err := r.stage.Prepare(t, nil)
	if err != nil {
		return nil, err
	}
	x.Settings, x.Assumed = own.Settings, own.Assumed
	rehearsal, steps, err := simulate(t, cuts, own)
	if err != nil {
		return nil, err
	}
	other, err := r.stage.Prepare(t, x.Changed)
	if err != nil {
		return nil, err
	}
	whatIf, more, err := simulate(t, cuts, other)
	if err != nil {
		return nil, err
	}
	x.Steps = steps + more
	for i := range x.Sides {
		y := &x.Sides[i]
		var frames *machine.Frames
		if t.Sides[1-i].Near {
			frames = own.Frames[1-i]
		}
		y.Original, y.Rehearsal, y.WhatIf = original(&t.Sides[i], frames, cuts), rehearsal[i], whatIf[i]
		y.Fit = Fit(&y.Original, &y.Rehearsal)
	}
	return x, nil
}

// without returns the error that a flow has none of the settings. It lists
// those that the flow has.
func (r *recorder) without(changes []Change) error {
	var asked, has []string
	for _, c := range changes {
		asked = append(asked, c.Name)
	}
	for _, p := range r.stage.Parameters() {
		has = append(has, p.Name)
	}
	return fmt.Errorf("%s %s has no setting %s: it has %s", r.flow.Protocol.Name, r.flow.Config().Dialect,
		strings.Join(asked, ", "), strings.Join(has, ", "))
}
