package tracker

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// TestNewSession: two connections follow each other on one pair of addresses. The first
// packet of the second opens a session, wherever the tap is, and is not entered.
func TestNewSession(t *testing.T) {
	for _, c := range []struct {
		name    string
		tap     machine.Vantage
		known   bool
		first   time.Duration
		loss    float64
		jitter  time.Duration
		wrapped uint32 // how far the first one had counted before the capture
	}{
		{name: "near", tap: machine.VantageA, known: true, first: 20 * time.Second},
		{name: "near, short", tap: machine.VantageA, known: true, first: 2 * time.Second},
		{name: "far", tap: machine.VantageB, known: true, first: 20 * time.Second, loss: 0.1, jitter: 30 * time.Millisecond},
		{name: "between", tap: machine.VantageBetween, known: true, first: 20 * time.Second, loss: 0.1},
		{name: "held", tap: machine.VantageA, first: 5 * time.Second},
		{name: "held, reordered", tap: machine.VantageB, first: 5 * time.Second, loss: 0.1, jitter: 30 * time.Millisecond},
		{name: "high numbers", tap: machine.VantageA, known: true, first: 20 * time.Second, wrapped: 60000},
	} {
		config := worldConfig{
			tap: c.tap, tick: [2]time.Duration{time.Second / 20, time.Second / 20}, delay: 20 * time.Millisecond,
			loss: c.loss, jitter: c.jitter, length: c.first, start: [2]uint32{c.wrapped, c.wrapped},
		}
		one := newWorld(1, reliable(), config)
		one.run()
		config.length, config.start = 20*time.Second, [2]uint32{}
		two := newWorld(2, reliable(), config)
		two.run()
		facts := machine.Facts{}
		if c.known {
			facts.Vantage = c.tap
		}
		tr := NewByRules(nil, reliable(), facts)
		var out machine.Effects
		for i := range one.seen {
			if tr.take(&one.seen[i], &out); out.NewSession {
				t.Fatalf("%s: a session is found at packet %d of the first one", c.name, i)
			}
		}
		opened := -1
		for i := range two.seen {
			p := two.seen[i]
			p.at = p.at.Add(c.first + 2*time.Second)
			if tr.take(&p, &out); out.NewSession {
				opened = i
				break
			}
		}
		if opened != 0 {
			t.Errorf("%s: the second session was found at packet %d of it", c.name, opened)
		}
	}
}

// restarted returns a tape of a flow in which A has begun anew. Its session before went to packet
// 120, and B's to 111. A's own packets pass first.
func restarted(t *testing.T, vantage machine.Vantage, sent uint32) *tape {
	facts := machine.Facts{Vantage: vantage}
	facts.Earlier[machine.A][0] = machine.Number{Known: true, Value: 120}
	facts.Earlier[machine.B][0] = machine.Number{Known: true, Value: 111}
	p := &tape{T: t, tracker: NewByRules(nil, reliable(), facts)}
	for q := range sent {
		p.pass(machine.A, q, nothing, 0)
	}
	return p
}

// acked returns the certainty with which a side has read the ack of a packet.
func (p *tape) acked(x machine.Side, sequence uint32) machine.Certainty {
	for _, e := range p.out.Events {
		if e.Kind == machine.EventAcked && e.Side == x && e.Sequence == sequence {
			return e.Certainty
		}
	}
	return machine.Unknown
}

// TestAckedNotBeforeSent: B still acks A's session before, up to 120. A reads that before it
// sends its new packet 118, whose last fragment passes first.
func TestAckedNotBeforeSent(t *testing.T) {
	const all = 0xffffffff
	p := restarted(t, machine.VantageB, 118)
	p.pass(machine.B, 112, 120, all)
	p.fragment(machine.A, 118, 1, 2, 0, 0)
	p.fragment(machine.A, 118, 0, 2, 112, 1)
	if got := p.acked(machine.A, 118); got != machine.Unknown {
		t.Errorf("packet 118 is acked, %v, by what A read before it was sent", got)
	}
	if got := p.acked(machine.A, 117); got != machine.Certain {
		t.Errorf("packet 117 is acked, %v: expected certain", got)
	}
	p.pass(machine.B, 113, 120, all)
	p.pass(machine.A, 119, 113, 3)
	if got := p.acked(machine.A, 118); got != machine.Certain {
		t.Errorf("packet 118 is acked, %v, by what A read after it: expected certain", got)
	}
}

// TestMixedSessions: B may hold fragments of a packet of A's session before, with other acks.
// So what it reads of A's new packet of that number is likely at most. That does not hold for a
// packet that is no packet of fragments, nor for one past the session before.
func TestMixedSessions(t *testing.T) {
	for vantage := machine.VantageA; vantage <= machine.VantageB; vantage++ {
		for _, c := range []struct {
			name       string
			number     uint32
			fragmented bool
			want       machine.Certainty
		}{
			{"the number may be in reassembly", 100, true, machine.Likely},
			{"no fragments", 100, false, machine.Certain},
			{"past the session before", 130, true, machine.Certain},
		} {
			p := restarted(t, vantage, 1)
			own := uint32(112)
			p.pass(machine.B, own-1, 0, 1)
			for q := uint32(1); q < c.number; q++ {
				p.pass(machine.A, q, own-1, 1)
			}
			p.pass(machine.B, own, c.number-1, 1)
			if c.fragmented {
				p.fragment(machine.A, c.number, 0, 2, own, 1)
				p.fragment(machine.A, c.number, 1, 2, 0, 0)
			} else {
				p.pass(machine.A, c.number, own, 1)
			}
			p.pass(machine.B, own+1, c.number, 3)
			if got := p.acked(machine.B, own); got != c.want {
				t.Errorf("%v, %s: acked %v, expected %v", vantage, c.name, got, c.want)
			}
		}
	}
}

