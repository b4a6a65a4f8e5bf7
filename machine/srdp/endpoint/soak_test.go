package endpoint

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// ledger compares what the applications of a run asked for and got with what
// the protocol promises. It ignores ids and identifies packets by their bytes.
type ledger struct {
	t     *testing.T
	name  string
	sent  map[uint64]*promised // by the number that their bytes begin with
	last  map[[2]int]uint64    // newest ordered number handed over, by receiver and sender
	count uint64
	// taken reports whether an acknowledgement only means that a proxy has
	// accepted the packet for its client. The client may not have it yet.
	taken func(*promised) bool
}

// promised is one submission.
type promised struct {
	from, to  int // hosts
	flags     uint8
	repeats   uint8
	id64      int64
	delivered int
	copies    int
	outcome   string
}

func newLedger(t *testing.T, name string) *ledger {
	return &ledger{t: t, name: name, sent: map[uint64]*promised{}, last: map[[2]int]uint64{}}
}

// draw makes the bytes of a submission.
func (l *ledger) draw(rng *rand.Rand, from, to int, flags, repeats uint8, most int) []byte {
	l.count++
	l.sent[l.count] = &promised{from: from, to: to, flags: flags, repeats: repeats, id64: -1}
	b := binary.BigEndian.AppendUint64(nil, l.count)
	for range rng.IntN(most - 7) {
		b = append(b, byte(rng.Uint32()))
	}
	return b
}

// deliver takes what a host's application received.
func (l *ledger) deliver(to int, b []byte) {
	l.t.Helper()
	if len(b) < 8 {
		l.t.Fatalf("%s: %x was handed over and never submitted", l.name, b)
	}
	n := binary.BigEndian.Uint64(b)
	p := l.sent[n]
	if p == nil || p.to != to {
		l.t.Fatalf("%s: host %d got number %d, which is %+v", l.name, to, n, p)
	}
	p.delivered++
	if p.flags&1 != 0 && p.delivered > 1 {
		l.t.Errorf("%s: number %d was handed over twice in spite of its flag", l.name, n)
	}
	if p.flags&2 != 0 {
		pair := [2]int{to, p.from}
		if n < l.last[pair] && l.sent[l.last[pair]].outcome == "" && p.outcome != "gave_up" {
			l.t.Errorf("%s: number %d was handed over after %d", l.name, n, l.last[pair])
		}
		l.last[pair] = max(l.last[pair], n)
	}
}

// tell takes the outcome of a submission that its sender reports.
func (l *ledger) tell(n uint64, outcome string) {
	l.t.Helper()
	p := l.sent[n]
	if outcome == "acked" && p.delivered == 0 && (l.taken == nil || !l.taken(p)) {
		l.t.Errorf("%s: number %d is said to have been acknowledged, and was never handed over", l.name, n)
	}
	if p.outcome != "" {
		l.t.Errorf("%s: number %d ended as %s and as %s", l.name, n, p.outcome, outcome)
	}
	p.outcome = outcome
}

// end checks the state after the run: packets without a limit of repeats must
// have been handed over and acknowledged.
func (l *ledger) end() {
	l.t.Helper()
	for n, p := range l.sent {
		switch {
		case p.repeats > 0 && p.copies > int(p.repeats):
			l.t.Errorf("%s: number %d was sent %d times, and was to be %d times", l.name, n, p.copies, p.repeats)
		case p.outcome == "acked" && p.delivered == 0:
			l.t.Errorf("%s: number %d was acknowledged, and never handed over", l.name, n)
		case p.repeats == 0 && (p.delivered == 0 || p.outcome != "acked"):
			l.t.Errorf("%s: number %d was to be sent until it arrived: %+v", l.name, n, p)
		case p.outcome == "":
			l.t.Errorf("%s: number %d has no end: %+v", l.name, n, p)
		}
	}
}

// meeting is a world of endpoints that talk to each other.
type meeting struct {
	world  *sim.World
	hosts  []*sim.Host
	ledger *ledger
	ids    []map[int64]uint64 // per host: number by unwrapped id
}

// watch reports to the ledger what the endpoints do.
func (p *meeting) watch(data *wire.Profile) {
	arrived, answered := make([]int, len(p.hosts)), make([]int, len(p.hosts))
	p.ids = make([]map[int64]uint64, len(p.hosts))
	for i := range p.ids {
		p.ids[i] = map[int64]uint64{}
	}
	p.world.Watch(func(s *sim.Step) {
		h := s.Host.Index
		if h >= len(p.hosts) {
			return
		}
		var pk wire.Packet
		for _, t := range s.Out.Transmit {
			if t.Kind != machine.SendDatagram || !data.Fits(t.Bytes, len(t.Bytes), &pk) {
				continue
			}
			if pk.Ack {
				answered[h]++
			} else {
				p.ledger.sent[binary.BigEndian.Uint64(t.Bytes[pk.PayloadOffset:])].copies++
			}
		}
		if in, ok := s.In.(machine.Arrive); ok && data.Fits(in.Bytes, len(in.Bytes), &pk) && !pk.Ack {
			if arrived[h]++; answered[h] != arrived[h] {
				p.ledger.t.Errorf("%s: %d copies came to host %d and %d were acknowledged", p.ledger.name, arrived[h],
					h, answered[h])
			}
		}
		for _, d := range s.Out.Deliver {
			p.ledger.deliver(h, d.Payload)
		}
		sent := 0
		for _, e := range s.Out.Events {
			switch e.Kind {
			case machine.EventSent:
				// The n-th such event belongs to the n-th new data packet of
				// the step.
				p.ids[h][e.Sequence64] = numberOf(data, s.Out.Transmit, e, &sent)
			case machine.EventAcked:
				p.ledger.tell(p.ids[h][e.Sequence64], "acked")
			case srdp.EventGaveUp:
				p.ledger.tell(p.ids[h][e.Sequence64], "gave_up")
			}
		}
	})
}

