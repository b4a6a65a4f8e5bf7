package batching

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/unit"
)

// flags are the flags of the command.
type flags struct {
	out       string
	manifest  string
	partition []string
	share     string
	combine   bool
	together  bool // --join
	threads   int
	parts     int
	packets   uint64
	timeout   time.Duration
	worker    bool

	baseline      string
	before, after string
	html, parquet string
	failOn        string
	failIf        string
}

// Command builds `ackscope batch`.
func Command(a *app.App) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "batch -o DIR [FILE...]",
		Short: "Many captures into one folder of tables, on all cores; which build got worse",
		Long: `batch analyses captures, of any number, into a folder of tables: flows/ and findings/ in
Parquet, captures.parquet with what became of each capture, and summary.json. A manifest (CSV or
Parquet) names captures in its column capture; its other columns, such as build and region, divide
the tables into folders like build=1.4/region=eu (docs/batch.md).

Each worker is a process with one capture at a time. A run that was interrupted goes on where it
was, and the same command with more captures analyses the new ones. The files are the same, byte for
byte, for any number of workers, shares and interruptions. A capture that ends its worker three
times is set apart, and the others go on. So is one that takes longer than --timeout: it has no rows.

--share I/N analyses one of N equal shares of the captures, I from 0, for jobs on several machines
that share DIR. --combine then writes the tables of all shares.

--baseline DIR compares with another such folder: how often each rule fires in 1,000 flows, and how
round trips and losses are distributed. --before and --after choose parts by a column.`,
		Example: `  ackscope batch -o tables captures/
  ackscope batch -o tables --manifest captures.csv
  ackscope batch -o tables 'captures/**/*.pcapng' --threads 8
  ackscope batch -o tables --manifest captures.csv --share $JOB_COMPLETION_INDEX/32
  ackscope batch -o tables --manifest captures.csv --combine
  ackscope batch -o tables --manifest captures.csv --before build=1.4.1 --after build=1.4.2
  ackscope batch -o new captures/new --baseline old --html worse.html --fail-if worse`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.worker {
				return work(a, f)
			}
			return run(a, c, f, args)
		},
	}
	p := c.Flags()
	p.StringVarP(&f.out, "output", "o", "", "write the tables into the folder `DIR`")
	p.StringVar(&f.manifest, "manifest", "", "read names and labels of captures from `FILE` (CSV or Parquet)")
	p.StringSliceVar(&f.partition, "partition", nil, "the manifest's `COLUMNS` that divide the tables (default: all)")
	p.StringVar(&f.share, "share", "", "analyse one of several shares only: `I/N`, I from 0 to N-1")
	p.BoolVar(&f.combine, "combine", false, "analyse nothing; write the tables of what was analysed")
	p.BoolVar(&f.together, "join", true, "read the files of a rotated row as one capture; --join=false keeps them apart")
	p.IntVar(&f.threads, "threads", 0, "analyse so many captures at a time (default: as many as there are cores)")
	p.IntVar(&f.parts, "parts", 4, "files of each table and partition, at most")
	p.Uint64Var(&f.packets, "packets", 0, "read at most so many packets of each capture, 0 for all")
	p.DurationVar(&f.timeout, "timeout", 0,
		"give up a capture whose analysis takes longer than this `TIME`, 0 for no bound")
	p.BoolVar(&f.worker, "worker", false, "serve as a worker of another process")
	_ = p.MarkHidden("worker")
	p.StringVar(&f.baseline, "baseline", "", "compare with the folder `DIR` of another run (by default with this one)")
	p.StringVar(&f.before, "before", "", "compare the captures of the baseline with `COLUMN=VALUE` only")
	p.StringVar(&f.after, "after", "", "compare the captures of DIR with `COLUMN=VALUE` only")
	p.StringVar(&f.html, "html", "", "write the comparison as a self-contained page to `FILE`")
	p.StringVar(&f.parquet, "parquet", "", "write the comparison as a table to `FILE`")
	p.StringVar(&f.failOn, "fail-on", "", "exit 1 when a finding is this grave: `note|warn|error`")
	p.StringVar(&f.failIf, "fail-if", "", "exit 1 when the comparison finds something `worse`")
	_ = c.RegisterFlagCompletionFunc("fail-if", app.CompleteWords("worse"))
	_ = c.MarkFlagDirname("output")
	_ = c.MarkFlagDirname("baseline")
	_ = c.MarkFlagFilename("manifest", "csv", "parquet")
	a.Writes(c)
	return c
}

