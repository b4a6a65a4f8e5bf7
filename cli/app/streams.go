package app

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ackscope/ackscope/printable"
)

// The exit codes of the program.
const (
	ExitDone   = 0
	ExitGate   = 1 // a condition such as --fail-on did not hold
	ExitFailed = 2
)

// Streams are the standard streams of the process. Tests replace them to run
// commands in their own process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Verdicts has what the command judge prints, in another process that runs beside overview.
	// It is nil without one, and ends early where that process has failed.
	Verdicts io.Reader
	// Trade leads to the other one of these two processes, which share the first run over the first
	// capture. It gives what this process learned, and returns what the other one did. No bytes are
	// nothing. It is nil where each makes the whole run.
	Trade func(own []byte) (other []byte)
}

// GateError says that a condition such as --fail-on did not hold: exit code 1.
type GateError struct{ Text string }

func (e *GateError) Error() string { return e.Text }

// Trouble prints an error. A joined error prints each of its errors on a line.
func (s *Streams) Trouble(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			s.Trouble(e)
		}
		return
	}
	s.Say("", err)
}

// Say prints a message on a line of standard error, after a kind such as
// "warning: ". A message may contain names of files and words of the command
// line, so Say escapes control characters.
func (s *Streams) Say(kind string, err error) {
	line := "ackscope: " + kind + printable.String(err.Error())
	var at interface {
		error
		Pointer() string
	}
	if errors.As(err, &at) {
		line += "\n" + at.Pointer()
	}
	var usage *UsageError
	if errors.As(err, &usage) {
		line += "\nusage: " + usage.Usage
	}
	fmt.Fprintln(s.Err, line)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && terminal(f)
}
