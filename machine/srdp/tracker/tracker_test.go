package tracker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// story is a flow that a test writes by hand.
type story struct {
	profile wire.Profile
	flow    []machine.Datagram
}

func newStory() *story { return &story{profile: wire.Default()} }

func (s *story) raw(ms float64, side machine.Side, b []byte) {
	s.flow = append(s.flow, machine.Datagram{
		At: machine.Instant(ms * 1e6), Ref: machine.MakeRef(0, uint64(len(s.flow)+1)), From: side, Bytes: b, Length: len(b),
	})
}

func (s *story) data(ms float64, side machine.Side, id uint16, flags uint8, text string) {
	s.raw(ms, side, s.profile.Append(nil, &wire.Packet{Command: s.profile.DataCommand, ID: id, Flags: flags},
		[]byte(text)))
}

func (s *story) ack(ms float64, side machine.Side, ids ...uint16) {
	for _, id := range ids {
		s.raw(ms, side, s.profile.Append(nil, &wire.Packet{Command: s.profile.AckCommand, Ack: true, ID: id}, nil))
	}
}

// exchange is a packet and its acknowledgement.
func (s *story) exchange(ms, rtt float64, side machine.Side, id uint16, flags uint8) {
	s.data(ms, side, id, flags, fmt.Sprint("packet ", id))
	s.ack(ms+rtt, side.Other(), id)
}

// result is what a tracker reported of a story.
type result struct {
	observed
	tracker machine.Tracker
}

func (s *story) track(v machine.Vantage, rules srdp.Rules) *result {
	c := srdp.Config{Profile: s.profile, MaxPayload: s.profile.MaxPayload(), Rules: rules}
	var facts machine.Facts
	if v != machine.VantageUnknown {
		facts.Vantage, facts.VantageReason = v, "told"
	}
	slices.SortStableFunc(s.flow, func(a, b machine.Datagram) int { return int(a.At - b.At) })
	for i := range s.flow {
		s.flow[i].Ref = machine.MakeRef(0, uint64(i+1))
	}
	o := &result{observed: observed{seen: s.flow}}
	o.track(c, facts)
	o.tracker = o.observed.tracker
	return o
}

