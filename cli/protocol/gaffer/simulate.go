package gaffer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine/gaffer/endpoint"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// gafferCast is a client and a server of the Gaffer family.
type gafferCast struct {
	flags   *simulate.Flags
	profile *wire.Profile
	facts   *sim.Truth
}

var simulator = simulate.Simulator{Name: "gaffer", Usual: wire.Article, Begin: newGafferCast, Words: gafferWords, Faults: machine.Faults(endpoint.Faults)}

// gafferWords lists the profiles that have acks to simulate.
func gafferWords(p *dissect.Protocol) (list []string) {
	for i := range p.Profiles {
		if x, ok := p.Profiles[i].Config.Profile.(*wire.Profile); !ok || x.HasAcks() && x.Form != wire.FormNetcode {
			list = append(list, p.Profiles[i].Name)
		}
	}
	return list
}

func newGafferCast(a *app.App, f *simulate.Flags) (simulate.Cast, error) {
	profile, err := Simulated(a, f.Protocol)
	if err != nil {
		return nil, err
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--protocol %q: expected a profile with acks", f.Protocol)
	}
	if profile.HasCRC() && profile.ProtocolID == nil {
		profile = profile.WithProtocolID(0x12345678)
	}
	if f.Messages > 0 && profile.Messages.Form == wire.MessagesNone {
		return nil, fmt.Errorf("--messages: the profile of --protocol %s has no message section: give one of your own with --profiles", f.Protocol)
	}
	return &gafferCast{flags: f, profile: profile}, nil
}

// Enter implements simulate.Cast.
func (c *gafferCast) Enter(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	var hosts [2]*sim.Host
	for i, name := range []string{"client", "server"} {
		if hosts[i], err = c.host(s, i, name); err != nil {
			return err
		}
	}
	s.Links, s.Addrs = []*sim.Link{s.World.Connect(hosts[0], hosts[1], toB, toA)}, simulate.Addrs[:]
	return nil
}

// Truth implements simulate.Cast.
func (c *gafferCast) Truth(s *simulate.Simulation) func(io.Writer) error {
	c.facts = s.World.Truth()
	return func(w io.Writer) error { return c.facts.Write(w, s.World.Hosts(), c.truthFile()) }
}

// Note implements simulate.Cast.
func (c *gafferCast) Note() map[string]string {
	return map[string]string{"first": c.flags.First}
}

// Summarize implements simulate.Cast.
func (c *gafferCast) Summarize(w io.Writer, s *simulate.Simulation) {
	for _, h := range s.World.Hosts() {
		e := h.Endpoint().(*endpoint.Endpoint)
		fmt.Fprintf(w, "%s: sent %d, acked %d, received %d, rtt %.3f ms, loss %.2f %%\n", h.Name,
			len(c.facts.Of(h, machine.EventSent)), len(c.facts.Of(h, machine.EventAcked)), len(c.facts.Of(h, machine.EventReceived)),
			float64(e.Estimates().RTT())/1e6, e.Estimates().Loss()*100)
	}
}

// Simulated gives the profile that --protocol names, built in or a user's.
func Simulated(a *app.App, text string) (*wire.Profile, error) {
	name, dialect, ok := strings.Cut(text, ":")
	if !ok {
		dialect = wire.Article
	}
	protocol, ok := a.Registry.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("--protocol %q: not built in", text)
	}
	for i := range protocol.Profiles {
		if p, ok := protocol.Profiles[i].Config.Profile.(*wire.Profile); ok && protocol.Profiles[i].Name == dialect {
			return p, nil
		}
	}
	return nil, fmt.Errorf("--protocol %q: no such profile to simulate: expected one of %s, or one from --profiles", text, strings.Join(wire.BuiltinNames(), ", "))
}

// newEndpoint builds one side's endpoint as the flags say.
func newEndpoint(f *simulate.Flags, profile *wire.Profile, side int) (*endpoint.Endpoint, error) {
	first, err := simulate.Pair(f.First, func(text string) (uint32, error) {
		v, err := strconv.ParseUint(text, 10, 32)
		return uint32(v), err
	})
	if err != nil {
		return nil, fmt.Errorf("--first: %w", err)
	}
	o := endpoint.Options{
		Profile: profile, Rules: gaffer.RulesOf(profile), Side: machine.Side(side), EventClock: f.EventTime,
		First: first[side], PeerFirst: first[1-side],
	}
	if profile.Fragments == wire.FragmentsReliable {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 16
	}
	if profile.Messages.Form != wire.MessagesNone {
		o.Messages = &messages.Options{Resend: messages.Resend{After: f.Resend}}
	}
	if f.Wrong(side) {
		o.Fault = endpoint.LookupFault(f.Fault)
	}
	return endpoint.New(o)
}

// messageTypes is what messages are drawn by.
type messageTypes interface {
	Read(kind uint32, r *bits.Reader) (schema.Record, error)
	Body(kind uint32) *schema.Body
}

// drawMessage draws a message of the profile's schema: random bits, as soon as
// they make a body.
func drawMessage(rng *rand.Rand, section *wire.MessageSection) (kind uint32, body []byte, err error) {
	types, ok := section.Bodies.(messageTypes)
	if !ok {
		return 0, nil, errors.New("the profile has no schema of its messages")
	}
	kind = uint32(rng.IntN(section.Types))
	for range 10000 {
		r := bits.NewReader(simulate.Noise(rng, 1024))
		record, err := types.Read(kind, &r)
		if err != nil {
			continue
		}
		simulate.Spell(record)
		w := bits.NewWriter(nil)
		if err := types.Body(kind).Write(&w, record); err == nil && len(w.Data()) <= 512 {
			return kind, w.Data(), nil
		}
	}
	return 0, nil, fmt.Errorf("no message of type %d of at most 512 bytes came up in 10,000 draws", kind)
}

func (c *gafferCast) host(s *simulate.Simulation, side int, name string) (*sim.Host, error) {
	f := s.Flags
	e, err := newEndpoint(f, c.profile, side)
	if err != nil {
		return nil, err
	}
	rates, err := simulate.Pair(f.Rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	if err != nil || !(rates[side] > 0 && rates[side] <= 1e6) {
		return nil, fmt.Errorf("--rate %q: expected packets a second, up to a million", f.Rate)
	}
	refuse, err := simulate.Pair(f.Refuse, simulate.ParseShare)
	if err != nil {
		return nil, fmt.Errorf("--refuse: %w", err)
	}
	least, most, err := simulate.ParseRange(f.Payload)
	if err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	frame := time.Duration(float64(time.Second) / rates[side])
	phase := time.Duration(s.World.Rand("phase " + name).Int64N(int64(frame)))
	due := 0.0
	app := func(fr *sim.Frame) {
		if fr.Now >= machine.Instant(f.Duration) {
			return
		}
		for due += f.Messages / rates[side]; due >= 1 && e.CanSubmit(); due-- {
			kind, body, err := drawMessage(fr.Rand, &c.profile.Messages)
			if err != nil {
				s.Failed = fmt.Errorf("--messages: %w", err)
				return
			}
			fr.Do(machine.Submit{Channel: messages.ChannelMessage, Type: kind, Payload: body})
		}
		fr.Do(machine.Submit{Channel: messages.ChannelPacket, Payload: simulate.Noise(fr.Rand, least+fr.Rand.IntN(most-least+1))})
	}
	return s.World.AddHost(name, e, sim.HostOptions{
		Frame: frame, Phase: phase, FrameJitter: frame / 50, App: app, EventDriven: f.EventTime, Refuse: refuse[side],
	}), nil
}
