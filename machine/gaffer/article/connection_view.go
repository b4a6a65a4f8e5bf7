package article

import (
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// Inspect draws a side: its counts, what it takes part in, and its connections.
func (t *ConnectionTracker) Inspect(x machine.Side, v *machine.View) {
	s := &t.sides[x]
	gauge := func(name string, value float64, unit string) {
		v.Gauges = append(v.Gauges, machine.Gauge{Name: name, Value: value, Unit: unit, Grade: machine.Certain})
	}
	gauge("packets", float64(s.packets), "packets")
	gauge("bytes", float64(s.bytes), "bytes")
	c := t.newest()
	if c == nil {
		return
	}
	if c.asked && c.isMade {
		gauge("handshake", machine.Milliseconds(c.made.Sub(c.begun)), "ms")
	}
	if e := &c.ends[x]; e.heard {
		gauge("since it heard its peer", machine.Milliseconds(t.last.Sub(e.heardAt)), "ms")
	}
	if at, ok := c.givesUp(x); ok {
		v.Gauges = append(v.Gauges, machine.Gauge{
			Name: "until it gives up", Unit: "ms", Grade: machine.Likely,
			Value: machine.Milliseconds(max(0, at.Sub(t.last))),
		})
	}
	table := machine.Table{
		Name:    "connections, as " + s.role.String(),
		Columns: []string{"number", "client salt", "challenge salt", "state", "known", "frame", "perhaps by now"},
	}
	for n := max(1, t.count-connectionsKept+1); n <= t.count; n++ {
		if row := t.row(&t.kept[n%connectionsKept], x); row != nil {
			table.Rows = append(table.Rows, row)
		}
	}
	if s.denied != 0 {
		table.Rows = append(table.Rows,
			[]string{"", "", "", "no free slot", machine.Certain.String(), strconv.FormatUint(s.denied.Frame(), 10), ""})
	}
	v.Tables = append(v.Tables, table)
}

// row draws one connection of a side. It returns nil if the side has shown nothing of it.
func (t *ConnectionTracker) row(c *connection, x machine.Side) []string {
	e := &c.ends[x]
	salt := func(l *link) string {
		if l.state == linkNone || l.state == linkRequesting {
			return ""
		}
		return fmt.Sprintf("%016x", l.server)
	}
	row := func(state string, l *link, grade machine.Certainty, by machine.Ref, ahead string) []string {
		return []string{
			strconv.Itoa(c.number), fmt.Sprintf("%016x", c.client), salt(l), state, grade.String(),
			strconv.FormatUint(by.Frame(), 10), ahead,
		}
	}
	ahead := func(state string, by machine.Ref) string {
		return fmt.Sprintf("%s by frame %d (%s)", state, by.Frame(), t.aheadGrade(x))
	}
	switch {
	case e.over != machine.EventNone:
		return row(endWords[e.over], &e.shown, e.overGrade, e.overBy, "")
	case e.shown.state == linkNone && e.ahead.state == linkNone && e.leaving == machine.EventNone:
		if e.denied == 0 {
			return nil
		}
		return row("denied", &e.shown, machine.Certain, e.denied, "")
	case e.leaving != machine.EventNone:
		return row(e.shown.state.String(), &e.shown, machine.Certain, e.shownBy, ahead(endWords[e.leaving], e.leavingBy))
	case t.overdue(c, x):
		return row(e.shown.state.String(), &e.shown, machine.Certain, e.shownBy,
			fmt.Sprintf("%s (%s)", endWords[gaffer.EventTimedOut], machine.Likely))
	case e.ahead != e.shown:
		return row(e.shown.state.String(), &e.shown, machine.Certain, e.shownBy, ahead(e.ahead.state.String(), e.aheadBy))
	}
	return row(e.shown.state.String(), &e.shown, machine.Certain, e.shownBy, "")
}

// overdue reports whether a side's peer has been silent for as long as the side waits.
func (t *ConnectionTracker) overdue(c *connection, x machine.Side) bool {
	at, ok := c.givesUp(x)
	return ok && t.last >= at
}

// aheadGrade grades that a side has read all that passed towards it.
func (t *ConnectionTracker) aheadGrade(x machine.Side) machine.Certainty {
	if t.facts.Vantage.Near(x) {
		return machine.Likely
	}
	return machine.Possible
}

var endWords = map[machine.EventKind]string{
	gaffer.EventDisconnected: "ended", gaffer.EventRefused: "refused", gaffer.EventTimedOut: "timed out",
}
