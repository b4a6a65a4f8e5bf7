package filter

import (
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Fate is what became of a packet, in the eyes of the side that sent it.
type Fate uint8

// The fates. Later copies of a message share the fate of the first. A copy is lost if a
// finding says so.
const (
	NoFate          Fate = iota // nothing is known: the packet has no number, or is a second copy on the path
	Pending                     // no header has named it yet, and one still can
	Acked                       // its sender read an ack of it
	Lost                        // no header can name it any more
	ReceivedUnacked             // it arrived, and was never acked
)

var fateWords = [...]string{"", "pending", "acked", "lost", "received-unacked"}

func (f Fate) String() string { return fateWords[f] }

// Fates lists the words of all fates.
func Fates() []string { return fateWords[1:] }

// Hindsight is what only later packets show about a packet: its fate, the messages that it
// carried, and events that were graded later. A run of its own gathers it:
//
//	h := filter.NewHindsight(needs, room)
//	o.Sink = h.Take                   // a run over the whole capture
//	reading.Hindsight = h             // a further run, or single frames
type Hindsight struct {
	fates    bool
	lives    bool
	moments  bool
	marks    [][]mark                      // by file and frame
	copies   map[machine.Ref][]machine.Ref // of a first copy: the frames of the later ones
	firsts   map[machine.Ref]machine.Ref   // of a later copy: the frame of the first
	messages []machine.Message
	carried  map[machine.Ref][]uint32        // indices of messages
	late     map[machine.Ref][]machine.Event // those that a later packet settled
	size     int
	room     int
}

// mark is what is known of one frame: a set of the bits below, and the grade of what decided
// the fate above them.
type mark uint8

const (
	markSent mark = 1 << iota
	markAcked
	markLost
	markArrived
	markCertainty // the lowest of two bits
)

// Rough sizes in bytes, with the entry of a map.
const (
	messageCost = 700
	carriedCost = 64
	eventCost   = 192
)

// NewHindsight returns an empty store for what a filter needs. It keeps within room bytes.
func NewHindsight(needs Needs, room int) *Hindsight {
	return &Hindsight{
		fates: needs&NeedFate != 0, lives: needs&NeedMessages != 0, moments: needs&NeedEvents != 0,
		copies: map[machine.Ref][]machine.Ref{}, firsts: map[machine.Ref]machine.Ref{}, carried: map[machine.Ref][]uint32{},
		late: map[machine.Ref][]machine.Event{}, room: room,
	}
}

// Full reports whether the room is used up. What is gathered then is not the whole.
func (h *Hindsight) Full() bool { return h.size > h.room }

// Take is a sink: it gathers from a record.
func (h *Hindsight) Take(r *analyze.Record) {
	if h.Full() {
		return
	}
	ended := r.Frame == nil && r.Datagram.Bytes == nil // the end of a flow, which is no packet
	for i := range r.Events {
		e := &r.Events[i]
		if h.fates {
			h.settle(e)
		}
		if h.moments && (e.Ref != r.Datagram.Ref || ended) {
			h.late[e.Ref] = append(h.late[e.Ref], *e)
			h.size += eventCost
		}
	}
	if h.fates {
		for i := range r.Anomalies {
			if a := &r.Anomalies[i]; a.Rule.Unacked {
				h.mark(a.Ref, markLost|markArrived, a.Certainty)
			} else if a.Rule.CopyLost {
				h.lost(a)
			}
		}
	}
	if h.lives {
		for i := range r.Messages {
			h.carry(&r.Messages[i])
		}
	}
}

// settle marks the frames that an event is about.
func (h *Hindsight) settle(e *machine.Event) {
	switch e.Kind {
	case machine.EventSent:
		h.mark(e.Ref, markSent, machine.Unknown)
	case machine.EventResent:
		if e.About != 0 && e.About != e.Ref {
			h.copies[e.About] = append(h.copies[e.About], e.Ref)
			h.firsts[e.Ref] = e.About
			h.size += 2 * carriedCost
			h.mark(e.Ref, markSent, machine.Unknown)
			if m := h.at(e.About); *m&(markAcked|markLost) != 0 {
				*h.at(e.Ref) = *m // it goes out again after its fate was known
			}
		}
	case machine.EventAcked:
		h.markAll(e.About, markAcked, e.Certainty)
	case machine.EventLost:
		h.markAll(e.About, markLost, e.Certainty)
	case machine.EventReceived, machine.EventStale, machine.EventRejected:
		h.mark(e.About, markArrived, e.Certainty)
	}
}

// lost marks the copy before one that was sent again since that copy was lost.
func (h *Hindsight) lost(a *machine.Anomaly) {
	if a.About == 0 {
		return
	}
	before := a.About
	for _, ref := range h.copies[a.About] {
		if ref == a.Ref {
			break
		}
		before = ref
	}
	if m := h.at(before); m != nil {
		*m = *m&^(markAcked|markArrived) | markLost
		h.grade(m, a.Certainty)
	}
}

// markAll marks all copies of what one frame carried.
func (h *Hindsight) markAll(ref machine.Ref, bit mark, c machine.Certainty) {
	if first, ok := h.firsts[ref]; ok {
		ref = first
	}
	h.mark(ref, bit, c)
	for _, more := range h.copies[ref] {
		if m := h.at(more); m != nil && *m&(markAcked|markLost) == 0 {
			h.mark(more, bit, c)
		}
	}
}

func (h *Hindsight) mark(ref machine.Ref, bit mark, c machine.Certainty) {
	m := h.at(ref)
	if m == nil {
		return
	}
	*m |= bit
	if c != machine.Unknown && (bit == markAcked || *m&markAcked == 0) {
		h.grade(m, c)
	}
}

func (h *Hindsight) grade(m *mark, c machine.Certainty) {
	*m = *m&(markCertainty-1) | mark(c)*markCertainty
}

// at returns the mark of a frame. It returns nil for no frame.
func (h *Hindsight) at(ref machine.Ref) *mark {
	if ref.Frame() == 0 {
		return nil
	}
	for len(h.marks) <= ref.File() {
		h.marks = append(h.marks, nil)
	}
	list := &h.marks[ref.File()]
	if n := int(ref.Frame()); n > len(*list) {
		had := cap(*list)
		*list = slices.Grow(*list, n-len(*list))[:n]
		h.size += cap(*list) - had
	}
	return &(*list)[ref.Frame()-1]
}

// carry keeps a message for the frames that carried it, without its bytes.
func (h *Hindsight) carry(m *machine.Message) {
	n := uint32(len(h.messages))
	h.messages = append(h.messages, *m)
	h.messages[n].Body, h.messages[n].Data = nil, nil
	h.size += messageCost
	last := machine.Ref(0)
	for _, ref := range m.Frames[:min(m.Attempts, machine.MessageFrames)] {
		if ref != 0 && ref != last {
			h.carried[ref] = append(h.carried[ref], n)
			h.size += carriedCost
		}
		last = ref
	}
}

// Fate returns what became of the packet in a frame, and how surely.
func (h *Hindsight) Fate(ref machine.Ref) (Fate, machine.Certainty) {
	if ref.File() >= len(h.marks) || ref.Frame() == 0 || int(ref.Frame()) > len(h.marks[ref.File()]) {
		return NoFate, machine.Unknown
	}
	m := h.marks[ref.File()][ref.Frame()-1]
	c := machine.Certainty(m / markCertainty)
	switch {
	case m&markSent == 0:
		return NoFate, machine.Unknown
	case m&markAcked != 0:
		return Acked, c
	case m&markLost != 0 && m&markArrived != 0:
		return ReceivedUnacked, c
	case m&markLost != 0:
		return Lost, c
	}
	return Pending, machine.Possible
}

// fill sets what a record knows by hindsight. The events of a packet become those that its
// own frame shows, whenever they were settled.
func (h *Hindsight) fill(x *Record) {
	x.Hindsight = h
	if h.lives {
		x.carried = x.carried[:0]
		for _, n := range h.carried[x.Datagram.Ref] {
			x.carried = append(x.carried, h.messages[n])
		}
		x.Messages = x.carried
	}
	if h.moments {
		x.moments = x.moments[:0]
		for i := range x.Events {
			if x.Events[i].Ref == x.Datagram.Ref {
				x.moments = append(x.moments, x.Events[i])
			}
		}
		x.moments = append(x.moments, h.late[x.Datagram.Ref]...)
		x.Events = x.moments
	}
}
