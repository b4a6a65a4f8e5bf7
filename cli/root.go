package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/printable"
)

// Exit codes of the contract.
const (
	exitDone   = 0
	exitGate   = 1 // a gate that was asked for did not hold
	exitFailed = 2
)

// streams are the process's standard streams, so that tests can run commands
// in their own process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// gateError is a gate that did not hold: exit 1.
type gateError struct{ text string }

func (e *gateError) Error() string { return e.text }

// Main runs one command line, without the name of the program, on the process's
// standard streams, and gives the exit code.
func Main(r Registry, args []string) int {
	ignoreSizeSignal()
	return r.run(args, streams{os.Stdin, os.Stdout, os.Stderr})
}

// run runs one command line and gives the exit code.
func (r Registry) run(args []string, s streams) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(s.err, "ackscope: a fault of ackscope itself: %s\nPlease report it, if you can with the capture, and with this:\n%s",
				printable.String(fmt.Sprint(fault)), debug.Stack())
			code = exitFailed
		}
	}()
	a := &app{streams: s, registry: r.Descriptors(), newEndings: r.Endings, restore: func() {}}
	defer a.abandon() // after a fault too
	root := r.command(a)
	root.SetArgs(args)
	defer func() { a.restore() }()
	err := root.Execute()
	a.tellLetGo()
	if flushErr := a.flush(); err == nil {
		err = flushErr
	}
	var gate *gateError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, syscall.EPIPE):
		// The reader (head, less) has seen enough.
		return exitDone
	case errors.As(err, &gate):
		s.say("", err)
		return exitGate
	default:
		s.trouble(err)
		return exitFailed
	}
}

// trouble prints an error; of several that were joined each on its line.
func (s *streams) trouble(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			s.trouble(e)
		}
		return
	}
	s.say("", err)
}

// say prints a message about a run on a line of standard error, behind "warning: "
// or nothing. A message may hold names of files and words of the command line, so
// what a terminal would obey is escaped.
func (s *streams) say(kind string, err error) {
	line := "ackscope: " + kind + printable.String(err.Error())
	var at *filter.Error
	if errors.As(err, &at) {
		line += "\n" + at.Pointer()
	}
	fmt.Fprintln(s.err, line)
}

// command builds the command tree.
func (r Registry) command(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "ackscope",
		Short: "What each side knew: analyze captures of game protocols' acks",
		Long: `ackscope opens a capture of game traffic (pcap, pcapng, plain or compressed, a pipe
or a live interface), finds the reliability protocol in it by itself, dissects every
packet and rebuilds from the capture alone what both endpoints knew at any packet.

Several files are analysed one after the other, each for itself; --join merges them. Flow
numbers begin at 1 in each file: --flow takes FILE:NUMBER (docs/files.md).`,
		Example: `  ackscope flows match.pcapng
  ackscope findings match.pcapng
  ackscope findings --fail-on error captures/*.pcapng
  ackscope state --flow 1 --at 4711 match.pcapng
  tcpdump -U -w - udp port 7777 | ackscope events --json -`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,

		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if a.flags.json {
				if err := jsonRefused(c); err != nil {
					return err
				}
			}
			var err error
			if a.restore, err = a.readMemory(); err != nil {
				return err
			}
			return a.loadProfiles()
		},

		SuggestionsMinimumDistance: 2,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	p := root.PersistentFlags()
	p.StringArrayVarP(&a.flags.read, "read", "r", nil, "capture `FILE` to read, - for standard input (files can also follow the command)")
	p.BoolVar(&a.flags.json, "json", false, "print JSON Lines, one object a line")
	p.StringArrayVarP(&a.flags.decodeAs, "decode-as", "d", nil, "read matching flows as a protocol: `udp.port==7777,gaffer:article-be`")
	p.StringVar(&a.flags.keys, "keys", "", "decrypt netcode and yojimbo with the keys in `FILE` (docs/keys.md)")
	p.StringArrayVar(&a.flags.profiles, "profiles", nil, "read profiles of your own from `FILE.yaml` (ackscope protocols prints some to start from)")
	p.StringVar(&a.flags.schema, "schema", "", "read the values of Riptide's messages by the schema in `FILE.yaml`")
	p.StringVar(&a.memory.text, "memory", "", "keep within so much memory, as `1GiB` (default: half of the machine's; live 512MiB): flows that were silent longest make way")
	p.StringVar(&a.flags.vantage, "vantage", "", "where the tap stood: `a|b|both|between|unknown` (default: inferred)")
	p.BoolVar(&a.flags.strict, "strict", false, "a capture that is cut short is an error (exit 2)")
	p.BoolP("numeric", "n", true, "names are never resolved; taken for tshark's sake")
	p.StringVar(&a.flags.color, "color", "auto", "colour: `auto|always|never`")
	p.BoolVarP(&a.flags.quiet, "quiet", "q", false, "no progress and no warnings")
	_ = root.RegisterFlagCompletionFunc("decode-as", a.completeDecodeAs)
	_ = root.RegisterFlagCompletionFunc("vantage", completeWords("a", "b", "both", "between", "unknown"))
	_ = root.RegisterFlagCompletionFunc("color", completeWords("auto", "always", "never"))
	root.AddCommand(
		a.tuiCommand(),
		a.flowsCommand(),
		a.packetsCommand(),
		a.eventsCommand(),
		a.messagesCommand(),
		a.findingsCommand(),
		a.ledgerCommand(),
		a.graphCommand(),
		a.reportCommand(),
		a.stateCommand(),
		a.explainCommand(),
		a.protocolsCommand(),
		a.fieldsCommand(),
		simulateCommand(a, r.Simulators()),
		a.replayCommand(),
		a.reduceCommand(),
		a.mergeCommand(),
		a.exportCommand(),
		a.anonymiseCommand(),
		a.schemaCommand(),
		a.manCommand(),
		a.captureCommand(),
		labCommand(a, r.Labs()),
	)
	for i := range r {
		for _, command := range r[i].Commands {
			root.AddCommand(command(a))
		}
	}
	return root
}

// unknownCommand says what was likely meant by a word that is no command.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := args[0]
	if _, err := os.Stat(word); err == nil {
		return fmt.Errorf("%q is a file: expected a command before it, as in `ackscope flows %s`", word, word)
	}
	err := fmt.Errorf("unknown command %q (`ackscope help` lists them)", word)
	if near := c.SuggestionsFor(word); len(near) > 0 {
		err = fmt.Errorf("unknown command %q; did you mean %s?", word, strings.Join(near, " or "))
	}
	return err
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && terminal(f)
}
