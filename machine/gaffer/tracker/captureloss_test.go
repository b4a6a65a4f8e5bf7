package tracker_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestCaptureLossHidesNoLie drops packets from a capture of an endpoint that acks
// packets it never got. Such a capture cannot distinguish a lie from a packet that only
// the capture lacks. So no certain receipt of the far side may contradict that side's
// own log.
func TestCaptureLossHidesNoLie(t *testing.T) {
	const run = "plain-le-stalebug-loss98"
	lines := gaffertest.ReadLog(t, run)
	for side, far := range map[string]string{"client": "server", "server": "client"} {
		path := gaffertest.Capture(t, run, side)
		came := map[uint32]bool{}
		for _, l := range lines {
			if l.Endpoint == far && l.Event == "received" {
				came[l.Seq] = true
			}
		}
		for name, flow := range gaffertest.NearFlows(t, path, lines) {
			certain := 0
			for seed := range uint64(20) {
				rng := rand.New(rand.NewPCG(seed, 3))
				share := []float64{0.01, 0.03, 0.1}[seed%3]
				var left []machine.Datagram
				for _, p := range flow {
					if rng.Float64() >= share {
						from := machine.A
						if !p.Own {
							from = machine.B
						}
						left = append(left, machine.Datagram{
							At: p.At, Ref: machine.MakeRef(0, p.Frame), From: from, Bytes: p.Bytes,
							Length: len(p.Bytes) + p.Cut,
						})
					}
				}
				events := trackTwice(gaffertest.ProfileOf(run), left)
				for _, e := range events {
					if e.Side == machine.B && e.Kind == machine.EventReceived && e.Certainty == machine.Certain {
						if certain++; !came[e.Sequence] {
							t.Errorf("%s at the %s, seed %d: the %s is said for certain to have received %d, by frame %d, and has not", name,
								side, seed, far, e.Sequence, e.Ref.Frame())
						}
					}
				}
			}
			if certain < 100 {
				t.Errorf("%s at the %s: of 20 times only %d receipts are told as certain: is anything?", name, side, certain)
			}
		}
	}
}

// trackTwice returns the events of a second run, which starts with what the first
// learned.
func trackTwice(p *wire.Profile, flow []machine.Datagram) (events []machine.Event) {
	var facts machine.Facts
	for range 2 {
		tr := tracker.New(p, facts)
		events = events[:0]
		var out machine.Effects
		for i := range flow {
			tr.Observe(&flow[i], &out)
			events = append(events, out.Events...)
			out.Reset()
		}
		tr.Finish(&out)
		events = append(events, out.Events...)
		facts = tr.Learned()
	}
	return events
}

// TestCaptureGap: a tap at an endpoint misses some seconds. What the endpoint had received is not said
// to be lost for certain: a header that the capture lacks may have named it. The capture without the
// gap shows what was received.
func TestCaptureGap(t *testing.T) {
	for _, profile := range []string{"reliable", "article"} {
		for seed := range uint64(6) {
			tap := []machine.Vantage{machine.VantageA, machine.VantageB}[seed%2]
			c := even(profile, sim.Path{Loss: 0.05}, tap)
			c.refuse = 0.05 // so that the endpoint leaves out some packets that passed the tap
			o := c.run(t, seed)
			received := map[machine.Ref]bool{}
			for _, e := range o.events {
				if e.Kind == machine.EventReceived {
					received[e.About] = true
				}
			}
			p, certain := gaffertest.Builtin(profile), 0
			for _, length := range []int{1, 3, 10, 30, 100, 300} {
				from := len(o.seen) / 3
				left := slices.Concat(o.seen[:from], o.seen[from+length:])
				for _, e := range trackTwice(p, left) {
					if e.Kind != machine.EventLost || e.Certainty != machine.Certain {
						continue
					}
					if certain++; received[e.About] {
						t.Errorf("%v, seed %d, %d frames missing: packet %d of frame %d is said to be lost for certain", &c, seed, length,
							e.Sequence, e.About.Frame())
					}
				}
			}
			if certain == 0 {
				t.Errorf("%v, seed %d: no loss is certain", &c, seed)
			}
		}
	}
}

// TestCaptureGapIsNoTrouble: what a tap misses is no trouble of the network or of an endpoint. A flow
// without any trouble then shows that the capture lacks packets, and nothing else. What the network
// loses in the same time does show as a burst.
func TestCaptureGapIsNoTrouble(t *testing.T) {
	for _, profile := range []string{"reliable", "article"} {
		for seed := range uint64(9) {
			tap := []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween}[seed%3]
			c := even(profile, sim.Path{}, tap)
			o := c.run(t, seed)
			p := gaffertest.Builtin(profile)
			if found, _ := rulesFound(p, o.seen, tap); len(found) > 0 {
				t.Fatalf("%v, seed %d: without a gap %v is found", &c, seed, found)
			}
			for _, length := range []int{6, 20, 60, 200, 400} {
				from := len(o.seen)/3 + int(seed)
				found, lost := rulesFound(p, slices.Concat(o.seen[:from], o.seen[from+length:]), tap)
				if !slices.Equal(found, []string{"capture-loss"}) {
					t.Errorf("%v, seed %d, %d frames missing: %v is found", &c, seed, length, found)
				}
				if lost > 0 {
					t.Errorf("%v, seed %d, %d frames missing: %d packets are said to be lost on the path", &c, seed, length, lost)
				}
			}
			c.path[0].Outages = []sim.Outage{{From: machine.Instant(4 * time.Second), For: 700 * time.Millisecond}}
			c.path[1].Outages = c.path[0].Outages
			if found, _ := rulesFound(p, c.run(t, seed).seen, tap); slices.Contains(found, "capture-loss") ||
				tap != machine.VantageBetween && !slices.Contains(found, "loss-burst") {
				t.Errorf("%v, seed %d, an outage: %v is found", &c, seed, found)
			}
		}
	}
}

// rulesFound returns the rules that a second run over a flow finds, in order, and how many packets it
// counts as lost on the path.
func rulesFound(p *wire.Profile, flow []machine.Datagram, tap machine.Vantage) (ids []string, lost uint64) {
	facts := machine.Facts{Vantage: tap, VantageReason: "told"}
	for range 2 {
		tr := tracker.New(p, facts)
		var out machine.Effects
		for i := range flow {
			tr.Observe(&flow[i], &out)
		}
		tr.Finish(&out)
		facts, ids, lost = tr.Learned(), nil, 0
		for _, a := range out.Anomalies {
			ids = append(ids, a.Rule.ID)
		}
		for _, x := range []machine.Side{machine.A, machine.B} {
			lost += tr.Summary(x).Path.Lost
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), lost
}
