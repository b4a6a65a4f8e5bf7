package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Riptide is the kit of Riptide: clients connect to a server, and all that are
// connected send each other messages in every mode.
type Riptide struct {
	Version   *riptide.Version
	Transport Transport
	Rate      [2]float64    // messages a second in each mode, by role
	Tick      time.Duration // between two updates; 0 is 10 ms
	Count     uint64        // messages that an endpoint sends to each peer; 0 for no end
	// Limits has connections end for their quality, as the library's do unless
	// the game switches that off.
	Limits     bool
	EventClock bool
	Seed       uint64 // that the logs name
}

// NewRiptide checks the kit and gives it ready for use.
func NewRiptide(r Riptide) (*Riptide, error) {
	if r.Version == nil {
		return nil, errors.New("riptide: expected a version")
	}
	if r.Tick == 0 {
		r.Tick = 10 * time.Millisecond
	}
	for _, rate := range r.Rate {
		if !(rate >= 0 && rate <= 1000) {
			return nil, fmt.Errorf("riptide: rate %g: expected up to 1,000 messages a second", rate)
		}
	}
	return &r, nil
}

// Rhythm implements Kit.
func (r *Riptide) Rhythm(Role) Rhythm {
	return Rhythm{Frame: r.Tick, EventDriven: r.EventClock, Shared: true}
}

// riptideSlots is how many clients a server takes.
const riptideSlots = 64

// End implements Kit.
func (r *Riptide) End(role Role, n int, _ netip.AddrPort) (*End, error) {
	o := endpoint.Options{
		Version: r.Version, Side: machine.Side(role), Stream: r.Transport == TCP, EventClock: r.EventClock,
		Limits: endpoint.Limits{Off: !r.Limits}, Slots: riptideSlots,
	}
	build, farewell := endpoint.NewClient, machine.Disconnect
	if role == Server {
		build, farewell = endpoint.NewServer, machine.Stop
	}
	e, err := build(o)
	if err != nil {
		return nil, err
	}
	scribe := &riptideScribe{kit: r, role: role, endpoint: e, attempts: map[riptideKey]int{}, notified: map[riptideKey]bool{}, addrs: map[machine.Peer]netip.AddrPort{}}
	return &End{Endpoint: e, App: r.app(e, role), Log: scribe, Farewell: []machine.Input{machine.Command{Kind: farewell}}}, nil
}

// app sends messages of random kinds to all that are connected.
func (r *Riptide) app(e *endpoint.Endpoint, role Role) func(*Turn) (bool, error) {
	codec := e.Options().Codec
	modes := []uint8{riptide.ChannelUnreliable, riptide.ChannelReliable}
	if codec.Dialect.Layout(wire.Notify) != nil {
		modes = append(modes, riptide.ChannelNotify)
	}
	sent := map[machine.Peer]uint64{}
	return func(t *Turn) (more bool, err error) {
		if role == Client && t.Number == 0 {
			hello := codec.Writer(nil)
			hello.Text("lab")
			if err := t.Do(machine.Command{Kind: machine.Connect, Payload: hello.Body()}); err != nil {
				return false, err
			}
		}
		more = t.Peers == 0
		for p := range machine.Peer(t.Peers) {
			for _, mode := range modes {
				if !e.Connected(p) || r.Count > 0 && sent[p] >= r.Count || t.Rand.Float64() >= r.Rate[role]*r.Tick.Seconds() {
					continue
				}
				id := riptideFirst + uint16(t.Rand.IntN(len(riptideMessages)))
				w := codec.Writer(nil)
				for _, v := range layoutOf(mode, id) {
					v.draw(&w, t.Rand)
				}
				if err := t.Do(endpoint.Submission(p, mode, id, &w)); err != nil {
					return false, err
				}
				sent[p]++
			}
			more = more || r.Count == 0 || sent[p] < r.Count
		}
		return more, nil
	}
}

// Greets implements Kit: who wants to connect begins with that.
func (r *Riptide) Greets(b []byte) bool {
	var m wire.Message
	codec := wire.Codec{Dialect: r.Version.Build.Dialect}
	err := codec.Parse(b, len(b), &m)
	return (err == nil || errors.Is(err, base.ErrTrailing)) && m.Type == wire.Connect
}

// Name implements Kit.
func (r *Riptide) Name(role Role, n int) string {
	if role == Server {
		return "server"
	}
	return fmt.Sprintf("client%d", n+1)
}

// riptideScribe logs as the programs did that the recorded captures are of.
type riptideScribe struct {
	kit      *Riptide
	role     Role
	endpoint *endpoint.Endpoint
	addrs    map[machine.Peer]netip.AddrPort
	attempts map[riptideKey]int  // of reliable messages that are not acked
	notified map[riptideKey]bool // notify messages whose fate is open
}

// riptideKey names a message of an endpoint, in its mode.
type riptideKey struct {
	peer     machine.Peer
	sequence uint32
}

