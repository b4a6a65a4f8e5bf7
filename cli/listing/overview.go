package listing

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/show"
)

// OverviewFlags are the flags of `ackscope overview`, which the program itself has too.
type OverviewFlags struct {
	All     bool
	Verbose bool
	FailIf  string
	logs    *reader.Logs
}

// Register adds the flags to a command.
func (f *OverviewFlags) Register(a *app.App, c *cobra.Command) {
	reader.JoinFlag(a, c)
	c.Flags().BoolVar(&f.All, "all", false, "show all flows (default: the worst five of known protocols)")
	c.Flags().BoolVarP(&f.Verbose, "verbose", "V", false,
		"list the flows of no known protocol, and why none explains them")
	reader.FailIfFlag(c, &f.FailIf, false)
	f.logs = reader.LogFlag(a, c)
}

// OverviewCommand builds `ackscope overview`.
func OverviewCommand(a *app.App) *cobra.Command {
	f := &OverviewFlags{}
	c := &cobra.Command{
		Use:   "overview [FILE...]",
		Short: "What is wrong, and is it the network, the library or the code: the first screen",
		Long: `overview reads a capture and says first what is wrong with it and where the cause most
likely lies. For each flow of a known protocol it then shows

  network  loss by direction, round trips, jitter, the longest silence
  library  what was sent again and why, and messages that waited for an earlier one
  code     what replay and the rules found against an endpoint

"captured here" is the side at which the capture was taken. What the other side knew is
inferred from its acks. A figure that the capture does not show is "?".

At the end stand commands to paste, which show more. Without a command, ackscope FILE
prints the same.`,
		Example: `  ackscope match.pcapng
  ackscope overview --all match.pcapng
  ackscope overview --log client=game.jsonl match.pcapng
  ackscope overview --json captures/*.pcapng | jq -r '"\(.name): \(.sentence)"'
  tcpdump -w - -c 1000 udp port 7777 | ackscope -`,
		RunE: func(c *cobra.Command, args []string) error { return Overview(a, c, f, args) },
	}
	f.Register(a, c)
	return c
}

// Overview prints the overview of each recording.
func Overview(a *app.App, c *cobra.Command, f *OverviewFlags, args []string) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	o, err := overviewOptions(a)
	if err != nil {
		return err
	}
	gate, err := reader.NewGate(a, f.FailIf)
	if err != nil {
		return err
	}
	if err := f.logs.Load(); err != nil {
		return err
	}
	other := newElsewhere(a.Verdicts)
	return gate.End(reader.Each(a, args, func(r *reader.Recording) error {
		in, ended := studyOverview(a, r, o, other, gate, f.logs)
		if in == nil {
			return ended
		}
		most := overview.FlowsShown
		if f.All {
			most = 0
		}
		x := overview.New(in, most)
		flags := app.Repeated(c)
		if a.Flags.JSON {
			if err := writeOverview(a, r, x, r.Paths, flags); err != nil {
				return err
			}
			return a.Ended(ended)
		}
		if err := reader.Heading(a, r); err != nil {
			return err
		}
		page := &overview.Page{
			Paint: paint, Width: a.Width(), All: f.All, Verbose: f.Verbose, Files: r.Paths, Flags: flags,
		}
		if err := x.WriteText(a.Writer(), page); err != nil {
			return err
		}
		return a.Ended(ended)
	}))
}

// studyOverview reads a recording for an overview. The error says why there is none, or how
// reading ended.
func studyOverview(a *app.App, from *reader.Recording, o analyze.Options, other *elsewhere, gate *reader.Gate,
	logs *reader.Logs,
) (*overview.Input, error) {
	src, err := reader.Open(a, from, reader.Options{Keep: capture.KeepPipes, Passes: 2})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	defer src.Done()
	survey, err := learn(a, from, src, o, shareOfOverview)
	if err != nil {
		return nil, err
	}
	asked := judgeOptions(o, survey)
	in := &overview.Input{Name: recordingName(from), Messages: &overview.Messages{}, Ends: map[int]overview.End{}}
	endings := a.NewEndings()
	a.Memory.Gone = func(f *analyze.Flow, why analyze.Reason) {
		in.Messages.Forget(f.ID)
		endings.Forget(f, why)
		gate.Flow(f)
		logs.Forget(f)
	}
	o.Survey = survey
	o.Sink = logs.Sink(gate.Sink(from, func(r *analyze.Record) {
		in.Messages.Take(r)
		endings.Take(r)
	}))
	session, judged, ended := both(a, from, src, asked, o, other)
	gate.Session(session)
	in.Session, in.Problem, in.Logs = session, ended, logs.Report(session)
	_, last := session.Span()
	for _, e := range endings.Ended(last) {
		in.Ends[e.Flow.ID] = overview.End{Silent: e.Silent, Failed: e.Failed, Story: e.Story}
	}
	// Replay reads no further than this run did. So it adds no error of a damaged capture.
	if in.Replay, err = judged(); err != nil && ended == nil {
		return nil, err
	}
	return in, ended
}

// recordingName names a recording in a sentence.
func recordingName(from *reader.Recording) string {
	switch {
	case len(from.Paths) > 1:
		return show.Plural(len(from.Paths), "file")
	case from.Paths[0] == "-":
		return "standard input"
	}
	return filepath.Base(from.Paths[0])
}
