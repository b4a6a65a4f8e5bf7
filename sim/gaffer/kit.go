package gaffer

import (
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

// Kit is the sim.Kit of the Gaffer family. Both sides send a packet a frame, and the
// messages that are due.
type Kit struct {
	Profile    *wire.Profile // one with acks
	Rate       [2]float64    // packets a second, by role
	First      [2]uint32     // sequence of the first packet
	PeerFirst  [2]uint32     // sequence of the peer's first packet, as the endpoint is told
	Refuse     [2]float64    // share of packets that the application refuses
	EventClock bool
	Least      int    // payload bytes of a packet
	Most       int    // largest payload
	Count      uint64 // packets that each endpoint sends; 0: no end
	// Idle is the silence after which the server drops a client; 0 means 10 s.
	Idle time.Duration
	// Messages is how many reliable messages a second each side submits. Message draws
	// one.
	Messages float64
	Message  func(rng *rand.Rand) (kind uint32, body []byte, err error)
	Resend   wire.Resend // when an unacked one is sent again; none set: the profile's, or the article's
	Faults   [2]*endpoint.Fault

	rules *gaffer.Rules
}

// New checks the kit and makes it ready for use.
func New(k Kit) (*Kit, error) {
	if k.Profile == nil || !k.Profile.HasAcks() {
		return nil, errors.New("gaffer: expected a profile with acks")
	}
	for _, rate := range k.Rate {
		if !(rate > 0) {
			return nil, fmt.Errorf("gaffer: rate %g: expected packets a second", rate)
		}
	}
	if k.Least < 0 || k.Most < k.Least || k.Messages > 0 && k.Message == nil {
		return nil, fmt.Errorf("gaffer: payloads of %d to %d bytes, %g messages a second: expected a range, and what "+
			"messages to send", k.Least, k.Most, k.Messages)
	}
	if k.Idle == 0 {
		k.Idle = 10 * time.Second
	}
	k.rules = gaffer.RulesOf(k.Profile)
	return &k, nil
}

// Rhythm implements sim.Kit.
func (k *Kit) Rhythm(role sim.Role) sim.Rhythm {
	return sim.Rhythm{Frame: time.Duration(float64(time.Second) / k.Rate[role]), EventDriven: k.EventClock, Idle: k.Idle}
}

// End implements sim.Kit.
func (k *Kit) End(role sim.Role, n int, _ netip.AddrPort) (*sim.End, error) {
	if role == sim.Proxy {
		return nil, errors.New("gaffer: expected a client or a server, found a proxy")
	}
	o := endpoint.Options{
		Profile: k.Profile, Rules: k.rules, Side: machine.Side(role), EventClock: k.EventClock,
		First: k.First[role], PeerFirst: k.PeerFirst[role], Fault: k.Faults[role],
	}
	if k.Profile.Fragments == wire.FragmentsReliable {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 16
	}
	if k.Profile.Messages.Form != wire.MessagesNone {
		o.Messages = &messages.Options{Resend: k.Resend}
	}
	e, err := endpoint.New(o)
	if err != nil {
		return nil, err
	}
	return &sim.End{
		Endpoint: e, Refuse: k.Refuse[role], App: k.app(e, role),
		Log: &log{kit: k, role: role, n: n, endpoint: e},
	}, nil
}

// app sends a packet a frame, and the messages that are due.
func (k *Kit) app(e *endpoint.Endpoint, role sim.Role) sim.App {
	due := 0.0
	return func(f *sim.Frame) {
		if k.Count > 0 && uint64(f.Number) >= k.Count {
			f.Done()
			return
		}
		for due += k.Messages / k.Rate[role]; due >= 1 && e.CanSubmit(); due-- {
			kind, body, err := k.Message(f.Rand)
			if err != nil {
				f.Fail(err)
				return
			}
			f.Do(machine.Submit{Channel: messages.ChannelMessage, Type: kind, Payload: body})
		}
		f.Do(machine.Submit{
			Channel: messages.ChannelPacket,
			Payload: sim.Noise(f.Rand, k.Least+f.Rand.IntN(k.Most-k.Least+1)),
		})
		if k.Count > 0 && uint64(f.Number)+1 >= k.Count {
			f.Done()
		}
	}
}

// Greets implements sim.Kit. Any packet of the profile may begin a conversation.
func (k *Kit) Greets(b []byte) bool {
	var p wire.Packet
	return k.Profile.Parse(b, len(b), &p) == nil
}

// Name implements sim.Kit.
func (k *Kit) Name(role sim.Role, _ int) string { return role.String() }
