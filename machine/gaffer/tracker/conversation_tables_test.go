package tracker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// queues is what an endpoint itself says of its messages after it sent a packet.
type queues struct {
	waiting string // "id×sends" of the messages that wait for an ack and were sent
	next    int64  // the id that it delivers next
	held    string // ids that it holds behind that
}

// queuesOf reads an endpoint's own view.
func queuesOf(e *endpoint.Endpoint) (q queues) {
	var v machine.View
	e.Inspect(&v)
	for _, row := range v.Tables[0].Rows {
		if row[2] != "0" {
			q.waiting += row[0] + "×" + row[2] + " "
		}
	}
	for _, w := range v.Windows {
		if w.Name != "messages received" {
			continue
		}
		q.next = w.First
		for i, cell := range w.Cells {
			if cell == machine.CellReceived {
				q.held += fmt.Sprint(w.First+int64(i), " ")
			}
		}
	}
	return q
}

// tableOf returns a table of a view by its name.
func tableOf(v *machine.View, name string) (t machine.Table) {
	for i := range v.Tables {
		if v.Tables[i].Name == name {
			return v.Tables[i]
		}
	}
	return t
}

// TestMessageTablesAgainstTruth compares the tables of a near side with the queues of
// its endpoint after each packet that it sent.
func TestMessageTablesAgainstTruth(t *testing.T) {
	forms := map[wire.MessageForm]int{}
	waited, held := 0, 0
	for seed := range uint64(gaffertest.Seeds(40, 12)) {
		truth := map[int64]queues{} // by the sequence of the packet
		c := converseWatched(t, seed, 0, nil, func(step *sim.Step) {
			for _, e := range step.Out.Events {
				if e.Kind == machine.EventSent && step.Host.Index == 0 {
					truth[e.Sequence64] = queuesOf(step.Host.Endpoint().(*endpoint.Endpoint))
				}
			}
		})
		facts := machine.Facts{Vantage: machine.VantageA, VantageReason: "told"}
		tr := tracker.NewConversation(c.profile, facts)
		var out machine.Effects
		var v machine.View
		for i := range c.seen {
			d := c.seen[i]
			tr.Observe(&d, &out)
			out.Reset()
			var p wire.Packet
			if d.From != machine.A || c.profile.Parse(d.Bytes, len(d.Bytes), &p) != nil || p.Kind != wire.KindRegular {
				continue
			}
			want, ok := truth[int64(p.Sequence)] // no run has so many packets that sequences wrap
			if !ok {
				t.Fatalf("seed %d: no truth of packet %d", seed, p.Sequence)
			}
			v.Reset()
			tr.Inspect(machine.A, &v)
			got := queues{next: want.next}
			for _, row := range tableOf(&v, "send queue").Rows {
				if row[0] == "…" {
					got.waiting = want.waiting // more messages than the table shows
					break
				}
				if row[3] != "0" {
					got.waiting += row[0] + "×" + row[3] + " "
				}
			}
			cut := false
			for n, row := range tableOf(&v, "receive queue").Rows {
				if n == 0 {
					fmt.Sscan(row[0], &got.next)
				}
				cut = cut || row[0] == "…"
				if row[3] == "held" {
					got.held += row[0] + " "
				}
			}
			if cut {
				got.held = want.held
			}
			if got != want {
				t.Fatalf("seed %d, %s: packet %d of A: waiting %s, next %d, held %s; the endpoint has %s, %d, %s", seed,
					c.profile.Messages.Form, p.Sequence, got.waiting, got.next, got.held, want.waiting, want.next, want.held)
			}
			forms[c.profile.Messages.Form]++
			waited += strings.Count(got.waiting, " ")
			held += strings.Count(got.held, " ")
		}
	}
	t.Logf("packets by form %v, %d messages waiting, %d held", forms, waited, held)
	if len(forms) < 2 || waited < 1000 || held < 100 {
		t.Errorf("packets by form %v, %d messages waiting, %d held: too few to say anything", forms, waited, held)
	}
}
