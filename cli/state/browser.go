package state

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Browser goes to any packet of a capture without reading the capture again. It writes rows as
// `packets --json` and states as `state --json` do. The bytes of packets stay in the file.
type Browser struct {
	travel *Travel
	app    *app.App
	ended  error
	walks  map[int]*analyze.Walk // the last walk of a flow, by the flow's number
	ways   map[int]time.Duration // how long packets of a flow travel; none where it is not known
}

// Browse reads one capture. The error is a failure. The caller closes the browser.
func Browse(a *app.App, args []string) (*Browser, error) {
	from, err := reader.One(a, args, "a page")
	if err != nil {
		return nil, err
	}
	t, err := (&Travel{from: from, odd: map[machine.Ref][]machine.Anomaly{}}).read(a, nil)
	if t == nil {
		return nil, err
	}
	b := &Browser{travel: t, app: a, ended: err, walks: map[int]*analyze.Walk{}, ways: map[int]time.Duration{}}
	if err := a.Ended(err); err != nil {
		return nil, b.close(err)
	}
	return b, nil
}

// Close closes the capture.
func (b *Browser) Close() error { return b.travel.in.Close() }

func (b *Browser) close(err error) error {
	_ = b.Close() // the caller's error says more
	return err
}

// Len returns the number of frames.
func (b *Browser) Len() int { return b.travel.timeline.Len() }

// walkOn is how many entries a walk may lie behind the wanted one. Farther on, the next
// checkpoint is nearer.
// Source: bound, eight times the least distance of two checkpoints of a flow (analyze.Timeline)
const walkOn = 2048

// fateWords are the fates in the words of the filter field "fate".
var fateWords = [...]string{
	analyze.FateOpen: "", analyze.FateAcked: filter.Acked.String(), analyze.FateLost: filter.Lost.String(),
}

// Rows writes one line for each entry: what became of its packet, when it left and arrived, and
// its rows as `packets --json` prints them. With details they have the decode tree and the bytes.
func (b *Browser) Rows(entries []int, details bool) error {
	in := b.travel.in
	reading := &filter.Reading{Start: in.Start, Previous: in.Start, FileName: in.In.FileName, Join: true}
	row := export.PacketRow{Reading: reading, Tree: details, Hex: details}
	if b.travel.from.Named() {
		row.File = b.travel.from.Name()
	}
	var o app.Object
	lines := export.NewRows(export.Packets, export.NewLines(&elements{&o}, &export.Packets.Schema))
	for _, n := range entries {
		if n < 0 || n >= b.Len() {
			return fmt.Errorf("entry %d: expected one of %d", n, b.Len())
		}
		e := b.travel.timeline.At(n)
		o.Begin()
		o.Int("entry", int64(n))
		o.Str("fate", fateWords[e.Marks.Fate()])
		o.Int("settled", int64(e.Settled))
		severity := ""
		if worst, ok := e.Marks.Severity(); ok {
			severity = worst.String()
		}
		o.Str("severity", severity)
		b.addWay(&o, n)
		o.Key("packets")
		o.Buf = append(o.Buf, '[')
		err := b.records(n, reading, func(r *analyze.Record) error {
			row.Source = r
			return lines.Add(&row)
		})
		if err != nil {
			return err
		}
		o.Buf = append(o.Buf, ']')
		if err := o.End(b.app.Writer()); err != nil {
			return err
		}
	}
	return nil
}

// addWay adds when a packet left its side and when it reached the other, in ns after the tap had
// it. It adds nothing where the length of the way is not known.
func (b *Browser) addWay(o *app.Object, n int) {
	t := b.travel.timeline
	f := b.travel.Session.Flow(t.FlowID(n))
	if f == nil || f.Protocol == nil {
		return
	}
	oneWay, known := b.ways[f.ID]
	if !known {
		oneWay, known = graph.OneWay(f)
		if !known {
			return
		}
		b.ways[f.ID] = oneWay
	}
	a := graph.Arrow{From: t.At(n).Marks.From()}
	graph.Place(&a, f.Facts().Vantage, oneWay)
	o.Int("leaves_ns", int64(a.Leaves))
	o.Int("arrives_ns", int64(a.Arrives))
}

// elements appends each line that it receives to a list in an object.
type elements struct{ o *app.Object }

