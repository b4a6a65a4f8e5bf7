package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Options say how captures are replayed.
type Options struct {
	Analysis analyze.Options // registry, overrides and vantage; its Sink and Survey are not used
	// Behaviour is the one that all sides are compared with where it applies; empty for the
	// one that the packets of each side suggest.
	Behaviour string
	// Known returns the behaviour of a side by an earlier run (a baseline); empty for none.
	// It may be nil.
	Known func(flow int, side machine.Side) string
	// Matrix compares each side with every behaviour that applies to it.
	Matrix bool
	// Survey is what an earlier run over the same capture learned, of a session with these
	// Analysis options; nil to have Run make that run.
	Survey *analyze.Survey
}

// Result is what is found of one side of one flow under one behaviour.
type Result struct {
	File      string
	Flow      *analyze.Flow
	Side      machine.Side
	Behaviour string
	Expected  bool // Behaviour is the one that the side's packets suggest, or that was asked for
	machine.Opinion

	counted bool // the file says how many packets the tap dropped
}

// Supposed reports whether the divergence needs the tap to stand at the side, and nothing but a
// comparison of times shows that it does.
func (r *Result) Supposed() bool {
	d := r.Divergence
	return d != nil && d.RestsOn != machine.RestsOnOwn && !d.Rule.Anywhere && r.Flow.Facts().Supposed[r.Side]
}

// CouldLack reports whether a capture that lacks a packet would show the same divergence, and
// the file does not count what the tap dropped.
func (r *Result) CouldLack() bool {
	return r.Divergence != nil && r.Divergence.RestsOn.Absence() && !r.counted
}

// Misread reports whether the side may be right, because the flow may have to be read by
// another profile.
func (r *Result) Misread() bool { return r.Divergence != nil && r.Flow.Facts().Doubtful }

// Certainty grades the divergence. A capture that lacks a packet shows the same as a divergence
// that rests on an absence. So such a one is certain only where the file counts what the tap
// dropped. Where the tap is only supposed to stand at the side, what was lost between shows
// the same too. Where the flow may have to be read otherwise, the side may be right.
func (r *Result) Certainty() machine.Certainty {
	switch {
	case r.Divergence == nil:
		return machine.Unknown
	case r.CouldLack(), r.Supposed(), r.Divergence.Assumed, r.Divergence.Inferred != "", r.Misread():
		return machine.Likely
	}
	return machine.Certain
}

// Addr returns the side's address.
func (r *Result) Addr() string { return r.Flow.Addr(r.Side).String() }

// Skipped is a flow that cannot be compared with a reference.
type Skipped struct {
	Flow   *analyze.Flow
	Reason string
}

// File is what is found of one capture.
type File struct {
	Name    string
	Results []Result // by flow, side and behaviour
	Skipped []Skipped
	LetGo   int // flows that ended early for want of memory; of these only those that diverge are in Results
	Packets uint64
	Ended   error // how the reading ended where not cleanly: a capture.CutError
}

// Run replays one capture. It fails where the file cannot be read, or by a fault of ackscope.
func Run(name string, src analyze.Rewinder, o Options) (*File, error) {
	if o.Survey == nil {
		s, err := analyze.Learn(src, o.Analysis)
		if err != nil {
			return nil, err
		}
		o.Survey = s.Survey()
	}
	r := begin(name, &o)
	s, err := analyze.Run(src, r.analysis)
	return r.end(src, s, err)
}

// RunBeside replays one capture, of which o.Survey is known, and runs another analysis of it at
// the same time. Each frame is read once. The session and ended are what analyze.Run returns for
// the other analysis. err is that of Run.
func RunBeside(name string, src analyze.Rewinder, o Options, other analyze.Options,
) (session *analyze.Session, ended error, file *File, err error) {
	r := begin(name, &o)
	both, ended := analyze.RunBeside(src, other, r.analysis)
	file, err = r.end(src, both[1], ended)
	return both[0], ended, file, err
}

// begin begins a replay, whose sink the caller feeds.
func begin(name string, o *Options) *run {
	r := &run{options: o, file: &File{Name: name}, analysis: o.Analysis}
	a := &r.analysis
	a.Survey, a.NoEvents, a.Untracked = o.Survey, true, true
	a.Sink, a.Split, a.Gone = nil, r.split, r.gone
	return r
}

