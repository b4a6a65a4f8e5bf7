package tracker

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// disturbed returns a part of a flow in which some datagrams change places. At times another session
// follows.
func disturbed(rnd *rand.Rand, flow []machine.Datagram) []machine.Datagram {
	from := 0
	if rnd.Intn(2) == 0 {
		from = rnd.Intn(len(flow) / 2)
	}
	list := append([]machine.Datagram(nil), flow[from:from+1+rnd.Intn(100)]...)
	for range rnd.Intn(3) {
		i, j := rnd.Intn(len(list)), rnd.Intn(len(list))
		list[i].Bytes, list[j].Bytes = list[j].Bytes, list[i].Bytes
		list[i].Length, list[j].Length = list[j].Length, list[i].Length
		list[i].From, list[j].From = list[j].From, list[i].From
	}
	if rnd.Intn(3) == 0 {
		list = append(list, flow[:1+rnd.Intn(20)]...)
	}
	for i := range list {
		list[i].At, list[i].Ref = machine.Instant(i)*7e6, machine.Ref(i+1)
	}
	return list
}

// TestDeferred: a deferred tracker learns, says and shows what another one does, and opens a session
// at the same datagram. Only its effects come later, and it takes less memory at first.
func TestDeferred(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, profile := range []string{wire.Article, wire.Reliable} {
		put, sessions := 0, 0
		p, flow := traffic(t, profile, 3000, 0.05)
		for n := range 300 {
			facts := machine.Facts{Vantage: machine.VantageA + machine.Vantage(rnd.Intn(3)), VantageReason: "set", End: 1}
			facts.Supposed[rnd.Intn(2)] = rnd.Intn(2) == 0
			facts.Earlier[0][0] = machine.Number{Known: rnd.Intn(3) == 0, Value: uint32(rnd.Intn(300))}
			given := facts
			deferred, plain := NewDeferred(p, &given).(*Tracker), New(p, facts).(*Tracker)
			var early, late machine.Effects
			early.NoEvents, late.NoEvents = true, true
			for i, d := range disturbed(rnd, flow) {
				deferred.Observe(&d, &early)
				plain.Observe(&d, &late)
				what := fmt.Sprintf("%s, flow %d, after %d datagrams", profile, n, i+1)
				if early.NewSession != late.NewSession {
					t.Fatalf("%s: a new session %v, expected %v", what, early.NewSession, late.NewSession)
				}
				if early.NewSession {
					sessions++
					break
				}
				if deferred.Defers() {
					put++
					if size := deferred.Size(); size > plain.Size()/2 {
						t.Fatalf("%s: it takes %d bytes, the other %d", what, size, plain.Size())
					}
				}
				sameTracker(t, what, deferred, plain)
			}
			early.NewSession, late.NewSession = false, false
			deferred.Finish(&early)
			plain.Finish(&late)
			sameTracker(t, fmt.Sprintf("%s, flow %d, at its end", profile, n), deferred, plain)
			if !reflect.DeepEqual(early.Anomalies, late.Anomalies) {
				t.Fatalf("%s, flow %d: it reports %v, expected %v", profile, n, early.Anomalies, late.Anomalies)
			}
			if given != facts {
				t.Fatalf("%s, flow %d: the facts changed", profile, n)
			}
		}
		if put < 500 || sessions < 10 {
			t.Errorf("%s: %d datagrams were put off, %d sessions: too few to tell", profile, put, sessions)
		}
	}
}

func sameTracker(t *testing.T, what string, got, want *Tracker) {
	t.Helper()
	var x, y machine.Identity
	got.Identity(&x)
	want.Identity(&y)
	if !reflect.DeepEqual(x, y) {
		t.Fatalf("%s: identity %+v %v, expected %+v %v", what, x.Counters[0].Sides, x.Began, y.Counters[0].Sides, y.Began)
	}
	if a, b := got.Learned(), want.Learned(); a != b {
		t.Fatalf("%s: it learned %+v, expected %+v", what, a, b)
	}
	for _, s := range []machine.Side{machine.A, machine.B} {
		if a, b := got.Summary(s), want.Summary(s); a != b {
			t.Fatalf("%s: %v has %+v, expected %+v", what, s, a, b)
		}
		if a, b := got.RTT(s), want.RTT(s); a != b {
			t.Fatalf("%s: %v has an RTT of %v, expected %v", what, s, a, b)
		}
		var v, w machine.View
		got.Inspect(s, &v)
		want.Inspect(s, &w)
		if !reflect.DeepEqual(v, w) {
			t.Fatalf("%s: %v shows %+v, expected %+v", what, s, v, w)
		}
	}
}
