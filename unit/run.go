package unit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/protocols"
)

const (
	// defaultMemory is the default of Options.Memory.
	// Source: definition, that of --memory for live captures
	defaultMemory = 512 << 20
	// rowsPart is the part of the memory, one in rowsPart, that the rows take.
	// Source: bound, the memory for the rows of a capture
	rowsPart = 4
	// firstPart is the part of the time, one in firstPart, that the first run may take. Two more runs
	// can follow, which take about as long.
	// Source: bound, the time of an analysis
	firstPart = 3
)

// run is one analysis.
type run struct {
	name      string
	inputs    []Input
	options   Options
	partition Partition
	began     time.Time
	waited    atomic.Int64 // nanoseconds in which the analysis waited for readers
	stopped   atomic.Bool  // ctx has ended
	result    *Result
	room      int // bytes that the rows may still take
}

func newRun(ctx context.Context, name string, inputs []Input, o Options) *run {
	if o.Registry == nil {
		o.Registry = protocols.Default()
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	r := &run{name: name, options: o, partition: MakePartition(o.Labels), began: time.Now()}
	for _, x := range inputs {
		x.Reader = r.patient(ctx, x.Reader)
		r.inputs = append(r.inputs, x)
	}
	return r
}

func (r *run) analyze(ctx context.Context) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { r.stopped.Store(true) })()
	r.begin()
	err := r.guarded(r.study)
	if ended := ctx.Err(); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, err
	}
	s := &r.result.Status
	s.Flows, s.Findings = uint64(len(r.result.Flows)), uint64(len(r.result.Findings))
	if s.State == OK && s.Bound != NoBound {
		s.State = Bounded
	}
	r.result.Aggregates.count(r.partition, s.State, 1)
	return r.result, nil
}

// begin makes the empty result.
func (r *run) begin() {
	r.result = &Result{
		Status:     Status{Capture: r.name, State: OK, Files: len(r.inputs)},
		Labels:     slices.Clone(r.options.Labels),
		Aggregates: &Aggregates{},
	}
	slices.SortStableFunc(r.result.Labels, func(x, y Label) int { return cmp.Compare(x.Name, y.Name) })
	for i := range r.inputs {
		if n := r.inputs[i].Size; n < 0 || r.result.Status.Bytes < 0 {
			r.result.Status.Bytes = -1
		} else {
			r.result.Status.Bytes += n
		}
	}
	r.room = int(r.options.Memory / rowsPart)
}

// guarded calls do, and turns a panic into a result without rows.
func (r *run) guarded(do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r.begin()
			s := &r.result.Status
			s.State = Panicked
			s.Error, s.Stack = describePanic(fmt.Sprint(fault), debug.Stack())
			err = nil
		}
	}()
	return do()
}

// study reads the capture for flows, and then for findings.
func (r *run) study() error {
	in, err := capture.OpenStored(r.inputs, capture.Options{})
	if err != nil {
		return r.ends(err)
	}
	defer in.Close()
	src := &source{Input: in, run: r, most: r.options.Packets, until: r.options.Time / firstPart}
	o := analyze.Options{
		Registry: r.options.Registry, DecodeAs: r.options.DecodeAs, Vantage: r.options.Vantage,
		Thresholds: r.options.Thresholds, Threads: r.options.Threads, Limits: analyze.FileLimits(r.options.Memory, 0),
	}
	learned, err := r.learn(src, o)
	if err != nil {
		return err
	}
	o.Survey = learned.Survey()
	return r.find(src, o)
}

// learn makes the rows of flows, as `ackscope flows` does. It returns what the next run starts with,
// as analyze.Learn does, and rewinds.
func (r *run) learn(src *source, o analyze.Options) (*analyze.Session, error) {
	rows := r.flowRows()
	o.Gone = rows.gone
	s, err := analyze.Run(src, o)
	if err := r.ends(err); err != nil {
		return nil, err
	}
	r.note(s, src)
	listed := s
	if s.Misread() {
		if err := src.Rewind(); err != nil {
			return nil, err
		}
		o.Survey = s.Survey()
		if len(s.Gone()) > 0 { // their rows stand already
			o.Gone = nil
		}
		if s, err = analyze.Run(src, o); r.ends(err) != nil {
			return nil, err
		}
		if o.Gone != nil {
			listed = s
		}
	}
	for _, f := range listed.Flows() {
		if rows.add(f, ""); r.stopped.Load() {
			return nil, context.Canceled
		}
	}
	r.result.Flows = rows.list
	return s, src.Rewind()
}

// note records what the first run read. The later ones read the same.
func (r *run) note(s *analyze.Session, src *source) {
	status := &r.result.Status
	status.Packets = s.Packets()
	if status.Packets > 0 {
		first, last := s.Span()
		begin, end := first.Time(), last.Time()
		status.First, status.Last = &begin, &end
	}
	if src.bound == BoundTime {
		src.most = src.frames
	}
	src.until = r.options.Time
}

// find makes the rows of findings, as `ackscope findings` does, and the aggregates.
func (r *run) find(src *source, o analyze.Options) error {
	rows, sums := r.findingRows(), r.summation()
	take := func(f *analyze.Flow) {
		rows.add(f)
		sums.add(f)
	}
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		r.endedEarly(why)
		take(f)
	}
	var delays []*delays
	if !r.options.NoDelays {
		o.NoEvents, o.Detached = true, true
		o.Split = func() analyze.Sink {
			d := r.delays()
			delays = append(delays, d)
			return d.take
		}
	}
	s, err := analyze.Run(src, o)
	if err := r.ends(err); err != nil {
		return err
	}
	r.result.Status.Studied = s.Packets()
	for _, f := range s.Flows() {
		if take(f); r.stopped.Load() {
			return context.Canceled
		}
	}
	for _, d := range delays {
		r.result.Aggregates.Merge(&d.sums)
	}
	r.result.Findings = rows.list
	return nil
}

// ends records how a run ended. It returns an error that is none of the capture.
func (r *run) ends(err error) error {
	var transport *capture.TransportError
	var unreadable *capture.FormatError
	var damaged *capture.DamageError
	var cut *capture.CutError
	s := &r.result.Status
	switch {
	case err == nil:
		return nil
	case errors.As(err, &transport):
		return err
	case errors.As(err, &damaged):
		s.State = Damaged
	case errors.As(err, &cut):
		s.State = Cut
	case errors.As(err, &unreadable):
		s.State = Unreadable
	default:
		return err
	}
	s.Error = err.Error()
	return nil
}

// endedEarly counts a flow that the bound of memory ended.
func (r *run) endedEarly(why analyze.Reason) {
	if why == analyze.ReasonFlows || why == analyze.ReasonBytes {
		r.result.Status.EndedEarly++
		r.reach(BoundMemory)
	}
}

// reach records that a bound was reached.
func (r *run) reach(b Bound) {
	rank := []Bound{NoBound, BoundMemory, BoundPackets, BoundTime}
	if s := &r.result.Status; slices.Index(rank, b) > slices.Index(rank, s.Bound) {
		s.Bound = b
	}
}

// fileOf returns the name of a frame's file.
func (r *run) fileOf(ref machine.Ref) string {
	if i := ref.File(); i < len(r.inputs) {
		return r.inputs[i].Name
	}
	return r.name
}
