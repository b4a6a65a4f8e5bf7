package show

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestArrivalText: an estimate stands with its upper bound, bounds stand alone, and what is
// unknown is a question mark, never 0.
func TestArrivalText(t *testing.T) {
	at := func(ms float64) machine.Instant { return machine.Instant(0).Add(time.Duration(ms * 1e6)) }
	span := func(from, to float64) machine.Span {
		return machine.Span{From: at(from), To: at(to), Certainty: machine.Certain}
	}
	for _, c := range []struct {
		m    machine.Message
		want string
	}{
		{machine.Message{}, "?"},
		{machine.Message{At: at(5)}, "?"},
		{machine.Message{Sent: span(0, 0)}, "?"},
		{machine.Message{Arrived: span(20, 31)}, "?"},
		{machine.Message{Sent: span(0, 0), Arrived: span(20, 31)}, "20 to 31 ms"},
		{machine.Message{Sent: span(0, 0), Arrived: span(0, 31), Estimate: span(22, 26)}, "24 ms, at most 31"},
		{machine.Message{Sent: span(0, 10), Arrived: span(31, 32), Estimate: span(31, 32)}, "27 ms, at most 32"},
		{machine.Message{Sent: span(0, 0), Arrived: span(0, 310), Estimate: span(5, 300)}, "0 to 310 ms"},
		{machine.Message{Sent: span(0, 0), Arrived: span(3.41, 3.44)}, "3.4 ms"},
	} {
		if got := ArrivalText(&c.m); got != c.want {
			t.Errorf("%+v to %+v reads %q, expected %q", c.m.Sent, c.m.Arrived, got, c.want)
		}
	}
}
