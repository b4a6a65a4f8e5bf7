package replaying

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	behaviour string
	matrix    bool
	update    bool
	junit     string
	whatIf    string
	jobs      int
}

// ReplayCommand builds `ackscope replay`.
func ReplayCommand(a *app.App) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay FILE|DIR...",
		Short: "Hold captures against the reference implementations",
		Long: `replay runs a reference implementation for each side of each flow. The reference gets what
that side can have received. replay compares every packet that the side sent with what the
reference would have sent, and names the first packet that differs.

For a side that was captured here, each packet can be decided. For the other side, the reference
gets only what that side's own packets prove: what it received is inferred from its acks. If
nothing contradicts the reference, and some packets could not be decided, it is "consistent".

With --update, what is found is written beside each capture (` + "`CAPTURE.replay`" + `); later
runs compare. The exit status is 1 where a side diverges, whether or not a baseline
has it, or a baseline differs; and 2 where something could not be done.

With --what-if, each flow is run again over its captured network with other
settings, and message latency and traffic are compared: docs/replay.md.`,
		Example: `  ackscope replay match.pcapng
  ackscope replay --matrix match.pcapng          # which implementations it can be
  ackscope replay --what-if resend=50ms,window=64 match.pcapng
  ackscope replay --update regressions/ && ackscope replay --junit report.xml regressions/`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("what-if") {
				return whatIf(a, args, &f)
			}
			return run(a, args, &f)
		},
	}
	a.Writes(c)
	p := c.Flags()
	p.StringVar(&f.behaviour, "behaviour", "", "hold all sides against this `NAME` (--matrix lists those that apply)")
	p.BoolVar(&f.matrix, "matrix", false, "hold every side against every behaviour that applies to it")
	p.BoolVar(&f.update, "update", false, "write the baseline of each capture beside it")
	p.StringVar(&f.junit, "junit", "", "write a JUnit report to `FILE`")
	p.StringVar(&f.whatIf, "what-if", "", "run each flow again over its captured network with other settings: "+
		"`NAME=VALUE,...`, such as resend=50ms")
	p.IntVar(&f.jobs, "jobs", 0, "captures that are replayed at a time; 0: one for each core")
	_ = c.RegisterFlagCompletionFunc("behaviour", app.CompleteWords(behaviourNames(a)...))
	_ = c.RegisterFlagCompletionFunc("what-if", func(c *cobra.Command, args []string, word string) ([]cobra.Completion,
		cobra.ShellCompDirective,
	) {
		return completeChanges(a, c, args, word)
	})
	return c
}

// behaviourNames lists the behaviours of all protocols.
func behaviourNames(a *app.App) (names []string) {
	for _, p := range a.Registry.Protocols() {
		for _, b := range p.Behaviours {
			names = append(names, b.Name)
		}
	}
	return names
}

// replayed is the outcome of one capture.
type replayed struct {
	path     string
	file     *replay.File
	err      error
	baseline bool // there is a baseline
	changed  bool // the baseline was written for another capture
	drift    []replay.Drift
}

func run(a *app.App, args []string, f *replayFlags) error {
	if err := f.check(a); err != nil {
		return err
	}
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	if err := a.Awaits(args); err != nil {
		return err
	}
	paths, orphans, failed := capturesOf(a.Paths(args))
	if f.update && slices.Contains(paths, "-") {
		return errors.New("--update: standard input has no place for a baseline: expected files or directories")
	}
	a.Reading(paths)
	if !f.update {
		for _, path := range paths {
			a.Outputs.Reads("a baseline to be compared with", path+replay.BaselineSuffix)
		}
	}
	var junit *app.OutputFile
	if f.junit != "" {
		if junit, err = a.Create("--junit", f.junit, outfile.Text, nil); err != nil {
			return err
		}
	}
	p := &replayPrinter{app: a, paint: paint, flags: f, width: a.Width(), several: len(paths) > 1}
	count := newReplayCount(a, len(paths))
	var cases []replay.Case
	var bare []string // captures without a baseline
	applied, read := false, 0
	if err := replayAll(a, paths, f, func(r *replayed) error {
		count.wipe()
		defer count.next()
		cases = append(cases,
			replay.Case{File: r.file, Name: r.path, Baseline: r.baseline && !f.update, Drift: r.drift, Err: r.err})
		if r.err != nil {
			failed = append(failed, named(r.path, r.err))
			return nil // the other captures are replayed all the same
		}
		read++
		if r.file.Ended != nil {
			if err := a.Ended(r.file.Ended); err != nil {
				failed = append(failed, named(r.path, err))
			}
		}
		for i := range r.file.Results {
			applied = applied || r.file.Results[i].Behaviour == f.behaviour
		}
		if !r.baseline {
			bare = append(bare, r.path)
		}
		return p.print(r)
	}); err != nil {
		return err
	}
	count.wipe()
	for _, o := range orphans {
		if err := p.orphan(o, bare); err != nil {
			return err
		}
		gone := []replay.Drift{{Flow: "capture", Says: "is gone"}}
		cases = append(cases, replay.Case{Name: strings.TrimSuffix(o, replay.BaselineSuffix), Baseline: true, Drift: gone})
	}
	if err := p.done(read, len(failed)); err != nil {
		return err
	}
	if f.behaviour != "" && !applied && read > 0 {
		failed = append(failed,
			fmt.Errorf("--behaviour %s: no flow of the captures is of its protocol, so nothing was held against it",
				f.behaviour))
	}
	if junit != nil {
		if err := junit.End(replay.WriteJUnit(junit, cases)); err != nil {
			return err
		}
	}
	switch {
	case len(failed) > 0:
		return errors.Join(failed...)
	case f.update:
		return nil
	case p.sides[2] > 0 || p.drifted > 0:
		return &app.GateError{Text: fmt.Sprintf("%s, %s", show.Plural(p.sides[2], "divergence"),
			show.Plural(p.drifted, "capture")+" differing from the baseline")}
	}
	return nil
}

