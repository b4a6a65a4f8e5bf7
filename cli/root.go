package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/printable"
)

// Main runs one command line, without the name of the program, on the standard
// streams of the process. It returns the exit code.
func Main(r protocol.Registry, args []string) int {
	ignoreSizeSignal()
	return run(r, args, app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// Run runs one command line on other streams, and returns the exit code.
func Run(r protocol.Registry, args []string, s app.Streams) int { return run(r, args, s) }

// run runs one command line and returns the exit code. more are commands beside those of the
// program.
func run(r protocol.Registry, args []string, s app.Streams, more ...func(*app.App) *cobra.Command) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(s.Err, "ackscope: a fault of ackscope itself: %s\nPlease report it, if you can with the capture, and "+
				"with this:\n%s",
				printable.String(fmt.Sprint(fault)), debug.Stack())
			code = app.ExitFailed
		}
	}()
	a := &app.App{Streams: s, Registry: r.Descriptors(), NewEndings: r.Endings, Restore: func() {}}
	defer func() {
		a.Abandon()         // also after a panic
		if len(more) == 0 { // a command beside those of the program may go on to use the App
			a.Forget()
		}
	}()
	root := command(r, a)
	for _, c := range more {
		root.AddCommand(c(a))
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // a shell asks: it reads every flag
		app.CompleteChoices(root)
	}
	root.SetArgs(spelled(r, root, args))
	defer func() { a.Restore() }()
	err := root.Execute()
	a.WarnLetGo()
	if flushErr := a.Flush(); err == nil {
		err = flushErr
	}
	var gate *app.GateError
	switch {
	case err == nil:
		return app.ExitDone
	case errors.Is(err, syscall.EPIPE):
		// The reader of the output (head, less) has ended.
		return app.ExitDone
	case errors.As(err, &gate):
		s.Trouble(err)
		return app.ExitGate
	default:
		s.Trouble(err)
		return app.ExitFailed
	}
}

// command builds the tree of commands.
func command(r protocol.Registry, a *app.App) *cobra.Command {
	first := &listing.OverviewFlags{}
	root := &cobra.Command{
		Use:   "ackscope [FILE...]",
		Short: "What each side knew: analyze captures of game protocols' acks",
		Long: `ackscope opens a capture of game traffic (pcap, pcapng, plain or compressed, a pipe
or a live interface), finds the reliability protocol in it by itself, dissects every
packet and rebuilds from the capture alone what both endpoints knew at any packet.

Without a command, ackscope FILE prints the overview (ackscope help overview).

Several files, directories and quoted patterns are analysed one after the other, each file for
itself; --join merges them. Flow numbers begin at 1 in each file: --flow takes FILE:NUMBER
(docs/files.md).`,
		Example: `  ackscope match.pcapng                        # the overview: what is wrong, and where
  ackscope flows match.pcapng
  ackscope findings match.pcapng
  ackscope findings --fail-on error captures/*.pcapng
  ackscope state --flow 1 --at 4711 match.pcapng
  tcpdump -U -w - udp port 7777 | ackscope events --json -`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          app.CapturesOrCommand,

		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if a.Flags.JSON && (c.HasParent() || !opens(a, c.Flags().Args())) {
				if err := about.JSONRefused(c); err != nil {
					return err
				}
			}
			var err error
			if a.Restore, err = a.ReadMemory(); err != nil {
				return err
			}
			if err = about.LoadThresholds(a); err != nil {
				return err
			}
			return about.LoadProfiles(a)
		},

		SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, args []string) error {
			if !opens(a, args) {
				return c.Help()
			}
			return listing.Overview(a, c, first, args)
		},
	}
	first.Register(a, root)
	root.Version = app.VersionLine()
	plainVersion(root)
	root.Flags().Bool("version", false, "print the version and end")
	root.SetFlagErrorFunc(app.FlagError)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	p := root.PersistentFlags()
	p.StringArrayVarP(&a.Flags.Read, "read", "r", nil,
		"capture `FILE` to read, - for standard input (files can also follow the command)")
	p.BoolVar(&a.Flags.JSON, "json", false, "print JSON Lines, one object a line")
	p.StringArrayVarP(&a.Flags.DecodeAs, "decode-as", "d", nil,
		"read matching flows as a protocol: `SELECTOR,PROTOCOL[:PROFILE]`, as udp.port==7777,gaffer:article-be")
	p.StringVar(&a.Flags.Keys, "keys", "", "decrypt netcode and yojimbo with the keys in `FILE` (docs/keys.md)")
	p.StringArrayVar(&a.Flags.Profiles, "profiles", nil,
		"read profiles of your own from `FILE.yaml` (ackscope protocols prints some to start from)")
	p.StringVar(&a.Flags.Schema, "schema", "", "read the values of Riptide's messages by the schema in `FILE.yaml`")
	p.StringVar(&a.Flags.Thresholds, "thresholds", "",
		"read the limits from which steady loss, delay and the like are findings from `FILE.yaml` "+
			"(ackscope thresholds prints one)")
	p.StringSliceVar(&a.Flags.Set, "set", nil, "set such limits: `loss=3%,rtt=150ms`; off switches one off")
	p.StringVar(&a.Memory.Text, "memory", "",
		"use at most this much memory, as `1GiB` (default: half of the machine's; live 512MiB): flows that were silent "+
			"longest end early")
	p.StringVar(&a.Flags.Vantage, "vantage", "", "side at which the capture was taken: `a|b|both|between|unknown` "+
		"(default: inferred)")
	p.BoolVar(&a.Flags.Strict, "strict", false, "a capture that is cut short is an error (exit 2)")
	p.BoolP("numeric", "n", true, "accepted because tshark has it: names are never resolved")
	p.StringVar(&a.Flags.Color, "color", "auto", "colour: `auto|always|never`")
	p.BoolVarP(&a.Flags.Quiet, "quiet", "q", false, "no progress and no warnings")
	_ = root.RegisterFlagCompletionFunc("decode-as", func(c *cobra.Command, args []string, word string) ([]string,
		cobra.ShellCompDirective,
	) {
		return about.CompleteDecodeAs(a, c, args, word)
	})
	_ = root.RegisterFlagCompletionFunc("set", about.CompleteSet)
	_ = root.RegisterFlagCompletionFunc("vantage", app.CompleteWords("a", "b", "both", "between", "unknown"))
	_ = root.RegisterFlagCompletionFunc("color", app.CompleteWords("auto", "always", "never"))
	root.AddCommand(commands(r, a)...)
	for i := range r {
		for _, command := range r[i].Commands {
			root.AddCommand(command(a))
		}
	}
	return root
}

// opens reports whether a command line without a command names captures to give an overview of.
func opens(a *app.App, args []string) bool { return len(args)+len(a.Flags.Read) > 0 }
