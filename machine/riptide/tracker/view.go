package tracker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// inspect draws what side x knew after the last observed message.
func (t *follower) inspect(x machine.Side, v *machine.View) {
	s, peer := &t.sides[x], &t.sides[x.Other()]
	grade := machine.Likely
	if s.tap.near {
		grade = s.tap.grade()
	}
	if s.out.met {
		v.Windows = append(v.Windows, s.sentWindow(grade))
	}
	if s.in.known && peer.out.met {
		v.Windows = append(v.Windows, s.receivedWindow(peer, grade))
	}
	if s.notifyOut.met {
		v.Windows = append(v.Windows, t.notifySentWindow(s, grade))
	}
	if newest, ok := s.notifyNewest(peer); ok {
		v.Windows = append(v.Windows, t.notifyReceivedWindow(s, newest, grade))
	}
	if sample, smoothed, sure := t.rtt(x); smoothed >= 0 {
		v.Gauges = append(v.Gauges,
			machine.Gauge{Name: "RTT", Value: float64(sample), Unit: "ms", Grade: sure},
			machine.Gauge{Name: "smoothed RTT", Value: float64(smoothed), Unit: "ms", Grade: sure},
			machine.Gauge{
				Name: "resend after", Value: machine.Milliseconds(riptide.ResendAfter(smoothed)), Unit: "ms",
				Grade: sure,
			})
	}
	if tick := t.conn.clock.Tick(); tick > 0 && t.client == x {
		v.Gauges = append(v.Gauges,
			machine.Gauge{Name: "tick", Value: machine.Milliseconds(tick), Unit: "ms", Grade: machine.Likely})
	}
	if left, ok := t.margin(x); ok {
		v.Gauges = append(v.Gauges,
			machine.Gauge{Name: "until timeout", Value: machine.Milliseconds(left), Unit: "ms", Grade: grade})
	}
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "copies sent again", Value: float64(s.figures.resends), Unit: "messages", Grade: machine.Certain},
		machine.Gauge{Name: "duplicates refused", Value: float64(s.figures.duplicates), Unit: "messages", Grade: grade})
	if n := s.notifyOut.quality.Count; n > 0 {
		v.Gauges = append(v.Gauges,
			machine.Gauge{
				Name: "notify loss of the last 64", Value: 100 * float64(s.notifyOut.quality.Sum) / riptide.QualityRow,
				Unit: "%", Grade: grade,
			},
			machine.Gauge{
				Name: "outcomes beyond its limit", Value: float64(s.notifyOut.quality.Row), Unit: "in a row",
				Grade: grade,
			})
	}
	v.Tables = append(v.Tables, t.connectionTable(x))
	if s.out.met || peer.out.met {
		v.Tables = append(v.Tables, s.reliableTable(peer))
	}
	if differ := s.viewsTable(); len(differ.Rows) > 0 {
		v.Tables = append(v.Tables, differ)
	}
	if pending := t.pendingTable(s); len(pending.Rows) > 0 {
		v.Tables = append(v.Tables, pending)
	}
	if s.notifyOut.met || peer.notifyOut.met {
		v.Tables = append(v.Tables, s.notifyTable(peer))
	}
}

// sentWindow draws the newest reliable messages of s as its library has them.
func (s *side) sentWindow(grade machine.Certainty) machine.Window {
	w := machine.Window{
		Name: "reliable sent", First: max(0, s.out.top-riptide.ViewIDs+1), Next: s.out.top + 1,
		Grade: grade,
	}
	for id := w.First; id <= s.out.top; id++ {
		cell := machine.CellUnknown
		e := s.out.lives.find(id)
		switch {
		case e == nil:
		case e.sender.acked == machine.Yes || !s.tap.ordered && e.answers.named:
			cell = machine.CellAcked
		case e.sender.forgot:
			cell = machine.CellLost
		default:
			cell = machine.CellSent
		}
		w.Cells = append(w.Cells, cell)
		if e != nil {
			w.Slots = append(w.Slots, machine.Slot{
				Index: int(id & 0xffff), Sequence: e.sequence, Sequence64: id, Cell: cell, SentAt: e.copies.first,
				AckedAt: e.sender.at,
				Ref:     e.copies.frame, SettledBy: e.sender.by, Grade: grade,
			})
		}
	}
	return w
}

