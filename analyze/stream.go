package analyze

import (
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// framings returns the framings of all protocols in TCP streams.
func framings(r *dissect.Registry) (out []stream.Format) {
	for _, p := range r.Protocols() {
		for _, f := range p.Framings {
			out = append(out, stream.Format(f))
		}
	}
	return out
}

// speaks reports whether a protocol can be carried over a transport.
func speaks(p *dissect.Protocol, t capture.Transport) bool {
	return t == capture.UDP || len(p.Framings) > 0
}

// segment processes a TCP segment of f. Each message that it completes is a
// datagram of its own. The result is the flow of the segment: a new one if it
// opens another connection.
func (s *Session) segment(f *Flow, d *machine.Datagram, p *capture.Packet) *Flow {
	if f.conn == nil {
		if s.sink != nil {
			s.out.Reset()
			s.emit(f, d, p)
		}
		return f
	}
	f.conn.Feed(d.From, p, &s.stream.out)
	s.noteFraming(f, d)
	out := &s.stream.out
	emitted := false // the segment's own frame was passed to the sink
	for i := range out.Messages {
		if out.Restarted && i == out.Before {
			f = s.reconnect(f, d)
		}
		m := &out.Messages[i]
		s.stream.more = i+1 < len(out.Messages)
		if m.Ref == p.Ref {
			emitted = true
			f = s.message(f, m, p)
		} else {
			f = s.message(f, m, nil)
		}
	}
	s.stream.more = false
	if out.Restarted && out.Before == len(out.Messages) {
		f = s.reconnect(f, d)
	}
	if !emitted && s.sink != nil {
		s.out.Reset()
		s.emit(f, d, p)
	}
	return f
}

// datagramOf returns a message of a stream as its protocol's datagram.
func datagramOf(m *stream.Message) machine.Datagram {
	return machine.Datagram{
		At: m.At, Ref: m.Ref, From: m.From, Bytes: m.Bytes, Length: m.Length, Behind: m.Behind, Gaps: m.Gaps,
		Prefix: machine.Prefix{Bytes: uint8(m.Prefix), BigEndian: m.BigEndian},
	}
}

// message processes one message of a stream. p is the segment that completed
// it, or nil if an earlier segment did.
func (s *Session) message(f *Flow, m *stream.Message, p *capture.Packet) *Flow {
	d := &s.stream.datagram
	*d = datagramOf(m)
	s.stream.index, s.stream.spans = m.Index, m.Spans
	switch {
	case f.tracker != nil:
		f = s.observe(f, d, p)
	case f.pending != nil:
		s.hold(f, d)
	case s.sink != nil:
		s.out.Reset()
		s.emit(f, d, p)
	}
	s.stream.index, s.stream.spans = 0, nil
	return f
}

// finishStream emits what a connection still holds when it or the capture ends.
func (s *Session) finishStream(f *Flow) {
	if f.conn == nil {
		return
	}
	f.conn.Finish(&s.stream.out)
	f.conn = nil
	for i := range s.stream.out.Messages {
		f = s.message(f, &s.stream.out.Messages[i], nil)
	}
}

// reconnect starts a new flow for another connection on f's addresses. The
// reassembler has restarted by itself, and moves to the new flow.
func (s *Session) reconnect(f *Flow, d *machine.Datagram) *Flow {
	if f.pending != nil {
		f.pending.round = holdRounds
		s.decide(f, true)
	}
	if f.tracker != nil {
		s.end(f)
	}
	next := s.successor(f, d, true)
	next.conn, f.conn = f.conn, nil
	s.start(next)
	s.succeeded(f)
	return next
}
