package sim

import (
	"bytes"

	"github.com/ackscope/ackscope/machine"
)

// Truth is what the endpoints of a run really did, as they report it. Tests
// compare a capture of the run with it.
type Truth struct {
	Facts []Fact
}

// Fact is one event of one endpoint, with the details that truth files add.
type Fact struct {
	At    machine.Instant
	Host  *Host
	Event machine.Event

	Bytes     int    // of the payload, for sent and received; -1 for other events
	Datagrams int    // for sent: the number of datagrams
	Head      []byte // for sent: the first bytes of the first datagram, at most 32
	Length    int    // for sent: the length of the first datagram in bytes
}

const headBytes = 32

// Truth returns a record of what the endpoints do while the world runs.
func (w *World) Truth() *Truth {
	t := &Truth{}
	w.Watch(t.watch)
	return t
}

func (t *Truth) watch(s *Step) { t.Facts = s.Facts(t.Facts) }

// Facts appends the facts of the step's events.
func (s *Step) Facts(to []Fact) []Fact {
	for _, e := range s.Out.Events {
		f := Fact{At: s.At, Host: s.Host, Event: e, Bytes: -1}
		switch e.Kind {
		case machine.EventSent:
			if in, ok := s.In.(machine.Submit); ok {
				f.Bytes = len(in.Payload)
			}
			f.Datagrams = len(s.Out.Transmit)
			if f.Datagrams > 0 {
				head := s.Out.Transmit[0].Bytes
				f.Head, f.Length = bytes.Clone(head[:min(len(head), headBytes)]), len(head)
			}
		case machine.EventReceived:
			for _, d := range s.Out.Deliver {
				if d.ID == uint64(e.Sequence) && d.Channel == 0 {
					f.Bytes = len(d.Payload)
				}
			}
		}
		to = append(to, f)
	}
	return to
}

// Of returns the facts of one host and kind, in order.
func (t *Truth) Of(h *Host, kind machine.EventKind) (out []Fact) {
	for _, f := range t.Facts {
		if f.Host == h && f.Event.Kind == kind {
			out = append(out, f)
		}
	}
	return out
}
