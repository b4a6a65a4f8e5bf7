package analyze

import (
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// steadyFlow is a flow of a minute with 30 packets a second of each side that has ended. Its
// side A saw the given round trips.
func steadyFlow(v machine.Vantage, trips ...time.Duration) *Flow {
	f := &Flow{
		First: 0, Last: machine.Instant(time.Minute), LastRef: 9, pace: &[2]pace{}, Packets: [2]uint64{1800, 1800},
		Bytes: [2]uint64{180000, 180000}, ended: &ended{fresh: &machine.Figures{Facts: machine.Facts{Vantage: v}}},
	}
	f.pace[0], f.pace[1] = sends(500*time.Millisecond, repeat(1799, 33*time.Millisecond)...),
		sends(500*time.Millisecond, repeat(1799, 33*time.Millisecond)...)
	var t machine.Trips
	for _, x := range trips {
		t.Add(x)
	}
	f.ended.fresh.Sides[machine.A] = machine.Summary{Trips: t, WireRTT: -1}
	f.ended.fresh.Sides[machine.B] = machine.Summary{WireRTT: -1}
	return f
}

// steadyFindings returns the rules that fire for a flow, and the findings.
func steadyFindings(f *Flow, x Thresholds) (ids []string, list []*Finding) {
	s := &Session{thresholds: x}
	s.noteSteady(f)
	for _, found := range f.Findings() {
		ids = append(ids, found.Rule.ID)
	}
	return ids, f.Findings()
}

// TestSteadyTrouble: each rule fires from its limit on, and not below it.
func TestSteadyTrouble(t *testing.T) {
	const ms = time.Millisecond
	defaults := DefaultThresholds()
	share := func(n, of uint64) func(*Flow) {
		return func(f *Flow) { f.ended.fresh.Sides[0].Messages, f.ended.fresh.Sides[0].Repeated = of, n }
	}
	for _, c := range []struct {
		name   string
		trips  []time.Duration
		change func(*Flow)
		want   []string
	}{
		{"a good network", repeat(200, 40*ms), nil, nil},
		{"far away", repeat(200, 200*ms), nil, []string{"steady-rtt"}},
		{"far away, but too few", repeat(29, 200*ms), nil, nil},
		{"a few late answers", join(repeat(180, 40*ms), repeat(20, 2*time.Second)), nil, nil},
		{"uneven", repeat(100, 40*ms, 100*ms), nil, []string{"steady-jitter"}},
		{"uneven by the peer's interval", repeat(100, 40*ms, 70*ms), nil, nil},
		{"half sent again", nil, share(50, 100), []string{"resend-share"}},
		{"a third sent again", nil, share(33, 100), nil},
		{"all of too few", nil, share(4, 4), nil},
		{"a pause", nil, func(f *Flow) {
			f.pace[0] = sends(500*ms, join(repeat(900, 33*ms), repeat(1, 600*ms), repeat(900, 33*ms))...)
		}, []string{"stalled"}},
		{"a pause of the other side", nil, func(f *Flow) {
			f.pace[1] = sends(500*ms, join(repeat(900, 33*ms), repeat(1, 600*ms), repeat(900, 33*ms))...)
		}, []string{"silence"}},
		{"a pause that a rule of the protocol tells", nil, func(f *Flow) {
			f.pace[0] = sends(500*ms, join(repeat(900, 33*ms), repeat(1, 600*ms), repeat(900, 33*ms))...)
			f.addFinding(&machine.Anomaly{Rule: &machine.Rule{ID: "stall", ToldPause: true}})
		}, []string{"stall"}},
		{"much in one second", nil, func(f *Flow) { f.pace[1].peak, f.pace[1].peakRef = 200_000, 7 }, []string{"bandwidth"}},
	} {
		f := steadyFlow(machine.VantageA, c.trips...)
		if c.change != nil {
			c.change(f)
		}
		got, list := steadyFindings(f, defaults)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
		for _, x := range list {
			if x.Rule.Say != nil && x.Message() == "" {
				t.Errorf("%s: no message", c.name)
			}
		}
	}
}

// TestSteadyGrades: a finding is as sure as the place of the tap allows.
func TestSteadyGrades(t *testing.T) {
	trips := repeat(100, 200*time.Millisecond)
	for _, c := range []struct {
		vantage machine.Vantage
		want    machine.Certainty
	}{
		{machine.VantageA, machine.Certain},
		{machine.VantageUnknown, machine.Possible},
	} {
		_, list := steadyFindings(steadyFlow(c.vantage, trips...), DefaultThresholds())
		if len(list) != 1 || list[0].Certainty != c.want || list[0].Side != machine.A {
			t.Errorf("%v: %+v, expected one finding that is %v", c.vantage, list, c.want)
		}
	}
	// The tap stands at B, and A's times only show how soon B answers.
	if ids, _ := steadyFindings(steadyFlow(machine.VantageB, trips...), DefaultThresholds()); ids != nil {
		t.Errorf("tap at b: %v from the answering times of b", ids)
	}
}

// TestRoundTripBetween: a tap on the way sees the way to each side and back.
func TestRoundTripBetween(t *testing.T) {
	f := steadyFlow(machine.VantageBetween, repeat(100, 100*time.Millisecond)...)
	if r := f.RoundTrip(); r.Mean >= 0 || r.Certainty != machine.Unknown {
		t.Errorf("one half is known: %+v", r)
	}
	f.ended.fresh.Sides[machine.B].Trips = f.ended.fresh.Sides[machine.A].Trips
	if r := f.RoundTrip(); r.Mean != 200*time.Millisecond || r.Certainty != machine.Likely || r.Count != 100 {
		t.Errorf("both halves are known: %+v", r)
	}
	if n, _ := f.Network(machine.B); n.RTT != 200*time.Millisecond {
		t.Errorf("side b: %v", n.RTT)
	}
}

// TestRoundTripOfSide: only the side at the tap has a round trip of its own.
func TestRoundTripOfSide(t *testing.T) {
	f := steadyFlow(machine.VantageA, repeat(100, 100*time.Millisecond)...)
	f.ended.fresh.Sides[machine.B].WireRTT = time.Millisecond
	a, _ := f.Network(machine.A)
	b, _ := f.Network(machine.B)
	if a.RTT != 100*time.Millisecond || a.Jitter != 0 || b.RTT != -1 || b.RTT95 != -1 || b.Jitter != -1 {
		t.Errorf("a %v %v, b %v %v %v", a.RTT, a.Jitter, b.RTT, b.RTT95, b.Jitter)
	}
}