func (s *riptideScribe) Opening(own, to netip.AddrPort) (lines []Line) {
	line := Line{
		"event": "start", "role": s.role.String(), "version": s.kit.Version.Name, "transport": s.kit.Transport.String(),
		"seed": s.kit.Seed, "tick_ms": float64(s.kit.Tick) / 1e6,
	}
	if s.role == Server {
		line["port"], line["max_clients"] = own.Port(), riptideSlots
		return []Line{line}
	}
	line["server_address"] = to.String()
	lines = append(lines, line)
	if own.IsValid() {
		lines = append(lines, s.Opened(own))
	}
	return lines
}

func (s *riptideScribe) Opened(own netip.AddrPort) Line {
	return Line{"event": "local_endpoint", "local_port": own.Port()}
}

func (s *riptideScribe) Met(peer machine.Peer, at netip.AddrPort) Line {
	s.addrs[peer] = at
	return nil
}

// line begins a line about a peer.
func (s *riptideScribe) line(event string, peer machine.Peer) Line {
	line := Line{"event": event, "client_id": s.endpoint.ClientID(peer)}
	if s.role == Server {
		line["remote"] = s.addrs[peer].String()
	}
	return line
}

var riptideModes = [...]string{riptide.ChannelUnreliable: "unreliable", riptide.ChannelReliable: "reliable", riptide.ChannelNotify: "notify"}

// message begins a line about a user message.
func (s *riptideScribe) message(event string, peer machine.Peer, channel uint8, id uint16, sequence uint32) Line {
	line := s.line(event, peer)
	line["mode"] = riptideModes[channel]
	if channel != riptide.ChannelNotify {
		line["message_id"] = id
	}
	if channel != riptide.ChannelUnreliable {
		line["seq"] = sequence
	}
	return line
}

func (s *riptideScribe) Tell(step *sim.Step) (lines []Line) {
	if c, ok := step.In.(machine.Command); ok {
		lines = append(lines, Line{"event": c.Kind.String() + "_call"})
	}
	codec := s.endpoint.Options().Codec
	for i := range step.Out.Events {
		ev := &step.Out.Events[i]
		key := riptideKey{ev.Peer, ev.Sequence}
		user := int(ev.Channel) < len(riptideModes)
		switch {
		case endpoint.ReferenceEventNames[ev.Kind] != "":
			line := s.line(endpoint.ReferenceEventNames[ev.Kind], ev.Peer)
			switch ev.Kind {
			case riptide.EventConnected, riptide.EventClientConnected, riptide.EventClientDisconnected:
				line["client_id"] = ev.Sequence
			default:
				line["reason_code"] = ev.Sequence
			}
			lines = append(lines, line)
		case !user:
		case ev.Kind == machine.EventSent:
			in, ok := step.In.(machine.Submit)
			if !ok {
				continue
			}
			line := s.message("send", ev.Peer, ev.Channel, uint16(in.Type), ev.Sequence)
			line["values"] = valuesOf(codec, ev.Channel, uint16(in.Type), in.Payload)
			lines = append(lines, line)
			switch ev.Channel {
			case riptide.ChannelReliable:
				s.attempts[key] = 1
			case riptide.ChannelNotify:
				s.notified[key] = true
			}
		case ev.Kind == machine.EventResent:
			s.attempts[key]++
		case (ev.Kind == machine.EventAcked || ev.Kind == machine.EventLost) && ev.Channel == riptide.ChannelNotify:
			// A forged header settles half of all sequences at once: of those that were
			// never sent there is nothing to say.
			if !s.notified[key] {
				continue
			}
			delete(s.notified, key)
			word := "notify_delivered"
			if ev.Kind == machine.EventLost {
				word = "notify_lost"
			}
			lines = append(lines, s.message(word, ev.Peer, ev.Channel, 0, ev.Sequence))
		case ev.Kind == machine.EventAcked, ev.Kind == machine.EventLost:
			word := "acked"
			if ev.Kind == machine.EventLost {
				word = "given_up"
			}
			line := s.message(word, ev.Peer, ev.Channel, 0, ev.Sequence)
			delete(line, "message_id")
			line["attempts"] = s.attempts[key]
			delete(s.attempts, key)
			lines = append(lines, line)
		}
	}
	for i := range step.Out.Deliver {
		d := &step.Out.Deliver[i]
		if int(d.Channel) < len(riptideModes) {
			line := s.message("receive", d.From, d.Channel, uint16(d.Type), uint32(d.ID))
			line["values"] = valuesOf(codec, d.Channel, uint16(d.Type), d.Payload)
			lines = append(lines, line)
		}
	}
	return lines
}

func (s *riptideScribe) Final() Line {
	line := Line{"event": "end"}
	if rtt, smoothed := s.endpoint.RTT(0); s.role == Client && rtt >= 0 {
		line["rtt"], line["smooth_rtt"] = rtt, smoothed
	}
	return line
}
