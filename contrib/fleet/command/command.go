// Package command is the command line of ackscope-fleet.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/printable"
)

// Exit codes, as those of ackscope.
const (
	exitFine  = 0
	exitError = 2
)

// Main runs the command line and returns the exit code.
func Main(args []string, out, complaints io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, args, out, complaints)
}

// Run does what Main does, until the context ends.
func Run(ctx context.Context, args []string, out, complaints io.Writer) int {
	p := &program{out: out, complaints: complaints}
	c := &cobra.Command{
		Use:   "ackscope-fleet",
		Short: "What many sensors find, at one place",
		Long: `ackscope-fleet brings what sensors on many hosts find to one place, over NATS JetStream.

  sensor   analyses traffic on a game host, and tells the hub
  hub      keeps what sensors tell until it is collected
  collect  writes flows and findings as Parquet files
  fetch    brings the packets around a finding from its sensor
  top      shows the fleet in the terminal
  demo     runs all of that on this machine`,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
	}
	c.SetOut(out)
	c.SetErr(complaints)
	c.SetArgs(args)
	c.AddCommand(p.hub(), p.sensor(), p.collect(), p.fetch(), p.top(), p.demo())
	if err := c.ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(complaints, "ackscope-fleet: "+printable.String(err.Error()))
		return exitError
	}
	return exitFine
}

// program has the streams of one run.
type program struct {
	out, complaints io.Writer
	lock            sync.Mutex
}

// notice prints a line about what happens. Any goroutine may call it.
func (p *program) notice(text string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	fmt.Fprintln(p.complaints, time.Now().UTC().Format(time.TimeOnly), printable.String(text))
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
