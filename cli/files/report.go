package files

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/report"
)

type reportFlags struct {
	out    string
	format string
	flows  int
	replay bool
	logs   *reader.Logs

	interactive interactiveFlags
}

// ReportCommand builds `ackscope report`.
func ReportCommand(a *app.App) *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "One self-contained page for somebody who was not there: verdict, graphs, messages, findings, costs",
		Long: `report writes what was found in one HTML file that asks the network for nothing: the verdict
first, then each flow with its findings and their explanation, graphs to zoom into, message
latency and head-of-line blocking, what the bytes were spent on, how the connection ended, and
what replay says. It is light or dark as its reader's browser is, and prints.

The flows with the gravest findings are shown in full (--flows), the others in one line each. After
1,000 lines, the rest is counted.
--format markdown writes the same without graphs, for issues and wikis.

--interactive writes the page of "ackscope web" with the captures inside, as one file that opens
from a disk and allows no connection. Its reader has every packet and state to look into. So it
holds the captures whole: anonymise one first, or choose packets by -Y. The files of --schema,
--profiles, --thresholds and --log are inside too, and the keys if --with-keys asks for them. The
page is part of the program where it was built with "make web", else --assets names web/dist.`,
		Example: `  ackscope report match.pcapng -o report.html
  ackscope report --log client=game.jsonl match.pcapng -o report.html
  ackscope report --format markdown match.pcapng >> issue.md
  ackscope report --interactive match.pcapng -o match.html
  ackscope report --interactive -Y 'flow == 2' --assets web/dist match.pcapng -o flow2.html`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.interactive.check(c, f.format); err != nil {
				return err
			}
			return reportOnAll(a, args, &f)
		},
	}
	a.Writes(c)
	reader.JoinFlag(a, c)
	p := c.Flags()
	p.StringVarP(&f.out, "output", "o", "", "write to `FILE`, - for standard output (Markdown: the default)")
	p.StringVar(&f.format, "format", "html", "`html|markdown`")
	p.IntVar(&f.flows, "flows", 8, "flows to tell in full, 0 to 32")
	f.logs = reader.LogFlag(a, c)
	p.BoolVar(&f.replay, "replay", true, "hold the flows against the reference implementations too")
	f.interactive.register(a, c)
	_ = c.RegisterFlagCompletionFunc("format", app.CompleteWords("html", "markdown"))
	return c
}

func reportOnAll(a *app.App, args []string, f *reportFlags) error {
	switch {
	case f.format != "html" && f.format != "markdown":
		return fmt.Errorf("--format %q: expected html or markdown", f.format)
	case f.flows < 0 || f.flows > 32:
		return fmt.Errorf("--flows %d: expected 0 to 32", f.flows)
	case f.out == "" && f.format == "html":
		return errors.New("expected where to write the page, as in `ackscope report match.pcapng -o report.html` (-o - for " +
			"standard output)")
	}
	if f.interactive.on {
		return reportInteractive(a, args, f)
	}
	o, err := a.Options()
	if err != nil {
		return err
	}
	o.Limits = a.Limits(app.JudgeCost)
	if err := f.logs.Load(); err != nil {
		return err
	}
	list, err := reader.Recordings(a, args)
	if err != nil {
		return err
	}
	captures := reader.Paths(a, args)
	var unread error // of captures whose reading ended with an error
	err = writeReport(a, f, captures, func(w io.Writer) error {
		page, err := report.NewPage(w, namesOfFiles(captures), f.format == "markdown", len(list))
		if err != nil {
			return err
		}
		parts := 0
		err = reader.EachOf(a, list, func(r *reader.Recording) error {
			added, reading, writing := reportOn(a, page, r, o, f)
			if added {
				parts++
			}
			if writing != nil {
				return writing
			}
			return reading
		})
		if parts == 0 || err != nil && reader.Unread(err) == nil && !reader.OfInput(err) {
			return err // there is nothing to write
		}
		unread = err
		return page.Close()
	})
	return errors.Join(err, unread)
}

