package yojimbo

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/netcode"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestTokenExpired: what is said of a token depends on when it expired, and on what came back.
func TestTokenExpired(t *testing.T) {
	challenge := func(s *netcodeScript) { s.send(machine.B, wire.NetcodeChallenge, 1<<63, make([]byte, 308), 1) }
	asks := func(n int) func(s *netcodeScript) {
		return func(s *netcodeScript) {
			for range n {
				s.request(1)
				s.wait(100 * time.Millisecond)
			}
		}
	}
	for _, c := range []struct {
		name   string
		expire uint64 // the first request comes at 3,600 s
		script func(s *netcodeScript)
		want   []string
		figure float64 // of the first
	}{
		{"valid", 3601, asks(1), nil, 0},
		{"expired just now, and asked once", 3600, asks(1), []string{"netcode-token-expired possible"}, 0},
		{"expired just now, and asked often", 3600, asks(5), []string{
			"netcode-token-expired possible", "netcode-no-answer certain",
		}, 0},
		{"expired a second ago", 3599, asks(2), []string{"netcode-token-expired likely"}, 1},
		{"expired long ago, and asked once", 0, asks(1), []string{"netcode-token-expired possible"}, 3600},
		{"expires while the client asks", 3601, asks(30), []string{"netcode-no-answer certain"}, 30},
		{"the client answers a challenge that was not captured", 3558, func(s *netcodeScript) {
			asks(3)(s)
			s.send(machine.A, wire.NetcodeResponse, 3, make([]byte, 308), 2)
		}, []string{"netcode-clock-behind likely"}, 42},
		{"an old connection goes on meanwhile", 3558, func(s *netcodeScript) {
			asks(3)(s)
			s.send(machine.B, wire.NetcodeKeepAlive, 900, make([]byte, 8), 2)
		}, []string{"netcode-token-expired likely"}, 42},
		{"denied", 3558, func(s *netcodeScript) {
			asks(1)(s)
			s.send(machine.B, wire.NetcodeDenied, 1<<63, nil, 2)
		}, []string{"netcode-denied certain", "netcode-clock-behind likely"}, 100},
		{"used, then asked with again when it has expired", 3601, func(s *netcodeScript) {
			asks(1)(s)
			challenge(s)
			s.send(machine.A, wire.NetcodeResponse, 1, make([]byte, 308), 2)
			s.wait(5 * time.Second)
			asks(5)(s)
		}, []string{"netcode-token-reuse certain", "netcode-token-expired possible"}, 5000},
		{"used when expired, then asked with again", 3599, func(s *netcodeScript) {
			asks(1)(s)
			challenge(s)
			s.send(machine.A, wire.NetcodeResponse, 1, make([]byte, 308), 2)
			s.wait(5 * time.Second)
			asks(5)(s)
		}, []string{"netcode-token-reuse certain", "netcode-clock-behind likely", "netcode-token-expired possible"}, 5000},
	} {
		s := newNetcodeScript(t)
		s.expire = c.expire
		c.script(s)
		var got []machine.Anomaly
		var words []string
		tr := netcode.NewTracker(s.profile, machine.Facts{})
		var out machine.Effects
		for i := range s.flow {
			tr.Observe(&s.flow[i], &out)
		}
		tr = tr.Clone()
		tr.Finish(&out)
		for _, a := range out.Anomalies {
			if a.Rule.ID != "netcode-loss" {
				got, words = append(got, a), append(words, a.Rule.ID+" "+a.Certainty.String())
			}
		}
		if !slices.Equal(words, c.want) || len(got) > 0 && math.Abs(got[0].Figures[0]-c.figure) > 0.2 {
			t.Errorf("%s: %v, %v; expected %v, %v", c.name, words, got, c.want, c.figure)
		}
	}
}

// TestTokenTimes: no time of a token or of a capture leaves the range.
func TestTokenTimes(t *testing.T) {
	for _, c := range []struct {
		at     machine.Instant
		expire uint64
		want   string // of the figure, in words; "" for none
	}{
		{0, 0, "the token expired 0.0 s before"},
		{0, math.MaxUint64, ""},
		{-1, 0, ""},
		{math.MinInt64, 0, ""},
		{math.MinInt64, math.MaxUint64, ""},
		{math.MaxInt64, math.MaxUint64, ""},
		{math.MaxInt64, 1 << 63, ""},
		{math.MaxInt64, 9223372037, ""},
		{math.MaxInt64, 9223372036, "the token expired 0.9 s before"},
		{math.MaxInt64, 0, "the token expired 106752 days before"},
	} {
		s := newNetcodeScript(t)
		s.at, s.expire = c.at, c.expire
		s.request(1)
		s.at = math.MinInt64 // the clock steps back as far as it can
		s.request(1)
		rules, _, _ := s.run(netcode.NewTracker(s.profile, machine.Facts{}))
		told := rules["netcode-token-expired"]
		if len(told) != min(1, len(c.want)) {
			t.Errorf("at %d, expiry %d: %v", c.at, c.expire, told)
			continue
		}
		if len(told) > 0 {
			if text := told[0].Rule.Say(1, told[0].Figures); len(text) < len(c.want) || text[:len(c.want)] != c.want {
				t.Errorf("at %d, expiry %d: %q, expected %q", c.at, c.expire, text, c.want)
			}
		}
		for _, a := range rules["netcode-no-answer"] {
			if left := a.Figures[2]; left < 0 || left > 3600 {
				t.Errorf("at %d, expiry %d: valid for another %v s", c.at, c.expire, left)
			}
		}
	}
}
