package endpoint

import (
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
)

// Inspect draws the sent queue by retry time, the peers that are in use, and
// the figures.
func (e *Endpoint) Inspect(v *machine.View) {
	v.Reset()
	queue := machine.Table{
		Name:    "sent queue",
		Columns: []string{"id", "to", "copies", "of", "first ms", "retry ms", "timeout ms"},
	}
	e.queue.InOrder(func(s *srdp.Sent) bool {
		queue.Rows = append(queue.Rows, []string{
			strconv.Itoa(int(s.ID)), strconv.Itoa(int(s.Peer)), strconv.Itoa(int(s.Copies)), repeatsText(s.Repeats),
			ms(int64(s.FirstAt)), ms(int64(e.queue.RetryAt(s))), ms(int64(s.Timeout)),
		})
		return true
	})
	peers := machine.Table{
		Name:    "peers",
		Columns: []string{"peer", "address", "waiting", "recent ids", "longest delay ms", "timeout ms"},
	}
	for i := range e.peers {
		x := &e.peers[i]
		if !x.met && !x.named && x.delay < 0 {
			continue
		}
		row := []string{
			strconv.Itoa(i), "", strconv.Itoa(len(x.waiting)), strconv.Itoa(x.received.Len()), "",
			ms(int64(e.Timeout(machine.Peer(i)))),
		}
		if x.named {
			row[1] = x.address.String()
		}
		if x.delay >= 0 && e.delays[x.delay].Longest > 0 {
			row[4] = ms(int64(e.delays[x.delay].Longest))
		}
		peers.Rows = append(peers.Rows, row)
	}
	v.Tables = append(v.Tables, queue, peers)
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "outstanding", Value: float64(e.queue.Len()), Unit: "packets", Grade: machine.Certain})
	e.counts.inspect(v)
}

func (c *Counts) inspect(v *machine.View) {
	for _, g := range []struct {
		name  string
		value uint64
		unit  string
	}{
		{"packets", c.Packets, "packets"},
		{"resends", c.Resends, "copies"},
		{"acked", c.Acked, "packets"},
		{"gave_up", c.GaveUp, "packets"},
		{"received", c.Received, "copies"},
		{"duplicates", c.Duplicates, "copies"},
		{"acked_again", c.AckedAgain, "acks"},
		{"foreign", c.Foreign, "datagrams"},
		{"astray", c.Astray, "packets"},
	} {
		v.Gauges = append(v.Gauges,
			machine.Gauge{Name: g.name, Value: float64(g.value), Unit: g.unit, Grade: machine.Certain})
	}
}

func repeatsText(n uint8) string {
	if n == 0 {
		return "any"
	}
	return strconv.Itoa(int(n))
}

// ms formats nanoseconds as milliseconds.
func ms(ns int64) string { return strconv.FormatFloat(float64(ns)/1e6, 'f', 3, 64) }
