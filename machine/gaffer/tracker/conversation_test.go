package tracker_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// spoken is the true life of one message, from the endpoints' own steps.
type spoken struct {
	kind      uint32
	body      []byte
	packets   []int64         // that carried it
	sent      machine.Instant // the first of them
	arrived   machine.Instant // first packet accepted that carried it; 0 for none
	delivered machine.Instant // 0 for never
	acked     bool            // one of its packets was acked, or a message ack named it
}

// conversation is a simulated flow with messages, its truth, and what passed a tap.
type conversation struct {
	profile *wire.Profile
	soak    gaffertest.Soak
	sides   [2][]*spoken // by id
	seen    []machine.Datagram
}

func converse(t *testing.T, seed uint64, tap float64, adjust func(*gaffertest.Soak)) *conversation {
	t.Helper()
	return converseWatched(t, seed, tap, adjust, func(*sim.Step) {})
}

// converseWatched is converse that shows each step of an endpoint to watch.
func converseWatched(t *testing.T, seed uint64, tap float64, adjust func(*gaffertest.Soak),
	watch func(*sim.Step),
) *conversation {
	t.Helper()
	s := gaffertest.DrawSoak(seed)
	for n := seed; s.Messages == 0; n += 1 << 20 {
		s = gaffertest.DrawSoak(n)
	}
	s.Options.First = 0
	s.Options.Messages.FirstID = 0
	if adjust != nil {
		adjust(&s)
	}
	tally := gaffertest.NewTally()
	w, err := s.Build(seed, tally)
	if err != nil {
		t.Fatal(err)
	}
	o := s.Endpoint(machine.A)
	c := &conversation{profile: o.Profile, soak: s}
	carried := [2]map[int64][]int64{{}, {}} // packet: ids
	w.Watch(func(step *sim.Step) {
		watch(step)
		me := step.Host.Index
		for _, e := range step.Out.Events {
			switch e.Kind {
			case machine.EventSent:
				b := step.Out.Transmit[0].Bytes
				var p wire.Packet
				if err := c.profile.Parse(b, len(b), &p); err != nil {
					t.Fatal(err)
				}
				section, err := c.profile.Messages.Open(b[p.PayloadOffset:], 0)
				if err != nil {
					t.Fatal(err)
				}
				var m wire.Message
				for section.Next(&m) {
					id := int64(m.ID) // no run has so many messages that ids wrap
					for int64(len(c.sides[me])) <= id {
						c.sides[me] = append(c.sides[me], nil)
					}
					if c.sides[me][id] == nil {
						c.sides[me][id] = &spoken{kind: m.Type, sent: step.At}
					}
					c.sides[me][id].packets = append(c.sides[me][id].packets, e.Sequence64)
					carried[me][e.Sequence64] = append(carried[me][e.Sequence64], id)
				}
				if err = section.Err(); err != nil {
					t.Fatal(err)
				}
			case machine.EventReceived:
				for _, id := range carried[1-me][int64(e.Sequence)] {
					if l := c.sides[1-me][id]; l.arrived == 0 {
						l.arrived = step.At
					}
				}
			case machine.EventAcked:
				if c.profile.Messages.Form == wire.MessagesByID {
					for _, id := range carried[me][e.Sequence64] {
						c.sides[me][id].acked = true
					}
				}
			case machine.EventDelivered:
				c.sides[1-me][e.Sequence64].delivered = step.At
			}
		}
		for _, d := range step.Out.Deliver {
			if d.Channel == messages.ChannelMessage {
				c.sides[1-me][d.ID].body = bytes.Clone(d.Payload)
			}
		}
	})
	link := s.Link
	link.Tap(tap, func(x sim.Tapped) {
		c.seen = append(c.seen, machine.Datagram{
			At: x.At, Ref: machine.MakeRef(0, uint64(len(c.seen)+1)), From: machine.Side(x.From.Index), Bytes: x.Bytes,
			Length: len(x.Bytes),
		})
	})
	if err := w.Run(machine.Instant(8 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if tally.Problem != nil {
		t.Fatal(tally.Problem)
	}
	return c
}

// follow runs a Conversation twice over what passed. It returns the messages and the
// reported rules.
func (c *conversation) follow(v machine.Vantage) (told []machine.Message, rules map[string]int) {
	facts := machine.Facts{Vantage: v, VantageReason: "told"}
	for range 2 {
		told, rules = nil, map[string]int{}
		tr := tracker.NewConversation(c.profile, facts)
		var out machine.Effects
		take := func() {
			for _, m := range out.Messages {
				m.Body = bytes.Clone(m.Body)
				told = append(told, m)
			}
			for _, a := range out.Anomalies {
				rules[a.Rule.ID]++
			}
			out.Reset()
		}
		for i := range c.seen {
			d := c.seen[i]
			tr.Observe(&d, &out)
			take()
		}
		tr.Finish(&out)
		take()
		facts = tr.Learned()
	}
	return told, rules
}

// TestMessagesAgainstTruth compares the reported lives of messages with what the
// endpoints did, for each vantage and all conditions of the soak.
func TestMessagesAgainstTruth(t *testing.T) {
	seeds := uint64(gaffertest.Seeds(60, 20))
	total, delivered, waited := 0, 0, 0
	times := map[string]*timeTally{"sender": {}, "receiver": {}, "neither": {}}
	for seed := range seeds {
		tap := []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween}[seed%3]
		place := map[machine.Vantage]float64{machine.VantageA: 0, machine.VantageB: 1, machine.VantageBetween: 0.5}[tap]
		c := converse(t, seed, place, nil)
		told, rules := c.follow(tap)
		name := fmt.Sprintf("seed %d, tap %s, %s", seed, tap, c.profile.Messages.Form)
		have := [2]map[int64]machine.Message{{}, {}}
		for _, m := range told {
			if _, twice := have[m.From][m.ID]; twice {
				t.Fatalf("%s: message %d of %s was told twice", name, m.ID, m.From)
			}
			have[m.From][m.ID] = m
		}
		for side := range c.sides {
			for id, truth := range c.sides[side] {
				if truth == nil {
					continue
				}
				m, is := have[side][int64(id)]
				from := machine.Side(side)
				who := fmt.Sprintf("%s: message %d of %s", name, id, from)
				switch {
				case is:
					c.checkMessage(t, who, truth, &m, tap.Near(from), tap.Near(from.Other()))
					where := "neither"
					switch {
					case tap.Near(from):
						where = "sender"
					case tap.Near(from.Other()):
						where = "receiver"
					}
					c.checkTimes(t, who, truth, &m, times[where])
				case tap.Near(from):
					t.Errorf("%s is not told", who)
				default: // everything that carried it was lost before the tap
				}
				total++
				if m.Delivered == machine.Yes {
					delivered++
				}
				if m.Wait > 0 {
					waited++
				}
			}
		}
		for _, rule := range []string{"message-beyond-window", "malformed-messages", "stuck-message"} {
			if rules[rule] > 0 {
				t.Errorf("%s: %s reported %d times about a sound endpoint", name, rule, rules[rule])
			}
		}
		if t.Failed() {
			return
		}
	}
	for where, tally := range times {
		tally.holds(t, "tap at "+where)
	}
	t.Logf("%d messages, %d told as delivered, %d of them after a wait", total, delivered, waited)
	if delivered < total/2 || waited == 0 {
		t.Errorf("%d messages, %d told as delivered, %d after a wait: too few to say anything", total, delivered, waited)
	}
}

// checkMessage compares what is reported of a message with the truth.
func (c *conversation) checkMessage(t *testing.T, who string, truth *spoken, m *machine.Message, senderNear,
	receiverNear bool,
) {
	t.Helper()
	if m.Attempts > len(truth.packets) || senderNear && m.Attempts != len(truth.packets) {
		t.Errorf("%s: %d packets carried it, expected %d", who, m.Attempts, len(truth.packets))
	}
	if m.Type != truth.kind {
		t.Errorf("%s: type %d, expected %d", who, m.Type, truth.kind)
	}
	// Certain facts must be true.
	if m.Delivered == machine.Yes && m.Certainty == machine.Certain && truth.delivered == 0 {
		t.Errorf("%s is told as delivered for certain, and was not", who)
	}
	if m.Delivered == machine.Yes && truth.delivered != 0 {
		var r bits.Reader
		r.Reset(m.Body, int(m.BodyBit))
		got, err := gaffertest.Talk.Read(m.Type, &r)
		want := bits.NewReader(truth.body)
		expected, err2 := gaffertest.Talk.Read(truth.kind, &want)
		if err != nil || err2 != nil || fmt.Sprint(got) != fmt.Sprint(expected) {
			t.Errorf("%s: body %v (%v), expected %v (%v)", who, got, err, expected, err2)
		}
	}
	frame := c.soak.Frame + c.soak.Frame/8
	if receiverNear && truth.delivered != 0 {
		// At the tap every delivery shows, except the last ones, which no header covers.
		switch {
		case m.Delivered != machine.Yes:
			t.Errorf("%s was delivered at %v in front of the tap, and is told as %v", who, truth.delivered, m.Delivered)
		case m.DeliveredAt > truth.delivered || m.DeliveredAt < truth.delivered-machine.Instant(frame):
			t.Errorf("%s: delivered at %v, passed the tap at %v", who, truth.delivered, m.DeliveredAt)
		}
		if off := m.Wait - truth.delivered.Sub(truth.arrived); off < -frame || off > frame {
			t.Errorf("%s waited %v, expected %v within a frame", who, m.Wait, truth.delivered.Sub(truth.arrived))
		}
		if m.Wait > frame && (m.BlockedBy < 0 || m.BlockedBy >= m.ID) {
			t.Errorf("%s waited %v for message %d, expected an earlier one", who, m.Wait, m.BlockedBy)
		}
	}
	if m.Acked == machine.Yes && !truth.acked && c.profile.Messages.Form == wire.MessagesByID {
		t.Errorf("%s is told as acked, and no packet with it was", who)
	}
	if senderNear && truth.acked && m.Acked != machine.Yes {
		t.Errorf("%s was acked in front of the tap, and is told as %v", who, m.Acked)
	}
}

// TestMessageFindings plants each fault that has a rule.
func TestMessageFindings(t *testing.T) {
	for _, c := range []struct {
		rule   string
		adjust func(*gaffertest.Soak)
	}{
		{"message-beyond-window", func(s *gaffertest.Soak) {
			s.Options.Messages.NoWindow = true
			s.Options.Messages.SendBuffer, s.Options.Messages.ReceiveBuffer = 256, 8
			s.Path.Loss = 0.3
		}},
		{"message-resent-early", func(s *gaffertest.Soak) {
			s.Resend = wire.Resend{After: wire.ResendUsual} // the profile's
			s.Options.Messages.Resend = wire.Resend{After: time.Millisecond}
			s.Frame = time.Second / 60
		}},
		{"head-of-line-blocking", func(s *gaffertest.Soak) { s.Path.Loss = 0.3 }},
	} {
		for seed := range uint64(6) {
			conv := converse(t, 500+seed, 0, func(s *gaffertest.Soak) {
				s.Form, s.Messages = wire.MessagesByID, 200
				s.Path = sim.Path{Delay: 40 * time.Millisecond}
				s.Options.Messages.Resend = wire.Resend{}
				c.adjust(s)
			})
			if _, rules := conv.follow(machine.VantageA); rules[c.rule] == 0 {
				t.Errorf("seed %d: no %s; reported: %v", seed, c.rule, rules)
			}
		}
	}
}

// TestStuckMessage sends later ids and never sends one.
func TestStuckMessage(t *testing.T) {
	p := gaffertest.Builtin("article")
	p.Messages = wire.MessageSection{Form: wire.MessagesByID, Types: 1, MaxPerPacket: 4, Bodies: gaffertest.Tiny}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	tr := tracker.NewConversation(p, machine.Facts{Vantage: machine.VantageA, VantageReason: "told"})
	rules := map[string]int{}
	var out machine.Effects
	for n := range uint32(120) {
		w := bits.NewWriter(nil)
		id := uint64(n / 2)
		if id == 7 {
			id = 8
		}
		w.Bits(1, 3)
		w.Bits(id, 16)
		w.Bits(0x55, 8)
		b := p.Append(nil, &wire.Packet{Sequence: n, Header: wire.Header{Ack: 0xffff}}, w.Data())
		out.Reset()
		tr.Observe(&machine.Datagram{
			At:  machine.Instant(n) * machine.Instant(20*time.Millisecond),
			Ref: machine.MakeRef(0, uint64(n+1)), Bytes: b, Length: len(b),
		}, &out)
		for _, a := range out.Anomalies {
			rules[a.Rule.ID]++
		}
	}
	if rules["stuck-message"] != 1 {
		t.Errorf("reported %v, expected one stuck-message: 7 was never sent", rules)
	}
}

// TestConversationLaws runs the laws of machinetest over simulated flows.
func TestConversationLaws(t *testing.T) {
	for seed := range uint64(3) {
		c := converse(t, seed, float64(seed%3)/2, nil)
		flow := c.seen[:min(len(c.seen), 250)]
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			machinetest.Tracker(t, func() machine.Tracker { return tracker.NewConversation(c.profile, machine.Facts{}) }, flow)
		})
	}
}

// TestConversationQuiet: if the caller wants no events, messages and findings are
// reported all the same, and events are not.
func TestConversationQuiet(t *testing.T) {
	c := converse(t, 3, 0, func(s *gaffertest.Soak) { s.Path.Loss = 0.2 })
	told, _ := c.follow(machine.VantageA)
	tr := tracker.NewConversation(c.profile, machine.Facts{Vantage: machine.VantageA, VantageReason: "told"})
	out := machine.Effects{NoEvents: true}
	n := 0
	for i := range c.seen {
		d := c.seen[i]
		tr.Observe(&d, &out)
		if len(out.Events) > 0 || !out.NoEvents {
			t.Fatalf("%d events, NoEvents %v", len(out.Events), out.NoEvents)
		}
		n += len(out.Messages)
		out.Reset()
	}
	tr.Finish(&out)
	if n += len(out.Messages); n != len(told) || len(out.Events) > 0 {
		t.Errorf("%d messages without events, %d with", n, len(told))
	}
}
