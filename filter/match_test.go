package filter_test

import (
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMatch(t *testing.T) {
	table, r := testTable(), testRecord(t)
	for _, c := range matching {
		f, err := table.Compile(c.filter)
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		r.Reset()
		if got := f.Match(r); got != c.want {
			t.Errorf("%s: %v, expected %v", c.filter, got, c.want)
		}
		if f.String() != c.filter {
			t.Errorf("%q says that it is %q", c.filter, f.String())
		}
	}
	if len(matching) < 200 {
		t.Errorf("%d filters, expected at least 200", len(matching))
	}
}

func TestNoAllocations(t *testing.T) {
	if testenv.Race {
		t.Skip("regular expressions take their memory from a pool, which the race detector disturbs")
	}
	table, r := testTable(), testRecord(t)
	d := r.Decode(r)
	r.Decode = func(*filter.Record) *dissect.Dissection { return d }
	for _, c := range matching {
		f, err := table.Compile(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		f.Match(r)
		if n := testing.AllocsPerRun(50, func() { r.Reset(); f.Match(r) }); n != 0 {
			t.Errorf("%s: %v allocations", c.filter, n)
		}
	}
}

// TestFrameGone: a held datagram is listed when its frame is no longer
// available. Addresses, ports and payload are still known then, but headers are
// not.
func TestFrameGone(t *testing.T) {
	table, r := testTable(), testRecord(t)
	r.Frame, r.Packet = nil, nil
	for filter, want := range map[string]bool{
		"ip.addr == 10.0.0.5": true, "ip.src == 192.168.0.0/16": false, "ip.dst != 10.0.0.0/8": true,
		"ip.addr in {10.0.0.0/8}": true,
		"udp.port == 7777":        true, "udp.payload[0] == 01": true, "frame.number == 42": true,
		"toy.sequence == 902": true,
		"frame.len":           false, "ip.ttl": false, "eth.src": false, "frame": false, "ipv6.addr": false,
	} {
		f, err := table.Compile(filter)
		if err != nil {
			t.Fatal(err)
		}
		r.Reset()
		if got := f.Match(r); got != want {
			t.Errorf("%s: %v, expected %v", filter, got, want)
		}
	}
}
