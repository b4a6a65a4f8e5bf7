package labs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/sim"
)

// Protocol describes a protocol to `ackscope lab`.
type Protocol struct {
	Name    string
	Short   string
	Long    string
	Example string
	TCP     bool // it can also run over TCP
	// Scenario is set when the log begins with one line about the whole run,
	// and not with one line about each end.
	Scenario bool
	Proxy    bool // it has a proxy between clients and the server: see ProxiedKit
	// Ways are the words that can follow PROTOCOL:PROFILE: behind a colon, with
	// the flags that they stand for.
	Ways map[string][]string
	// Begin adds the protocol's own flags. Its result makes the kit that all
	// flags describe.
	Begin func(p *pflag.FlagSet, f *Flags) (kit func(a *app.App) (sim.Kit, error))
	// Remembered lists the flags that are needed to make the kit's endpoints
	// again. The journal records them.
	Remembered []string
}

// ProxiedKit is a kit that may have a proxy between clients and the server.
type ProxiedKit interface {
	sim.Kit
	// Proxied reports whether it has one, and whether clients reach it by
	// streams.
	Proxied() (proxied, streams bool)
	// NameServer sets the server's address, for packets that contain it. Only
	// the first call has an effect.
	NameServer(at netip.AddrPort)
}

// Command returns `ackscope lab`, with a subcommand for each protocol.
func Command(a *app.App, protocols []*Protocol) *cobra.Command {
	var play, example string
	if len(protocols) > 0 {
		example = "  ackscope lab " + protocols[0].Name +
			" --loss 30% --duration 10s -w run.client.pcapng --truth run.truth.jsonl\n"
	}
	c := &cobra.Command{
		Use:   "lab PROTOCOL[:PROFILE]",
		Short: "Run reference endpoints on real sockets, with an impairing relay between",
		Long: `lab runs the reference endpoints as real servers and clients, on real sockets. A relay between
them loses, delays, reorders and duplicates packets, as the network of simulate does. That makes
live traffic to learn from and to test with. Each endpoint logs what it really did (--truth), and
its inputs (--journal).

PROTOCOL[:PROFILE] is spelled as in simulate and -d, such as gaffer:article-be or
riptide:2.0:tcp. "ackscope help lab PROTOCOL" lists the flags of that protocol. There, --profile
is the older spelling of the profile.

Without --listen, --connect or --relay everything runs in this process on loopback. lab sends
only to addresses that you name, and to those that send to it first.`,
		Example: example + "  ackscope lab --play run.journal.jsonl",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, p := range protocols {
				names = append(names, p.Name)
			}
			return app.Usage(c, "%v", app.UnknownName("lab", args[0], names))
		},

		ValidArgsFunction: completeProtocols(a.Registry, protocols),
		RunE: func(c *cobra.Command, _ []string) error {
			if play != "" {
				return labPlay(a, protocols, play)
			}
			return c.Help()
		},
	}
	c.Flags().StringVar(&play, "play", "",
		"step fresh endpoints through a lab's journal `FILE` and check that every byte is the same")
	for _, p := range protocols {
		c.AddCommand(labProtocolCommand(a, p))
	}
	return c
}

func labProtocolCommand(a *app.App, p *Protocol) *cobra.Command {
	f := &Flags{}
	c := &cobra.Command{
		Use: p.Name, Short: p.Short, Long: p.Long + "\n\n" + labForms, Example: p.Example, Args: app.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return run(a, p, f, c.Flags()) },
	}
	f.register(c.Flags(), p)
	a.Writes(c)
	return c
}

// labPlay passes a journal to fresh endpoints.
func labPlay(a *app.App, protocols []*Protocol, path string) error {
	j, err := simulate.ReadJournal(a, path)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(protocols, func(p *Protocol) bool { return p.Name == j.Note["lab"] })
	if i < 0 {
		return fmt.Errorf("%s: expected a journal of `ackscope lab`, found one of protocol %q (simulate --play?)", path,
			j.Note["lab"]+j.Note["protocol"])
	}
	p := protocols[i]
	var f Flags
	set := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	f.register(set, p)
	for _, name := range p.Remembered {
		value, noted := j.Note[name]
		if !noted {
			continue // the journal is older than the flag
		}
		if err := set.Set(name, value); err != nil {
			return fmt.Errorf("%s: %s: %w", path, name, err)
		}
	}
	f.Seed = j.Seed
	kit, err := f.kit(a)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	played, err := lab.Play(j, kit)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case played.Differs != nil:
		return &app.GateError{Text: fmt.Sprintf("%s: %v", path, played.Differs)}
	case !played.Finished && played.Compared:
		fmt.Fprintf(a.Writer(),
			"%d inputs gave %d transmissions, every byte as recorded; the recorded run was cut off there\n",
			played.Inputs, played.Sent)
		return nil
	case !played.Finished:
		fmt.Fprintf(a.Writer(), "%d inputs gave %d transmissions; the recorded run was cut off, so there is nothing to "+
			"compare them with\n", played.Inputs, played.Sent)
		return nil
	case !played.Same:
		return &app.GateError{Text: fmt.Sprintf("%s: %d inputs gave %d transmissions that differ from the recorded run's",
			path, played.Inputs, played.Sent)}
	}
	fmt.Fprintf(a.Writer(), "%d inputs gave %d transmissions, every byte as recorded\n", played.Inputs, played.Sent)
	return nil
}
