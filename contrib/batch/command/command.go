// Package command is the command line of ackscope-beam.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/contrib/batch/pipeline"
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
	if err := p.run(ctx, args); err != nil {
		fmt.Fprintln(complaints, "ackscope-beam: "+printable.String(err.Error()))
		return exitError
	}
	return exitFine
}

func (p *program) run(ctx context.Context, args []string) error {
	switch {
	case hasFlag(args, "--worker"): // the container of Beam's Go SDK starts this program so
		if err := flag.CommandLine.Parse(args); err != nil {
			return err
		}
		beam.Init() // does not return
		return errors.New("--worker: expected --worker=true")
	case hasFlag(args, "--provision_endpoint"): // an engine, or the command worker, starts it so
		return boot(ctx, args)
	}
	c := &cobra.Command{
		Use:   "ackscope-beam",
		Short: "Very many captures into one folder of tables, on Apache Beam",
		Long: `ackscope-beam analyses captures as "ackscope batch" does, on an engine of Apache Beam. The
folder of tables is the same, byte for byte.

  run     analyses captures; without --endpoint in this process
  worker  serves an engine on this host as a pool of workers`,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
	}
	c.SetOut(p.out)
	c.SetErr(p.complaints)
	c.SetArgs(args)
	c.AddCommand(p.runCommand(), p.workerCommand(), analyzeCommand())
	return c.ExecuteContext(ctx)
}

// program has the streams of one run.
type program struct{ out, complaints io.Writer }

func (p *program) notice(text string) { fmt.Fprintln(p.complaints, printable.String(text)) }

func version() string {
	version, _ := app.BuildVersion()
	return version
}

// hasFlag reports whether a flag is among arguments that begin with flags, as those of Beam do.
func hasFlag(args []string, name string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return false
		}
		if key, _, _ := strings.Cut(arg, "="); key == name {
			return true
		}
	}
	return false
}

// analyzeCommand is a process that analyses captures for a worker.
func analyzeCommand() *cobra.Command {
	var f analysis
	c := &cobra.Command{
		Use: pipeline.AnalyzeCommand, Args: cobra.NoArgs, Hidden: true,
		Short: "Analyse captures for another process",
		RunE:  func(*cobra.Command, []string) error { return f.serve() },
	}
	f.register(c.Flags())
	return c
}
