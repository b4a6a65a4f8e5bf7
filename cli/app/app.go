package app

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/term"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// App is one run of the program. All commands share it.
type App struct {
	Streams
	Registry   *dissect.Registry
	Flags      flags
	Outputs    outfile.Outputs
	signalling sync.Once
	signals    chan os.Signal // end the program while files are unfinished; nil before EndOnSignals
	watched    chan struct{}  // closed once no signal is awaited
	Memory     budget
	Restore    func()              // undoes what the command set for the process
	Thresholds *analyze.Thresholds // of --thresholds and --set; nil if neither is given
	Headed     bool                // the heading of a recording was printed
	buffered   *bufio.Writer
	FieldTable *filter.Table
	NewEndings func() Endings
}

// flags are the flags of every command, and --join.
type flags struct {
	Read     []string
	JSON     bool
	DecodeAs []string
	Profiles []string
	Keys     string
	Schema   string
	Vantage  string
	// Thresholds is the file of --thresholds, and Set what --set says: NAME=VALUE.
	Thresholds string
	Set        []string
	Strict     bool
	Color      string
	Quiet      bool
	Join       bool // for commands that read several captures
	// JoinGiven reports whether --join was given, even as --join=false.
	JoinGiven bool
}

// Writer returns the buffered standard output, which run flushes.
func (a *App) Writer() *bufio.Writer {
	if a.buffered == nil {
		a.buffered = bufio.NewWriterSize(a.Out, 64<<10)
	}
	return a.buffered
}

// Flush writes the buffered output.
func (a *App) Flush() error {
	if a.buffered == nil {
		return nil
	}
	return a.buffered.Flush()
}

func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Paths returns the captures that the command line names. If it names none, the
// result is standard input.
func (a *App) Paths(args []string) []string {
	paths := append(append([]string(nil), a.Flags.Read...), args...)
	if len(paths) == 0 {
		return []string{"-"}
	}
	return paths
}

// Awaits returns an error if the command would read a capture from a terminal.
func (a *App) Awaits(args []string) error {
	if len(args)+len(a.Flags.Read) == 0 {
		if f, ok := a.In.(*os.File); ok && terminal(f) {
			return errors.New("no capture given: expected a file, or - for standard input")
		}
	}
	return nil
}

// Options returns the analysis options that the flags set.
func (a *App) Options() (analyze.Options, error) {
	o := analyze.Options{
		Registry: a.Registry, Limits: a.Limits(0), Gone: a.LetGo, Thresholds: a.Thresholds,
		Threads: runtime.GOMAXPROCS(0),
	}
	if a.Flags.Vantage != "" {
		v, ok := machine.ParseVantage(a.Flags.Vantage)
		if !ok {
			return o, fmt.Errorf("--vantage %q: expected a, b, both, between or unknown", a.Flags.Vantage)
		}
		o.Vantage = &v
	}
	var err error
	o.DecodeAs, err = analyze.ParseDecodeAs(a.Registry, a.Flags.DecodeAs)
	return o, err
}

// Ended returns the error to report when reading has ended with err. A cut
// capture is a warning, and an error with --strict. Everything else is an
// error.
func (a *App) Ended(err error) error {
	if err == nil {
		return nil
	}
	if !a.Tolerated(err) {
		return err
	}
	if !a.Flags.Quiet {
		a.Say("warning: ", err)
	}
	return nil
}

// Tolerated reports whether reading ended in a way that only causes a warning.
func (a *App) Tolerated(err error) bool {
	var damaged *capture.DamageError
	var cut *capture.CutError
	return !a.Flags.Strict && !errors.As(err, &damaged) && errors.As(err, &cut)
}

// Warn prints a warning on a line of its own.
func (a *App) Warn(text string) {
	_ = a.Flush() // the next Flush returns the error
	if IsTerminal(a.Err) {
		fmt.Fprint(a.Err, "\r\x1b[K") // wipe a line of progress
	}
	a.Say("warning: ", errors.New(text))
}

// Remark prints a remark about the output on standard error. -q suppresses it.
func (a *App) Remark(text string) {
	if a.Flags.Quiet {
		return
	}
	_ = a.Flush() // the next Flush returns the error
	a.Say("", errors.New(text))
}

// Advise prints a warning that -q suppresses.
func (a *App) Advise(text string) {
	if !a.Flags.Quiet {
		a.Warn(text)
	}
}