// check refuses flags that make no sense, before anything is read.
func (f *replayFlags) check(a *app.App) error {
	switch names := behaviourNames(a); {
	case f.behaviour != "" && !slices.Contains(names, f.behaviour):
		return app.UnknownName("--behaviour", f.behaviour, names)
	case f.update && f.matrix:
		return errors.New("--update and --matrix: a baseline holds one behaviour for each side")
	case f.jobs < 0:
		return fmt.Errorf("--jobs %d: expected 0, for one on each core, or more", f.jobs)
	}
	_, err := a.Options() // errors of other flags are printed once, not for each capture
	return err
}

// named returns an error that names its capture, once.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// replayCount prints on a terminal's standard error how many captures have been replayed; nil
// where there is no terminal.
type replayCount struct {
	app       *app.App
	done, all int
	begun     time.Time
	visible   bool
}

func newReplayCount(a *app.App, all int) *replayCount {
	if all < 2 || a.Flags.Quiet || !app.IsTerminal(a.Err) {
		return nil
	}
	return &replayCount{app: a, all: all, begun: time.Now()}
}

// next counts one capture, and shows the line once the run has taken a while.
func (t *replayCount) next() {
	if t == nil {
		return
	}
	if t.done++; t.done < t.all && time.Since(t.begun) > reader.ProgressAfter {
		fmt.Fprintf(t.app.Err, "\r\x1b[Kreplayed %d of %d captures", t.done, t.all)
		t.visible = true
	}
}

// wipe clears the line, for other output.
func (t *replayCount) wipe() {
	if t != nil && t.visible {
		fmt.Fprint(t.app.Err, "\r\x1b[K")
		t.visible = false
	}
}

// replayAll replays the captures, several at a time. It prints each outcome, in the order of the
// paths.
func replayAll(a *app.App, paths []string, f *replayFlags, tell func(*replayed) error) error {
	jobs := f.jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	done := make([]chan *replayed, len(paths))
	for i := range done {
		done[i] = make(chan *replayed, 1)
	}
	// A slow capture holds up the others: the outcomes that wait are bounded.
	room := make(chan struct{}, 4*jobs)
	work := make(chan int)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range min(jobs, len(paths)) {
		workers.Go(func() {
			for i := range work {
				done[i] <- replayOne(a, paths[i], f, min(jobs, len(paths)), len(paths) == 1)
			}
		})
	}
	go func() {
		defer close(work)
		for i := range paths {
			select {
			case room <- struct{}{}:
			case <-stop:
				return
			}
			work <- i
		}
	}()
	defer workers.Wait()
	defer close(stop)
	for i := range paths {
		if err := tell(<-done[i]); err != nil {
			return err
		}
		<-room
	}
	return nil
}

// replayOne replays a capture, and reads, compares or writes its baseline. If there is one capture
// only, a line shows how far the reading is. atOnce captures are replayed at a time.
func replayOne(a *app.App, path string, f *replayFlags, atOnce int, only bool) (r *replayed) {
	r = &replayed{path: path}
	defer func() {
		if fault := recover(); fault != nil {
			r.err = fmt.Errorf("a fault of ackscope itself: %v", fault)
		}
	}()
	analysis, err := a.Options()
	if err != nil {
		r.err = err
		return r
	}
	analysis.Limits = a.Limits(app.JudgeCost)
	analysis.Limits.Flows, analysis.Limits.Bytes = max(1, analysis.Limits.Flows/atOnce),
		max(1, analysis.Limits.Bytes/atOnce)
	files := reader.Options{Keep: capture.KeepPipes}
	if only {
		files.Passes = 2
	}
	source, err := reader.Open(a, reader.File(path), files)
	if err != nil {
		r.err = err
		return r
	}
	defer source.Close()
	o := replay.Options{Analysis: analysis, Behaviour: f.behaviour, Matrix: f.matrix}
	var known *replay.Baseline
	if path != "-" && !f.update { // a damaged baseline is written anew
		if known, r.err = readBaseline(path); r.err != nil {
			return r
		}
	}
	r.baseline = known != nil
	if known != nil {
		o.Known = known.Behaviour
	}
	r.file, r.err = replay.Run(path, source, o)
	if source.Done(); r.err != nil {
		return r
	}
	if path == "-" || !f.update && (known == nil || f.behaviour != "") {
		return r
	}
	id, err := identityOf(path)
	if err != nil {
		r.err = err
		return r
	}
	now := replay.BaselineOf(r.file, id)
	if f.update {
		r.err = writeBaseline(a, path, now)
		r.baseline = true
		return r
	}
	r.changed, r.drift = known.Changed(now), known.Drift(now)
	return r
}
