package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/show"
)

// Messages collects the lives of messages, by flow, side and type. Its method
// Take is the sink of a session.
type Messages struct {
	byFlow map[int]*flowMessages
}

type flowMessages struct {
	types map[typeKey]*Type
	worst []Held // the longest waits first
}

type typeKey struct {
	side machine.Side
	mode machine.Mode
	name string
}

// Type is what happened to the messages of one type from one side.
type Type struct {
	Side      machine.Side
	Mode      machine.Mode
	Name      string
	Count     uint64
	Sends     uint64 // packets that carried them
	Delivered uint64
	Missed    uint64 // not delivered
	Unknown   uint64
	Arrival   Spread // from the first sending to the arrival, as estimated
	Most      Spread // the upper bound of the same
	Wait      Spread // complete while an earlier message was missing; only messages that waited
}

// Held is a message that had to wait for an earlier one.
type Held struct {
	Side    machine.Side
	Name    string
	ID      int64
	Frame   machine.Ref // carried it first
	Wait    time.Duration
	Arrival string // show.ArrivalText
	Blocker int64  // -1 if unknown
}

// Limits: types of a flow, and those of its messages that waited longest.
const (
	maxTypes = 256
	keepHeld = 10
)

// Forget drops a flow.
func (m *Messages) Forget(flow int) { delete(m.byFlow, flow) }

// Take adds the session's next record.
func (m *Messages) Take(r *analyze.Record) {
	for i := range r.Messages {
		m.message(r.Flow, &r.Messages[i])
	}
}

func (m *Messages) message(f *analyze.Flow, x *machine.Message) {
	flow := m.byFlow[f.ID]
	if flow == nil {
		if m.byFlow == nil {
			m.byFlow = map[int]*flowMessages{}
		}
		flow = &flowMessages{types: map[typeKey]*Type{}}
		m.byFlow[f.ID] = flow
	}
	key := typeKey{x.From, x.Mode, nameOf(f, x)}
	t := flow.types[key]
	if t == nil {
		if len(flow.types) >= maxTypes {
			key.name = "(further types)"
			t = flow.types[key]
		}
		if t == nil {
			t = &Type{Side: key.side, Mode: key.mode, Name: key.name}
			flow.types[key] = t
		}
	}
	t.Count++
	t.Sends += uint64(max(x.Attempts, 0))
	switch x.Delivered {
	case machine.Yes:
		t.Delivered++
		if _, most, _ := x.Latency(); most >= 0 {
			t.Arrival.Add(x.About())
			t.Most.Add(most)
		}
		if x.Wait > 0 {
			t.Wait.Add(x.Wait)
			flow.held(Held{
				Side: x.From, Name: key.name, ID: x.ID, Frame: x.Frames[0], Wait: x.Wait,
				Arrival: show.ArrivalText(x), Blocker: x.BlockedBy,
			})
		}
	case machine.No:
		t.Missed++
	default:
		t.Unknown++
	}
}

// nameOf returns the name of a message's type.
func nameOf(f *analyze.Flow, x *machine.Message) string {
	if x.Name != "" {
		return x.Name
	}
	if say := f.Protocol.Message; say != nil {
		if name, _ := say(f.Config(),
			&machine.Message{From: x.From, Type: x.Type, Untyped: x.Untyped, ID: x.ID, Mode: x.Mode, Bits: x.Bits}); name != "" {
			return name
		}
	}
	if x.Untyped {
		return x.TypeText()
	}
	return x.TypeText() + " (no schema)"
}

func (f *flowMessages) held(h Held) {
	if len(f.worst) == keepHeld && f.worst[keepHeld-1].Wait >= h.Wait {
		return
	}
	at, _ := slices.BinarySearchFunc(f.worst, h, func(x, y Held) int { return cmp.Compare(y.Wait, x.Wait) })
	f.worst = slices.Insert(f.worst, at, h)
	f.worst = f.worst[:min(len(f.worst), keepHeld)]
}

// Types returns the types of a flow, ordered by side and then by count.
func (m *Messages) Types(flow int) []*Type {
	f := m.byFlow[flow]
	if f == nil {
		return nil
	}
	var out []*Type
	for _, t := range f.types {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *Type) int {
		return cmp.Or(cmp.Compare(x.Side, y.Side), cmp.Compare(y.Count, x.Count), cmp.Compare(x.Name, y.Name),
			cmp.Compare(x.Mode, y.Mode))
	})
	return out
}

// Held returns the messages of a flow that waited longest.
func (m *Messages) Held(flow int) []Held {
	if f := m.byFlow[flow]; f != nil {
		return f.worst
	}
	return nil
}

// Spread is the distribution of durations. It is exact at both ends, and within
// 3 % between. Its memory does not depend on their number.
type Spread struct {
	N        uint64
	Min, Max time.Duration
	cells    []uint32
}

// octave is the number of cells for a doubling of the duration.
const octave = 32

// cell returns the cell of a duration. Cell 0 begins at a microsecond.
func cell(d time.Duration) int {
	us := float64(d) / 1e3
	if us < 1 {
		return 0
	}
	return 1 + int(math.Log2(us)*octave)
}

// Add adds a duration. A negative one counts as 0.
func (s *Spread) Add(d time.Duration) {
	d = max(d, 0)
	if s.N == 0 {
		s.Min, s.Max = d, d
	}
	s.N++
	s.Min, s.Max = min(s.Min, d), max(s.Max, d)
	i := cell(d)
	for len(s.cells) <= i {
		s.cells = append(s.cells, 0)
	}
	s.cells[i]++
}

// At returns the duration below which a share q of all durations lies.
func (s *Spread) At(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(s.N)))
	switch {
	case s.N == 0:
		return 0
	case rank <= 1:
		return s.Min
	case rank >= s.N:
		return s.Max
	}
	below := uint64(0)
	for i, n := range s.cells {
		if below += uint64(n); below >= rank {
			mid := time.Duration(scale.Float(math.Exp2((float64(i)-0.5)/octave) * 1e3))
			return min(max(mid, s.Min), s.Max)
		}
	}
	return s.Max
}
