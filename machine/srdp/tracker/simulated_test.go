package tracker_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/machine/srdp/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// A simulated flow gives what no recorded capture has: the truth of both ends
// for each packet. It does so under any conditions and from any place of the
// tap.

// conditions of one simulated flow.
type conditions struct {
	form    wire.Form
	path    sim.Path // both ways
	repeats uint8
	timeout time.Duration // 0: the library's choice
	flags   uint8
	oneWay  bool // only A sends data
	event   bool // hosts read their socket when something arrives
	tap     machine.Vantage
	place   float64
	told    bool // the tracker is given the place of the tap
	first   uint16
	stops   bool // B dies half way
	endless bool // no side ever gives a packet up
	seconds int
}

func (c *conditions) String() string {
	return fmt.Sprintf("%v loss %.0f%% jitter %v dup %.0f%% repeats %d timeout %v flags %d one way %v event %v tap %v "+
		"told %v stops %v",
		c.form, c.path.Loss*100, c.path.Jitter, c.path.Duplicate*100, c.repeats, c.timeout, c.flags, c.oneWay, c.event, c.tap,
		c.told, c.stops)
}

// observed is a simulated flow and what a tracker reported of it.
type observed struct {
	truth     *sim.Truth
	seen      []machine.Datagram
	events    []machine.Event
	anomalies []machine.Anomaly
	messages  []machine.Message
	learned   machine.Facts
	summary   [2]machine.Summary
	tracker   machine.Tracker
	last      [2]machine.Instant // when each side sent for the last time
}

var addresses = [2]wire.Address{{IP: [4]byte{10, 0, 0, 1}, Port: 7000}, {IP: [4]byte{10, 0, 0, 2}, Port: 7001}}

func configFor(form wire.Form) srdp.Config {
	p := wire.Default().In(form)
	return srdp.Config{Profile: p, MaxPayload: p.MaxPayload(), Rules: srdp.DefaultRules()}
}

