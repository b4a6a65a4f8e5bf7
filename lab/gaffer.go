package lab

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Gaffer is the kit of the Gaffer family: both sides send a packet a frame, and
// the messages that there are.
type Gaffer struct {
	Profile    *wire.Profile // one with acks
	Rate       [2]float64    // packets a second, by role
	First      [2]uint32     // sequence of the first packet
	Refuse     [2]float64    // share of packets that the application refuses
	EventClock bool
	Least      int    // payload bytes of a packet
	Most       int    // and at most
	Count      uint64 // packets that each endpoint sends; 0 for no end
	// Idle is the silence after which the server lets a client go; 0 is 10 s.
	Idle time.Duration
	// Messages is how many reliable messages a second each side submits; Message
	// draws one.
	Messages float64
	Message  func(rng *rand.Rand) (kind uint32, body []byte, err error)

	rules *gaffer.Rules
}

// NewGaffer checks the kit and gives it ready for use.
func NewGaffer(g Gaffer) (*Gaffer, error) {
	if g.Profile == nil || !g.Profile.HasAcks() {
		return nil, errors.New("gaffer: expected a profile with acks")
	}
	for _, rate := range g.Rate {
		if !(rate > 0 && rate <= 10000) {
			return nil, fmt.Errorf("gaffer: rate %g: expected up to 10,000 packets a second", rate)
		}
	}
	if g.Least < 0 || g.Most < g.Least || g.Messages > 0 && g.Message == nil {
		return nil, fmt.Errorf("gaffer: payloads of %d to %d bytes, %g messages a second: expected a range, and what messages to send", g.Least, g.Most, g.Messages)
	}
	if g.Idle == 0 {
		g.Idle = 10 * time.Second
	}
	g.rules = gaffer.RulesOf(g.Profile)
	return &g, nil
}

// Rhythm implements Kit.
func (g *Gaffer) Rhythm(role Role) Rhythm {
	return Rhythm{Frame: time.Duration(float64(time.Second) / g.Rate[role]), EventDriven: g.EventClock, Idle: g.Idle}
}

// End implements Kit.
func (g *Gaffer) End(role Role, n int, _ netip.AddrPort) (*End, error) {
	o := endpoint.Options{
		Profile: g.Profile, Rules: g.rules, Side: machine.Side(role), EventClock: g.EventClock, First: g.First[role],
	}
	if g.Profile.Fragments == wire.FragmentsReliable {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 16
	}
	if g.Profile.Messages.Form != wire.MessagesNone {
		o.Messages = &messages.Options{}
	}
	e, err := endpoint.New(o)
	if err != nil {
		return nil, err
	}
	return &End{Endpoint: e, Refuse: g.Refuse[role], App: g.app(e, role), Log: &gafferScribe{kit: g, role: role, n: n, endpoint: e}}, nil
}

func (g *Gaffer) app(e *endpoint.Endpoint, role Role) func(*Turn) (bool, error) {
	due := 0.0
	return func(t *Turn) (bool, error) {
		if g.Count > 0 && uint64(t.Number) >= g.Count {
			return false, nil
		}
		for due += g.Messages / g.Rate[role]; due >= 1 && e.CanSubmit(); due-- {
			kind, body, err := g.Message(t.Rand)
			if err != nil {
				return false, err
			}
			if err := t.Do(machine.Submit{Channel: messages.ChannelMessage, Type: kind, Payload: body}); err != nil {
				return false, err
			}
		}
		err := t.Do(machine.Submit{Channel: messages.ChannelPacket, Payload: noise(t.Rand, g.Least+t.Rand.IntN(g.Most-g.Least+1))})
		return g.Count == 0 || uint64(t.Number)+1 < g.Count, err
	}
}

// noise draws n bytes.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// Greets implements Kit: a packet of the profile may begin a conversation.
func (g *Gaffer) Greets(b []byte) bool {
	var p wire.Packet
	return g.Profile.Parse(b, len(b), &p) == nil
}

// Name implements Kit.
func (g *Gaffer) Name(role Role, _ int) string { return role.String() }

// gafferScribe logs as the harness of the recorded captures did.
type gafferScribe struct {
	kit      *Gaffer
	role     Role
	n        int
	endpoint *endpoint.Endpoint
}

func (s *gafferScribe) Opening(_, _ netip.AddrPort) []Line {
	if first := s.kit.First[s.role]; first != 0 {
		return []Line{{"event": "logging_starts", "conn": s.n, "next_seq": first}}
	}
	return nil
}

func (s *gafferScribe) Opened(netip.AddrPort) Line { return nil }

func (s *gafferScribe) Met(_ machine.Peer, at netip.AddrPort) Line {
	if s.role == Client {
		return nil
	}
	return Line{"event": "peer", "conn": s.n, "addr": at.Addr().String(), "port": at.Port()}
}

func (s *gafferScribe) Tell(step *sim.Step) (lines []Line) {
	for _, f := range step.Facts(nil) {
		line := Line(f.Line(0, &sim.TruthFile{Name: func(h *sim.Host) string { return h.Name }}))
		line["conn"] = s.n
		if f.Event.Kind == machine.EventSent {
			var p wire.Packet
			if err := s.kit.Profile.Parse(f.Head, f.Length, &p); p.HasHeader && (err == nil || p.HeaderLen > 0) {
				line["ack"], line["ack_bits"] = p.Header.Ack, fmt.Sprintf("%08x", p.Header.AckBits)
				line["hex"] = hex.EncodeToString(f.Head[:min(len(f.Head), p.HeaderOffset+p.HeaderLen)])
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Final gives the endpoint's own figures.
func (s *gafferScribe) Final() Line {
	line := Line{"event": "final", "conn": s.n}
	var v machine.View
	s.endpoint.Inspect(&v)
	for _, gauge := range v.Gauges {
		line[gauge.Name] = gauge.Value
	}
	return line
}
