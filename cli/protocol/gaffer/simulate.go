//go:build !js

package gaffer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/sim/gaffer"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// run is a client and a server of the Gaffer family.
type run struct {
	flags   *simulate.Flags
	profile *wire.Profile
}

var simulator = simulate.Simulator{
	Name: "gaffer", Usual: wire.Article, Form: "gaffer:PROFILE", Words: words,
	Examples: `  ackscope simulate gaffer:reliable --seed 7 --loss 5% --delay 20ms --jitter 5ms \
      --duration 20s --tap a -w run.client.pcapng --truth run.truth.jsonl --journal run.journal.jsonl
  ackscope simulate gaffer:mygame --profiles game.yaml --messages 20 --resend 1.5rtt -w run.pcapng
  ackscope simulate gaffer:mygame --profiles game.yaml --messages 20 --resend 'backoff(100ms, x2, 1s)' \
      -w run.pcapng
  ackscope simulate gaffer:article-connect --clients 3 --slots 2 --stay 5s -w run.client.pcapng
`,
	Begin: func(p *pflag.FlagSet) func(*app.App, *simulate.Flags) (simulate.Run, error) {
		own := &sampleFlags{}
		own.register(p, "gaffer:")
		p.Lookup("resend").Usage += "; gaffer also takes 1.5rtt and backoff(100ms, x2, 1s)"
		return func(a *app.App, f *simulate.Flags) (simulate.Run, error) { return newRun(a, f, own) }
	},
	Takes: []string{"clients", "slots", "resend"}, Remembered: []string{"first"},
	Completions:     map[string][]string{"resend": resendWords},
	RememberedIfSet: append([]string{"clients"}, sampleFlagNames...), Faults: faults(),
}

// words lists the profiles that can be simulated: those with acks, and the series'
// programs.
func words(p *dissect.Protocol) (list []string) {
	for i := range p.Profiles {
		if x, ok := p.Profiles[i].Config.Profile.(*wire.Profile); !ok ||
			x.HasAcks() && x.Form != wire.FormNetcode || model.IsSample(x) {
			list = append(list, p.Profiles[i].Name)
		}
	}
	return list
}

func newRun(a *app.App, f *simulate.Flags, own *sampleFlags) (simulate.Run, error) {
	profile, err := Simulated(a, f.Protocol)
	if err == nil {
		err = checkFault(f, profile)
	}
	if err != nil {
		return nil, err
	}
	if model.IsSample(profile) {
		return newSamplesRun(f, own, profile)
	}
	if f.Clients > 1 {
		return nil, fmt.Errorf("--clients %d: expected 1 with --protocol %s", f.Clients, f.Protocol)
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--protocol %q: expected a profile with acks", f.Protocol)
	}
	if f.Messages > 0 && profile.Messages.Form == wire.MessagesNone {
		return nil, fmt.Errorf("--messages: the profile of --protocol %s has no message section: give one of your own with "+
			"--profiles", f.Protocol)
	}
	return &run{flags: f, profile: identified(profile)}, nil
}

// identified returns a profile whose checksums can be checked: it sets a protocol id if
// there is none.
func identified(p *wire.Profile) *wire.Profile {
	if p.HasCRC() && p.ProtocolID == nil {
		return p.WithProtocolID(0x12345678)
	}
	return p
}

// Build implements simulate.Run.
func (r *run) Build(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	kit, err := r.kit(s)
	if err != nil {
		return err
	}
	var hosts [2]*sim.Host
	for role, at := range simulate.Addrs {
		role := sim.Role(role)
		end, err := kit.End(role, 0, at)
		if err != nil {
			return err
		}
		send := end.App
		end.App = func(f *sim.Frame) {
			if !s.Over(f.Now) {
				send(f)
			}
		}
		hosts[role] = s.Add(role, kit.Name(role, 0), at, end)
	}
	s.Connect(hosts[0], hosts[1], toB, toA)
	return nil
}

