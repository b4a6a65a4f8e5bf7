package arrivals

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// arrival is a message that was delivered, and what the logs have of it.
type arrival struct {
	*machine.Message
	logged machine.Instant // when its receiver got it
	sent   machine.Instant // when its sender sent it; 0 if unknown
	trip   time.Duration   // the usual round trip of its flow, by the logs
}

// row sums up the arrivals of one library at one place of the tap.
type row struct {
	name      string
	delivered int
	certain   int             // of them, with certain bounds
	widths    []time.Duration // of these
	once      []time.Duration // how far the middle of the estimate lies from the log, for messages sent once
	late      []fault         // the log has them after their bounds
	wrong     []string        // a sentence for each bound that the log contradicts
	sent      int             // messages of far senders with certain bounds of their sending
	trips     []time.Duration // the usual round trip by the logs, of the flow of each of these
}

// fault is an arrival that the log has outside of its certain bounds.
type fault struct {
	by   time.Duration
	says string
}

// add counts an arrival. late is how long after the arrival the log usually has it.
func (r *row) add(what string, a arrival, late time.Duration) {
	r.delivered++
	if e := &a.Estimate; a.Attempts == 1 && e.Known() {
		r.once = append(r.once, e.Middle().Sub(a.logged).Abs())
	}
	if s := &a.Sent; a.sent != 0 && s.Certainty == machine.Certain && s.From < s.To {
		if r.sent++; a.sent < s.From || a.sent > s.To {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: frame %d, %v: sent %v after its lower bound, which is %v wide", what,
				a.Frames[0].Frame(), a.Mode, a.sent.Sub(s.From), s.Width()))
		}
	}
	s := &a.Arrived
	if s.Certainty != machine.Certain {
		return
	}
	r.certain++
	r.widths, r.trips = append(r.widths, s.Width()), append(r.trips, a.trip)
	says := fmt.Sprintf("%s: frame %d, %v: logged %v after its lower bound, which is %v wide", what, a.Frames[0].Frame(),
		a.Mode, a.logged.Sub(s.From), s.Width())
	if a.logged < s.From {
		r.wrong = append(r.wrong, says)
	} else if by := a.logged.Sub(s.To); by > late {
		r.late = append(r.late, fault{by, says})
	}
}

// holds reports each certain bound that the logs contradict. One arrival in 50 may be logged later
// than usual, by rare at most.
func (r *row) holds(t *testing.T, rare time.Duration) {
	t.Helper()
	for _, says := range r.wrong {
		t.Error(says)
	}
	for _, x := range r.late {
		if x.by > rare || len(r.late) > r.certain/50 {
			t.Error(x.says)
		}
	}
}

// share returns the share of messages with certain bounds, 0..1.
func (r *row) share() float64 { return float64(r.certain) / float64(max(1, r.delivered)) }

// quantile returns the element below which a share of the list lies. It sorts the list, and returns
// 0 for none.
func quantile(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(share*float64(len(list))))]
}

const head = "messages                       delivered  proven  bounds, median     95 %  estimate off by\n"

// String returns the row of the table.
func (r *row) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", machine.Milliseconds(d)) }
	off := "-"
	if len(r.once) > 0 {
		off = ms(quantile(r.once, 0.5))
	}
	return strings.TrimRight(fmt.Sprintf("%-30s %9d %6.1f%% %15s %8s %16s", r.name, r.delivered, 100*r.share(),
		ms(quantile(r.widths, 0.5)), ms(quantile(r.widths, 0.95)), off), " ") + "\n"
}

// messagesOf analyzes a capture and returns its flows, and the messages of each by its number.
func messagesOf(t testing.TB, path string, protocols ...*dissect.Protocol) (*analyze.Session, map[int][]machine.Message) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	messages := map[int][]machine.Message{}
	session, err := analyze.RunTwice(in, analyze.Options{
		Registry: dissect.NewRegistry(protocols...),
		Sink: func(r *analyze.Record) {
			if r.Flow == nil {
				return
			}
			for _, m := range r.Messages {
				m.Body, m.Data = nil, nil
				messages[r.Flow.ID] = append(messages[r.Flow.ID], m)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return session, messages
}