// end gathers what was found when the session has read the source to err.
func (r *run) end(src analyze.Rewinder, s *analyze.Session, err error) (*File, error) {
	if err != nil && !partial(err) {
		return nil, err
	}
	r.flows = map[int]*comparison{}
	for _, p := range r.parts {
		if p.err != nil {
			return nil, p.err
		}
		r.file.LetGo += p.letGo
		maps.Copy(r.flows, p.flows)
	}
	r.file.Ended, r.file.Packets = err, s.Packets()
	for _, t := range r.flows {
		if !t.gone {
			t.finish()
		}
	}
	if err := r.recheck(src, r.analysis, s); err != nil {
		return nil, err
	}
	r.collect(s)
	return r.file, nil
}

// recheck reads the capture once more where a side diverges.
func (r *run) recheck(src analyze.Rewinder, o analyze.Options, s *analyze.Session) error {
	c, err := r.newRecheck(s)
	if err != nil || c == nil {
		return err
	}
	if err := src.Rewind(); err != nil {
		return err
	}
	o.Sink, o.Split, o.Detached, o.Gone = c.record, nil, true, nil
	if _, err := analyze.Run(src, o); err != nil && !partial(err) {
		return err
	}
	return c.settle()
}

func partial(err error) bool {
	var cut *capture.CutError
	return errors.As(err, &cut)
}

// run is a replay at work.
type run struct {
	options  *Options
	analysis analyze.Options
	file     *File
	parts    []*part             // by group of flows
	flows    map[int]*comparison // of all parts, at the end, by the flow's number
}

// part has the comparisons of a group of flows. Goroutines of the analysis feed one each.
type part struct {
	run    *run
	flows  map[int]*comparison      // by the flow's number
	recent [recentFlows]*comparison // some of them, by the flow's number mod len
	kept   int                      // flows that ended early, whose comparisons are kept
	letGo  int                      // flows that ended early
	copies copiesAtTap
	err    error
}

// split returns the sink of a further group of flows.
func (r *run) split() analyze.Sink {
	p := &part{run: r, flows: map[int]*comparison{}}
	r.parts = append(r.parts, p)
	return p.record
}

// recentFlows is for how many flows a record does without a look into the map.
// Source: bound, the flows in a cache
const recentFlows = 128

// comparison is the judges of one flow. Judge k compares each side with the side's k-th behaviour.
type comparison struct {
	flow       *analyze.Flow
	gone       bool // the flow ended early
	judges     []machine.Judge
	behaviours [2][]string
	open       [2]int                // how many of a side's behaviours its packets suggest equally
	opinions   []*[2]machine.Opinion // by judge: what replaces the judge's own; nil for nothing
}

// pair returns the behaviours of a judge.
func (t *comparison) pair(k int) (b [2]string) {
	for s, names := range t.behaviours {
		b[s] = names[min(k, len(names)-1)]
	}
	return b
}

// opinion returns what is found of a side under the behaviours of a judge.
func (t *comparison) opinion(k int, s machine.Side) *machine.Opinion {
	if o := t.opinions[k]; o != nil {
		return &o[s]
	}
	return t.judges[k].Opinion(s)
}

func (t *comparison) finish() {
	for k := range t.judges {
		t.judges[k].Finish()
	}
	t.opinions = make([]*[2]machine.Opinion, len(t.judges))
}

// record takes the next record of the analysis.
func (p *part) record(rec *analyze.Record) {
	f := rec.Flow
	if p.err != nil || !judged(rec) || p.copies.isCopy(rec) {
		return
	}
	t := p.recent[f.ID%recentFlows]
	if t == nil || t.flow != f {
		if t = p.flows[f.ID]; t == nil {
			if t, p.err = p.run.compare(f); p.err != nil {
				return
			}
			t.flow = f
			p.flows[f.ID] = t
		}
		p.recent[f.ID%recentFlows] = t
	}
	for i := range t.judges {
		t.judges[i].Observe(&rec.Datagram)
	}
}

// letGoMost bounds the flows that ended early whose divergences are told.
const letGoMost = 1000