// reportPasses is how often a report reads a capture: to learn, to collect, to
// replay.
const reportPasses = 3

// reportOn adds a recording to a report. The result added says whether it was
// added. The errors are of reading the recording and of writing the report.
func reportOn(a *app.App, page *report.Page, from *reader.Recording, o analyze.Options, f *reportFlags) (added bool,
	reading, writing error,
) {
	in, err := reader.Open(a, from, reader.Options{Keep: capture.KeepPipes, Passes: reportPasses})
	if err != nil {
		return false, err, nil
	}
	defer in.Close()
	r, ended := gather(a, in, from, o, f)
	if r == nil {
		return false, ended, nil
	}
	return true, a.Ended(ended), page.Add(r)
}

// gather reads the capture for a report. The error says why there is no report,
// or how reading ended.
func gather(a *app.App, src *reader.Reader, from *reader.Recording, o analyze.Options,
	f *reportFlags,
) (*report.Report, error) {
	defer src.Done()
	first, err := analyze.LearnFindings(src, o)
	if err != nil {
		return nil, err
	}
	logs := f.logs
	full, _ := report.Choose(first.Flows(), f.flows)
	sink, messages, dead := listing.NewSeriesSink(), &report.Messages{}, a.NewEndings()
	sink.Ledger.Room = a.Share(8)
	r := &report.Report{
		Name: namesOfFiles(from.Paths), Ledger: &sink.Ledger, Messages: messages,
		Ends: map[int]report.End{},
	}
	a.Memory.Gone = func(f *analyze.Flow, why analyze.Reason) {
		r.LetGo.Add(f)
		sink.Ledger.Forget(f)
		messages.Forget(f.ID)
		dead.Forget(f, why)
		logs.Forget(f)
	}
	for _, x := range full {
		sink.Follow(x)
	}
	o.Survey = first.Survey()
	o.Sink = logs.Sink(func(r *analyze.Record) {
		sink.Take(r)
		messages.Take(r)
		dead.Take(r)
	})
	session, ended := analyze.Run(src, o)
	r.Session, r.Logs = session, logs.Report(session)
	if ended != nil {
		r.Problem = ended.Error()
	}
	// The second run has flows of its own. Those that the first run chose are
	// reported in full; the gravest of the others get a line each.
	costs := sink.Ledger.Flows()
	for _, x := range session.Flows() {
		series := sink.Flows[x.ID]
		if series == nil {
			r.Others = append(r.Others, x)
			continue
		}
		series.Pauses(x)
		r.Logs.Draw(x, series)
		flow := &report.Flow{Flow: x, Series: series}
		for _, c := range costs {
			if c.Flow == x {
				flow.Cost = c
			}
		}
		r.Flows = append(r.Flows, flow)
	}
	r.Others, r.More = report.Worst(r.Others, report.OthersMost)
	_, end := session.Span()
	for _, x := range dead.Ended(end) {
		r.Ends[x.Flow.ID] = report.End{Silent: x.Silent, Story: x.Story}
	}
	if f.replay {
		if err := src.Rewind(); err != nil {
			return nil, err
		}
		o.Sink, o.Survey, o.Gone = nil, nil, nil
		if r.Replay, err = replay.Run(r.Name, src, replay.Options{Analysis: o, Survey: session.Survey()}); err != nil {
			return nil, err
		}
	}
	return r, ended
}

// namesOfFiles formats the names of the files for a title.
func namesOfFiles(paths []string) string {
	var names []string
	for _, name := range paths {
		if name == "-" {
			name = "standard input"
		}
		names = append(names, filepath.Base(name))
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("and %d more", len(names)-3))
	}
	return strings.Join(names, ", ")
}

// writeReport writes a report to the destination that the flags name. reads are
// the captures.
func writeReport(a *app.App, f *reportFlags, reads []string, fill func(io.Writer) error) error {
	if f.out == "" {
		return fill(a.Writer())
	}
	return a.SaveFile("-o", f.out, outfile.Text, reads, fill)
}