// Write implements io.Writer. p is one line.
func (e *elements) Write(p []byte) (int, error) {
	if last := e.o.Buf[len(e.o.Buf)-1]; last != '[' {
		e.o.Buf = append(e.o.Buf, ',')
	}
	e.o.Buf = append(e.o.Buf, p[:len(p)-1]...)
	return len(p), nil
}

// records passes the records of an entry's frame on, with all that the frame settled. On the way
// to it, reading takes the packets before it, so that it can join the parts of large ones.
func (b *Browser) records(n int, reading *filter.Reading, to func(*analyze.Record) error) error {
	t := b.travel.timeline
	f := b.travel.Session.Flow(t.FlowID(n))
	if f != nil && f.Protocol != nil && f.Protocol.NewTracker != nil && !t.At(n).Marks.Duplicate() {
		w, err := b.walk(f, n)
		if err != nil {
			return err
		}
		found := false
		for at, ok := w.Peek(); ok && at <= n; at, ok = w.Peek() {
			r := w.Next()
			if r == nil {
				break
			}
			if at == n {
				found = found || r.Frame != nil
				b.addOdd(r)
			}
			if reading.Take(r); at == n {
				if err := to(r); err != nil {
					return err
				}
			}
		}
		if err := w.Err(); err != nil || found {
			return err
		}
	}
	// It is of no flow that is followed, or the messages that it completed came in earlier segments.
	r, err := t.Read(n)
	if err != nil {
		return err
	}
	b.addOdd(r)
	reading.Take(r)
	return to(r)
}

// addOdd adds to a record what only a whole run finds.
func (b *Browser) addOdd(r *analyze.Record) {
	if odd := b.travel.odd[r.Datagram.Ref]; len(odd) > 0 && r.Frame != nil && !r.More {
		r.Anomalies = append(slices.Clone(r.Anomalies), odd...)
	}
}

// walk returns a walk of a flow that has not passed entry n: the last one if it is near.
func (b *Browser) walk(f *analyze.Flow, n int) (*analyze.Walk, error) {
	if w := b.walks[f.ID]; w != nil && w.Err() == nil && w.Passed() < n && n-w.Passed() < walkOn {
		return w, nil
	}
	w, err := b.travel.timeline.Walk(f, n)
	if err == nil {
		b.walks[f.ID] = w
	}
	return w, err
}

// State writes both sides of a flow as they were after an entry, as `state --json` does.
func (b *Browser) State(number, n int) error {
	t := b.travel
	f, err := t.Choose(number, nil)
	if err != nil {
		return err
	}
	ref := t.timeline.At(n).Ref
	r, err := t.timeline.Read(n)
	if err != nil {
		return err
	}
	t.moments = append(t.moments[:0], moment{ref: ref, at: r.Datagram.At})
	tracker, err := t.timeline.StateAt(f, ref)
	if err != nil {
		return err
	}
	sides := []machine.Side{machine.A, machine.B}
	var views [2]machine.View
	for _, side := range sides {
		tracker.Inspect(side, &views[side])
	}
	p := &statePrinter{app: b.app, travel: t, State: show.State{Flow: f, Sides: sides}}
	return p.json(ref, &views)
}

// Find returns the entry of a frame of the capture's first file.
func (b *Browser) Find(frame uint64) (int, bool) {
	return b.travel.timeline.Find(machine.MakeRef(0, frame))
}

// Entry returns the first entry that is not earlier than a time.
func (b *Browser) Entry(at machine.Instant) int {
	return min(sort.Search(b.Len(), func(n int) bool { return b.Time(n) >= at }), max(b.Len()-1, 0))
}

// Time returns when an entry's frame was captured, and 0 if it cannot be read again.
func (b *Browser) Time(n int) machine.Instant {
	r, err := b.travel.timeline.Read(n)
	if err != nil {
		return 0
	}
	return r.Datagram.At
}

// Beside returns the entry of a flow before entry n, or after it if way is positive. It returns
// false if there is none.
func (b *Browser) Beside(flow, n, way int) (int, bool) {
	t := b.travel.timeline
	if way < 0 && n > 0 && n < t.Len() && t.FlowID(n) == flow {
		return t.Previous(n)
	}
	for at := n + way; at >= 0 && at < t.Len(); at += way {
		if t.FlowID(at) == flow {
			return at, true
		}
	}
	return 0, false
}

// Flow returns the number of an entry's flow, or 0.
func (b *Browser) Flow(n int) int { return b.travel.timeline.FlowID(n) }
