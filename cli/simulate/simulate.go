package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/sim"
)

// Command returns `ackscope simulate` for the given protocols.
func Command(a *app.App, protocols Simulators) *cobra.Command {
	var f Flags
	c := &cobra.Command{
		Use:   "simulate [PROTOCOL[:PROFILE]]",
		Short: "Run reference endpoints over a simulated network and capture what they send",
		Long: `simulate runs two reference endpoints over a simulated network and writes a capture of their
traffic. The network loses, delays, reorders and duplicates packets as the flags say. The clock
is simulated too, so a run of minutes takes a moment. The same seed gives the same bytes.

--truth writes a log of what both endpoints really did. --journal writes every input of the
endpoints, and --play repeats the run from it.

Without PROTOCOL, simulate takes the first one of "ackscope protocols". PROFILE names one of its
profiles, as in lab and -d. For Riptide, CLIENT/SERVER names two different releases, and :tcp
runs over TCP. For SRDP, :proxy or :tcp is the way to a proxy. --protocol is the older spelling.

The flags of the network take two values for its two directions: --loss 5%/40% loses 5 % from
a to b, and 40 % from b to a.`,
		Example: protocols.examples() + `  ackscope simulate --fault ack-gaps --loss 10% -w faulty.pcapng
  ackscope simulate --play run.journal.jsonl`,
		Args: app.Arguments(0, 1, "PROTOCOL[:PROFILE] and flags"),

		ValidArgsFunction: completeProtocol(a, protocols),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if c.Flags().Changed("protocol") {
					return app.Usage(c, "simulate: expected %q or --protocol %s, found both", args[0], f.Protocol)
				}
				if err := c.Flags().Set("protocol", args[0]); err != nil {
					return err
				}
			}
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
	for _, p := range protocols {
		for flag, words := range p.Completions {
			_ = c.RegisterFlagCompletionFunc(flag, app.CompleteWords(words...))
		}
	}
	return c
}

// completeProtocol completes the argument PROTOCOL[:PROFILE].
func completeProtocol(a *app.App, protocols Simulators) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, form := range protocols.words(a.Registry) {
			if len(args) == 0 && strings.HasPrefix(form, word) {
				list = append(list, form)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
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
	printed := "" // the flag whose output goes to standard output
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
		// All three contain bytes and values of messages.
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

// runInto runs a simulation, writes the outputs and ends the log. An output
// that the user did not ask for is nil.
func (s *Simulation) runInto(at float64, journal *sim.Journal, endLog func() error, tapTo,
	journalTo *app.OutputFile,
) error {
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

// Spell replaces the bytes of all texts in a random message by letters.
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
