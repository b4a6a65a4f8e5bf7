package app

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/printable"
)

// Exit codes of the contract.
const (
	ExitDone   = 0
	ExitGate   = 1 // a gate that was asked for did not hold
	ExitFailed = 2
)

// Streams are the process's standard streams, so that tests can run commands
// in their own process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// GateError is a gate that did not hold: exit 1.
type GateError struct{ Text string }

func (e *GateError) Error() string { return e.Text }

// Trouble prints an error; of several that were joined each on its line.
func (s *Streams) Trouble(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			s.Trouble(e)
		}
		return
	}
	s.Say("", err)
}

// Say prints a message about a run on a line of standard error, behind "warning: "
// or nothing. A message may hold names of files and words of the command line, so
// what a terminal would obey is escaped.
func (s *Streams) Say(kind string, err error) {
	line := "ackscope: " + kind + printable.String(err.Error())
	var at *filter.Error
	if errors.As(err, &at) {
		line += "\n" + at.Pointer()
	}
	fmt.Fprintln(s.Err, line)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && terminal(f)
}
