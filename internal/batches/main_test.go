// Package batches tests runs over many captures with the whole program: `ackscope batch`.
package batches

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

var known = protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}

// fault is the name of a variable: "die x", "hang x" or "slow x". A worker does that at a capture with
// x in its name.
const fault = "ACKSCOPE_TEST_FAULT"

// TestMain runs the program if the command line is one of it. So this program can start itself as a
// worker, and tests can kill it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "batch" {
		if does, bad, ok := strings.Cut(os.Getenv(fault), " "); ok && slices.Contains(os.Args, "--worker") {
			os.Exit(serveFaulty(does, bad))
		}
		os.Exit(cli.Main(known, os.Args[1:]))
	}
	testenv.Main(m)
}

// faulty is a worker with a fault at a capture.
type faulty struct {
	*batch.Analyzer
	does, bad string
}

func (f *faulty) Do(ctx context.Context, job *batch.Job) (*batch.Done, error) {
	if strings.Contains(job.Capture.Name, f.bad) {
		switch f.does {
		case "die": // as a program that is killed for its memory
			os.Exit(137)
		case "hang":
			select {}
		case "slow": // the time is over before the analysis
			job.Timeout = min(job.Timeout, 1)
		}
	}
	return f.Analyzer.Do(ctx, job)
}

func serveFaulty(does, bad string) int {
	out := ""
	for _, arg := range os.Args {
		if value, ok := strings.CutPrefix(arg, "--output="); ok {
			out = value
		}
	}
	a, err := batch.NewAnalyzer(&outfile.Outputs{}, out, unit.Options{})
	if err != nil {
		return 2
	}
	if err := batch.Serve(os.Stdin, os.Stdout, &faulty{a, does, bad}); err != nil {
		return 2
	}
	return 0
}

// run runs a command line and checks the exit code. It returns both outputs.
func run(t testing.TB, code int, args ...string) (out, complaint string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := cli.Run(known, args, app.Streams{In: strings.NewReader(""), Out: &o, Err: &e}); got != code {
		t.Fatalf("%s: exit %d, expected %d\n%s%s", strings.Join(args, " "), got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// simulated writes a simulated capture.
func simulated(t testing.TB, path string, args ...string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, 0, append([]string{"simulate", "-q", "--duration", "4s", "-w", path}, args...)...)
	return path
}
