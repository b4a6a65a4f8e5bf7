package vantage

import (
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// talk weighs the messages of a connection. Both sides run one release.
type talk struct {
	t       *testing.T
	e       Evidence
	speaker riptide.Speaker
	at      machine.Instant
}

func newTalk(t *testing.T, stream bool) *talk {
	t.Helper()
	build, ok := wire.LookupBuild("2.2.1")
	if !ok {
		t.Fatal("no build 2.2.1")
	}
	builds := wire.Matching(func(b *wire.Build) bool { return b == build })
	return &talk{t: t, e: New(stream), speaker: riptide.Speaker{Codec: wire.Codec{Dialect: build.Dialect}, Builds: builds}}
}

// say lets time pass and weighs a message.
func (c *talk) say(after time.Duration, from machine.Side, m wire.Message) {
	c.at = c.at.Add(after)
	c.e.Weigh(c.at, from, &c.speaker, &m)
}

// exchange has each side send a reliable message and the other answer it. away is the time of each
// side's answer.
func (c *talk) exchange(id uint16, away [2]time.Duration) {
	for from := range machine.Side(2) {
		c.say(50*time.Millisecond, from, wire.Message{Type: wire.Reliable, Sequence: id})
		c.say(away[from.Other()], from.Other(), wire.Message{Type: wire.Ack, Last: id, AckBits: 0xffff, Cause: id})
	}
}

// TestVerdict: the side that answers sooner is at the tap. One answer shows little; over many the
// verdict is sure.
func TestVerdict(t *testing.T) {
	const near, far = 500 * time.Microsecond, 60 * time.Millisecond
	for _, c := range []struct {
		name    string
		away    [2]time.Duration
		rounds  uint16
		vantage machine.Vantage
		sure    bool
		reason  string
	}{
		{"nothing", [2]time.Duration{}, 0, machine.VantageUnknown, false, "neither side answers"},
		{"a is near", [2]time.Duration{near, far}, 20, machine.VantageA, true, "at a: a answers within 500µs, b after 60ms"},
		{"b is near", [2]time.Duration{far, near}, 20, machine.VantageB, true, "at b: b answers within 500µs"},
		{"both are near", [2]time.Duration{near, near}, 20, machine.VantageBoth, true, "at both"},
		{"neither is near", [2]time.Duration{4 * far, 5 * far}, 20, machine.VantageBetween, true, "between: "},
		{"few answers", [2]time.Duration{near, far}, 3, machine.VantageA, false, "at a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			talk := newTalk(t, false)
			for id := range c.rounds {
				talk.exchange(id+1, c.away)
			}
			v := talk.e.Verdict()
			if v.Vantage != c.vantage || v.Sure != c.sure || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("%v, sure %v (%s); expected %v, %v (…%s…)", v.Vantage, v.Sure, v.Reason, c.vantage, c.sure, c.reason)
			}
			for x, away := range c.away {
				if shown := talk.e.Shows(machine.Side(x)); shown != (c.rounds > 0 && away < machine.NearProof) {
					t.Errorf("side %v, %v away: it is shown to stand at the tap: %v", machine.Side(x), away, shown)
				}
				after, is := talk.e.Away(machine.Side(x))
				if is != (c.rounds >= enoughAnswers && away > relayLeast) || c.rounds > 0 && after != away {
					t.Errorf("side %v, %v away: it is taken for %v away, %v", machine.Side(x), away, after, is)
				}
			}
		})
	}
}

// TestByRTT: the share of a client's RTT that its pings spend beyond the tap shows where the tap
// is. No message needs an answer for that.
func TestByRTT(t *testing.T) {
	const rtt = 400 * time.Millisecond
	for _, c := range []struct {
		beyond  time.Duration // of the RTT
		vantage machine.Vantage
	}{{rtt, machine.VantageA}, {2 * time.Millisecond, machine.VantageB}, {rtt / 2, machine.VantageBetween}} {
		talk := newTalk(t, false)
		for id := range uint8(12) {
			told := int16(rtt / time.Millisecond)
			if id == 0 {
				told = -1
			}
			talk.say(time.Second, machine.A, wire.Message{Type: wire.Heartbeat, Ping: id, RTT: told, HasRTT: true})
			talk.say(c.beyond, machine.B, wire.Message{Type: wire.Heartbeat, Ping: id})
		}
		if v := talk.e.Verdict(); v.Vantage != c.vantage || !v.Sure {
			t.Errorf("of %v its pings take %v beyond the tap: %v, sure %v (%s); expected %v", rtt, c.beyond, v.Vantage, v.Sure,
				v.Reason, c.vantage)
		}
	}
}

