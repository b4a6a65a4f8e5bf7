package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/sim"
)

// Flags are the settings of one simulated flow. Those that a path has
// take one value, or two with a slash: from a to b, and from b to a.
type Flags struct {
	Protocol  string
	Seed      uint64
	Loss      string
	Burst     string
	Delay     string
	Jitter    string
	InOrder   bool
	Dup       string
	Outage    string
	Bandwidth string
	Duration  time.Duration
	Rate      string
	Payload   string
	Refuse    string
	First     string
	EventTime bool
	Messages  float64
	Clients   int
	Mix       string
	Limitless bool
	End       string
	Repeats   string
	Timeout   string
	Resend    time.Duration
	Services  string
	GiveUp    time.Duration
	Fault     string
	Faulty    string
	Tap       string
	Write     string
	Journal   string
	Truth     string
	play      string
}

// Command builds `ackscope simulate`, for the protocols given.
func Command(a *app.App, protocols Simulators) *cobra.Command {
	var f Flags
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
				return play(a, protocols, f.play)
			}
			if f.Fault == "list" {
				of := ""
				if c.Flags().Changed("protocol") {
					of, _, _ = strings.Cut(f.Protocol, ":")
				}
				return listFaults(a, protocols, of)
			}
			if !slices.Contains([]string{"a", "b", "both"}, f.Faulty) {
				return fmt.Errorf("--faulty %q: expected a, b or both", f.Faulty)
			}
			return simulate(a, protocols, &f)
		},
	}
	f.Register(c.Flags(), protocols)
	a.Writes(c)
	_ = c.RegisterFlagCompletionFunc("protocol", app.CompleteWords(protocols.words(a.Registry)...))
	_ = c.RegisterFlagCompletionFunc("fault", protocols.completeFaults)
	_ = c.RegisterFlagCompletionFunc("faulty", app.CompleteWords("a", "b", "both"))
	_ = c.RegisterFlagCompletionFunc("tap", app.CompleteWords("a", "b", "between"))
	_ = c.RegisterFlagCompletionFunc("end", app.CompleteWords("leave", "kick", "stop", "none"))
	_ = c.RegisterFlagCompletionFunc("services", app.CompleteWords("none", "dont-duplicate", "order", "both", "any"))
	return c
}