// receivedWindow draws the receiver's list. An id is drawn as claimed if the list has it but no
// copy of it ever passed.
func (s *side) receivedWindow(peer *side, grade machine.Certainty) machine.Window {
	newest := peer.out.unwrap(s.in.receiver.Last)
	w := machine.Window{Name: "reliable received", First: max(0, newest-riptide.ViewIDs+1), Next: newest, Grade: grade}
	for id := w.First; id <= newest; id++ {
		cell := machine.CellEmpty
		switch has, known := s.in.receiver.Received(uint16(id)); {
		case !known && (!has || s.in.unsure > 0):
			cell = machine.CellUnknown
		case has && peer.out.lives.find(id) == nil && id > peer.out.lives.newestEnded():
			cell = machine.CellClaimed
		case has:
			cell = machine.CellReceived
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}

// connectionTable returns the connection's state as side x had it.
func (t *follower) connectionTable(x machine.Side) machine.Table {
	c := &t.conn
	table := machine.Table{Name: "connection", Columns: []string{"what", "value"}}
	row := func(what, value string) { table.Rows = append(table.Rows, []string{what, value}) }
	role := "unknown"
	if t.roles {
		role = "server"
		if t.client == x {
			role = "client"
		}
	}
	row("role", role)
	row("behaviour", t.sides[x].behaviour.Name)
	row("state", t.state())
	if c.attempt.count > 0 {
		row("connect attempts", strconv.Itoa(c.attempt.count))
	}
	ago := func(at machine.Instant) string {
		return strconv.FormatFloat(machine.Milliseconds(t.last.Sub(at)), 'f', 1, 64) + " ms ago"
	}
	if c.attempt.pendingAt != 0 {
		row("told to wait", ago(c.attempt.pendingAt))
	}
	if c.welcome.at != 0 {
		row("client id", strconv.Itoa(int(c.welcome.client)))
		row("Welcome", ago(c.welcome.at))
		switch {
		case c.welcome.joinedAt != 0:
			row("Welcome answered", ago(c.welcome.joinedAt))
		case t.awaitsWelcome():
			row("Welcome answered", "outstanding")
		}
	}
	if c.pings > 0 {
		row("heartbeats", strconv.FormatUint(c.pings, 10)+", answered "+strconv.FormatUint(c.answers, 10)+", newest ping id "+
			strconv.Itoa(int(c.ping)))
	}
	if c.reported > 0 {
		row("RTT that the client reported last", (time.Duration(c.reported) * time.Millisecond).String())
	}
	for _, id := range c.clients {
		row("told of client", strconv.Itoa(int(id)))
	}
	if c.reasoned {
		d := t.config.Senders[c.goodbye.by].Codec.Dialect
		name := d.DisconnectReason(c.reason)
		if c.attempt.rejected {
			name = t.config.Senders[t.client.Other()].Codec.Dialect.RejectReason(c.reason)
		}
		row("reason", strconv.Itoa(int(c.reason))+" "+name)
	}
	return table
}

// state names the state of the connection.
func (t *follower) state() string {
	c := &t.conn
	switch {
	case c.goodbye.at != 0:
		return "ended by " + c.goodbye.by.String()
	case c.attempt.rejected:
		return "rejected"
	case c.welcome.joinedAt != 0 || c.welcome.at != 0 && !t.awaitsWelcome():
		return "connected"
	case c.welcome.at != 0:
		return "welcomed, the client's answer is outstanding"
	case c.attempt.pendingAt != 0:
		return "pending: the server's application decides"
	case c.attempt.count > 0:
		return "connecting"
	}
	return "connected before the capture began"
}

// awaitsWelcome reports whether a server waits for its client to answer the Welcome.
func (t *follower) awaitsWelcome() bool {
	server := t.client.Other()
	return !t.roles || !t.config.Senders[server].Codec.Dialect.WelcomeOneWay
}

// pendingTable lists the reliable messages that wait for an Ack.
func (t *follower) pendingTable(s *side) machine.Table {
	table := machine.Table{
		Name:    "pending",
		Columns: []string{"sequence", "copies", "sent ms ago", "last copy ms ago", "due in ms", "on the wire"},
	}
	after := riptide.ResendAfter(s.smoothed)
	for n := s.out.lives.first; n < s.out.lives.next && len(table.Rows) < riptide.ViewRows; n++ {
		e := s.out.lives.at(n)
		if e.sender.acked != machine.Unanswered || e.sender.forgot || !s.tap.ordered && e.answers.named {
			continue
		}
		named := "not acked"
		if e.answers.named {
			named = "acked"
		}
		table.Rows = append(table.Rows, []string{
			strconv.Itoa(int(e.sequence)), strconv.Itoa(int(e.copies.count)),
			strconv.FormatFloat(machine.Milliseconds(t.last.Sub(e.copies.first)), 'f', 1, 64),
			strconv.FormatFloat(machine.Milliseconds(t.last.Sub(e.copies.last)), 'f', 1, 64),
			strconv.FormatFloat(machine.Milliseconds(after-t.last.Sub(e.copies.last)), 'f', 1, 64), named,
		})
	}
	return table
}

// reliableTable returns the state of the reliable sequencer.
func (s *side) reliableTable(peer *side) machine.Table {
	table := machine.Table{Name: "reliable", Columns: []string{"what", "value"}}
	row := func(what, value string) { table.Rows = append(table.Rows, []string{what, value}) }
	if s.out.met {
		row("newest sent", strconv.Itoa(int(uint16(s.out.top))))
	}
	if peer.acks.heard {
		row("newest that Acks to it name", strconv.Itoa(int(uint16(peer.acks.last))))
	}
	if s.tap.ordered && s.out.known {
		row("newest acked, as its library has it", strconv.Itoa(int(s.out.sender.Last)))
	}
	if s.in.known && peer.out.met {
		last, bits := s.in.receiver.Ack()
		row("last received", strconv.Itoa(int(last)))
		row("bits of its Acks", fmt.Sprintf("0x%04x", bits))
		row("duplicate filter", s.in.receiver.FilterText())
	}
	return table
}

// viewsTable lists the messages of s about which two views differ: its library's, and the
// documented meaning of the Acks on the wire.
func (s *side) viewsTable() machine.Table {
	table := machine.Table{
		Name:    "acked in one view only",
		Columns: []string{"sequence", "on the wire", "in its library's eyes"},
	}
	if !s.tap.ordered {
		return table
	}
	for n := s.out.lives.first; n < s.out.lives.next && len(table.Rows) < riptide.ViewRows; n++ {
		switch e := s.out.lives.at(n); {
		case e.answers.named && e.sender.forgot:
			table.Rows = append(table.Rows, []string{strconv.Itoa(int(e.sequence)), "acked", "given up"})
		case e.answers.named && e.sender.acked != machine.Yes:
			table.Rows = append(table.Rows, []string{strconv.Itoa(int(e.sequence)), "acked", "pending"})
		case !e.answers.named && e.sender.acked == machine.Yes:
			table.Rows = append(table.Rows, []string{strconv.Itoa(int(e.sequence)), "not acked", "acked"})
		}
	}
	return table
}

// notifyTable returns the state of the notify sequencer.
func (s *side) notifyTable(peer *side) machine.Table {
	table := machine.Table{Name: "notify", Columns: []string{"what", "value"}}
	if s.notifyOut.met {
		table.Rows = append(table.Rows,
			[]string{"newest sent", strconv.Itoa(int(uint16(s.notifyOut.top)))},
			[]string{"newest acknowledged", strconv.Itoa(int(s.notifyOut.sender.Last))})
	}
	if peer.notifyOut.met && s.notifyIn.known {
		last, bits := s.notifyIn.receiver.Header()
		table.Rows = append(table.Rows, []string{"newest received", strconv.Itoa(int(last))},
			[]string{"bits", "0x" + strconv.FormatUint(uint64(bits), 16)})
	}
	return table
}
