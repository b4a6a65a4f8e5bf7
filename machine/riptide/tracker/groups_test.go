package tracker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestGroups checks the invariants in the comments of side.go and life.go against random messages.
// They come in order and out of order, with jumps and duplicates, acked rightly and wrongly. It
// covers every dialect and every place of the tap.
func TestGroups(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 100
	}
	vantages := []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBoth, machine.VantageBetween}
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 0x617))
		build := wire.Builds[seed%uint64(len(wire.Builds))]
		speaker := riptide.Speaker{
			Codec:  wire.Codec{Dialect: build.Dialect},
			Builds: wire.Matching(func(b *wire.Build) bool { return b == build }),
		}
		config := riptide.Config{Senders: [2]riptide.Speaker{speaker, speaker}, Stream: rng.IntN(4) == 0}
		vantage := vantages[seed/uint64(len(wire.Builds))%uint64(len(vantages))]
		f := follow(config, machine.Facts{}, vantage, "told")
		f.weighing = rng.IntN(2) == 0
		talk := drawnTalk{rng: rng, codec: speaker.Codec, keeps: 1 + rng.IntN(20), doubles: rng.Float64()}
		var out machine.Effects
		for n := range 600 {
			p, ok := talk.next(uint64(n))
			if !ok {
				continue
			}
			f.observe(&step{sighting: *p, out: &out})
			out.Reset()
			for i := range f.sides {
				if err := f.sides[i].broken(); err != nil {
					t.Fatalf("seed %d, %s at %v, message %d (%x), side %v: %v", seed, build.Name, vantage, n, p.bytes,
						f.sides[i].side, err)
				}
			}
		}
		if packets := f.sides[0].figures.packets + f.sides[1].figures.packets; packets < 200 {
			t.Fatalf("seed %d: %d packets: too few to prove anything", seed, packets)
		}
		f.finish(&out)
	}
}

// drawnTalk draws the messages of two sides.
type drawnTalk struct {
	rng     *rand.Rand
	codec   wire.Codec
	at      machine.Instant
	newest  [2]uint16 // reliable, by side
	notes   [2]uint16
	sent    [][2][]byte // by sender: the newest messages, for copies
	keeps   int         // number of them kept
	doubles float64     // share of copies
}

// next draws one message. It returns false for a type that the dialect does not have.
func (d *drawnTalk) next(n uint64) (p *sighting, ok bool) {
	from := machine.Side(d.rng.IntN(2))
	near := func(newest uint16) uint16 {
		switch d.rng.IntN(12) {
		case 0:
			return newest + uint16(d.rng.IntN(80)) // a jump
		case 1:
			return newest - uint16(d.rng.IntN(40))
		case 2:
			return uint16(d.rng.Uint32())
		}
		return newest
	}
	m := wire.Message{
		MessageID: 3, ClientID: 7, HasReason: true, Ping: uint8(n / 20), RTT: int16(d.rng.IntN(200)) - 1,
		HasRTT: from == machine.A,
	}
	kinds := []wire.Type{
		wire.Reliable, wire.Ack, wire.Reliable, wire.Ack, wire.Notify, wire.Heartbeat, wire.Unreliable,
		wire.Welcome, wire.AckExtra,
	}
	m.Type = kinds[d.rng.IntN(len(kinds))]
	switch {
	case n == 0 || d.rng.IntN(300) == 0:
		m.Type, from = wire.Connect, machine.A
	case d.rng.IntN(400) == 0:
		m.Type = wire.Disconnect
	}
	switch peer := from.Other(); m.Type {
	case wire.Reliable, wire.Welcome:
		d.newest[from]++
		m.Sequence = near(d.newest[from])
	case wire.Notify:
		d.notes[from]++
		m.Sequence, m.Last, m.AckBits = near(d.notes[from]), near(d.notes[peer]), uint16(d.rng.IntN(256)|0x0f)
	case wire.Ack, wire.AckExtra:
		m.Last = near(d.newest[peer])
		m.Cause, m.AckBits = m.Last-uint16(d.rng.IntN(3)), uint16(d.rng.Uint32()|0xff)
		m.HasCause, m.Flag = m.Cause != m.Last, m.Cause != m.Last
	}
	var body []byte
	if m.Type.User() {
		body = []byte{byte(d.rng.IntN(3)), 2, 3, 4}
	}
	b, err := d.codec.Append(nil, &m, body, 8*len(body))
	if err != nil {
		return nil, false
	}
	if len(d.sent) > 0 && d.rng.Float64() < d.doubles {
		again := d.sent[d.rng.IntN(len(d.sent))]
		for from = machine.A; again[from] == nil; from = machine.B {
		}
		b = again[from]
	}
	var own [2][]byte
	own[from] = b
	if d.sent = append(d.sent, own); len(d.sent) > d.keeps {
		d.sent = d.sent[1:]
	}
	d.at = d.at.Add(time.Duration(d.rng.IntN(120)) * time.Millisecond)
	return &sighting{
		at: d.at, ref: machine.MakeRef(0, n+1), from: from, bytes: b, length: len(b),
		behind: d.rng.IntN(200) == 0,
	}, true
}

