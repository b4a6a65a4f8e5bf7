package tracker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// timeTally counts the bounds of messages at one place of the tap.
type timeTally struct {
	delivered, certain, inOrder int
	sent, sentCertain, sentHeld int
	estimates                   []time.Duration // how far their middle is off, for messages sent once, in frames
	widths                      []time.Duration
}

// checkTimes compares when a message was sent and arrived with the truth.
func (c *conversation) checkTimes(t *testing.T, who string, truth *spoken, m *machine.Message, tally *timeTally) {
	t.Helper()
	within := func(what string, s *machine.Span, at machine.Instant, never bool) {
		if s.From > s.To {
			t.Errorf("%s: %s between %v and %v, which is earlier", who, what, s.From, s.To)
		}
		if s.Certainty == machine.Certain && (at < s.From || at > s.To || never) {
			t.Errorf("%s: %s at %v, for certain between %v and %v", who, what, at, s.From, s.To)
		}
	}
	within("sent", &m.Sent, truth.sent, false)
	within("arrived", &m.Arrived, truth.arrived, truth.arrived == 0)
	within("arrived in order", &m.InOrder, truth.delivered, truth.delivered == 0)
	tally.sent++
	if m.Sent.Certainty == machine.Certain {
		tally.sentCertain++
	}
	if m.Sent.Known() && m.Sent.From <= truth.sent && truth.sent <= m.Sent.To {
		tally.sentHeld++
	}
	if m.Delivered != machine.Yes {
		return
	}
	tally.delivered++
	if m.Arrived.Certainty == machine.Certain {
		tally.certain++
		tally.widths = append(tally.widths, m.Arrived.Width())
	}
	if m.InOrder.Certainty == machine.Certain {
		tally.inOrder++
	}
	if e := &m.Estimate; m.Attempts == 1 && e.Known() {
		tally.estimates = append(tally.estimates, e.Middle().Sub(truth.arrived).Abs()*1000/c.soak.Frame)
	}
}

// holds checks what the bounds of all messages at a place of the tap come to.
func (n *timeTally) holds(t *testing.T, where string) {
	t.Helper()
	slices.Sort(n.estimates)
	slices.Sort(n.widths)
	t.Logf("%s: of %d delivered, %d have certain bounds, %d of their order; of %d sent, %d certain, %d held", where,
		n.delivered, n.certain, n.inOrder, n.sent, n.sentCertain, n.sentHeld)
	if n.certain < n.delivered*9/10 {
		t.Errorf("%s: of %d delivered messages, %d have certain bounds, expected 90%%", where, n.delivered, n.certain)
	}
	if len(n.widths) > 0 {
		t.Logf("%s: width %v median, %v most", where, n.widths[len(n.widths)/2], n.widths[len(n.widths)-1])
	}
	if len(n.estimates) > 0 {
		mid := n.estimates[len(n.estimates)/2]
		t.Logf("%s: estimates off by %d thousandths of a frame", where, mid)
		if mid > 1000 {
			t.Errorf("%s: the estimate is off by %d thousandths of a frame in the median, expected 1000 at most", where, mid)
		}
	}
}
