package gaffertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Soak is one run over a terrible network. Its network and endpoints are drawn from a
// seed.
type Soak struct {
	Profile  string
	Path     sim.Path
	Form     wire.MessageForm
	Options  endpoint.Options
	Frame    time.Duration
	Messages int         // that each side submits; 0: a run of packets only
	Resend   wire.Resend // what the profile says of Options.Messages.Resend
	Slips    [2]messages.ResendSlip
	Link     *sim.Link
	Seconds  int
}

// DrawSoak draws a run from its seed.
func DrawSoak(seed uint64) Soak {
	rng := rand.New(rand.NewPCG(seed, 0x50a4))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	s := Soak{
		Profile: []string{"article", "article", "article", "reliable"}[rng.IntN(4)],
		Path: sim.Path{
			Delay:     time.Duration(rng.IntN(120)) * time.Millisecond,
			Jitter:    time.Duration(pick(0, 5, 40, 200)) * time.Millisecond,
			Loss:      pick(0, 0.05, 0.3, 0.6),
			Duplicate: pick(0, 0, 0.02, 0.3),
		},
		Frame:   time.Second / time.Duration(20+rng.IntN(50)),
		Seconds: 4,
	}
	switch rng.IntN(4) {
	case 0:
		s.Path.Bursts = sim.Gilbert{ToBad: 0.02, ToGood: 0.1}
	case 1:
		s.Path.Outages = []sim.Outage{{From: machine.Instant(rng.Int64N(int64(2 * time.Second))), For: time.Second}}
	}
	s.Options.First = []uint32{0, 1, 65500, 65535}[rng.IntN(4)]
	s.Options.EventClock = rng.IntN(2) == 0
	if s.Profile == "article" {
		s.Messages = 40 + rng.IntN(200)
		s.Form = []wire.MessageForm{wire.MessagesByID, wire.MessagesByID, wire.MessagesSimple}[rng.IntN(3)]
		m := &messages.Options{
			SendBuffer: 16 << rng.IntN(5), ReceiveBuffer: 8 << rng.IntN(6), Budget: 60 + rng.IntN(800),
			FirstID: []uint16{0, 65500, 65535}[rng.IntN(3)],
		}
		switch rng.IntN(3) {
		case 1:
			m.Resend = wire.Resend{Policy: wire.ResendRTT, After: 100 * time.Millisecond, Times: 1.25}
		case 2:
			m.Resend = wire.Resend{
				Policy: wire.ResendBackoff, After: 50 * time.Millisecond, Times: 1.5,
				Most: 400 * time.Millisecond,
			}
		}
		s.Options.Messages = m
	}
	return s
}

// Tally checks one run against the promises of the protocol.
type Tally struct {
	top       [2]int64          // newest packet that each side sent
	accepted  [2]map[int64]bool // by each side: the peer's packets
	submitted [2][][]byte       // by each side
	kinds     [2][]uint32       // types of these
	first     uint64            // id of the first message
	Delivered [2]int            // peer's messages delivered to each side
	Acks      int
	Problem   error // the first promise that was broken
}

func (c *Tally) fail(format string, args ...any) {
	if c.Problem == nil {
		c.Problem = fmt.Errorf(format, args...)
	}
}

func (c *Tally) watch(s *sim.Step) {
	me, peer := s.Host.Index, 1-s.Host.Index
	for _, e := range s.Out.Events {
		switch e.Kind {
		case machine.EventSent:
			c.top[me] = e.Sequence64
		case machine.EventReceived:
			// The receiver's own count begins with the first packet that it saw. The sender's
			// count shows which packet this is.
			n := c.top[peer] - (c.top[peer]-int64(e.Sequence))&0xffff
			if c.accepted[me][n] {
				c.fail("%v: %s accepted packet %d twice", s.At, s.Host.Name, n)
			}
			c.accepted[me][n] = true
		case machine.EventAcked:
			c.Acks++
			if !c.accepted[peer][e.Sequence64] {
				c.fail("%v: %s was told that its packet %d arrived: false", s.At, s.Host.Name, e.Sequence64)
			}
			if e.RTT < 0 {
				c.fail("%v: %s measured a round trip of %d ns", s.At, s.Host.Name, e.RTT)
			}
		}
	}
	for _, d := range s.Out.Deliver {
		if d.Channel != messages.ChannelMessage {
			continue
		}
		n := c.Delivered[me]
		switch {
		case d.ID != c.first+uint64(n):
			c.fail("%v: %s was handed id %d as its message number %d, ids begin at %d", s.At, s.Host.Name, d.ID, n, c.first)
		case n >= len(c.submitted[peer]):
			c.fail("%v: %s was handed message %d, which nobody sent", s.At, s.Host.Name, d.ID)
		case !bytes.Equal(d.Payload, c.submitted[peer][n]) || d.Type != c.kinds[peer][n]:
			c.fail("%v: %s was handed %x of type %d as its message number %d, expected %x of type %d",
				s.At, s.Host.Name, d.Payload, d.Type, n, c.submitted[peer][n], c.kinds[peer][n])
		}
		c.Delivered[me]++
	}
}

