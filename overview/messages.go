package overview

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Messages sums up the lives of messages, by flow and side. Its method Take is the sink of a
// session. The zero value is empty.
type Messages struct {
	byFlow map[int]*[2]Lives
	flow   int       // the flow of the last message
	lives  *[2]Lives // of that flow
}

// Lives sums up the messages that one side sent.
type Lives struct {
	Count     uint64
	Delivered uint64
	Missed    uint64 // never delivered
	Resent    uint64 // sent more than once, in whole or in part
	Waited    uint64 // complete, and held by an earlier message that was missing
	Most      Life   // the one of which most was sent again
	Longest   Life   // the one that waited longest
	// Arrival has the times from the first sending to the arrival, as far as they are known.
	Arrival machine.Trips
}

// Life is one message that stands out.
type Life struct {
	ID       int64 // its own number; -1 if it has none
	Frame    machine.Ref
	Attempts int
	Parts    int // of a block; 0 for any other message
	Again    int // packets that carried what an earlier one had carried
	Wait     time.Duration
}

// Take adds the session's next record.
func (m *Messages) Take(r *analyze.Record) {
	for i := range r.Messages {
		m.add(r.Flow, &r.Messages[i])
	}
}

// Forget drops a flow.
func (m *Messages) Forget(flow int) {
	delete(m.byFlow, flow)
	m.flow, m.lives = 0, nil
}

// Of returns what a side of a flow sent.
func (m *Messages) Of(flow int, s machine.Side) Lives {
	if m == nil || m.byFlow[flow] == nil {
		return Lives{}
	}
	return m.byFlow[flow][s]
}

func (m *Messages) add(f *analyze.Flow, x *machine.Message) {
	if m.lives == nil || m.flow != f.ID {
		m.flow, m.lives = f.ID, m.byFlow[f.ID]
	}
	if m.lives == nil {
		if m.byFlow == nil {
			m.byFlow = map[int]*[2]Lives{}
		}
		m.lives = &[2]Lives{}
		m.byFlow[f.ID] = m.lives
	}
	l := &m.lives[x.From]
	life := Life{ID: x.ID, Frame: x.Frames[0], Attempts: x.Attempts, Parts: x.Parts, Again: x.Again(), Wait: x.Wait}
	l.Count++
	if life.Again > 0 {
		l.Resent++
		if life.Again > l.Most.Again {
			l.Most = life
		}
	}
	switch x.Delivered {
	case machine.Yes:
		l.Delivered++
	case machine.No:
		l.Missed++
	default:
	}
	if x.Wait > 0 {
		l.Waited++
		if x.Wait > l.Longest.Wait {
			l.Longest = life
		}
	}
	if about := x.About(); about >= 0 {
		l.Arrival.Add(about)
	}
}