// broken returns an error for an invariant of a side's groups that does not hold.
func (s *side) broken() error {
	tap, acks, end := &s.tap, &s.acks, &s.end
	for _, c := range []struct {
		says  string
		holds bool
	}{
		{"near or stream means ordered", tap.ordered == (tap.near || tap.stream)},
		{"speech.ref is 0 while it has not spoken", s.activity.ref != 0 || s.activity.last == 0},
		{"end.limit is set where limitOf is", (end.limit != 0) == (end.limitOf != riptide.NotDropped)},
		{"len(in.missed), len(in.jumps) are bounded", len(s.in.missed) <= unseenMost && len(s.in.jumps) <= jumpsMost},
		{"0 ≤ queue.head ≤ len(items) ≤ QueueMost", 0 <= s.in.queue.head && s.in.queue.head <= len(s.in.queue.items) &&
			len(s.in.queue.items) <= riptide.QueueMost},
		{"acks.blind ≤ doubt", acks.blind <= acks.doubt},
		{"acks.last ≤ finished.top", !acks.heard || acks.last <= acks.finished.top},
		{"notesIn.doubt ≤ heard", s.notifyIn.doubt <= s.notifyIn.heard},
		{"0 ≤ out.suspect ≤ lives.next", 0 <= s.out.suspect && s.out.suspect <= s.out.lives.next},
		{"out.absent lies below top", len(s.out.absent) == 0 || len(s.out.absent) <= absentMost &&
			s.out.absent[len(s.out.absent)-1].id < s.out.top},
		{"notesOut.first ≤ top", !s.notifyOut.met || s.notifyOut.first <= s.notifyOut.top},
		{"figures.wireRTT is 0 while wireCount is", s.figures.wireCount != 0 || s.figures.wireRTT == 0},
	} {
		if !c.holds {
			return errors.New(c.says)
		}
	}
	for i := 1; i < len(s.out.absent); i++ {
		if was, is := s.out.absent[i-1].id, s.out.absent[i].id; is <= was {
			return fmt.Errorf("out.absent has %d behind %d", is, was)
		}
	}
	for i, l := range s.modes() {
		if l.first < 0 || l.first > l.next || l.next-l.first > int64(len(l.slots)) || len(l.slots) > livesMost {
			return fmt.Errorf("lives %d: first %d, next %d, %d slots", i, l.first, l.next, len(l.slots))
		}
		if n := len(l.slots); n&(n-1) != 0 || !l.anonymous && len(l.index) != n || l.anonymous && l.index != nil {
			return fmt.Errorf("lives %d: %d slots, an index of %d", i, n, len(l.index))
		}
		for n := l.first; n < l.next; n++ {
			if err := l.at(n).broken(); err != nil {
				return fmt.Errorf("lives %d, message %d: %w", i, n, err)
			}
		}
	}
	return nil
}

// broken returns an error for an invariant of a message that does not hold.
func (e *life) broken() error {
	c, a := &e.copies, &e.answers
	switch {
	case e.number < int64(e.before):
		return fmt.Errorf("number %d, before %d", e.number, e.before)
	case c.count < 1 || c.first > c.last || c.frame == 0:
		return fmt.Errorf("%d copies, first %v, last %v, frame %v", c.count, c.first, c.last, c.frame)
	case a.count == 0 && (a.first != 0 || a.silence != 0):
		return fmt.Errorf("%d answers, the first at %v", a.count, a.first)
	case e.sender.acked == machine.Unanswered && (e.sender.at != 0 || e.sender.by != 0):
		return fmt.Errorf("not acked, but at %v by %v", e.sender.at, e.sender.by)
	case e.receiver.times < 0 || e.receiver.delivered == machine.Unanswered && e.receiver.times == 0 && e.receiver.by != 0:
		return fmt.Errorf("handed over %d times, %v by %v", e.receiver.times, e.receiver.delivered, e.receiver.by)
	}
	return nil
}