func (r *run) kit(s *simulate.Simulation) (*gaffer.Kit, error) {
	f := r.flags
	k := gaffer.Kit{
		Profile: r.profile, EventClock: f.EventTime, Messages: f.Messages,
		Faults: simulate.Faults(f, endpoint.LookupFault),
	}
	var err error
	if k.Resend, err = parseResend(f.Resend); err != nil {
		return nil, err
	}
	if k.First, err = firsts(f.First); err != nil {
		return nil, err
	}
	k.PeerFirst = [2]uint32{k.First[1], k.First[0]}
	if err := s.ReadRates("packets"); err != nil {
		return nil, err
	}
	k.Rate = [2]float64{s.Rate(sim.Client), s.Rate(sim.Server)}
	if err := readTraffic(f.Refuse, f.Payload, &k); err != nil {
		return nil, err
	}
	k.Message = func(rng *rand.Rand) (uint32, []byte, error) {
		kind, body, err := drawMessage(rng, &r.profile.Messages)
		if err != nil {
			err = fmt.Errorf("--messages: %w", err)
		}
		return kind, body, err
	}
	return gaffer.New(k)
}

// resendWords are examples of --resend.
var resendWords = []string{"50ms", "100ms", "1rtt", "1.5rtt", "2rtt", "backoff(100ms, x2, 1s)"}

// parseResend reads --resend. An empty text sets no policy.
func parseResend(text string) (r wire.Resend, err error) {
	if text == "" {
		return r, nil
	}
	if r, err = wire.ParseResend(text); err != nil {
		return r, fmt.Errorf("--resend: %w", err)
	}
	return r, nil
}

// firsts reads --first: the sequences of both sides' first packets.
func firsts(text string) ([2]uint32, error) {
	first, err := simulate.Pair(text, func(text string) (uint32, error) {
		v, err := strconv.ParseUint(text, 10, 32)
		return uint32(v), err
	})
	if err != nil {
		return first, fmt.Errorf("--first: %w", err)
	}
	return first, nil
}

// readTraffic reads the flags for what the applications send and refuse.
func readTraffic(refuse, payload string, k *gaffer.Kit) (err error) {
	if k.Refuse, err = simulate.Pair(refuse, simulate.ParseShare); err != nil {
		return fmt.Errorf("--refuse: %w", err)
	}
	if k.Least, k.Most, err = simulate.ParseRange(payload); err != nil {
		return fmt.Errorf("--payload: %w", err)
	}
	return nil
}

// Opening implements simulate.Run.
func (r *run) Opening(s *simulate.Simulation, tell func(endpoint string, lines ...sim.Line)) {
	tell("harness", s.Scenario(r.flags.Params()))
	for i, h := range s.World.Hosts() {
		log := s.Ends[i].Log
		tell(h.Name, log.Opening(s.Addrs[i], s.Addrs[1-i])...)
		tell(h.Name, log.Met(0, s.Addrs[1-i]))
	}
}

// Summarize implements simulate.Run.
func (r *run) Summarize(w io.Writer, s *simulate.Simulation) {
	for _, h := range s.World.Hosts() {
		e, n := h.Endpoint().(*endpoint.Endpoint).Estimates(), &h.Counts().Events
		fmt.Fprintf(w, "%s: sent %d, acked %d, received %d, rtt %.3f ms, loss %.2f %%\n", h.Name,
			n[machine.EventSent], n[machine.EventAcked], n[machine.EventReceived], float64(e.RTT())/1e6, e.Loss()*100)
	}
}

// Simulated returns the built-in or user's profile that --protocol names.
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
	return nil, fmt.Errorf("--protocol %q: no such profile to simulate: expected one of %s, or one from --profiles", text,
		strings.Join(wire.BuiltinNames(), ", "))
}

// messageTypes is what drawMessage needs of a schema.
type messageTypes interface {
	Read(kind uint32, r *bits.Reader) (schema.Record, error)
	Body(kind uint32) *schema.Body
}

// drawMessage draws a message of the profile's schema: random bits, until they make a
// body.
func drawMessage(rng *rand.Rand, section *wire.MessageSection) (kind uint32, body []byte, err error) {
	types, ok := section.Bodies.(messageTypes)
	if !ok {
		return 0, nil, errors.New("the profile has no schema of its messages")
	}
	kind = uint32(rng.IntN(section.Types))
	for range 10000 {
		r := bits.NewReader(sim.Noise(rng, 1024))
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
