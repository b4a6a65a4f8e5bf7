package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// simulateFlags are the settings of one simulated flow. Those that a path has
// take one value, or two with a slash: from a to b, and from b to a.
type simulateFlags struct {
	protocol  string
	seed      uint64
	loss      string
	burst     string
	delay     string
	jitter    string
	inOrder   bool
	dup       string
	outage    string
	bandwidth string
	duration  time.Duration
	rate      string
	payload   string
	refuse    string
	first     string
	eventTime bool
	messages  float64
	clients   int
	mix       string
	limitless bool
	end       string
	repeats   string
	timeout   string
	resend    time.Duration
	services  string
	giveUp    time.Duration
	fault     string
	faulty    string
	tap       string
	write     string
	journal   string
	truth     string
	play      string
}

func simulateCommand(a *app, protocols simulators) *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run reference endpoints over a simulated network and capture what they send",
		Long: `simulate lets two reference endpoints talk over a network that loses, delays,
reorders and duplicates as told, in virtual time, and writes what a tap sees of it.
The same seed gives the same bytes. The truth, what both endpoints really did,
goes to a file in the form of the logs that recorded captures have beside them;
the journal holds every input, from which --play gives the run again.

Of an option that a path has, A/B sets the two directions apart: --loss 5%/40%.`,
		Example: `  ackscope simulate --protocol gaffer:reliable --seed 7 --loss 5% --delay 20ms --jitter 5ms \
      --duration 20s --tap a -w run.client.pcapng --truth run.truth.jsonl --journal run.journal.jsonl
  ackscope simulate --protocol srdp --clients 3 --loss 10% --services any --repeats 3 -w run.client.pcapng
  ackscope simulate --fault list --protocol srdp
  ackscope simulate --fault ack-gaps --loss 10% -w faulty.pcapng
  ackscope simulate --play run.journal.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.play != "" {
				return a.play(protocols, f.play)
			}
			if f.fault == "list" {
				of := ""
				if c.Flags().Changed("protocol") {
					of, _, _ = strings.Cut(f.protocol, ":")
				}
				return a.listFaults(protocols, of)
			}
			if !slices.Contains([]string{"a", "b", "both"}, f.faulty) {
				return fmt.Errorf("--faulty %q: expected a, b or both", f.faulty)
			}
			return a.simulate(protocols, &f)
		},
	}
	f.register(c.Flags())
	a.writes(c)
	_ = c.RegisterFlagCompletionFunc("protocol", completeWords(protocols.words(a.registry)...))
	_ = c.RegisterFlagCompletionFunc("fault", protocols.completeFaults)
	_ = c.RegisterFlagCompletionFunc("faulty", completeWords("a", "b", "both"))
	_ = c.RegisterFlagCompletionFunc("tap", completeWords("a", "b", "between"))
	_ = c.RegisterFlagCompletionFunc("end", completeWords("leave", "kick", "stop", "none"))
	_ = c.RegisterFlagCompletionFunc("services", completeWords("none", "dont-duplicate", "order", "both", "any"))
	return c
}

// register names the flags, with their defaults.
func (f *simulateFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.protocol, "protocol", "gaffer:"+wire.Article, "what the endpoints speak: `gaffer:PROFILE`, or riptide:VERSION[:tcp], client/server where they differ, or srdp:PROFILE[:proxy|:tcp]")
	p.Uint64Var(&f.seed, "seed", 1, "seed of the run")
	p.StringVar(&f.loss, "loss", "0%", "share of datagrams that are lost")
	p.StringVar(&f.burst, "burst", "", "losses in bursts: `INTO,OUT`, the shares with which the network turns bad and good again")
	p.StringVar(&f.delay, "delay", "20ms", "one way")
	p.StringVar(&f.jitter, "jitter", "0ms", "added to the delay, uniformly")
	p.BoolVar(&f.inOrder, "in-order", false, "jitter does not reorder")
	p.StringVar(&f.dup, "dup", "0%", "share of datagrams that arrive twice")
	p.StringVar(&f.outage, "outage", "", "everything is lost: `AT,FOR[,EVERY]`, such as 4s,500ms,4s")
	p.StringVar(&f.bandwidth, "bandwidth", "0", "bits a second of the first hop, 0 for no limit")
	p.DurationVar(&f.duration, "duration", 20*time.Second, "how long both send; the run goes on for a second")
	p.StringVar(&f.rate, "rate", "60", "packets a second, one each frame")
	p.StringVar(&f.payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
	p.StringVar(&f.refuse, "refuse", "0%", "share of packets that the receiving application refuses")
	p.StringVar(&f.first, "first", "0", "sequence of the first packet")
	p.BoolVar(&f.eventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
	p.Float64Var(&f.messages, "messages", 0, "messages a second that each side submits, of what the profile's schema or --schema has (riptide: 20 if not said)")
	p.IntVar(&f.clients, "clients", 1, "riptide, srdp: clients of the server; the tap sees all of them")
	p.StringVar(&f.mix, "mix", "50/30/20", "riptide: shares of `RELIABLE/UNRELIABLE/NOTIFY` messages")
	p.BoolVar(&f.limitless, "no-limits", false, "riptide: no connection ends for its quality")
	p.StringVar(&f.repeats, "repeats", "0", "srdp: how often a packet is sent at most, 0 until it is acknowledged; drawn from `LEAST-MOST`")
	p.StringVar(&f.timeout, "timeout", "0s", "srdp: time between the copies of a packet, 0s for the library's choice")
	p.DurationVar(&f.resend, "resend", 0, "gaffer, riptide: time until a message that is not acked goes out again, 0s for the usual one")
	p.StringVar(&f.services, "services", "none", "srdp: what packets ask for: `none|dont-duplicate|order|both|any`")
	p.DurationVar(&f.giveUp, "give-up", 0, "srdp: how long a packet without a limit is sent again; 0 for no end")
	p.StringVar(&f.end, "end", "leave", "riptide: how it ends: `leave|kick|stop|none`")
	p.StringVar(&f.fault, "fault", "", "have an endpoint do one thing wrong: `NAME`, or list for all names (of one protocol, with --protocol)")
	p.StringVar(&f.faulty, "faulty", "a", "which endpoint that is: `a|b|both`")
	p.StringVar(&f.tap, "tap", "a", "where the capture is taken: `a|b|between`, or a share of the way from a to b")
	p.StringVarP(&f.write, "write", "w", "", "write the capture to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	p.StringVar(&f.journal, "journal", "", "`FILE` for the journal, - for standard output")
	p.StringVar(&f.truth, "truth", "", "`FILE` for the truth, - for standard output")
	p.StringVar(&f.play, "play", "", "run a journal `FILE` again and check that every byte is the same")
}

// simulation is a run that is set up.
type simulation struct {
	flags    *simulateFlags
	cast     cast
	world    *sim.World
	links    []*sim.Link      // of which the tap sees all
	addrs    []netip.AddrPort // by host
	stream   bool             // over TCP
	failed   error            // trouble of an application
	sentHash interface {
		io.Writer
		Sum([]byte) []byte
	}
}

// cast is what a protocol brings to a run: its endpoints, the game that they
// play, and how their truth is told.
type cast interface {
	// enter puts the endpoints into the world and lays the links.
	enter(s *simulation) error
	// truth begins to take down what the endpoints do, for write.
	truth(s *simulation) (write func(w io.Writer) error)
	// summarize says in a line a host what came of it.
	summarize(w io.Writer, s *simulation)
	// note is what a journal must remember beside the flags of every protocol.
	note() map[string]string
}

// simulationEpoch is what the start of every run is called in captures: runs
// are reproducible, so no clock is asked.
const simulationEpoch = machine.Instant(1_767_225_600_000_000_000) // 2026-01-01T00:00:00Z

var simulationAddrs = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}

func (a *app) simulate(protocols simulators, f *simulateFlags) (err error) {
	s, err := a.newSimulation(protocols, f)
	if err != nil {
		return err
	}
	at, err := s.tapAt()
	if err != nil {
		return err
	}
	var journal *sim.Journal
	if f.journal != "" {
		journal = s.world.Record()
	}
	truth := s.cast.truth(s)
	var tap, journalTo, truthTo *outputFile
	printed := "" // the flag of what goes to standard output
	for _, x := range []struct {
		flag, path string
		to         **outputFile
	}{{"-w", f.write, &tap}, {"--journal", f.journal, &journalTo}, {"--truth", f.truth, &truthTo}} {
		switch {
		case x.path == "":
			continue
		case x.path == "-" && printed != "":
			return fmt.Errorf("%s - and %s -: standard output takes one of them", printed, x.flag)
		case x.path == "-":
			printed = x.flag
		}
		// Bytes and values of messages are in all of them.
		if *x.to, err = a.create(x.flag, x.path, outfile.Payload, nil); err != nil {
			return err
		}
	}
	if err := endAll(s.runInto(at, journal, truth, tap, journalTo, truthTo), tap, journalTo, truthTo); err != nil {
		return err
	}
	if printed == "" {
		s.cast.summarize(a.writer(), s)
	}
	return nil
}

// runInto runs a simulation and writes what is asked for; outputs are nil where
// nothing is.
func (s *simulation) runInto(at float64, journal *sim.Journal, truth func(io.Writer) error, tapTo, journalTo, truthTo *outputFile) error {
	end, trouble := func() error { return nil }, new(error)
	if tapTo != nil {
		var err error
		if end, trouble, err = s.tapInto(at, tapTo); err != nil {
			return err
		}
	}
	if err := errors.Join(s.world.Run(machine.Instant(s.flags.duration+time.Second)), s.failed, end(), *trouble); err != nil {
		return err
	}
	if journalTo != nil {
		journal.Note = s.note()
		if _, err := journal.WriteTo(journalTo); err != nil {
			return err
		}
	}
	if truthTo != nil {
		return truth(truthTo)
	}
	return nil
}

// newSimulation builds the world that the flags describe.
func (a *app) newSimulation(protocols simulators, f *simulateFlags) (*simulation, error) {
	name, _, _ := strings.Cut(f.protocol, ":")
	p := protocols.lookup(name)
	if p == nil {
		return nil, unknownName("--protocol", f.protocol, protocols.names())
	}
	c, err := p.begin(a, f)
	if err != nil {
		return nil, err
	}
	if f.fault != "" && !p.hasFault(f.fault) {
		return nil, protocols.unknownFault(name, f.fault)
	}
	s := &simulation{flags: f, cast: c, world: sim.New(f.seed), sentHash: sha256.New()}
	if err := c.enter(s); err != nil {
		return nil, err
	}
	s.world.Watch(func(step *sim.Step) {
		for _, t := range step.Out.Transmit {
			_, _ = s.sentHash.Write(t.Bytes) // a hash never fails
		}
	})
	return s, nil
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func (s *simulation) describe() string {
	f := s.flags
	return fmt.Sprintf("%s, seed %d, loss %s, delay %s, jitter %s, dup %s", f.protocol, f.seed, f.loss, f.delay, f.jitter, f.dup)
}