func (c *conditions) run(t testing.TB, seed uint64) *observed {
	t.Helper()
	w := sim.New(seed)
	o := &observed{truth: w.Truth()}
	stop := machine.Instant(c.seconds) * machine.Instant(time.Second)
	p := wire.Default().In(c.form)
	var hosts []*sim.Host
	for i, name := range []string{"a", "b"} {
		e, err := endpoint.New(endpoint.Options{Profile: &p, Side: machine.Side(i), First: c.first, Self: addresses[i]})
		if err != nil {
			t.Fatal(err)
		}
		app := func(f *sim.Frame) {
			if c.form == wire.Proxied && f.Number == 0 {
				f.Do(endpoint.Introduce(0, addresses[1-i]))
			}
			if f.Now >= stop || i == 1 && c.oneWay || f.Rand.IntN(3) > 0 {
				return
			}
			flags := c.flags
			if flags == 0xff {
				flags = uint8(f.Rand.IntN(4))
			}
			f.Do(srdp.Request{
				Bytes: make([]byte, f.Rand.IntN(100)), Repeats: c.repeats, Timeout: c.timeout,
				Flags: flags,
			}.Submit())
		}
		options := sim.HostOptions{
			Frame: time.Second / 60, Phase: time.Duration(i) * 7 * time.Millisecond, FrameJitter: time.Millisecond / 2,
			ReadDelay: 100 * time.Microsecond, App: app, EventDriven: c.event,
		}
		if c.stops && i == 1 {
			options.Stop = stop / 2
		}
		hosts = append(hosts, w.AddHost(name, e, options))
	}
	l := w.Connect(hosts[0], hosts[1], c.path, c.path)
	place := map[machine.Vantage]float64{machine.VantageA: 0, machine.VantageBetween: c.place, machine.VantageB: 1}[c.tap]
	l.Tap(place, func(s sim.Tapped) {
		o.seen = append(o.seen, machine.Datagram{
			At: s.At, Ref: machine.MakeRef(0, uint64(len(o.seen)+1)), From: machine.Side(s.From.Index), Bytes: s.Bytes,
			Length: len(s.Bytes),
		})
		o.last[s.From.Index] = s.At
	})
	if err := w.Run(stop.Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var facts machine.Facts
	if c.told {
		facts.Vantage, facts.VantageReason = c.tap, "told"
	}
	o.track(configFor(c.form), facts)
	return o
}

// track runs a tracker twice over the flow, as the commands do: the second run
// starts with what the first has learned.
func (o *observed) track(config srdp.Config, facts machine.Facts) {
	for range 2 {
		tr := tracker.New(config, facts)
		scopes := [2]machine.Scope{tracker.NewCounter(&config.Profile), tracker.NewCounter(&config.Profile)}
		o.events, o.anomalies, o.messages = o.events[:0], o.anomalies[:0], o.messages[:0]
		var out machine.Effects
		take := func() {
			o.events = append(o.events, out.Events...)
			o.anomalies = append(o.anomalies, out.Anomalies...)
			o.messages = append(o.messages, out.Messages...)
			out.Reset()
		}
		for i := range o.seen {
			d := o.seen[i]
			d.Place = scopes[d.From].Observe(1, &d)
			tr.Observe(&d, &out)
			take()
		}
		tr.Finish(&out)
		take()
		facts = tr.Learned()
		o.summary = [2]machine.Summary{tr.Summary(machine.A), tr.Summary(machine.B)}
		o.tracker = tr
	}
	o.learned = facts
}

// fact is one event of one side, comparable.
type fact struct {
	side     machine.Side
	kind     machine.EventKind
	sequence int64
	n        int // the n-th of these: a copy may come again
}

// hold compares the tracker's facts with the truth. Nothing certain may be
// false, and nothing may be missing for a side at the tap.
func (o *observed) hold(t *testing.T, c *conditions) {
	t.Helper()
	truth := map[fact]machine.Instant{}
	count := map[fact]int{}
	key := func(e *machine.Event) fact {
		f := fact{side: e.Side, kind: e.Kind, sequence: e.Sequence64}
		count[f]++
		f.n = count[f]
		return f
	}
	for i := range o.truth.Facts {
		f := &o.truth.Facts[i]
		truth[key(&f.Event)] = f.At
	}
	count = map[fact]int{}
	told := map[fact]machine.Event{}
	for i := range o.events {
		told[key(&o.events[i])] = o.events[i]
	}
	wrong := 0
	for f, e := range told {
		if e.Certainty != machine.Certain {
			continue
		}
		switch e.Kind {
		case machine.EventSent, machine.EventResent, machine.EventReceived, machine.EventDuplicate, machine.EventAcked,
			srdp.EventGaveUp:
		default:
			continue
		}
		at, ok := truth[f]
		switch {
		case !ok:
			t.Errorf("%v %v %d (%d.) in frame %d is told as certain, and did not happen", f.side, f.kind, f.sequence, f.n,
				e.Ref.Frame())
		case (f.kind == machine.EventReceived || f.kind == machine.EventDuplicate) && at > e.At:
			t.Errorf("%v %v %d: told at %v, it happened at %v", f.side, f.kind, f.sequence, e.At, at)
		case f.kind == machine.EventAcked && (at < e.At || at.Sub(e.At) > 60*time.Millisecond):
			t.Errorf("%v acked %d: told as of %v, it happened at %v", f.side, f.sequence, e.At, at)
		default:
			continue
		}
		if wrong++; wrong > 8 {
			t.Fatal("and more")
		}
	}
	vantage, opens := o.learned.Vantage, o.opens(truth)
	for f, at := range truth {
		near := vantage.Near(f.side)
		switch {
		case !near:
			continue
		case at.Add(200*time.Millisecond) > o.last[f.side]:
			continue // the side has sent nothing since that proves it had read this
		}
		switch f.kind {
		case machine.EventSent, machine.EventResent, machine.EventReceived, machine.EventDuplicate, machine.EventAcked:
			e, ok := told[f]
			if !ok {
				t.Errorf("%v %v %d (%d.) at %v is not told", f.side, f.kind, f.sequence, f.n, at)
			} else if f.kind == machine.EventAcked && !waited(o.truth, f, at) {
				continue // the capture allows that it gave the packet up before
			} else if opens[fact{f.side, machine.EventSent, f.sequence, 1}] {
				continue // a capture that begins in the middle of a run would show the same
			} else if c.told && e.Certainty != machine.Certain && f.n == 1 && f.kind != machine.EventReceived {
				t.Errorf("%v %v %d (%d.) is told as %v only, at the tap", f.side, f.kind, f.sequence, f.n, e.Certainty)
			} else {
				continue
			}
			if wrong++; wrong > 8 {
				t.Fatal("and more")
			}
		}
	}
	// The reference keeps its promises, and no other protocol uses the port.
	for i := range o.anomalies {
		switch x := &o.anomalies[i]; x.Rule.ID {
		case "srdp-gave-up":
			if c.endless && x.Certainty >= machine.Likely {
				t.Errorf("%v gave up the packet in frame %d, in frame %d: it never does", x.Side, x.About.Frame(), x.Ref.Frame())
			}
		case "srdp-order-broken":
			t.Errorf("%s of %v, %v, in frame %d about %d (%v), of an endpoint that is right", x.Rule.ID, x.Side, x.Certainty,
				x.Ref.Frame(), x.About.Frame(), x.Figures)
		case "srdp-id-reuse", "srdp-wrap-in-flight", "srdp-ack-ignored", "srdp-ack-of-nothing",
			"srdp-ack-missing",
			"srdp-oversize", "srdp-command-byte", "srdp-unknown-flags", "srdp-foreign":
			if x.Certainty >= machine.Likely {
				t.Errorf("%s of %v, %v, in frame %d about %d (%v), of an endpoint that is right", x.Rule.ID, x.Side, x.Certainty,
					x.Ref.Frame(), x.About.Frame(), x.Figures)
			}
		}
	}
	for i := range o.messages {
		m := &o.messages[i]
		received := fact{m.From.Other(), machine.EventReceived, m.Sequence64, 1}
		if _, ok := truth[received]; m.Delivered == machine.Yes && m.Certainty == machine.Certain && !ok {
			t.Errorf("message %d of %v: delivered for certain, and was not", m.Sequence64, m.From)
		}
	}
	o.holdTimes(t, truth)
}

// holdTimes compares the certain bounds of when packets were sent and came with the truth.
func (o *observed) holdTimes(t *testing.T, truth map[fact]machine.Instant) {
	t.Helper()
	for i := range o.messages {
		m := &o.messages[i]
		// The reference reads a copy when it hands it over, or when it drops it behind a later packet.
		came, ok := truth[fact{m.From.Other(), machine.EventReceived, m.Sequence64, 1}]
		late, dropped := truth[fact{m.From.Other(), machine.EventDuplicate, m.Sequence64, 1}]
		if dropped && (!ok || late < came) {
			came, ok = late, true
		}
		if x := &m.Arrived; x.Certainty == machine.Certain && (!ok || came < x.From || came > x.To) {
			t.Errorf("message %d of %v: it came at %v, told from %v to %v", m.Sequence64, m.From, came, x.From, x.To)
		}
		if x := &m.Estimate; x.Known() && (x.From < m.Arrived.From || x.To > m.Arrived.To || x.Certainty == machine.Certain) {
			t.Errorf("message %d of %v: the estimate %v is outside of its bounds %v, or certain", m.Sequence64, m.From, *x,
				m.Arrived)
		}
		sent := truth[fact{m.From, machine.EventSent, m.Sequence64, 1}]
		if x := &m.Sent; x.Certainty == machine.Certain && (sent < x.From || sent > x.To) {
			t.Errorf("message %d of %v: sent at %v, told from %v to %v", m.Sequence64, m.From, sent, x.From, x.To)
		}
	}
}

// opens returns the packets of a flow's beginning. It lasts as long as the
// longest time between two copies of the side, and at least 1.5 seconds.
func (o *observed) opens(truth map[fact]machine.Instant) map[fact]bool {
	longest := [2]time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond}
	for f, at := range truth {
		if f.kind != machine.EventResent {
			continue
		}
		before := fact{f.side, machine.EventResent, f.sequence, f.n - 1}
		if f.n == 1 {
			before = fact{f.side, machine.EventSent, f.sequence, 1}
		}
		longest[f.side] = max(longest[f.side], at.Sub(truth[before])*5/4)
	}
	opens := map[fact]bool{}
	for f, at := range truth {
		opens[f] = f.kind == machine.EventSent && at.Sub(o.seen[0].At) <= longest[f.side]+50*time.Millisecond
	}
	return opens
}

