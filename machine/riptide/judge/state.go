package judge

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// state draws what the reference knows when a message diverges.
func (s *judged) state(p *observed) string {
	last, acks := s.acks.receiver.Ack()
	text := fmt.Sprintf("received %s; next reliable %d, next notify %d", window(last, uint64(acks), riptide.WindowAcks),
		s.sends.next, s.notes.next)
	if open := s.acks.open(); len(open) > 0 {
		text += fmt.Sprintf("; to answer: message %d", open[0].sequence)
		if n := len(open) - 1; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
	}
	if c := &s.session; c.own.pinged {
		text += fmt.Sprintf("; heartbeat %d", c.own.ping)
	}
	if !p.m.Type.Reliable() {
		return text
	}
	if e := s.sends.at(p.m.Sequence); e != nil {
		text += fmt.Sprintf("; message %d: %d sent, the last in frame %d", e.id, e.attempts, e.last.Frame())
		if e.clearedAt != 0 {
			text += fmt.Sprintf(", acked by frame %d", e.clearedBy.Frame())
		}
	}
	return text
}

// told draws a message as its header says it.
func told(m *wire.Message) string {
	parts := []string{m.Type.String()}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch t := m.Type; {
	case t == wire.Ack || t == wire.AckExtra:
		add("received %s", window(m.Last, uint64(m.AckBits), riptide.WindowAcks))
		if !m.Unnamed {
			add("answers %d", m.Cause)
		}
	case m.Bare:
		add("id %d", m.MessageID)
	case t == wire.Notify:
		add("sequence %d", m.Sequence)
		add("received %s", window(m.Last, uint64(m.AckBits), 8))
	case t.Reliable():
		add("sequence %d", m.Sequence)
		if t == wire.Reliable {
			add("id %d", m.MessageID)
		} else {
			add("client %d", m.ClientID)
		}
	case t == wire.Heartbeat:
		add("ping %d", m.Ping)
		if m.HasRTT {
			add("RTT %d ms", m.RTT)
		}
	case m.HasReason:
		add("reason %d", m.Reason)
	}
	return strings.Join(parts, ", ")
}