// numberOf finds the packet of an event.
func numberOf(data *wire.Profile, sent []machine.Transmission, e machine.Event, from *int) uint64 {
	for ; *from < len(sent); *from++ {
		var pk wire.Packet
		b := sent[*from].Bytes
		if sent[*from].Kind == machine.SendBytes {
			b = b[data.FramePrefix:]
		}
		if data.Fits(b, len(b), &pk) && !pk.Ack && uint32(pk.ID) == e.Sequence {
			return binary.BigEndian.Uint64(b[pk.PayloadOffset:])
		}
	}
	return 0
}

// talk returns an application that submits to the others while the run lasts.
func (p *meeting) talk(self int, peers map[int]machine.Peer, rate float64, until time.Duration,
	draw func(*rand.Rand) (flags, repeats uint8, timeout time.Duration),
) sim.App {
	return func(f *sim.Frame) {
		if f.Now > machine.Instant(until) {
			return
		}
		for to := range len(p.hosts) {
			peer, ok := peers[to]
			if !ok || f.Rand.Float64() >= rate/60 {
				continue
			}
			flags, repeats, timeout := draw(f.Rand)
			f.Do(srdp.Request{
				To: peer, Bytes: p.ledger.draw(f.Rand, self, to, flags, repeats, 60), Repeats: repeats, Timeout: timeout,
				Flags: flags,
			}.Submit())
		}
	}
}

func anything(rng *rand.Rand) (flags, repeats uint8, timeout time.Duration) {
	if rng.IntN(2) == 0 {
		repeats = uint8(1 + rng.IntN(6))
	}
	if rng.IntN(2) == 0 {
		timeout = time.Duration(20+rng.IntN(200)) * time.Millisecond
	}
	return uint8(rng.IntN(4)), repeats, timeout
}

func soakSeeds(t *testing.T, usual int) int {
	if text := os.Getenv("ACKSCOPE_SOAK"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("ACKSCOPE_SOAK: %v", err)
		}
		return n
	}
	if testing.Short() {
		return max(1, usual/5)
	}
	return usual
}

// Four endpoints with three peers each run over networks of all kinds. Their
// promises must hold for every seed.
func TestSoak(t *testing.T) {
	for seed := range uint64(soakSeeds(t, 30)) {
		rng := rand.New(rand.NewPCG(seed, 8))
		path := sim.Path{
			Delay:   time.Duration(rng.IntN(120)) * time.Millisecond,
			Jitter:  time.Duration(rng.IntN(3)*rng.IntN(80)) * time.Millisecond,
			InOrder: rng.IntN(3) == 0, Loss: []float64{0, 0.02, 0.3, 0.5}[rng.IntN(4)],
			Duplicate: []float64{0, 0.05, 0.3}[rng.IntN(3)],
		}
		if rng.IntN(3) == 0 {
			path.Outages = []sim.Outage{{From: machine.Instant(2 * time.Second), For: 700 * time.Millisecond}}
		}
		form := wire.Form(seed % 2)
		name := fmt.Sprintf("seed %d, %v, %+v", seed, form, path)
		p := &meeting{world: sim.New(seed), ledger: newLedger(t, name)}
		const n = 4
		addresses := [n]wire.Address{
			address("10.0.0.1:1"), address("10.0.0.2:2"), address("10.0.0.3:3"),
			address("10.0.0.3:4"),
		}
		numbers := [n]map[int]machine.Peer{{}, {}, {}, {}}
		for i := range n {
			e, err := New(Options{Profile: profile(form), First: uint16(rng.IntN(2) * 32700), Self: addresses[i]})
			if err != nil {
				t.Fatal(err)
			}
			p.hosts = append(p.hosts, p.world.AddHost(fmt.Sprint("host ", i), e, sim.HostOptions{
				EventDriven: true, App: p.talk(i, numbers[i], 20, 6*time.Second, anything),
			}))
		}
		for i := range n {
			for j := range i {
				l := p.world.Connect(p.hosts[i], p.hosts[j], path, path)
				numbers[i][j], numbers[j][i] = l.PeerOfA, l.PeerOfB
			}
		}
		for i := range n {
			for j, peer := range numbers[i] {
				introduceTo(t, p.hosts[i], peer, addresses[j])
			}
		}
		p.watch(profile(form))
		if err := p.world.Run(machine.Instant(4 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		p.ledger.end()
		if p.ledger.count < 100 {
			t.Errorf("%s: only %d submissions", name, p.ledger.count)
		}
	}
}

// introduceTo gives an endpoint an address before the run.
func introduceTo(t *testing.T, h *sim.Host, peer machine.Peer, a wire.Address) {
	t.Helper()
	var out machine.Effects
	if err := h.Endpoint().Step(0, Introduce(peer, a), &out); err != nil {
		t.Fatal(err)
	}
}
