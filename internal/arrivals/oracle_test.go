package arrivals

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	latency   []time.Duration // how far their estimated time on the way lies from that by the logs
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
		if about := a.About(); a.sent != 0 && about >= 0 {
			r.latency = append(r.latency, (about - a.logged.Sub(a.sent)).Abs())
		}
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

// holdsTrip checks that the bounds are a round trip and a frame wide, in the median.
func (r *row) holdsTrip(t *testing.T, frame time.Duration) {
	t.Helper()
	if wide, trip := quantile(r.widths, 0.5), quantile(r.trips, 0.5); wide > trip+frame {
		t.Errorf("bounds are %v wide in the median at the sender's tap, expected the round trip of %v", wide, trip)
	}
}

// holdsEstimate checks that the estimate is off by a frame at most, in the median.
func (r *row) holdsEstimate(t *testing.T, frame time.Duration) {
	t.Helper()
	if off := quantile(r.once, 0.5); off > frame {
		t.Errorf("the estimate is off by %v in the median, expected a frame of %v at most", off, frame)
	}
	if off := quantile(r.latency, 0.5); off > frame {
		t.Errorf("the latency is off by %v in the median, expected a frame of %v at most", off, frame)
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

// head is the first line of the tables.
const head = "messages                         delivered  proven  bounds, median      95 %  estimate off  latency off\n"

// String returns the row of the table.
func (r *row) String() string {
	ms := func(list []time.Duration, share float64) string {
		if len(list) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f ms", machine.Milliseconds(quantile(list, share)))
	}
	return fmt.Sprintf("  %-31s %8d %6.1f%% %15s %9s %13s %12s\n", r.name, r.delivered, 100*r.share(), ms(r.widths, 0.5),
		ms(r.widths, 0.95), ms(r.once, 0.5), ms(r.latency, 0.5))
}

// group is a library with its rows by their names.
type group struct {
	name string
	rows map[string]*row
}

// add counts an arrival in a row. The place of the tap is part of its name.
func (g *group) add(what string, a arrival, near bool, late time.Duration) {
	place := "its sender"
	if near {
		place = "its receiver"
	}
	name := fmt.Sprintf("%v, tap at %s", a.Mode, place)
	if g.rows[name] == nil {
		g.rows[name] = &row{name: name}
	}
	g.rows[name].add(what, a, late)
}

// holdGroups calls check for each row, and compares the table of all rows with docs/arrival.md.
func holdGroups(t *testing.T, name string, groups []group, check func(t *testing.T, r *row, of *group)) {
	t.Helper()
	table := []byte(head)
	for i := range groups {
		g := &groups[i]
		table = append(table, g.name+"\n"...)
		for _, name := range slices.Sorted(maps.Keys(g.rows)) {
			table = append(table, g.rows[name].String()...)
			t.Run(g.name+", "+name, func(t *testing.T) { check(t, g.rows[name], g) })
		}
	}
	page := filepath.Join(testenv.Module(t), "docs", "arrival.md")
	testenv.HoldTable(t, page, "make arrivals: "+name, table, os.Getenv("ACKSCOPE_ARRIVALS") == "update")
}

// messagesOf analyzes a capture and returns its flows, and the messages of each by its number.
func messagesOf(t testing.TB, path string, protocols ...*dissect.Protocol) (
	session *analyze.Session, messages map[int][]machine.Message,
) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	messages = map[int][]machine.Message{}
	session, err = analyze.RunTwice(in, analyze.Options{
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