// Build creates the world of a soak and sets its Link. The Tally c watches it.
func (s *Soak) Build(seed uint64, c *Tally) (*sim.World, error) {
	w := sim.New(seed)
	if s.Options.Messages != nil {
		c.first = uint64(s.Options.Messages.FirstID)
	}
	var hosts [2]*sim.Host
	for i, name := range []string{"a", "b"} {
		e, err := endpoint.New(s.Endpoint(machine.Side(i)))
		if err != nil {
			return nil, err
		}
		app := func(f *sim.Frame) {
			if s.Messages > 0 {
				for n := f.Rand.IntN(4); n > 0 && len(c.submitted[i]) < s.Messages &&
					f.Endpoint().(*endpoint.Endpoint).CanSubmit(); n-- {
					kind, body := drawBody(f.Rand)
					c.submitted[i], c.kinds[i] = append(c.submitted[i], body), append(c.kinds[i], kind)
					f.Do(machine.Submit{Channel: messages.ChannelMessage, Type: kind, Payload: body})
				}
			}
			f.Do(machine.Submit{Channel: messages.ChannelPacket, Payload: make([]byte, s.payload(f.Rand))})
		}
		hosts[i] = w.AddHost(name, e, sim.HostOptions{
			Frame: s.Frame, Phase: time.Duration(i) * s.Frame / 3, FrameJitter: s.Frame / 8, App: app,
			EventDriven: s.Options.EventClock,
		})
	}
	s.Link = w.Connect(hosts[0], hosts[1], s.Path, s.Path)
	w.Watch(c.watch)
	return w, nil
}

// NewTally returns a Tally that has seen nothing.
func NewTally() *Tally { return &Tally{accepted: [2]map[int64]bool{{}, {}}} }

// Record returns the journal of a soak's first seconds.
func (s *Soak) Record(seed uint64) (*sim.Journal, error) {
	w, err := s.Build(seed, NewTally())
	if err != nil {
		return nil, err
	}
	j := w.Record()
	return j, w.Run(machine.Instant(s.Seconds) * machine.Instant(time.Second))
}

// Run runs a soak to its end.
func (s *Soak) Run(seed uint64) (*Tally, error) {
	c := NewTally()
	w, err := s.Build(seed, c)
	if err != nil {
		return nil, err
	}
	if err := w.Run(machine.Instant(s.Seconds) * machine.Instant(time.Second)); err != nil {
		return nil, err
	}
	// All that was submitted must arrive in the end, however long it takes.
	for range 600 {
		if c.Problem != nil || c.done(s) {
			break
		}
		if err := w.Run(w.Now().Add(time.Second)); err != nil {
			return nil, err
		}
	}
	if c.Problem == nil && !c.done(s) {
		c.fail("%v: %d and %d of %d messages were delivered", w.Now(), c.Delivered[0], c.Delivered[1], s.Messages)
	}
	return c, nil
}

func (c *Tally) done(s *Soak) bool {
	return s.Messages == 0 || c.Delivered[0] == s.Messages && c.Delivered[1] == s.Messages
}

func (s *Soak) payload(rng *rand.Rand) int {
	if s.Profile == "reliable" && rng.IntN(10) == 0 {
		return 1025 + rng.IntN(5000)
	}
	return rng.IntN(60)
}

// Endpoint returns the options of one side's endpoint.
func (s *Soak) Endpoint(side machine.Side) endpoint.Options {
	o := s.Options
	o.Profile = Builtin(s.Profile)
	if s.Messages > 0 {
		o.Profile.Messages = wire.MessageSection{
			Form: s.Form, Types: 3, MaxPerPacket: 64, Bodies: Talk,
			SendQueue: s.Options.Messages.SendBuffer, ReceiveQueue: s.Options.Messages.ReceiveBuffer,
			Resend: s.Resend,
		}
		m := *o.Messages
		m.ResendSlip = s.Slips[side]
		o.Messages = &m
		if err := o.Profile.Validate(); err != nil {
			panic(err)
		}
	}
	o.Rules = gaffer.RulesOf(o.Profile)
	o.Side = side
	if s.Profile == "reliable" {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 16
	}
	return o
}
