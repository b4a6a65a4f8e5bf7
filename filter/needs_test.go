package filter_test

import (
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
)

// TestNeeds: a filter reports what it needs, and dissects a packet only for
// fields of the packet's own protocol.
func TestNeeds(t *testing.T) {
	table := testTable()
	for _, c := range []struct {
		filter string
		needs  filter.Needs
		decode bool
	}{
		{"", 0, false},
		{"udp.port == 7777 && ip.src == 10.0.0.5 && frame.len > 5", 0, false},
		{"toy", filter.NeedFlow, false},
		{"flow == 2", filter.NeedFlow, false},
		{"rel.acked", filter.NeedFlow | filter.NeedEvents, false},
		{"finding.rule == false-ack", filter.NeedFlow | filter.NeedFindings, false},
		{"flow.rtt > 80ms", filter.NeedFlow | filter.NeedState, false},
		{"toy.sequence > 5", filter.NeedFlow | filter.NeedFields, true},
		{"other.x == 5", filter.NeedFlow | filter.NeedFields, false},
		{"udp.port == 53 && toy.sequence > 5", filter.NeedFlow | filter.NeedFields, false},
		{"udp.port == 7777 && toy.sequence > 5 && toy.ack > 5", filter.NeedFlow | filter.NeedFields, true},
	} {
		f, err := table.Compile(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		if f.Needs().Live() != (c.needs&filter.NeedState != 0) {
			t.Errorf("%s: live is %v", c.filter, f.Needs().Live())
		}
		if f.Needs() != c.needs {
			t.Errorf("%s needs %b, expected %b", c.filter, f.Needs(), c.needs)
		}
		r := testRecord(t)
		decode, n := r.Decode, 0
		r.Decode = func(r *filter.Record) *dissect.Dissection { n++; return decode(r) }
		f.Match(r)
		if (n > 0) != c.decode || n > 1 {
			t.Errorf("%s: decoded %d times, expected %v", c.filter, n, c.decode)
		}
	}
}
