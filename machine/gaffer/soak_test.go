package gaffer_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// The soak test that the article begs its readers for: terrible networks, by
// the thousand, and every promise of the protocol checked at every step. `make
// soak` runs more: SOAK_SEEDS says how many.

// soak is one run: what the network and the endpoints are like, drawn from its
// seed.
type soak struct {
	profile  string
	path     sim.Path
	form     wire.MessageForm
	options  endpoint.Options
	frame    time.Duration
	messages int // that each side submits; 0 for a run of packets only
	link     *sim.Link
	seconds  int
}

func drawSoak(seed uint64) soak {
	rng := rand.New(rand.NewPCG(seed, 0x50a4))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	s := soak{
		profile: []string{"article", "article", "article", "reliable"}[rng.IntN(4)],
		path: sim.Path{
			Delay:     time.Duration(rng.IntN(120)) * time.Millisecond,
			Jitter:    time.Duration(pick(0, 5, 40, 200)) * time.Millisecond,
			Loss:      pick(0, 0.05, 0.3, 0.6),
			Duplicate: pick(0, 0, 0.02, 0.3),
		},
		frame:   time.Second / time.Duration(20+rng.IntN(50)),
		seconds: 4,
	}
	switch rng.IntN(4) {
	case 0:
		s.path.Bursts = sim.Gilbert{ToBad: 0.02, ToGood: 0.1}
	case 1:
		s.path.Outages = []sim.Outage{{From: machine.Instant(rng.Int64N(int64(2 * time.Second))), For: time.Second}}
	}
	s.options.First = []uint32{0, 1, 65500, 65535}[rng.IntN(4)]
	s.options.EventClock = rng.IntN(2) == 0
	if s.profile == "article" {
		s.messages = 40 + rng.IntN(200)
		s.form = []wire.MessageForm{wire.MessagesByID, wire.MessagesByID, wire.MessagesSimple}[rng.IntN(3)]
		m := &messages.Options{
			SendBuffer: 16 << rng.IntN(5), ReceiveBuffer: 8 << rng.IntN(6), Budget: 60 + rng.IntN(800),
			FirstID: []uint16{0, 65500, 65535}[rng.IntN(3)],
		}
		switch rng.IntN(3) {
		case 1:
			m.Resend = messages.Resend{Policy: messages.ResendRTT, After: 100 * time.Millisecond, Times: 1.25}
		case 2:
			m.Resend = messages.Resend{Policy: messages.ResendBackoff, After: 50 * time.Millisecond, Times: 1.5, Most: 400 * time.Millisecond}
		}
		s.options.Messages = m
	}
	return s
}

// tally holds one run against the promises.
type tally struct {
	top       [2]int64          // newest packet that each side sent
	accepted  [2]map[int64]bool // by each side: the peer's packets
	submitted [2][][]byte       // by each side
	kinds     [2][]uint32       // of these
	first     uint64            // id of the first message
	delivered [2]int            // to each side: how many of the peer's messages
	acks      int
	problem   error
}

func (c *tally) fail(format string, args ...any) {
	if c.problem == nil {
		c.problem = fmt.Errorf(format, args...)
	}
}

