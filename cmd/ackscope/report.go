package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/report"
)

type reportFlags struct {
	out    string
	format string
	flows  int
	replay bool
}

func (a *app) reportCommand() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "One self-contained page for somebody who was not there: verdict, graphs, messages, findings, costs",
		Long: `report writes what was found in one HTML file that asks the network for nothing: the verdict
first, then each flow with its findings and their explanation, graphs to zoom into, message
latency and head-of-line blocking, what the bytes were spent on, how the connection ended, and
what replay says. It is light or dark as its reader's browser is, and prints.

The flows with the gravest findings are told in full (--flows), the others in a line each: up to
1,000, the rest is counted.
--format markdown writes the same without graphs, for issues and wikis.`,
		Example: `  ackscope report match.pcapng -o report.html
  ackscope report --format markdown match.pcapng >> issue.md`,
		RunE: func(_ *cobra.Command, args []string) error { return a.report(args, &f) },
	}
	a.writes(c)
	p := c.Flags()
	p.StringVarP(&f.out, "output", "o", "", "write to `FILE`, - for standard output (Markdown: the default)")
	p.StringVar(&f.format, "format", "html", "`html|markdown`")
	p.IntVar(&f.flows, "flows", 8, "flows to tell in full, 0 to 32")
	p.BoolVar(&f.replay, "replay", true, "hold the flows against the reference implementations too")
	_ = c.RegisterFlagCompletionFunc("format", completeWords("html", "markdown"))
	return c
}

func (a *app) report(args []string, f *reportFlags) error {
	switch {
	case f.format != "html" && f.format != "markdown":
		return fmt.Errorf("--format %q: expected html or markdown", f.format)
	case f.flows < 0 || f.flows > 32:
		return fmt.Errorf("--flows %d: expected 0 to 32", f.flows)
	case f.out == "" && f.format == "html":
		return errors.New("expected where to write the page, as in `ackscope report match.pcapng -o report.html` (-o - for standard output)")
	}
	o, err := a.options()
	if err != nil {
		return err
	}
	o.Limits = a.limits(judgeCost)
	in, err := a.open(args, capture.KeepPipes)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := a.create("-o", cmp.Or(f.out, "-"), outfile.Text, a.paths(args))
	if err != nil {
		return err
	}
	r, ended := a.gather(in, o, f)
	if r == nil {
		return ended // out is given up at the end of the run
	}
	if err := out.end(writeReport(r, out, f.format)); err != nil {
		return err
	}
	return a.ended(ended)
}

// gather reads the capture for a report. The error is a failure where there is
// no report, and how reading ended where there is one.
func (a *app) gather(in *capture.Input, o analyze.Options, f *reportFlags) (*report.Report, error) {
	src := &feed{source: in, progress: a.newProgress(in, 3)}
	defer src.progress.done()
	first, err := analyze.Learn(src, o)
	if err != nil {
		return nil, err
	}
	full, _ := report.Choose(first.Flows(), f.flows)
	sink, messages, dead := newSeriesSink(), &report.Messages{}, &mortuary{}
	sink.ledger.Room = a.share(8)
	r := &report.Report{Name: reportName(in), Ledger: &sink.ledger, Messages: messages, Ends: map[int]report.End{}}
	a.memory.gone = func(f *analyze.Flow, why analyze.Reason) {
		r.LetGo.Add(f)
		sink.ledger.Forget(f)
		messages.Forget(f.ID)
		dead.forget(f, why)
	}
	for _, x := range full {
		sink.follow(x)
	}
	o.Survey = first.Survey()
	o.Sink = func(r *analyze.Record) {
		sink.take(r)
		messages.Take(r)
		dead.take(r)
	}
	session, ended := analyze.Run(src, o)
	r.Session = session
	if ended != nil {
		r.Problem = ended.Error()
	}
	// The second run knows more than the first: whose findings are the gravest is asked again among those that were followed.
	costs := sink.ledger.Flows()
	for _, x := range session.Flows() {
		series := sink.flows[x.ID]
		if series == nil {
			r.Others = append(r.Others, x)
			continue
		}
		flow := &report.Flow{Flow: x, Series: series}
		for _, c := range costs {
			if c.Flow == x {
				flow.Cost = c
			}
		}
		r.Flows = append(r.Flows, flow)
	}
	r.Others, r.More = report.Worst(r.Others, report.OthersMost)
	dead.compact()
	_, end := session.Span()
	for _, x := range dead.order {
		if how := x.how(end); how != "" {
			r.Ends[x.flow.ID] = report.End{Silent: how == "silence", Story: x.story(how)}
		}
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

// reportName names what was read.
func reportName(in *capture.Input) string {
	var names []string
	for i := range in.Files() {
		name := in.FileName(i)
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

func writeReport(r *report.Report, to io.Writer, format string) error {
	if format == "markdown" {
		return r.Markdown(to)
	}
	return r.HTML(to)
}
