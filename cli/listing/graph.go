package listing

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/cli/state"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/show"
)

type graphFlags struct {
	kind string
	flow string
	side string
	out  string
	rows int
	logs *reader.Logs
}

// GraphCommand builds `ackscope graph`.
func GraphCommand(a *app.App) *cobra.Command {
	var f graphFlags
	c := &cobra.Command{
		Use:   "graph [FILE...]",
		Short: "Draw a flow over time: sequences, round trips, arrivals, what is in flight, bandwidth",
		Long: `graph draws one flow, in the terminal or, with -o, as an SVG file that is light or dark as
its viewer is.

  timeseq    each packet by time and sequence number, above the line of what its sender knew
             to have arrived; R marks what was sent again, × what was lost (as tcptrace does)
  rtt        round-trip times as the side took them from acks, and as its library smooths them
  arrival    how long each message took to arrive, with the bounds that the capture proves
  window     packets in flight, and loss as the side's library estimates it
  bandwidth  bytes a second on the wire: goodput, sent again, acks, headers
  frames     how long each frame of the game took, by its own log (--log), shaded where nothing
             of the side was captured

A column that stands for several packets shows the least and the greatest of them.`,
		Example: `  ackscope graph match.pcapng
  ackscope graph -k rtt --flow 2 --side b match.pcapng
  ackscope graph -k arrival match.pcapng
  ackscope graph --flow server.pcapng:2 client.pcapng server.pcapng
  ackscope graph -k frames --log client=game.jsonl match.pcapng
  ackscope graph -k bandwidth -o bandwidth.svg match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return drawGraph(a, args, &f) },
	}
	a.Writes(c)
	reader.JoinFlag(a, c)
	p := c.Flags()
	p.StringVarP(&f.kind, "kind", "k", graph.TimeSequence, "what to draw: `"+strings.Join(graph.Names, "|")+"`")
	p.StringVar(&f.flow, "flow", "",
		"the flow: `NUMBER`, or FILE:NUMBER where several files are read (default: the one there is)")
	p.StringVar(&f.side, "side", "", "one side only: `a|b`")
	p.StringVarP(&f.out, "output", "o", "", "write an SVG to `FILE`, - for standard output")
	p.IntVar(&f.rows, "rows", 12, "rows of each graph in the terminal")
	f.logs = reader.LogFlag(a, c)
	_ = c.RegisterFlagCompletionFunc("kind", app.CompleteWords(graph.Names...))
	_ = c.RegisterFlagCompletionFunc("side", app.CompleteWords("a", "b"))
	return c
}

func drawGraph(a *app.App, args []string, f *graphFlags) error {
	if !slices.Contains(graph.Names, f.kind) {
		return fmt.Errorf("-k %q: expected one of %s", f.kind, strings.Join(graph.Names, ", "))
	}
	if f.kind == graph.FrameTimes && !f.logs.Asked() {
		return errors.New("-k frames: expected --log, with the game's own log")
	}
	if err := f.logs.Load(); err != nil {
		return err
	}
	if f.rows < 4 || f.rows > 200 {
		return fmt.Errorf("--rows %d: expected 4 to 200", f.rows)
	}
	sides := []machine.Side{machine.A, machine.B}
	switch f.side {
	case "":
	case "a":
		sides = sides[:1]
	case "b":
		sides = sides[1:]
	default:
		return fmt.Errorf("--side %q: expected a or b", f.side)
	}
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	name, err := reader.ParseFlow(f.flow)
	if err != nil {
		return err
	}
	list, err := reader.Recordings(a, args)
	if err != nil {
		return err
	}
	from, err := reader.OfFlow(list, name)
	if err != nil {
		return err
	}
	flow, series, log, ended := seriesOf(a, from, name.Number, f.logs)
	if flow == nil {
		return ended
	}
	columns := svgColumns
	if f.out == "" {
		columns = graph.TextColumns(plotWidth(a))
	}
	var plots []*graph.Plot
	for _, side := range sides {
		plots = append(plots, series.Plots(f.kind, side, columns)...)
	}
	if f.out == "" {
		if err := reader.Heading(a, from); err != nil {
			return err
		}
		fmt.Fprintf(a.Writer(), "flow %d  %s  %s ⇄ %s, from %s UTC\n\n", flow.ID, show.FlowName(flow), flow.A, flow.B,
			flow.First.Time().Format("2006-01-02 15:04:05.000"))
		for _, sentence := range log.Sentences() {
			fmt.Fprintln(a.Writer(), show.Wrap(sentence, "", a.Width())+"\n")
		}
		fmt.Fprint(a.Writer(),
			graph.Text(plots, plotWidth(a),
				f.rows, func(class, text string) string { return paint.String(traceStyle(class), text) }))
		return a.Ended(ended)
	}
	title := fmt.Sprintf("Flow %d, %s, %s and %s", flow.ID, show.FlowName(flow), flow.A, flow.B)
	var doc []string
	for _, p := range plots {
		doc = append(doc, p.Title+": "+p.Summary())
	}
	picture := graph.SVG(title, strings.Join(doc, " "), plots)
	if err := a.SaveFile("-o", f.out, outfile.Text, from.Paths, func(w io.Writer) error {
		_, err := w.Write(picture)
		return err
	}); err != nil {
		return err
	}
	return a.Ended(ended)
}

// svgColumns is the width of an SVG's plot, in columns of data.
const svgColumns = 640

// plotWidth returns the width to draw in.
func plotWidth(a *app.App) int {
	if w := a.Width(); w > 0 {
		return min(w, 400)
	}
	return 100
}

// seriesOf collects the series of one flow. The error says why there is no
// flow, or how reading ended.
func seriesOf(a *app.App, from *reader.Recording, number int, logs *reader.Logs) (
	*analyze.Flow, *graph.Flow, *gamelog.Report, error,
) {
	o, err := a.Options()
	if err != nil {
		return nil, nil, nil, err
	}
	src, err := reader.Open(a, from, reader.Options{Keep: capture.KeepPipes, Passes: 2})
	if err != nil {
		return nil, nil, nil, err
	}
	defer src.Close()
	s, err := analyze.Learn(src, o)
	if err != nil {
		return nil, nil, nil, err
	}
	f, err := (&state.Travel{Session: s}).Choose(number, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	sink := NewSeriesSink()
	sink.Follow(f)
	sink.Ledger.Room = a.Share(8)
	a.Memory.Gone = func(f *analyze.Flow, _ analyze.Reason) { sink.Ledger.Forget(f) }
	o.Survey, o.Sink = s.Survey(), logs.Sink(sink.Take)
	s, err = analyze.Run(src, o)
	series, log := sink.Flows[f.ID], logs.Report(s)
	for _, x := range s.Flows() {
		if x.FirstRef == f.FirstRef {
			series.Pauses(x)
			log.Draw(x, series)
		}
	}
	return f, series, log, err
}

// traceStyle returns the colour of a trace in the terminal.
func traceStyle(class string) show.Style {
	switch class {
	case "lost", "loss", "pause":
		return show.Red
	case "again":
		return show.Yellow
	case "acked", "goodput":
		return show.Green
	case "raw", "headers":
		return show.Dim
	case "smooth":
		return show.Bold
	}
	return show.Cyan
}