// gone ends the comparison of a flow that ended early for want of memory. It is kept where a
// side diverges.
func (r *run) gone(f *analyze.Flow, why analyze.Reason) {
	if told := r.options.Analysis.Gone; told != nil {
		told(f, why)
	}
	r.parts[f.Group()].gone(f)
}

func (p *part) gone(f *analyze.Flow) {
	p.copies.forget(f)
	if f.Protocol != nil {
		p.letGo++
	}
	t := p.flows[f.ID]
	if t == nil {
		return
	}
	t.finish()
	t.gone = true
	if p.recent[f.ID%recentFlows] == t {
		p.recent[f.ID%recentFlows] = nil
	}
	diverges := slices.ContainsFunc(t.judges, func(j machine.Judge) bool {
		return j.Opinion(machine.A).Divergence != nil || j.Opinion(machine.B).Divergence != nil
	})
	if !diverges || p.kept == letGoMost {
		delete(p.flows, f.ID)
		return
	}
	p.kept++
}

// judged reports whether a record is of a datagram, or message, that judges observe.
func judged(rec *analyze.Record) bool {
	switch {
	case rec.Flow == nil || rec.Flow.Protocol == nil || rec.Packet == nil && !held(rec):
		return false
	case rec.Packet != nil && (rec.Packet.Duplicate || rec.Packet.Transport == capture.TCP && !rec.Message):
		return false
	}
	return true
}

// held reports whether a record without a packet is of a datagram that was held back. Other such
// records tell what was settled at the end of a flow.
func held(rec *analyze.Record) bool { return len(rec.Datagram.Bytes) > 0 }

// compare makes the judges of a flow.
func (r *run) compare(f *analyze.Flow) (*comparison, error) {
	t := &comparison{}
	p, c := f.Protocol, f.Config()
	if p.NewJudge == nil || c == nil {
		return t, nil
	}
	most := 0
	for s := range t.behaviours {
		names, open := p.BehavioursOf(c, machine.Side(s))
		if len(names) == 0 {
			return t, nil
		}
		asked := r.options.Behaviour
		if asked == "" && r.options.Known != nil {
			asked = r.options.Known(f.ID, machine.Side(s))
		}
		if asked != "" && slices.ContainsFunc(p.Behaviours, func(b machine.Behaviour) bool { return b.Name == asked }) {
			names = append([]string{asked}, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == asked })...)
			open = 1
		}
		if !r.options.Matrix {
			names = names[:open]
		}
		t.behaviours[s], t.open[s] = names, open
		most = max(most, len(names))
	}
	for k := range most {
		j, err := p.NewJudge(c, t.pair(k))
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		t.judges = append(t.judges, j)
	}
	return t, nil
}

// expected returns which behaviour of a side counts as its own: the first open one that nothing
// contradicts.
func (t *comparison) expected(s machine.Side) int {
	for k := range t.open[s] {
		if t.opinion(k, s).Divergence == nil {
			return k
		}
	}
	return 0
}

// collect gathers the results at the end.
func (r *run) collect(s *analyze.Session) {
	flows := slices.Clone(s.Flows())
	for _, t := range r.flows {
		if t.gone {
			flows = append(flows, t.flow)
		}
	}
	slices.SortFunc(flows, func(x, y *analyze.Flow) int { return x.ID - y.ID })
	for _, f := range flows {
		if f.Protocol == nil {
			continue
		}
		t := r.flows[f.ID]
		if t == nil || len(t.judges) == 0 {
			r.file.Skipped = append(r.file.Skipped,
				Skipped{f, "no reference covers its packets: dialect " + f.Config().Dialect})
			continue
		}
		if t.judges[0].Opinion(machine.A).Compared+t.judges[0].Opinion(machine.B).Compared == 0 {
			r.file.Skipped = append(r.file.Skipped, Skipped{f, "none of its packets could be read and compared with a " +
				"reference"})
			continue
		}
		for _, side := range []machine.Side{machine.A, machine.B} {
			own := t.expected(side)
			for k, name := range t.behaviours[side] {
				if k == own || r.options.Matrix {
					r.file.Results = append(r.file.Results, Result{
						File: r.file.Name, Flow: f, Side: side, Behaviour: name, Expected: k == own, Opinion: *t.opinion(k, side),
						counted: s.Counted(),
					})
				}
			}
		}
	}
}