// check refuses flags that do not go together.
func (f *flags) check(a *app.App, args []string) (share batch.Share, err error) {
	switch {
	case f.out == "":
		return share, errors.New("expected -o with the folder to write, as in `ackscope batch -o tables captures/`")
	case len(args) == 0 && len(a.Flags.Read) == 0 && f.manifest == "":
		return share, errors.New("no capture given: expected files, directories or --manifest")
	case f.threads < 0:
		return share, fmt.Errorf("--threads %d: expected 1 or more", f.threads)
	case f.parts < 1 || f.parts > mostParts:
		return share, fmt.Errorf("--parts %d: expected 1 to %d", f.parts, mostParts)
	case f.timeout < 0:
		return share, fmt.Errorf("--timeout %v: expected something above 0, or 0 for no bound", f.timeout)
	case f.share != "" && f.combine:
		return share, errors.New("--share and --combine: expected --combine alone, once all shares are done")
	case f.share != "" && f.compares():
		return share, errors.New("--share writes no tables: expected --baseline, --before and --after with --combine")
	case (f.html != "" || f.parquet != "" || f.failIf != "") && !f.compares():
		return share, errors.New("--html, --parquet and --fail-if are of a comparison: expected --baseline, or --before " +
			"and --after")
	case f.baseline == "" && (f.before == "") != (f.after == ""):
		return share, errors.New("--before and --after: expected both, or --baseline")
	case f.failIf != "" && f.failIf != "worse":
		return share, fmt.Errorf("--fail-if %q: expected worse", f.failIf)
	case f.failOn != "" && f.share != "":
		return share, errors.New("--fail-on: expected it with --combine, as --share sees a part of the captures")
	}
	if f.failOn != "" {
		if _, ok := app.ParseSeverity(f.failOn); !ok {
			return share, fmt.Errorf("--fail-on %q: expected note, warn or error", f.failOn)
		}
	}
	for _, x := range []struct{ flag, text string }{{"--before", f.before}, {"--after", f.after}} {
		if column, _, ok := strings.Cut(x.text, "="); x.text != "" && (!ok || column == "") {
			return share, fmt.Errorf("%s %q: expected COLUMN=VALUE, as in build=1.4.2", x.flag, x.text)
		}
	}
	if f.threads == 0 {
		f.threads = runtime.GOMAXPROCS(0)
	}
	return parseShare(f.share)
}

// mostParts bounds the files of a partition.
// Source: definition, more than cores of a large machine
const mostParts = 1024

// compares reports whether the run ends with a comparison.
func (f *flags) compares() bool { return f.baseline != "" || f.before != "" || f.after != "" }

// parseShare parses --share.
func parseShare(text string) (s batch.Share, err error) {
	if text == "" {
		return s, nil
	}
	i, n, ok := strings.Cut(text, "/")
	index, err1 := strconv.ParseUint(i, 10, 31)
	of, err2 := strconv.ParseUint(n, 10, 31)
	if !ok || err1 != nil || err2 != nil || index >= of {
		return s, fmt.Errorf("--share %q: expected I/N with I from 0 to N-1, as 0/32", text)
	}
	return batch.Share{Index: int(index), Of: int(of)}, nil
}

// unitOptions returns the options of the analysis of one capture.
func unitOptions(a *app.App, f *flags) (o unit.Options, err error) {
	from, err := a.Options()
	if err != nil {
		return o, err
	}
	o = unit.Options{
		Registry: a.Registry, DecodeAs: from.DecodeAs, Vantage: from.Vantage, Thresholds: a.Thresholds, Packets: f.packets,
	}
	if a.Memory.Text != "" { // else a bound that does not depend on the machine
		o.Memory = a.Memory.Bytes
	}
	return o, nil
}

// work serves as a worker.
func work(a *app.App, f *flags) error {
	// The process that sends the captures ends this one. An interrupt at the terminal reaches both.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	o, err := unitOptions(a, f)
	if err != nil {
		return err
	}
	analyzer, err := batch.NewAnalyzer(&a.Outputs, f.out, o)
	if err != nil {
		return err
	}
	return errors.Join(batch.Serve(a.In, a.Out, analyzer), analyzer.Close())
}

func run(a *app.App, c *cobra.Command, f *flags, args []string) error {
	share, err := f.check(a, args)
	if err != nil {
		return err
	}
	if _, err := unitOptions(a, f); err != nil {
		return err // it would be the same for each capture
	}
	options, err := fingerprint(a, c)
	if err != nil {
		return err
	}
	plan, err := batch.NewPlan(batch.Selection{
		Arguments: append(append([]string(nil), a.Flags.Read...), args...), Manifest: f.manifest, Partition: f.partition,
		Apart: !f.together, Share: share,
	})
	if err != nil {
		return err
	}
	for _, err := range plan.Failed {
		a.Trouble(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	line := newProgress(a)
	r := &batch.Run{
		Plan: plan, Folder: f.out, Outputs: &a.Outputs, Options: options, Parts: f.parts, Threads: f.threads,
		Timeout: f.timeout, Start: starter(a, c, f, len(plan.Captures)), Progress: line.tell,
	}
	summary, done, err := analyze(ctx, r, f)
	line.done()
	if closed := r.Close(); err == nil {
		err = closed
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted: %d of %d captures are analysed, and the same command goes on from there",
			done.Kept+done.Done, len(plan.Captures))
	}
	if err != nil {
		return err
	}
	o := &outcome{app: a, flags: f, plan: plan, progress: done, summary: summary}
	return o.tell()
}

// analyze analyses the captures, and writes the tables unless the run has only a share of them.
func analyze(ctx context.Context, r *batch.Run, f *flags) (s *batch.Summary, p batch.Progress, err error) {
	if err := r.Open(); err != nil {
		return nil, p, err
	}
	if f.share == "" {
		if err := r.Reserve(); err != nil {
			return nil, p, err
		}
	}
	if f.combine {
		r.Skip()
	} else if err := r.Analyze(ctx); err != nil {
		return nil, r.Done(), err
	}
	if f.share == "" {
		s, err = r.Write(ctx)
	}
	return s, r.Done(), err
}

// graver returns how many findings are of a severity or above.
func graver(s *batch.Summary, word string) (n uint64) {
	least, _ := app.ParseSeverity(word)
	for _, p := range s.Partitions {
		for _, q := range p.Protocols {
			for _, r := range q.Rules {
				if severity, ok := app.ParseSeverity(r.Severity); ok && severity >= least && least <= machine.Error {
					n += min(r.Findings, math.MaxUint64-n)
				}
			}
		}
	}
	return n
}