// TestLateFromBeforeRestart: A has restarted, and B has not. A packet that B sent long before
// comes late. It opens no session, and counts for none.
func TestLateFromBeforeRestart(t *testing.T) {
	const all = 0xffffffff
	p := restarted(t, machine.VantageA, 4)
	for q := uint32(112); q < 118; q++ {
		p.pass(machine.B, q, 94, all)
	}
	p.pass(machine.B, 61, 50, all)
	p.pass(machine.B, 91, 80, all)
	if p.out.NewSession {
		t.Error("a late packet opened a session")
	}
	if s := &p.tracker.Sides[machine.B]; s.sent.first64 != 112 {
		t.Errorf("B's packets begin at %d, expected 112", s.sent.first64)
	}
	p.pass(machine.B, 2, 93, 1) // B restarts too, and has read a packet of A that was under way
	if !p.out.NewSession {
		t.Error("the restart of B opened no session")
	}
}

// TestPacketZeroAtWrap: the capture begins at packet 0 of B, which names packets from before the
// capture. B is at a wrap: nothing that it acks goes back, and older packets are unknown.
func TestPacketZeroAtWrap(t *testing.T) {
	for vantage := machine.VantageA; vantage <= machine.VantageB; vantage++ {
		p := newTape(t, reliable(), vantage)
		p.pass(machine.B, 0, 65534, 0xfeffffff)
		for q := range uint32(40) {
			p.pass(machine.A, (q+65535)&0xffff, q, 0xffffffff)
			p.pass(machine.B, q+1, (q+65535)&0xffff, 0xffffffff&^(2<<(q+24))&0xffffffff)
		}
		for _, a := range p.out.Anomalies {
			if a.Rule == gaffer.AckGoingBack {
				t.Errorf("%v: frame %d: the ack went back", vantage, a.Ref.Frame())
			}
		}
	}
}

// TestLowByteIsNoSession: a side writes only the low byte of its sequence, and ack relative to it. So
// packet 0 follows 255, and its ack falls back by 256. That is no restart, not at the first such wrap
// and not at the second. A side that restarts and reads before it sends looks alike up to its ack.
func TestLowByteIsNoSession(t *testing.T) {
	for _, c := range []struct {
		name    string
		tap     machine.Vantage
		restart bool
		opened  int // the packet of the side that opens a session; -1 for none
	}{
		{"near", machine.VantageA, false, -1},
		{"far", machine.VantageB, false, -1},
		{"near, a restart", machine.VantageA, true, 256},
		{"far, a restart", machine.VantageB, true, 256},
	} {
		tr := NewByRules(nil, reliable(), machine.Facts{Vantage: c.tap})
		var out machine.Effects
		opened := -1
		for i := 0; i < 600 && opened < 0; i++ {
			at := machine.Instant(i) * machine.Instant(20*time.Millisecond)
			b := sighting{at: at, from: machine.B, header: true, sequence: uint32(i), ack: uint32(i-1) & 0xffff, ackBits: 1}
			if i > 255 {
				b.ack = 255 // it takes nothing more
			}
			tr.take(&b, &out)
			a := sighting{
				at: at + 1, from: machine.A, header: true, sequence: uint32(i) & 0xff, ack: uint32(i), ackBits: 1<<32 - 1,
			}
			switch {
			case i < 32:
				a.ackBits = 1<<uint(i+1) - 1
			case i > 255 && c.restart:
				a.ackBits = 1<<uint(i-255) - 1
			case i > 255:
				a.ack -= uint32(i) &^ 0xff // below 0 where its peer has sent fewer
				a.ack &= 0xffff
			}
			if tr.take(&a, &out); out.NewSession {
				opened = i
			}
		}
		if opened != c.opened {
			t.Errorf("%s: packet %d opens a session, expected %d; -1 is none", c.name, opened, c.opened)
		}
	}
}

// TestFragmentZeroLast: fragment 0 of packet 0 comes behind its other fragments and behind packet 1.
// It opens no session, though the header that it holds is the first one of packet 0. A packet 0 of
// another length does, once the header of the first is known.
func TestFragmentZeroLast(t *testing.T) {
	for vantage := machine.VantageA; vantage <= machine.VantageBetween; vantage++ {
		p := newTape(t, reliable(), vantage)
		p.pass(machine.A, 0, nothing, 0)
		p.fragment(machine.B, 0, 1, 2, 0, 0)
		p.pass(machine.B, 1, nothing, 0)
		p.pass(machine.A, 1, nothing, 0)
		p.pass(machine.B, 2, nothing, 0)
		p.fragment(machine.B, 0, 0, 2, nothing, 0)
		if p.out.NewSession {
			t.Errorf("%v: fragment 0 of packet 0 opened a session", vantage)
		}
		p.pass(machine.B, 0, nothing, 0)
		if !p.out.NewSession {
			t.Errorf("%v: another packet 0 opened no session", vantage)
		}
	}
}
