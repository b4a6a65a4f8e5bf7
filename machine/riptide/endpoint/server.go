package endpoint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// roster holds the clients in the order of the library's dictionary. There a new client takes the
// place that was freed last.
type roster struct {
	slots []seat
	free  []int
	count int
}

type seat struct {
	peer machine.Peer
	used bool
}

func (r *roster) add(p machine.Peer) {
	r.count++
	if n := len(r.free); n > 0 {
		r.slots[r.free[n-1]] = seat{p, true}
		r.free = r.free[:n-1]
		return
	}
	r.slots = append(r.slots, seat{p, true})
}

// remove removes a client. It reports whether it was there.
func (r *roster) remove(p machine.Peer) bool {
	for i, s := range r.slots {
		if s.used && s.peer == p {
			r.slots[i].used = false
			r.free = append(r.free, i)
			r.count--
			return true
		}
	}
	return false
}

func (r *roster) clone() roster {
	return roster{slots: slices.Clone(r.slots), free: slices.Clone(r.free), count: r.count}
}

// lobby holds who is connected to a server, and who waits for a decision.
//
//   - count ≤ Slots, and count+len(ids) = Slots while the server runs
//   - no peer is in both clients and pending
type lobby struct {
	stopped bool
	clients roster
	pending []machine.Peer // the application has not decided
	ids     []uint16       // free ids, in the order in which clients get them
	barred  map[machine.Peer]bool
}

func (l *lobby) clone() lobby {
	return lobby{l.stopped, l.clients.clone(), slices.Clone(l.pending), slices.Clone(l.ids), maps.Clone(l.barred)}
}

// serve starts the server.
func (e *Endpoint) serve() {
	e.begin()
	e.lobby.ids = e.lobby.ids[:0]
	for id := 1; id <= e.options.Slots; id++ {
		e.lobby.ids = append(e.lobby.ids, uint16(id))
	}
	e.schedule(riptide.HeartbeatInterval, timer{kind: timerHeartbeat})
}

func (e *Endpoint) commandServer(in machine.Command) error {
	l := e.links[in.Peer]
	switch in.Kind {
	case machine.Connect:
		if !e.running {
			e.lobby.stopped = false
			e.serve()
		}
	case machine.Accept, machine.Reject:
		i := slices.Index(e.lobby.pending, in.Peer)
		if i < 0 {
			return fmt.Errorf("%s: no connection of peer %d is pending", in.Kind, in.Peer)
		}
		e.lobby.pending = slices.Delete(e.lobby.pending, i, i+1)
		if in.Kind == machine.Accept {
			e.accept(l)
			return nil
		}
		reason := e.rejectReason(rejectPlain)
		if len(in.Payload) > 0 {
			reason = e.rejectReason(rejectCustom)
		}
		return e.reject(l, reason, in.Payload)
	case machine.Kick:
		if l == nil || !e.isClient(in.Peer) {
			return fmt.Errorf("kick: peer %d is not connected", in.Peer)
		}
		if err := e.internal(l, wire.Message{Type: wire.Disconnect, Reason: riptide.Kicked, HasReason: true},
			in.Payload); err != nil {
			return err
		}
		e.closeServer(l, riptide.Kicked)
	case machine.Stop:
		e.stop()
	default:
		return fmt.Errorf("step: command %s, expected one of a server: connect, accept, reject, kick or stop", in.Kind)
	}
	return nil
}

func (e *Endpoint) isClient(p machine.Peer) bool {
	return slices.Contains(e.lobby.clients.slots, seat{p, true})
}

// stop sends a Disconnect to all clients and stops the server.
func (e *Endpoint) stop() {
	for _, s := range e.lobby.clients.slots {
		if l := e.links[s.peer]; s.used && l != nil && e.build.StopReason != 0 {
			_ = e.internal(l, wire.Message{Type: wire.Disconnect, Reason: e.build.StopReason, HasReason: true}, nil)
			if e.options.Stream {
				e.out.Send(l.peer, machine.CloseStream, nil)
			}
		}
	}
	clear(e.links)
	clear(e.lobby.barred)
	e.lobby.clients, e.lobby.pending, e.lobby.stopped = roster{}, nil, true
	e.halt()
}

// Reject reasons, counted back from the dialect's custom one.
const (
	rejectPending = 3
	rejectFull    = 2
	rejectPlain   = 1
	rejectCustom  = 0
)

func (e *Endpoint) rejectReason(r uint8) uint8 {
	return e.codec.Dialect.CustomReason - r + e.options.Version.Reasons
}

