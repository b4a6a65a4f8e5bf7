//go:build !js

package gaffer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/sim/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// samplesRun is endpoints of one of the article series' programs that do not acknowledge
// packets: slices, fragments or the handshake.
type samplesRun struct {
	flags   *simulate.Flags
	own     *sampleFlags
	profile *wire.Profile
	counts  []map[machine.EventKind]int // by host
}

// sampleFlags are the flags of simulate and lab that only these programs have.
type sampleFlags struct {
	block  string
	stay   time.Duration
	sample bool
}

// sampleFlagNames are those without which the endpoints cannot be made again.
var sampleFlagNames = []string{"slots", "sample"}

func (o *sampleFlags) register(p *pflag.FlagSet, prefix string) {
	p.StringVar(&o.block, "block", "1000-32768", prefix+"article-slices: bytes of a block: `LEAST-MOST`")
	p.DurationVar(&o.stay, "stay", 0,
		prefix+"article-connect: how long a client stays connected before it leaves and comes again, 0s to the end")
	p.BoolVar(&o.sample, "sample", false,
		prefix+"article-slices, article-connect: as the sample programs do where they differ from the articles")
}

// kit reads these flags into a kit. slots, payload and first are those of --slots,
// --payload and --first.
func (o *sampleFlags) kit(profile *wire.Profile, slots int, payload, first string) (k gaffer.Samples, err error) {
	k = gaffer.Samples{
		Profile: identified(profile), AsSample: o.sample, Slots: cmp.Or(slots, article.UsualSlots), Stay: o.stay,
	}
	flag, text := "--payload", payload
	if profile.Slices > 0 {
		flag, text = "--block", o.block
	}
	if k.Least, k.Most, err = parseBytes(text, profile); err != nil {
		return k, fmt.Errorf("%s: %w", flag, err)
	}
	if k.First, err = firsts(first); err != nil {
		return k, err
	}
	if profile.Slices > 0 && k.First[0] != k.First[1] {
		return k, errors.New("--first: expected one number, which both ends of blocks begin with")
	}
	return k, nil
}

// parseBytes parses LEAST-MOST, or one number for both. The profile bounds a block.
func parseBytes(text string, profile *wire.Profile) (least, most int, err error) {
	if profile.Slices == 0 {
		return simulate.ParseRange(text)
	}
	bound := profile.Slices * profile.SliceSize
	n, err := fmt.Sscanf(text, "%d-%d", &least, &most)
	if n == 1 {
		most, err = least, nil
	}
	if err != nil || least < 1 || most < least || most > bound {
		return 0, 0, fmt.Errorf("%q: expected LEAST-MOST within 1-%d", text, bound)
	}
	return least, most, nil
}

// newSamplesRun checks the flags that the programs share with others.
func newSamplesRun(f *simulate.Flags, own *sampleFlags, profile *wire.Profile) (*samplesRun, error) {
	if f.Messages > 0 || f.Refuse != "0%" || f.Resend != "" {
		return nil, fmt.Errorf("--messages, --refuse, --resend: expected none of them with --protocol %s, whose packets "+
			"are not acknowledged", f.Protocol)
	}
	if f.Clients < 1 || f.Clients > 64 || f.Clients > 1 && !profile.Handshake {
		return nil, fmt.Errorf("--clients %d: expected 1, or up to 64 with --protocol gaffer:%s", f.Clients,
			wire.ArticleConnect)
	}
	return &samplesRun{flags: f, own: own, profile: profile}, nil
}