// TestContradicted: both sides answer alike, and messages to one of them were lost. So the tap is
// at the other. A stream loses nothing.
func TestContradicted(t *testing.T) {
	for _, stream := range []bool{false, true} {
		talk := newTalk(t, stream)
		for id := uint16(1); id < 40; id += 2 {
			// Message id to B is lost behind the tap; its Acks do not name it.
			talk.say(20*time.Millisecond, machine.A, wire.Message{Type: wire.Reliable, Sequence: id})
			talk.say(time.Millisecond, machine.A, wire.Message{Type: wire.Reliable, Sequence: id + 1})
			talk.say(time.Millisecond, machine.B, wire.Message{Type: wire.Ack, Last: id + 1, AckBits: 0xaaaa, Cause: id + 1})
			talk.say(20*time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: id})
			talk.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: id, AckBits: 0xffff, Cause: id})
			talk.say(20*time.Millisecond, machine.B, wire.Message{Type: wire.Reliable, Sequence: id + 1})
			talk.say(time.Millisecond, machine.A, wire.Message{Type: wire.Ack, Last: id + 1, AckBits: 0xffff, Cause: id + 1})
		}
		want := machine.VantageA
		if stream {
			want = machine.VantageBoth
		}
		if v := talk.e.Verdict(); v.Vantage != want {
			t.Errorf("stream %v: %v (%s), expected %v", stream, v.Vantage, v.Reason, want)
		}
	}
}

// TestClone: a message added to a copy does not change the original.
func TestClone(t *testing.T) {
	talk := newTalk(t, false)
	talk.say(time.Second, machine.A, wire.Message{Type: wire.Reliable, Sequence: 1})
	c := talk.e.Clone()
	answer := wire.Message{Type: wire.Ack, Last: 1, Cause: 1}
	c.Weigh(talk.at.Add(time.Millisecond), machine.B, &talk.speaker, &answer)
	if got := talk.e.of[machine.B].waits.Count(); got != 0 {
		t.Errorf("the original has %d answers, expected 0", got)
	}
	talk.say(5*time.Millisecond, machine.B, answer)
	if got := talk.e.of[machine.B].waits; got.Count() != 1 || got.Least() != 5*time.Millisecond {
		t.Errorf("the original has %d answers, the least after %v; expected one, after 5ms", got.Count(), got.Least())
	}
}

// TestWaits: the least times are kept in order. Of many, the very least does not count.
func TestWaits(t *testing.T) {
	var w waits
	for n := range 600 {
		wait := time.Duration(n*7%600+1) * time.Millisecond // 1 to 600 ms, each once
		w.take(wire.Reliable, wait)
		if n == 0 && w.Least() != wait {
			t.Errorf("after one wait of %v the least is %v", wait, w.Least())
		}
	}
	if w.Least() != 3*time.Millisecond || w.Second() != 4*time.Millisecond || w.once != 0 {
		t.Errorf("%v counts, then %v; expected of 600 the third, 3ms, and the fourth", w.Least(), w.Second())
	}
	w.take(wire.Heartbeat, 2*time.Second)
	if w.once != 1 || w.soonest != 2*time.Second {
		t.Errorf("%d waits for what is sent once, the least %v; expected one of 2s", w.once, w.soonest)
	}
}

// TestPortBeats: answers to Pytide's heartbeats are no contradiction at the C# server that sends
// them. An answer to no heartbeat is.
func TestPortBeats(t *testing.T) {
	e := New(false)
	port, library := &riptide.Behaviour{Port: true}, &riptide.Behaviour{}
	e.contradict(machine.A, port, 0, &wire.Message{Type: wire.Connect})
	for id := range uint8(5) {
		beat := &wire.Message{Type: wire.Heartbeat, Ping: id}
		e.contradict(machine.A, port, riptide.BeatPing, beat)
		e.contradict(machine.B, library, riptide.BeatAnswer, beat)
	}
	if n := e.of[machine.B].against.count(); n != 0 {
		t.Errorf("5 answers to 5 heartbeats of Pytide: %d contradictions, expected none", n)
	}
	e.contradict(machine.B, library, riptide.BeatAnswer, &wire.Message{Type: wire.Heartbeat, Ping: 4})
	if n := e.of[machine.B].against.count(); n != 1 {
		t.Errorf("a sixth answer to 5 heartbeats: %d contradictions, expected one", n)
	}
}

// TestUnanswered: one side's reliable messages and the other's Acks are all that a capture holds, and the
// times do not decide. Ids without a gap and copies without an Ack place the tap at their sender. Gaps, or an
// Ack for every copy, do not.
func TestUnanswered(t *testing.T) {
	for _, c := range []struct {
		name         string
		gaps, unread bool
		vantage      machine.Vantage
	}{
		{"no loss", false, false, machine.VantageUnknown},
		{"lost behind the tap", false, true, machine.VantageA},
		{"lost before the tap", true, false, machine.VantageUnknown},
		{"lost on both sides of it", true, true, machine.VantageUnknown},
	} {
		talk := newTalk(t, false)
		for id := uint16(1); id < 120; {
			if c.gaps {
				id++
			}
			for range 12 { // several in one tick
				talk.say(0, machine.A, wire.Message{Type: wire.Reliable, Sequence: id})
				id++
			}
			for k := uint16(12); k > 0; k-- {
				if c.unread && k == 5 {
					continue
				}
				after := time.Duration(0)
				if k == 12 {
					after = 1700 * time.Microsecond // too long for a side at the tap, too short for one away
				}
				talk.say(after, machine.B, wire.Message{Type: wire.Ack, Last: id - k, AckBits: 0xffff, Cause: id - k})
			}
			talk.say(40*time.Millisecond, machine.A, wire.Message{Type: wire.Unreliable})
		}
		v := talk.e.Verdict()
		if v.Vantage != c.vantage || v.Sure {
			t.Errorf("%s: %v (%s), sure %t; expected %v", c.name, v.Vantage, v.Reason, v.Sure, c.vantage)
		}
	}
}