// waited reports whether a sender has shown that it waits longer than an
// acknowledgement took. To show that, it must have repeated packets three
// times, after similar intervals, and never so soon after the copy before.
func waited(tr *sim.Truth, acked fact, at machine.Instant) bool {
	const reads = 60 * time.Millisecond // an acknowledgement passes the tap before the side reads it
	var intervals int
	var newest machine.Instant
	least, most := time.Duration(math.MaxInt64), time.Duration(0)
	copied := map[int64]machine.Instant{}
	for i := range tr.Facts {
		f := &tr.Facts[i]
		if f.Event.Side != acked.side || f.At > at ||
			(f.Event.Kind != machine.EventSent && f.Event.Kind != machine.EventResent) {
			continue
		}
		last, again := copied[f.Event.Sequence64]
		copied[f.Event.Sequence64] = f.At
		if f.Event.Sequence64 == acked.sequence {
			newest = f.At
		}
		if !again {
			continue
		}
		least, most = min(least, f.At.Sub(last)), max(most, f.At.Sub(last))
		if f.At.Add(reads) < at {
			intervals++
		}
	}
	return intervals >= 3 && most-least <= 34*time.Millisecond && at.Sub(newest) < least
}

// TestSimulated runs a grid of conditions and places of the tap. What is
// certain must be true, and all that an endpoint at the tap knew must be there.
func TestSimulated(t *testing.T) {
	runs, stride := 0, 11 // coprime to the grid's own steps, so that every value of every condition occurs
	switch {
	case testing.Short():
		stride = 17
	case testenv.Required():
		stride = 1
	}
	for _, form := range []wire.Form{wire.Direct, wire.Proxied} {
		for _, loss := range []float64{0, 0.05, 0.3} {
			for _, jitter := range []time.Duration{0, 20 * time.Millisecond} {
				for _, dup := range []float64{0, 0.1} {
					for _, repeats := range []uint8{0, 1, 4} {
						for _, timeout := range []time.Duration{0, 120 * time.Millisecond} {
							for _, flags := range []uint8{0, 1, 2, 0xff} {
								for _, tap := range []machine.Vantage{machine.VantageA, machine.VantageBetween, machine.VantageB} {
									runs++
									if runs%stride != 0 {
										continue
									}
									c := conditions{
										form: form, path: sim.Path{Delay: 25 * time.Millisecond, Jitter: jitter, Loss: loss, Duplicate: dup},
										repeats: repeats, timeout: timeout, flags: flags, tap: tap, place: 0.5, seconds: 4, first: 32700,
										oneWay: runs%5 == 0, event: runs%2 == 0, told: runs%3 > 0, stops: runs%7 == 0, endless: repeats == 0,
									}
									t.Run(c.String(), func(t *testing.T) {
										c.run(t, uint64(runs)).hold(t, &c)
									})
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestOrderGivenUp has correct endpoints give ordered packets up, after any
// number of copies and any timeout, on networks that reorder and duplicate. No
// tap may see a broken order. What passed over unacknowledged packets is told
// as that.
func TestOrderGivenUp(t *testing.T) {
	passed, runs := 0, 0
	for _, loss := range []float64{0, 0.2, 0.5} {
		for _, jitter := range []time.Duration{0, 100 * time.Millisecond} {
			for _, repeats := range []uint8{1, 2, 4} {
				for _, timeout := range []time.Duration{5 * time.Millisecond, 60 * time.Millisecond, 0} {
					for _, tap := range []machine.Vantage{machine.VantageA, machine.VantageBetween, machine.VantageB} {
						runs++
						c := conditions{
							form: wire.Direct, path: sim.Path{
								Delay: 25 * time.Millisecond, Jitter: jitter, Loss: loss,
								Duplicate: float64(runs%2) / 10,
							},
							repeats: repeats, timeout: timeout, flags: 2, tap: tap, place: 0.5, seconds: 3, told: runs%3 > 0,
						}
						t.Run(c.String(), func(t *testing.T) {
							o := c.run(t, uint64(runs))
							for i := range o.anomalies {
								switch x := &o.anomalies[i]; x.Rule {
								case srdp.OrderBroken:
									t.Errorf("%v, %v, in frame %d about %d: the sender gave that packet up", x.Side, x.Certainty,
										x.Ref.Frame(), x.About.Frame())
								case srdp.OrderPassed:
									passed++
								}
							}
						})
					}
				}
			}
		}
	}
	if passed == 0 {
		t.Error("no packet was passed over")
	}
}
