package endpoint

import (
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

func (e *Endpoint) commandClient(in machine.Command) error {
	switch in.Kind {
	case machine.Connect:
		e.leave()
		e.halt()
		l := e.newLink(0)
		e.attempts, e.data = 0, slices.Clone(in.Payload)
		if e.options.Stream {
			e.out.Send(0, machine.OpenStream, nil)
			return nil
		}
		e.begin()
		l.beats.heard = 0
		e.beat()
	case machine.Disconnect:
		e.leave()
	default:
		return fmt.Errorf("step: command %s, expected one of a client: connect or disconnect", in.Kind)
	}
	return nil
}

// leave ends a connection that is made or requested.
func (e *Endpoint) leave() {
	l := e.links[0]
	if l == nil || l.state == linkClosed {
		return
	}
	if e.running {
		m := wire.Message{Type: wire.Disconnect}
		if e.codec.Dialect.ReasonBothWays {
			m.Reason, m.HasReason = riptide.Disconnected, true
		}
		_ = e.internal(l, m, nil)
	}
	e.closeClient(l, riptide.Disconnected, nil)
}

// beat is the client's timer. It sends a Connect or a ping, depending on the state.
func (e *Endpoint) beat() {
	l := e.links[0]
	switch l.state {
	case linkConnecting:
		if e.attempts >= e.options.Attempts {
			e.closeClient(l, riptide.NeverConnected, nil)
			return
		}
		e.attempts++
		if e.internal(l, wire.Message{Type: wire.Connect}, e.data) == nil {
			e.connectionEvent(l, riptide.EventConnect, uint16(e.attempts), nil)
		}
	case linkPending:
		if e.silent(l, riptide.ConnectTimeout.Milliseconds()) {
			e.closeClient(l, riptide.TimedOutReason, nil)
			return
		}
	case linkConnected:
		if e.silent(l, riptide.Timeout.Milliseconds()) {
			e.closeClient(l, riptide.TimedOutReason, nil)
			return
		}
		e.sendPing(l)
	}
	interval := riptide.HeartbeatInterval
	if f := e.options.Fault.interval; f != 0 && l.state == linkConnected {
		interval = f
	}
	e.schedule(interval, timer{kind: timerHeartbeat})
}

// silent reports whether a peer has been silent for longer than a limit in ms.
func (e *Endpoint) silent(l *link, limit int64) bool {
	return !e.options.Version.NoTimeout && !e.options.Fault.noTimeout && e.clock-l.beats.heard > limit
}

func (e *Endpoint) sendPing(l *link) {
	m := wire.Message{Type: wire.Heartbeat, Ping: l.beats.ping, RTT: int16(l.beats.rtt), HasRTT: true}
	l.beats.waiting, l.beats.pingAt = l.beats.ping, e.clock
	if e.build.PingStays {
		m.RTT = max(m.RTT, 0)
	} else {
		l.beats.ping++
	}
	if f := e.options.Fault.ping; f != nil {
		f(&m)
	}
	_ = e.internal(l, m, nil)
}

// handleClient processes a message for the client's library.
func (e *Endpoint) handleClient(l *link, m *wire.Message, data []byte) {
	switch m.Type {
	case wire.Connect:
		e.setPending(l)
	case wire.Reject:
		switch {
		case e.codec.Dialect.RejectReason(m.Reason) == "Pending" && e.options.Version.Reasons == 0:
			e.setPending(l)
		case l.state != linkConnected:
			e.connectionEvent(l, riptide.EventFailed, uint16(m.Reason), data)
			e.shut(l)
		}
	case wire.Heartbeat:
		if m.Ping == l.beats.waiting && l.state == linkConnected {
			l.beats.sample(int(max(1, e.clock-l.beats.pingAt)))
		}
		l.beats.heard = e.clock
	case wire.Disconnect:
		e.closeClient(l, m.Reason, data)
	case wire.Welcome:
		if l.state == linkConnected {
			return
		}
		l.id, l.state, l.beats.heard = m.ClientID, linkConnected, e.clock
		if e.options.Version.Answers {
			_ = e.sendReliable(l, riptide.ChannelInternal, &wire.Message{Type: wire.Welcome, ClientID: l.id}, nil, 0)
		}
		e.connectionEvent(l, riptide.EventConnected, l.id, nil)
	case wire.ClientConnected:
		e.connectionEvent(l, riptide.EventClientConnected, m.ClientID, nil)
	case wire.ClientDisconnected:
		e.connectionEvent(l, riptide.EventClientDisconnected, m.ClientID, nil)
	}
}

func (e *Endpoint) setPending(l *link) {
	if l.state == linkConnecting {
		l.state, l.beats.heard = linkPending, e.clock
	}
}

// closeClient ends the connection without a message to the other end.
func (e *Endpoint) closeClient(l *link, reason uint8, data []byte) {
	if l.state == linkClosed {
		return
	}
	if reason == riptide.NeverConnected {
		e.connectionEvent(l, riptide.EventFailed, 0, nil)
	} else {
		e.connectionEvent(l, EventEnded, uint16(reason), data)
	}
	e.shut(l)
}

// shut closes the client's transport.
func (e *Endpoint) shut(l *link) {
	l.end()
	if e.options.Stream {
		e.out.Send(0, machine.CloseStream, nil)
		l.stream.open = false
	}
	e.halt()
}

// end forgets what is pending.
func (l *link) end() {
	l.state = linkClosed
	l.out.forget()
}