// Build implements simulate.Run.
func (r *samplesRun) Build(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	if err := s.ReadRates("frames"); err != nil {
		return err
	}
	k, err := r.own.kit(r.profile, r.flags.Slots, r.flags.Payload, r.flags.First)
	if err != nil {
		return err
	}
	k.Rate = [2]float64{s.Rate(sim.Client), s.Rate(sim.Server)}
	k.EventClock, k.Seed = r.flags.EventTime, r.flags.Seed
	k.Faults = simulate.Faults(r.flags, article.LookupFault)
	kit, err := gaffer.NewSamples(k)
	if err != nil {
		return err
	}
	var clients []*sim.Host
	for n := range r.flags.Clients {
		h, err := r.add(s, kit, sim.Client, n)
		if err != nil {
			return err
		}
		clients = append(clients, h)
	}
	server, err := r.add(s, kit, sim.Server, 0)
	if err != nil {
		return err
	}
	for _, c := range clients {
		s.Connect(c, server, toB, toA)
	}
	s.World.Watch(func(step *sim.Step) {
		for i := range step.Out.Events {
			r.counts[step.Host.Index][step.Out.Events[i].Kind]++
		}
	})
	return nil
}

// add adds an endpoint. At the end of the run clients leave.
func (r *samplesRun) add(s *simulate.Simulation, kit *gaffer.Samples, role sim.Role, n int) (*sim.Host, error) {
	at := simulate.AddrOf(n)
	if role == sim.Server {
		at = simulate.Addrs[sim.Server]
	}
	end, err := kit.End(role, n, at)
	if err != nil {
		return nil, err
	}
	if act := end.App; act != nil {
		left := false
		end.App = func(f *sim.Frame) {
			switch {
			case !s.Over(f.Now):
				act(f)
			case !left:
				left = true
				for _, in := range end.Farewell {
					f.Do(in)
				}
			}
		}
	}
	r.counts = append(r.counts, map[machine.EventKind]int{})
	return s.Add(role, kit.Name(role, n), at, end), nil
}

// Opening implements simulate.Run.
func (r *samplesRun) Opening(s *simulate.Simulation, tell func(endpoint string, lines ...sim.Line)) {
	tell("harness", s.Scenario(r.flags.Params()))
	for i, h := range s.World.Hosts() {
		log := s.Ends[i].Log
		if s.Roles[i] == sim.Client {
			tell(h.Name, log.Opening(s.Addrs[i], simulate.Addrs[sim.Server])...)
			continue
		}
		tell(h.Name, log.Opening(s.Addrs[i], simulate.Addrs[sim.Client])...)
		for n := range r.flags.Clients {
			tell(h.Name, log.Met(machine.Peer(n), simulate.AddrOf(n)))
		}
	}
}

// Summarize implements simulate.Run.
func (r *samplesRun) Summarize(w io.Writer, s *simulate.Simulation) {
	for i, h := range s.World.Hosts() {
		n, sent := r.counts[i], h.Counts().Sent
		switch p := r.profile; {
		case p.Slices > 0:
			fmt.Fprintf(w, "%s: sent %d slices, %d of them again, blocks acked %d, blocks received %d\n", h.Name,
				n[machine.EventSent]+n[machine.EventResent], n[machine.EventResent], n[machine.EventAcked],
				n[machine.EventDelivered])
		case p.Handshake:
			fmt.Fprintf(w, "%s: sent %s; connections made %d, ended %d, refused %d, timed out %d\n", h.Name,
				machine.Count(sent, "datagram", "datagrams"),
				n[model.EventConnected], n[model.EventDisconnected], n[model.EventRefused], n[model.EventTimedOut])
		default:
			fmt.Fprintf(w, "%s: sent %d packets in %d datagrams, received %d packets\n", h.Name, n[machine.EventSent], sent,
				n[machine.EventDelivered])
		}
	}
}

// faults are those of all references of the family.
func faults() []*machine.Fault {
	return append(machine.Faults(endpoint.Faults), machine.Faults(article.Faults)...)
}

// checkFault reports a fault of the family that is not one of a profile's endpoints.
func checkFault(f *simulate.Flags, profile *wire.Profile) error {
	if x := article.LookupFault(f.Fault); x != nil && !(model.IsSample(profile) && x.Fits(profile)) {
		return fmt.Errorf("--fault %s: expected %s %s, found %s", f.Fault, x.Scenario[0], x.Scenario[1], f.Protocol)
	}
	if model.IsSample(profile) && endpoint.LookupFault(f.Fault) != nil {
		return fmt.Errorf("--fault %s: expected a profile with acks, found --protocol %s", f.Fault, f.Protocol)
	}
	return nil
}