func (c *tally) watch(s *sim.Step) {
	me, peer := s.Host.Index, 1-s.Host.Index
	for _, e := range s.Out.Events {
		switch e.Kind {
		case machine.EventSent:
			c.top[me] = e.Sequence64
		case machine.EventReceived:
			// The receiver's own count begins with the first packet that it saw; the
			// sender's tells which packet this is.
			n := c.top[peer] - (c.top[peer]-int64(e.Sequence))&0xffff
			if c.accepted[me][n] {
				c.fail("%v: %s accepted packet %d twice", s.At, s.Host.Name, n)
			}
			c.accepted[me][n] = true
		case machine.EventAcked:
			c.acks++
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
		n := c.delivered[me]
		switch {
		case d.ID != c.first+uint64(n):
			c.fail("%v: %s was handed id %d as its message number %d, ids begin at %d", s.At, s.Host.Name, d.ID, n, c.first)
		case n >= len(c.submitted[peer]):
			c.fail("%v: %s was handed message %d, which nobody sent", s.At, s.Host.Name, d.ID)
		case !bytes.Equal(d.Payload, c.submitted[peer][n]) || d.Type != c.kinds[peer][n]:
			c.fail("%v: %s was handed %x of type %d as its message number %d, expected %x of type %d",
				s.At, s.Host.Name, d.Payload, d.Type, n, c.submitted[peer][n], c.kinds[peer][n])
		}
		c.delivered[me]++
	}
}

// build makes the world of one soak and has c watch it.
func (s *soak) build(seed uint64, c *tally) (*sim.World, error) {
	w := sim.New(seed)
	if s.options.Messages != nil {
		c.first = uint64(s.options.Messages.FirstID)
	}
	var hosts [2]*sim.Host
	for i, name := range []string{"a", "b"} {
		e, err := endpoint.New(s.endpoint(machine.Side(i)))
		if err != nil {
			return nil, err
		}
		app := func(f *sim.Frame) {
			if s.messages > 0 {
				for n := f.Rand.IntN(4); n > 0 && len(c.submitted[i]) < s.messages && f.Endpoint().(*endpoint.Endpoint).CanSubmit(); n-- {
					kind, body := drawBody(f.Rand)
					c.submitted[i], c.kinds[i] = append(c.submitted[i], body), append(c.kinds[i], kind)
					f.Do(machine.Submit{Channel: messages.ChannelMessage, Type: kind, Payload: body})
				}
			}
			f.Do(machine.Submit{Channel: messages.ChannelPacket, Payload: make([]byte, s.payload(f.Rand))})
		}
		hosts[i] = w.AddHost(name, e, sim.HostOptions{
			Frame: s.frame, Phase: time.Duration(i) * s.frame / 3, FrameJitter: s.frame / 8, App: app, EventDriven: s.options.EventClock,
		})
	}
	s.link = w.Connect(hosts[0], hosts[1], s.path, s.path)
	w.Watch(c.watch)
	return w, nil
}

func newTally() *tally { return &tally{accepted: [2]map[int64]bool{{}, {}}} }

// record gives the journal of a soak's first seconds.
func (s *soak) record(seed uint64) (*sim.Journal, error) {
	w, err := s.build(seed, newTally())
	if err != nil {
		return nil, err
	}
	j := w.Record()
	return j, w.Run(machine.Instant(s.seconds) * machine.Instant(time.Second))
}

// run runs one soak to its end.
func (s *soak) run(seed uint64) (*tally, error) {
	c := newTally()
	w, err := s.build(seed, c)
	if err != nil {
		return nil, err
	}
	if err := w.Run(machine.Instant(s.seconds) * machine.Instant(time.Second)); err != nil {
		return nil, err
	}
	// What was submitted must get through in the end, however long it takes.
	for range 600 {
		if c.problem != nil || c.done(s) {
			break
		}
		if err := w.Run(w.Now().Add(time.Second)); err != nil {
			return nil, err
		}
	}
	if c.problem == nil && !c.done(s) {
		c.fail("%v: %d and %d of %d messages were delivered", w.Now(), c.delivered[0], c.delivered[1], s.messages)
	}
	return c, nil
}

func (c *tally) done(s *soak) bool {
	return s.messages == 0 || c.delivered[0] == s.messages && c.delivered[1] == s.messages
}

func (s *soak) payload(rng *rand.Rand) int {
	if s.profile == "reliable" && rng.IntN(10) == 0 {
		return 1025 + rng.IntN(5000)
	}
	return rng.IntN(60)
}

func builtin(name string) *wire.Profile {
	p, _, err := wire.Builtin(name)
	if err != nil {
		panic(err)
	}
	return p
}

func (s *soak) endpoint(side machine.Side) endpoint.Options {
	o := s.options
	o.Profile = builtin(s.profile)
	if s.messages > 0 {
		o.Profile.Messages = wire.MessageSection{
			Form: s.form, Types: 3, MaxPerPacket: 64, Bodies: talkSchema,
			SendQueue: s.options.Messages.SendBuffer, ReceiveQueue: s.options.Messages.ReceiveBuffer,
		}
		if err := o.Profile.Validate(); err != nil {
			panic(err)
		}
	}
	o.Rules = gaffer.RulesOf(o.Profile)
	o.Side = side
	if s.profile == "reliable" {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 16
	}
	return o
}

// seedsOf gives how many seeds a test draws: so many as usual, fewer with
// -short, SOAK_SEEDS where that is set.
func seedsOf(usual, short int) int {
	if n, err := strconv.Atoi(os.Getenv("SOAK_SEEDS")); err == nil {
		return n
	}
	if testing.Short() {
		return short
	}
	return usual
}

func TestSoak(t *testing.T) {
	seeds := seedsOf(300, 80)
	acks, messages := 0, 0
	for seed := range uint64(seeds) {
		s := drawSoak(seed)
		c, err := s.run(seed)
		if err != nil {
			t.Fatal(err)
		}
		if c.problem != nil {
			t.Fatalf("seed %d (%+v): %v", seed, s, c.problem)
		}
		acks += c.acks
		messages += c.delivered[0] + c.delivered[1]
	}
	if acks == 0 || messages == 0 {
		t.Fatalf("%d acks and %d messages: the soak tested nothing", acks, messages)
	}
	t.Logf("%d seeds: %d acks, none false; %d messages, all in order and whole", seeds, acks, messages)
}

// talk is the schema of the soak's messages: the article's own test message, one
// whose layout depends on where it begins, and one whose length only its
// content tells.
const talk = `
messages:
  0:
    name: TestMessage
    fields:
      - {name: a, type: bits, bits: 32}
      - {name: b, type: bits, bits: 32}
      - {name: c, type: bits, bits: 32}
  1:
    name: Chat
    fields:
      - {name: mood, type: int, min: -3, max: 60}
      - {name: text, type: string, max: 40}
  2:
    name: Inputs
    fields:
      - {name: held, type: array, min: 0, max: 31, item: {type: bits, bits: 11}}
      - {name: fire, type: bool}
      - {name: at, type: float, if: fire}
`

func schemaOf(text string) *schema.Schema {
	s, err := yamlfile.Schema([]byte(text), "test", wire.Coding{})
	if err != nil {
		panic(err)
	}
	return s
}

var talkSchema = schemaOf(talk)

func drawBody(rng *rand.Rand) (kind uint32, body []byte) {
	kind = uint32(rng.IntN(3))
	values := map[string]any{}
	switch kind {
	case 0:
		values["a"], values["b"], values["c"] = uint64(rng.Uint32()), uint64(rng.Uint32()), uint64(rng.Uint32())
	case 1:
		values["mood"], values["text"] = int64(rng.IntN(64)-3), strings.Repeat("x", rng.IntN(41))
	case 2:
		held := make([]any, rng.IntN(32))
		for i := range held {
			held[i] = uint64(rng.IntN(1 << 11))
		}
		values["held"], values["fire"], values["at"] = held, rng.IntN(2) == 0, rng.Float32()
	}
	w := bits.NewWriter(nil)
	if err := talkSchema.Messages[kind].Write(&w, values); err != nil {
		panic(err)
	}
	return kind, w.Data()
}