// handleConnect processes a Connect.
func (e *Endpoint) handleConnect(l *link, data []byte) {
	e.setPending(l)
	v := e.options.Version
	switch {
	case !e.options.Ask:
		e.accept(l)
	case e.lobby.clients.count >= e.options.Slots:
		_ = e.reject(l, e.rejectReason(rejectFull), nil)
	default:
		e.lobby.pending = append(e.lobby.pending, l.peer)
		if v.Echoes {
			_ = e.internal(l, wire.Message{Type: wire.Connect}, nil)
		}
		e.connectionEvent(l, EventAttempted, 0, data)
	}
}

func (e *Endpoint) accept(l *link) {
	if e.lobby.clients.count >= e.options.Slots {
		_ = e.reject(l, e.rejectReason(rejectFull), nil)
		return
	}
	l.id, e.lobby.ids = e.lobby.ids[0], e.lobby.ids[1:]
	e.lobby.clients.add(l.peer)
	l.beats.heard = e.clock
	_ = e.sendReliable(l, riptide.ChannelInternal, &wire.Message{Type: wire.Welcome, ClientID: l.id}, nil, 0)
	if !e.options.Version.Answers {
		e.join(l)
	}
}

// join counts a connection as made, and announces it to the other clients.
func (e *Endpoint) join(l *link) {
	l.state, l.beats.heard = linkConnected, e.clock
	_ = e.broadcast(l.peer, riptide.ChannelInternal, wire.Message{Type: wire.ClientConnected, ClientID: l.id}, nil, 0)
	e.connectionEvent(l, riptide.EventConnected, l.id, nil)
}

func (e *Endpoint) reject(l *link, reason uint8, data []byte) error {
	for range e.build.RejectCopies {
		if err := e.internal(l, wire.Message{Type: wire.Reject, Reason: reason, HasReason: true}, data); err != nil {
			return err
		}
	}
	l.end()
	forgets := e.options.Version.Forgets
	switch {
	case e.options.Stream:
		if forgets == 0 {
			e.out.Send(l.peer, machine.CloseStream, nil)
			delete(e.links, l.peer)
		}
		return nil
	case forgets > 0:
		e.schedule(forgets, timer{kind: timerForget, peer: l.peer})
	}
	delete(e.links, l.peer)
	if forgets != 0 {
		e.lobby.barred[l.peer] = true
	}
	return nil
}

// checkTimeouts is the server's heartbeat. It sends nothing, and ends the connections of silent
// clients.
func (e *Endpoint) checkTimeouts() {
	var silent []*link
	for _, s := range e.lobby.clients.slots {
		if l := e.links[s.peer]; s.used && e.silent(l, riptide.Timeout.Milliseconds()) {
			silent = append(silent, l)
		}
	}
	if e.options.Version.PendingEnds {
		for _, p := range e.lobby.pending {
			if l := e.links[p]; e.silent(l, riptide.ConnectTimeout.Milliseconds()) {
				silent = append(silent, l)
			}
		}
	}
	for _, l := range silent {
		e.closeServer(l, riptide.TimedOutReason)
	}
	e.schedule(riptide.HeartbeatInterval, timer{kind: timerHeartbeat})
}

// handleServer processes a message for the server's library.
func (e *Endpoint) handleServer(l *link, m *wire.Message) {
	v := e.options.Version
	switch m.Type {
	case wire.Heartbeat:
		if l.state != linkConnected && !v.AnswersEarly || !m.HasRTT {
			return
		}
		if !e.options.Fault.ignoresPings {
			_ = e.internal(l,
				wire.Message{Type: wire.Heartbeat, Ping: m.Ping, RTT: int16(l.beats.rtt), HasRTT: e.codec.Dialect.RTTBothWays}, nil)
		}
		if m.RTT >= 0 {
			l.beats.sample(int(m.RTT))
		}
		l.beats.heard = e.clock
	case wire.Disconnect:
		e.closeServer(l, riptide.Disconnected)
	case wire.Welcome:
		if l.state == linkPending && e.isClient(l.peer) && v.Answers {
			e.join(l)
		}
	}
}

// closeServer ends a client's connection without a message to it.
func (e *Endpoint) closeServer(l *link, reason uint8) {
	if l.state == linkClosed {
		return
	}
	delete(e.links, l.peer)
	if e.options.Stream {
		e.out.Send(l.peer, machine.CloseStream, nil)
	}
	if i := slices.Index(e.lobby.pending, l.peer); i >= 0 {
		e.lobby.pending = slices.Delete(e.lobby.pending, i, i+1)
	}
	if e.lobby.clients.remove(l.peer) {
		e.lobby.ids = append(e.lobby.ids, l.id)
	}
	stood := l.state == linkConnected
	l.end()
	if !stood {
		e.emit(l, machine.Event{Kind: riptide.EventFailed, Sequence: riptide.NoReason, RTT: -1})
		return
	}
	_ = e.broadcast(l.peer, riptide.ChannelInternal, wire.Message{Type: wire.ClientDisconnected, ClientID: l.id}, nil, 0)
	e.connectionEvent(l, EventEnded, uint16(reason), nil)
}