// findings lists each finding once: "rule side certainty", sorted.
func (o *result) findings() []string {
	var out []string
	for _, a := range o.anomalies {
		out = append(out, fmt.Sprintf("%s %v %v", strings.TrimPrefix(a.Rule.ID, "srdp-"), a.Side, a.Certainty))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const (
	a, b  = machine.A, machine.B
	once  = 1
	order = 2
	atA   = machine.VantageA
	atB   = machine.VantageB
)

// TestFindings checks that each rule is reported where it holds, and not where
// it almost holds.
func TestFindings(t *testing.T) {
	usual := srdp.DefaultRules()
	for _, c := range []struct {
		name  string
		rules srdp.Rules
		at    machine.Vantage
		make  func(s *story)
		want  []string
	}{
		{"ordered, two at a time", usual, atA, func(s *story) {
			for i := range 20 {
				s.exchange(float64(i)*30, 50, a, uint16(32760+i)&0x7fff, once|order)
			}
		}, []string{"order-passed a possible"}},
		{"ordered, two in a moment", usual, atA, func(s *story) {
			for i := range 20 {
				s.exchange(float64(i/2)*100+float64(i%2)*0.5, 50, a, uint16(i), order)
			}
		}, []string{"order-broken a likely"}},
		{"ordered, two in a moment, away from the sender", usual, atB, func(s *story) {
			s.exchange(0, 40, b, 0, 0)
			for i := range 20 {
				s.data(100+float64(i/2)*100+float64(i%2)*0.5, a, uint16(i), order, "x")
				s.ack(101+float64(i/2)*100+float64(i%2)*0.5, b, uint16(i))
			}
		}, []string{"order-passed a possible"}},
		{"ordered, each given up after 5 ms", usual, atA, func(s *story) {
			for i := range 20 {
				s.exchange(float64(i)*5, 50, a, uint16(i), order)
			}
		}, []string{"order-passed a possible"}},
		{"ordered, sent again, and another before the next copy is due", usual, atA, func(s *story) {
			s.exchange(0, 50, a, 0, 0)
			s.data(100, a, 1, order, "one")
			s.data(300, a, 1, order, "one")
			s.data(340, a, 2, order, "two")
			s.ack(350, b, 1)
			s.ack(390, b, 2)
		}, []string{"order-passed a possible", "resent-loss a likely"}},
		{"ordered, one at a time", usual, atA, func(s *story) {
			for i := range 20 {
				s.exchange(float64(i)*60, 50, a, uint16(32760+i)&0x7fff, once|order)
			}
		}, nil},
		{"order broken, and sent again", usual, atA, func(s *story) {
			s.exchange(0, 50, a, 0, 0)
			s.data(100, a, 1, order, "one")
			s.data(105, a, 2, order, "two")
			s.ack(155, b, 2)
			s.data(300, a, 1, order, "one")
			s.ack(350, b, 1)
		}, []string{"order-broken a certain", "out-of-order b possible", "resent-loss a likely"}},
		{"order broken, and sent again, seen at the receiver", usual, atB, func(s *story) {
			s.exchange(0, 1, a, 0, 0)
			s.data(100, a, 1, order, "one")
			s.data(105, a, 2, order, "two")
			s.ack(106, b, 2)
			s.data(300, a, 1, order, "one")
			s.ack(301, b, 1)
		}, []string{"order-broken a likely", "out-of-order b certain", "resent-loss a likely"}},
		{"given up, and the network delays a copy past the next", usual, atB, func(s *story) {
			s.exchange(0, 1, a, 0, 0)
			s.data(100, a, 1, order, "one")
			s.data(200, a, 1, order, "one")
			s.data(300, a, 1, order, "one")
			s.data(400, a, 2, order, "two")
			s.ack(401, b, 2)
			s.data(430, a, 1, order, "one")
			s.ack(431, b, 1)
		}, []string{"order-passed a possible", "out-of-order b certain", "resent-loss a likely"}},
		{"given up, then the next ordered one", usual, atA, func(s *story) {
			for i := range 3 {
				s.data(float64(i)*100, a, 1, order, "one")
			}
			s.exchange(300, 50, a, 2, order)
			s.exchange(5000, 50, a, 3, order)
		}, []string{"gave-up a likely"}},
		{"the copy crosses the acknowledgement, seen at the sender", usual, atA, func(s *story) {
			s.exchange(0, 120, a, 1, 0)
			s.data(500, a, 2, 0, "two")
			s.data(600, a, 2, 0, "two")
			s.ack(620, b, 2)
			s.ack(720, b, 2)
		}, []string{"delivered-again b likely", "spurious-early a likely"}},
		{"the acknowledgement is lost behind the tap", usual, atB, func(s *story) {
			s.exchange(0, 1, a, 1, once)
			s.exchange(50, 100, b, 9, 0) // measures the delay from the tap to A and back
			s.exchange(500, 1, a, 2, once)
			s.exchange(900, 1, a, 2, once)
		}, []string{"spurious-ack-lost a likely"}},
		{"the copy crosses the acknowledgement, seen at the receiver", usual, atB, func(s *story) {
			s.exchange(0, 1, a, 1, once)
			s.exchange(50, 300, b, 9, 0)
			s.exchange(500, 1, a, 2, once)
			s.exchange(700, 1, a, 2, once)
		}, []string{"spurious-early a likely"}},
		{"sent again long after its acknowledgement came", usual, atA, func(s *story) {
			s.exchange(0, 20, a, 1, once)
			for i := range 3 {
				s.exchange(500+300*float64(i), 20, a, 2, once)
			}
		}, []string{"ack-ignored a likely"}},
		{"sent again for loss", usual, atA, func(s *story) {
			s.exchange(0, 20, a, 1, 0)
			s.data(100, a, 2, 0, "two")
			s.data(300, a, 2, 0, "two")
			s.ack(320, b, 2)
		}, []string{"resent-loss a likely"}},
		{"the same id, other bytes, not acknowledged", usual, atA, func(s *story) {
			s.data(0, a, 5, 0, "one")
			s.exchange(100, 20, a, 6, 0)
			s.data(200, a, 5, 0, "other")
			s.ack(220, b, 5)
		}, []string{"id-reuse a possible"}}, // a sender that begins anew does the same
		{"the same id, other bytes, and the sender goes on", usual, atA, func(s *story) {
			for i := range 70 {
				s.exchange(float64(i)*10, 5, a, uint16(5+i), 0)
			}
			s.data(800, a, 80, 0, "one")
			s.exchange(810, 5, a, 81, 0)
			s.data(820, a, 80, 0, "other")
			s.ack(830, b, 80)
			s.exchange(840, 5, a, 82, 0)
		}, []string{"id-reuse a certain"}},
		{"the same id, a round later", usual, atA, func(s *story) {
			s.exchange(0, 1, a, 5, 0)
			for i := 1; i < 32768; i++ {
				s.exchange(float64(i)*0.2, 0.1, a, uint16(5+i)&0x7fff, 0)
			}
			s.data(7000, a, 5, 0, "other")
			s.ack(7001, b, 5)
		}, nil},
		{"an acknowledgement of what was not sent", usual, atA, func(s *story) {
			for i := range 4 {
				s.exchange(float64(i)*100, 20, a, uint16(i), 0)
			}
			s.ack(500, b, 77)
		}, []string{"ack-of-nothing b certain"}},
		{"an acknowledgement of what came before the capture", usual, atA, func(s *story) {
			s.ack(0, b, 99)
			s.data(10, a, 101, 0, "x")
			s.ack(20, b, 100, 101)
		}, nil},
		{"a receiver that does not acknowledge a copy", usual, atB, func(s *story) {
			s.data(0, a, 1, 0, "one")
			for i := range 20 {
				s.exchange(100+float64(i)*200, 1, a, uint16(2+i), 0)
			}
		}, []string{"ack-missing b likely"}},
		{"ids that no flow of the sender at the tap has", usual, atA, func(s *story) {
			for i := range 1200 {
				if i < 50 || i >= 60 {
					s.exchange(float64(i)*2, 1, a, uint16(i), 0)
				}
			}
		}, []string{"ids-missing a likely"}},
		{"all ids of the sender at the tap", usual, atA, func(s *story) {
			for i := range 1200 {
				s.exchange(float64(i)*2, 1, a, uint16(i), 0)
			}
		}, nil},
		{"too many bytes", usual, atA, func(s *story) {
			s.data(0, a, 1, 0, strings.Repeat("x", 545))
			s.ack(20, b, 1)
		}, []string{"oversize a certain"}},
		{"as many bytes as there may be", usual, atA, func(s *story) {
			s.data(0, a, 1, 0, strings.Repeat("x", 544))
			s.ack(20, b, 1)
		}, nil},
		{"a command byte that contradicts the id", usual, atA, func(s *story) {
			s.exchange(0, 20, a, 1, 0)
			s.raw(100, a, []byte("A\x00\x02\x00two"))
			s.raw(120, b, []byte("S\x80\x02"))
		}, []string{"command-byte a certain", "command-byte b certain"}},
		{"unknown flags, told once", usual, atA, func(s *story) {
			for i := range 5 {
				s.exchange(float64(i)*100, 20, a, uint16(i), 0x84)
			}
		}, []string{"unknown-flags a certain"}},
		{"foreign datagrams, some of which look like data", usual, atA, func(s *story) {
			for i := range 9 {
				s.exchange(float64(i)*100, 20, a, uint16(i), 0)
				s.raw(float64(i)*100+50, a, []byte("STATUS ok"))
				s.raw(float64(i)*100+60, b, []byte{0x80, 1, 2, 3})
			}
			s.exchange(9000, 20, a, 9, 0)
		}, []string{"foreign a likely", "foreign b certain"}},
		{
			"a late copy of a packet that is not to be handed over twice",
			srdp.Rules{Recent: 2, Remember: time.Second},
			atB, func(s *story) {
				s.exchange(0, 1, a, 1, once)
				for i := range 3 {
					s.exchange(100+float64(i)*100, 1, a, uint16(2+i), once)
				}
				s.exchange(450, 1, a, 1, once)
			},
			[]string{"duplicate-late b possible", "spurious-ack-lost a possible"},
		},
	} {
		s := newStory()
		c.make(s)
		o := s.track(c.at, c.rules)
		got := o.findings()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestForeignEntersNoState checks that foreign datagrams that resemble data
// enter no count, no event and no message.
func TestForeignEntersNoState(t *testing.T) {
	clean, shared := newStory(), newStory()
	for i := range 40 {
		for _, s := range []*story{clean, shared} {
			s.exchange(float64(i)*100, 20, a, uint16(100+i), 0)
		}
		shared.raw(float64(i)*100+50, machine.Side(i%2), []byte("SELECT * FROM players"))
		shared.raw(float64(i)*100+55, a, []byte{0x80, byte(i)})
		shared.raw(float64(i)*100+56, b, []byte("ALIVE"))
	}
	want, got := clean.track(atA, srdp.DefaultRules()), shared.track(atA, srdp.DefaultRules())
	if fmt.Sprint(want.summary) != fmt.Sprint(got.summary) {
		t.Errorf("figures with foreign datagrams %+v, without %+v", got.summary, want.summary)
	}
	if len(want.events) != len(got.events) || len(want.messages) != len(got.messages) {
		t.Errorf("%d events and %d messages with foreign datagrams, %d and %d without", len(got.events), len(got.messages),
			len(want.events), len(want.messages))
	}
	foreign := 0
	for _, x := range got.anomalies {
		if x.Rule.ID == "srdp-foreign" {
			foreign++
		}
	}
	if foreign != 3*40 {
		t.Errorf("%d foreign datagrams were told, expected %d", foreign, 3*40)
	}
}

// TestInferred checks that the tracker reads timeout and repeats off the
// copies.
func TestInferred(t *testing.T) {
	s := newStory()
	s.exchange(0, 20, a, 1, 0)
	for i := range 4 {
		for k := range 3 {
			s.data(100+float64(i)*2000+float64(k)*150, a, uint16(2+i), 0, "nobody hears")
		}
	}
	s.exchange(12000, 20, a, 9, 0)
	s.data(12100, a, 10, 0, "ten")
	s.data(12110, a, 11, 0, "eleven")
	s.data(12250, a, 10, 0, "ten")
	o := s.track(atA, srdp.DefaultRules())
	var v machine.View
	tr := tracker.New(configFor(wire.Direct), o.learned)
	var out machine.Effects
	for i := range o.seen {
		tr.Observe(&o.seen[i], &out)
	}
	tr.Inspect(a, &v)
	want := map[string]string{
		"timeout between copies": "150 ms likely", "repeats: given up after": "3 copies likely",
		"in the sent queue": "2 packets certain",
	}
	for _, g := range v.Gauges {
		if w, ok := want[g.Name]; ok && w != fmt.Sprintf("%v %s %v", g.Value, g.Unit, g.Grade) {
			t.Errorf("%s is %v %s %v, expected %s", g.Name, g.Value, g.Unit, g.Grade, w)
		}
		delete(want, g.Name)
	}
	if len(want) > 0 {
		t.Errorf("not drawn: %v", want)
	}
	var rows [][]string
	for _, table := range v.Tables {
		if strings.HasPrefix(table.Name, "sent queue") {
			rows = table.Rows
		}
	}
	// Ten was sent again at 12250, so eleven is due first: at 12260.
	if len(rows) != 2 || rows[0][0] != "11" || rows[0][4] != "10.0" || rows[1][0] != "10" || rows[1][4] != "150.0" {
		t.Errorf("sent queue %v, expected 11 due in 10 ms, then 10 in 150 ms", rows)
	}
}

// TestKarn checks that an acknowledgement of several copies is no sample.
func TestKarn(t *testing.T) {
	s := newStory()
	s.exchange(0, 40, a, 1, 0)
	s.data(1000, a, 2, 0, "two")
	s.data(1500, a, 2, 0, "two")
	s.ack(1530, b, 2)
	o := s.track(atA, srdp.DefaultRules())
	if got := o.summary[a]; got.RTT != 40*time.Millisecond || got.WireRTT != 40*time.Millisecond || got.Acked != 2 {
		t.Errorf("RTT %v, on the wire %v, %d acked; expected 40ms of the one clear sample, and 2", got.RTT,
			got.WireRTT, got.Acked)
	}
	got := map[machine.EventKind]int64{}
	for _, e := range o.events {
		if e.Sequence == 2 {
			got[e.Kind] = e.RTT
		}
	}
	if got[machine.EventAcked] != -1 || got[srdp.EventRTTFromLast] != 30e6 || got[srdp.EventRTTFromFirst] != 530e6 {
		t.Errorf("of an ambiguous acknowledgement: %v, expected no sample, 30 ms from the last copy and 530 ms from "+
			"the first", got)
	}
}

// TestTrackerLaws runs the tests that all trackers must pass.
func TestTrackerLaws(t *testing.T) {
	for _, form := range []wire.Form{wire.Direct, wire.Proxied} {
		c := conditions{
			form: form, path: sim.Path{Delay: 25 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.2, Duplicate: 0.05},
			repeats: 3, flags: 0xff, tap: machine.VantageBetween, place: 0.3, seconds: 10, first: 32600,
		}
		o := c.run(t, 11)
		machinetest.Tracker(t, func() machine.Tracker { return tracker.New(configFor(form), o.learned) }, o.seen)
	}
}

// TestCounter sends the ids of one endpoint in several flows, through the wrap.
// The counter must unwrap them, recognise copies, and doubt ids that do not
// fit.
func TestCounter(t *testing.T) {
	p := wire.Default()
	c := tracker.NewCounter(&p)
	send := func(flow int, id uint16, text string) machine.Place {
		b := p.Append(nil, &wire.Packet{Command: p.DataCommand, ID: id & 0x7fff}, []byte(text))
		return c.Observe(flow, &machine.Datagram{Bytes: b, Length: len(b)})
	}
	missing := uint32(0)
	for i := range 100_000 {
		n := i + 32000
		if i%1000 == 500 {
			continue // this one is lost
		}
		at := send(i%7, uint16(n), "same bytes in all")
		if missing += at.Missing; !at.Known || at.Number != int64(n) {
			t.Fatalf("packet %d: number %d", n, at.Number)
		}
		if i%100 == 50 && i > 3000 {
			if at := send((i-2000)%7, uint16(n-2000), "same bytes in all"); at.Number != int64(n-2000) {
				t.Fatalf("a copy of packet %d is numbered %d", n-2000, at.Number)
			}
		}
		if i%5000 == 77 {
			send(1, uint16(n+9000), "foreign")
		}
	}
	if missing != 98 && missing != 99 {
		t.Errorf("%d ids are missing, expected 99 but for the newest", missing)
	}
	var v machine.View
	c.Inspect(&v)
	got := map[string]float64{}
	for _, g := range v.Gauges {
		got[g.Name] = g.Value
	}
	if got["endpoint: flows that it sends data in"] != 7 || got["endpoint: ids given out"] != 100_000 ||
		got["endpoint: of them, in no flow of this capture"] != 100 {
		t.Errorf("the endpoint's figures are %v", got)
	}
	// A capture that has one of very many flows: its ids step far, again and
	// again.
	c = tracker.NewCounter(&p)
	for i := range 50 {
		n := int64(i) * 10_000
		if at := send(1, uint16(n), "x"); i > 3 && at.Number != n {
			t.Fatalf("packet %d of a sparse flow is numbered %d", n, at.Number)
		}
	}
	if x := c.Clone(); x.Size() != c.Size() {
		t.Error("a clone has another size")
	}
}

// TestSteadyStateAllocatesNothing also checks the memory that one of very many
// peers of an endpoint takes.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	p := wire.Default()
	config := configFor(wire.Direct)
	tr, scope := tracker.New(config, machine.Facts{Vantage: atA}), tracker.NewCounter(&p)
	out := machine.Effects{}
	var bytes []byte
	n := 0
	step := func() {
		id := uint16(n) & 0x7fff
		at := machine.Instant(n) * machine.Instant(20*time.Millisecond)
		n++
		feed := func(from machine.Side, pk *wire.Packet, after time.Duration) {
			bytes = p.Append(bytes[:0], pk, nil)
			d := machine.Datagram{
				At: at.Add(after), Ref: machine.MakeRef(0, uint64(n)), From: from, Bytes: bytes,
				Length: len(bytes),
			}
			if from == a {
				d.Place = scope.Observe(1, &d)
			}
			out.Reset()
			tr.Observe(&d, &out)
		}
		feed(a, &wire.Packet{Command: 0x53, ID: id, Flags: 3}, 0)
		if n%10 == 0 {
			feed(a, &wire.Packet{Command: 0x53, ID: id, Flags: 3}, 5*time.Millisecond)
		}
		feed(b, &wire.Packet{Command: 0x41, Ack: true, ID: id}, 10*time.Millisecond)
	}
	for range 40_000 { // once through all ids
		step()
	}
	if got := testing.AllocsPerRun(2000, step); got != 0 {
		t.Errorf("a packet and its acknowledgement allocate %v times", got)
	}
}

// TestTenThousandPeers runs the tracker of every flow of one endpoint, and the
// scopes. Each flow has four packets each way, in flight one after the other.
func TestTenThousandPeers(t *testing.T) {
	const peers = 10_000
	p := wire.Default()
	config := configFor(wire.Direct)
	server := tracker.NewCounter(&p)
	var out machine.Effects
	total, next := 0, 0
	var trackers [peers]machine.Tracker
	var clients [peers]*tracker.Counter
	for i := range trackers {
		trackers[i], clients[i] = tracker.New(config, machine.Facts{Vantage: atA}), tracker.NewCounter(&p)
	}
	for round := range 4 {
		for i, tr := range trackers {
			at := machine.Instant(round*peers+i) * machine.Instant(10*time.Microsecond)
			feed := func(scope *tracker.Counter, from machine.Side, pk wire.Packet) {
				b := p.Append(nil, &pk, []byte("state of the world"))
				d := machine.Datagram{At: at, Ref: 1, From: from, Bytes: b, Length: len(b)}
				d.Place = scope.Observe(i+1, &d)
				out.Reset()
				tr.Observe(&d, &out)
				for _, e := range out.Events {
					if from == a && e.Kind == machine.EventSent && e.Sequence64 != int64(next) {
						t.Fatalf("peer %d: id %d is numbered %d, expected %d", i, pk.ID, e.Sequence64, next)
					}
				}
			}
			feed(server, a, wire.Packet{Command: 0x53, ID: uint16(next) & 0x7fff})
			feed(clients[i], b, wire.Packet{Command: 0x41, Ack: true, ID: uint16(next) & 0x7fff})
			next++
			feed(clients[i], b, wire.Packet{Command: 0x53, ID: uint16(round)})
			feed(server, a, wire.Packet{Command: 0x41, Ack: true, ID: uint16(round)})
		}
	}
	for i := range trackers {
		total += trackers[i].Size() + clients[i].Size()
	}
	total += server.Size()
	each := total / peers
	t.Logf("%d bytes a peer", each)
	if each > 6000 {
		t.Errorf("%d bytes a peer, expected at most 6000", each)
	}
}

// BenchmarkTracker measures a packet and its acknowledgement.
func BenchmarkTracker(b *testing.B) {
	c := conditions{
		form: wire.Direct, path: sim.Path{Delay: 25 * time.Millisecond, Loss: 0.05}, repeats: 0,
		tap: atA, seconds: 60,
	}
	o := c.run(b, 3)
	config := configFor(wire.Direct)
	b.ReportAllocs()
	var out machine.Effects
	tr, scopes := tracker.New(config, o.learned), [2]*tracker.Counter{}
	for i := 0; b.Loop(); i++ {
		if i%len(o.seen) == 0 {
			tr = tracker.New(config, o.learned)
			scopes = [2]*tracker.Counter{tracker.NewCounter(&config.Profile), tracker.NewCounter(&config.Profile)}
		}
		d := o.seen[i%len(o.seen)]
		d.Place = scopes[d.From].Observe(1, &d)
		out.Reset()
		tr.Observe(&d, &out)
	}
}