// Register names the flags, with their defaults: the first protocol as it usually is.
func (f *Flags) Register(p *pflag.FlagSet, protocols Simulators) {
	usual := ""
	if len(protocols) > 0 {
		usual = protocols[0].Name + ":" + protocols[0].Usual
	}
	p.StringVar(&f.Protocol, "protocol", usual, "what the endpoints speak: `gaffer:PROFILE`, or riptide:VERSION[:tcp], client/server where they differ, or srdp:PROFILE[:proxy|:tcp]")
	p.Uint64Var(&f.Seed, "seed", 1, "seed of the run")
	p.StringVar(&f.Loss, "loss", "0%", "share of datagrams that are lost")
	p.StringVar(&f.Burst, "burst", "", "losses in bursts: `INTO,OUT`, the shares with which the network turns bad and good again")
	p.StringVar(&f.Delay, "delay", "20ms", "one way")
	p.StringVar(&f.Jitter, "jitter", "0ms", "added to the delay, uniformly")
	p.BoolVar(&f.InOrder, "in-order", false, "jitter does not reorder")
	p.StringVar(&f.Dup, "dup", "0%", "share of datagrams that arrive twice")
	p.StringVar(&f.Outage, "outage", "", "everything is lost: `AT,FOR[,EVERY]`, such as 4s,500ms,4s")
	p.StringVar(&f.Bandwidth, "bandwidth", "0", "bits a second of the first hop, 0 for no limit")
	p.DurationVar(&f.Duration, "duration", 20*time.Second, "how long both send; the run goes on for a second")
	p.StringVar(&f.Rate, "rate", "60", "packets a second, one each frame")
	p.StringVar(&f.Payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
	p.StringVar(&f.Refuse, "refuse", "0%", "share of packets that the receiving application refuses")
	p.StringVar(&f.First, "first", "0", "sequence of the first packet")
	p.BoolVar(&f.EventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
	p.Float64Var(&f.Messages, "messages", 0, "messages a second that each side submits, of what the profile's schema or --schema has (riptide: 20 if not said)")
	p.IntVar(&f.Clients, "clients", 1, "riptide, srdp: clients of the server; the tap sees all of them")
	p.StringVar(&f.Mix, "mix", "50/30/20", "riptide: shares of `RELIABLE/UNRELIABLE/NOTIFY` messages")
	p.BoolVar(&f.Limitless, "no-limits", false, "riptide: no connection ends for its quality")
	p.StringVar(&f.Repeats, "repeats", "0", "srdp: how often a packet is sent at most, 0 until it is acknowledged; drawn from `LEAST-MOST`")
	p.StringVar(&f.Timeout, "timeout", "0s", "srdp: time between the copies of a packet, 0s for the library's choice")
	p.DurationVar(&f.Resend, "resend", 0, "gaffer, riptide: time until a message that is not acked goes out again, 0s for the usual one")
	p.StringVar(&f.Services, "services", "none", "srdp: what packets ask for: `none|dont-duplicate|order|both|any`")
	p.DurationVar(&f.GiveUp, "give-up", 0, "srdp: how long a packet without a limit is sent again; 0 for no end")
	p.StringVar(&f.End, "end", "leave", "riptide: how it ends: `leave|kick|stop|none`")
	p.StringVar(&f.Fault, "fault", "", "have an endpoint do one thing wrong: `NAME`, or list for all names (of one protocol, with --protocol)")
	p.StringVar(&f.Faulty, "faulty", "a", "which endpoint that is: `a|b|both`")
	p.StringVar(&f.Tap, "tap", "a", "where the capture is taken: `a|b|between`, or a share of the way from a to b")
	p.StringVarP(&f.Write, "write", "w", "", "write the capture to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	p.StringVar(&f.Journal, "journal", "", "`FILE` for the journal, - for standard output")
	p.StringVar(&f.Truth, "truth", "", "`FILE` for the truth, - for standard output")
	p.StringVar(&f.play, "play", "", "run a journal `FILE` again and check that every byte is the same")
}

func simulate(a *app.App, protocols Simulators, f *Flags) (err error) {
	s, err := NewSimulation(a, protocols, f)
	if err != nil {
		return err
	}
	at, err := s.TapAt()
	if err != nil {
		return err
	}
	var journal *sim.Journal
	if f.Journal != "" {
		journal = s.World.Record()
	}
	var truth bytes.Buffer
	var log *sim.Log
	if f.Truth != "" {
		log = sim.NewLog(&truth, Epoch)
	}
	endLog := s.LogTo(log)
	var tap, journalTo, truthTo *app.OutputFile
	printed := "" // the flag of what goes to standard output
	for _, x := range []struct {
		flag, path string
		to         **app.OutputFile
	}{{"-w", f.Write, &tap}, {"--journal", f.Journal, &journalTo}, {"--truth", f.Truth, &truthTo}} {
		switch {
		case x.path == "":
			continue
		case x.path == "-" && printed != "":
			return fmt.Errorf("%s - and %s -: standard output takes one of them", printed, x.flag)
		case x.path == "-":
			printed = x.flag
		}
		// Bytes and values of messages are in all of them.
		if *x.to, err = a.Create(x.flag, x.path, outfile.Payload, nil); err != nil {
			return err
		}
	}
	err = s.runInto(at, journal, endLog, tap, journalTo)
	if err == nil && truthTo != nil {
		_, err = truth.WriteTo(truthTo)
	}
	if err := app.EndAll(err, tap, journalTo, truthTo); err != nil {
		return err
	}
	if printed == "" {
		s.Run.Summarize(a.Writer(), s)
	}
	return nil
}

// runInto runs a simulation, writes what is asked for and ends the log; outputs are
// nil where nothing is asked for.
func (s *Simulation) runInto(at float64, journal *sim.Journal, endLog func() error, tapTo, journalTo *app.OutputFile) error {
	end, trouble := func() error { return nil }, new(error)
	if tapTo != nil {
		var err error
		if end, trouble, err = s.TapInto(at, tapTo); err != nil {
			return err
		}
	}
	if err := errors.Join(s.World.Run(machine.Instant(s.Flags.Duration+time.Second)), end(), *trouble); err != nil {
		return err
	}
	if journalTo != nil {
		journal.Note = s.note()
		if _, err := journal.WriteTo(journalTo); err != nil {
			return err
		}
	}
	return endLog()
}

// Spell makes letters of the bytes of all texts of a drawn message.
func Spell(v any) any {
	switch v := v.(type) {
	case schema.Record:
		for i := range v {
			v[i].Value = Spell(v[i].Value)
		}
	case []any:
		for i := range v {
			v[i] = Spell(v[i])
		}
	case string:
		b := []byte(v)
		for i := range b {
			b[i] = "etaoinshrdlu    "[b[i]%16]
		}
		return string(b)
	}
	return v
}
