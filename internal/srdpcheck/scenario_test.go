package srdpcheck

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// scenario is one run: who talks to whom, over which network.
type scenario struct {
	seed    uint64
	form    wire.Form
	little  bool    // low byte first
	second  [2]bool // by sim.Role: that side is the second endpoint
	clients int
	path    sim.Path
	tap     float64 // 0 at the clients, 1 at the server
	rate    float64 // messages a second from an endpoint to each peer
	flags   []uint8
	repeats []uint8
	waits   []time.Duration // timeouts; 0 lets the endpoint decide
	first   [2]uint16
	talking time.Duration // how long the applications send
	late    bool          // srdppeer.Settings.NumberLate
	restart *restart      // nil where no endpoint ends
	frames  bool          // the applications look at their sockets once a frame only
}

// String describes the scenario, so that a failure can be repeated.
func (s *scenario) String() string {
	names := map[bool]string{false: "reference", true: "second"}
	return fmt.Sprintf("seed %d, %v, low byte first %v, client %s, server %s, %d clients, loss %g, delay %v+%v, "+
		"doubled %g, tap %g, rate %g, flags %v, repeats %v, waits %v, first %v, late ids %v, frames %v",
		s.seed, s.form, s.little, names[s.second[sim.Client]], names[s.second[sim.Server]], s.clients, s.path.Loss,
		s.path.Delay, s.path.Jitter, s.path.Duplicate, s.tap, s.rate, s.flags, s.repeats, s.waits, s.first, s.late, s.frames)
}

// draw returns the scenario of a seed.
func draw(seed uint64) *scenario {
	rng := rand.New(rand.NewPCG(seed, 0x53524450))
	s := &scenario{seed: seed, talking: 6 * time.Second, clients: 1 + rng.IntN(3), rate: []float64{5, 20, 60}[rng.IntN(3)]}
	s.second = [][2]bool{{true, false}, {false, true}, {true, true}}[seed%3]
	s.form, s.little = wire.Form(rng.IntN(2)), rng.IntN(4) == 0
	delays := []time.Duration{200 * time.Microsecond, 5 * time.Millisecond, 25 * time.Millisecond, 90 * time.Millisecond}
	s.path = sim.Path{
		Delay:     delays[rng.IntN(4)],
		Loss:      []float64{0, 0.05, 0.2, 0.4}[rng.IntN(4)],
		Duplicate: []float64{0, 0, 0.05}[rng.IntN(3)],
	}
	s.path.Jitter = []time.Duration{0, s.path.Delay / 10, s.path.Delay}[rng.IntN(3)]
	if rng.IntN(5) == 0 {
		s.path.Outages = []sim.Outage{{From: machine.Instant(2 * time.Second), For: time.Second}}
	}
	s.tap = []float64{0, 1, 0.5}[rng.IntN(3)]
	p := wire.Default()
	all := []uint8{0, p.DontDuplicate, p.Order, p.DontDuplicate | p.Order}
	s.flags = [][]uint8{all, all, {0}, {p.DontDuplicate}, {p.Order}}[rng.IntN(5)]
	s.repeats = [][]uint8{{0}, {3}, {0, 1, 2, 5}}[rng.IntN(3)]
	s.waits = [][]time.Duration{
		{0}, {130 * time.Millisecond}, {0, 40 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond},
	}[rng.IntN(3)]
	if rng.IntN(3) == 0 {
		s.first = [2]uint16{uint16(rng.IntN(1 << 15)), 1<<15 - 20}
	}
	s.late, s.frames = rng.IntN(2) == 0, rng.IntN(4) == 0
	return s
}

// profile returns the profile of the reference and of the analysis.
func (s *scenario) profile() wire.Profile {
	p := wire.Default().In(s.form)
	p.LittleEndian = s.little
	return p
}

// settings returns those of the second endpoint in a role.
func (s *scenario) settings(role sim.Role) srdppeer.Settings {
	return srdppeer.Settings{
		Form: srdppeer.Form(s.form), LittleEndian: s.little, Counter: s.first[role], NumberLate: s.late,
	}
}

// message is what an application asked to send, or got.
type message struct {
	peer    netip.AddrPort
	serial  uint32
	service srdp.Request
}

// talk is the application of one endpoint. It sends to each of its peers at the
// scenario's rate, and notes what it sent and what it got.
type talk struct {
	of     *scenario
	peers  []netip.AddrPort // by machine.Peer
	serial uint32
	sent   []message
	got    []message
	broken int // deliveries that are not as they were sent
}

// next returns the message to a peer in one frame, if there is one.
func (t *talk) next(now machine.Instant, rng *rand.Rand, peer machine.Peer) (r srdp.Request, ok bool) {
	s := t.of
	if now > machine.Instant(s.talking) || rng.Float64() >= s.rate*frame.Seconds() {
		return r, false
	}
	t.serial++
	body := make([]byte, 4+rng.IntN(60))
	for i := range body {
		body[i] = byte(t.serial>>(8*(i%4))) ^ byte(i/4*37)
	}
	r = srdp.Request{
		To: peer, Bytes: body, Repeats: s.repeats[rng.IntN(len(s.repeats))], Flags: s.flags[rng.IntN(len(s.flags))],
		Timeout: s.waits[rng.IntN(len(s.waits))],
	}
	t.sent = append(t.sent, message{t.peers[peer], t.serial, r})
	return r, true
}

// take notes a delivery.
func (t *talk) take(from netip.AddrPort, body []byte) {
	if len(body) < 4 {
		t.broken++
		return
	}
	serial := uint32(body[0]) | uint32(body[1])<<8 | uint32(body[2])<<16 | uint32(body[3])<<24
	for i, b := range body {
		if b != byte(serial>>(8*(i%4)))^byte(i/4*37) {
			t.broken++
			return
		}
	}
	t.got = append(t.got, message{peer: from, serial: serial})
}

const (
	frame = 10 * time.Millisecond // between two frames of an application
	// draining is how long the endpoints go on, so that what is sent until
	// acknowledged is.
	draining = 10 * time.Minute
)
