//go:build !js

package files

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/report"
	"github.com/ackscope/ackscope/rewrite/merge"
	"github.com/ackscope/ackscope/show"
)

// MergeCommand builds `ackscope merge`.
func MergeCommand(a *app.App) *cobra.Command {
	var f mergeFlags
	c := &cobra.Command{
		Use:   "merge A B",
		Short: "Two captures of the same traffic: one-way loss and delay, and where packets were lost",
		Long: `merge compares two captures of the same traffic. The place of a capture is called its tap.
Packets are paired by their content, so addresses may differ: a relay or a NAT may stand between
the taps. From the shortest delays of both directions, merge computes the offset and the drift of
B's clock against A's, and how uncertain they are. For each direction it then shows what was lost,
doubled and reordered between the taps, how long packets took, and where each lost packet was lost.

All times are by A's clock. -w writes both captures as one: one interface for each tap, B's times
moved to A's clock, and a comment on every packet that says what became of it. -o writes one
page for someone else to read: the losses, the delays as graphs, and tap A's flows.`,
		Example: `  ackscope merge client.pcapng server.pcapng
  ackscope merge --json client.pcapng server.pcapng | jq 'select(.kind == "way")'
  ackscope merge --packets --json client.pcapng server.pcapng | jq 'select(.outcome == "lost").frame_a'
  ackscope merge -w both.pcapng client.pcapng server.pcapng
  ackscope merge -o between.html client.pcapng server.pcapng`,
		RunE: func(c *cobra.Command, args []string) error {
			if n := len(a.Flags.Read) + len(args); n != 2 {
				return app.Usage(c, "merge: expected two captures, found %d", n)
			}
			return mergeFiles(a, args, &f)
		},
	}
	a.Writes(c)
	c.Flags().StringVarP(&f.to, "write", "w", "",
		"write both captures, annotated, to `FILE.pcapng` (- for standard output)")
	c.Flags().BoolVar(&f.packets, "packets", false, "list every packet and what became of it")
	c.Flags().StringVarP(&f.report, "output", "o", "", "write a report to `FILE.html`, or to FILE.md as Markdown")
	c.Flags().StringVar(&f.report, "report", "", "the older spelling of -o `FILE`")
	_ = c.Flags().MarkHidden("report")
	return c
}

type mergeFlags struct {
	to      string
	report  string
	packets bool
}

func mergeFiles(a *app.App, args []string, f *mergeFlags) error {
	paths := append(append([]string(nil), a.Flags.Read...), args...)
	o, err := a.Options()
	if err != nil {
		return err
	}
	passes := 2
	if f.report != "" {
		passes += reportPasses
	}
	var in [2]*reader.Reader
	for i, path := range paths {
		if in[i], err = reader.Open(a, reader.File(path),
			reader.Options{Keep: capture.KeepPipes, Passes: passes}); err != nil {
			return err
		}
		defer in[i].Close()
	}
	m, err := merge.Merge(in[0], in[1], o)
	for _, x := range in {
		x.Done()
	}
	if m == nil || len(m.Pairs) == 0 {
		return err
	}
	if err := a.Ended(err); err != nil {
		return err
	}
	p := mergePrinter{app: a, merged: m, names: [2]string{paths[0], paths[1]}}
	var page *app.OutputFile
	if f.report != "" {
		if page, err = a.Create("-o", f.report, outfile.Text, paths); err != nil {
			return err
		}
	}
	if f.to != "" {
		if err := writeMerged(a, m, in, f.to); err != nil {
			return err
		}
	}
	if page != nil {
		format := "html"
		if strings.HasSuffix(f.report, ".md") {
			format = "markdown"
		}
		if err := page.End(reportMerged(a, &p, in, page, format)); err != nil {
			return err
		}
	}
	if f.to != "" {
		if f.to == "-" {
			return nil
		}
	}
	switch {
	case f.packets:
		return p.packets()
	case a.Flags.JSON:
		return p.objects()
	default:
		return p.text()
	}
}

// reportMerged writes a page about two captures of one session: what they show
// together, and tap A's flows.
func reportMerged(a *app.App, p *mergePrinter, in [2]*reader.Reader, to io.Writer, format string) error {
	o, err := a.Options()
	if err != nil {
		return err
	}
	if err := in[0].Rewind(); err != nil {
		return err
	}
	r, ended := gather(a, in[0], reader.File(p.names[0]), o, &reportFlags{flows: mergedFlows, replay: true})
	if r == nil {
		return ended
	}
	names := [2]string{namesOfFiles(p.names[:1]), namesOfFiles(p.names[1:])}
	r.Name = names[0] + " and " + names[1]
	r.Between = &report.Between{Merged: p.merged, Names: names}
	if format == "markdown" {
		return r.Markdown(to)
	}
	return r.HTML(to)
}

// mergedFlows is how many of tap A's flows a report of two captures shows in
// full.
const mergedFlows = 8

// writeMerged writes both captures to one file.
func writeMerged(a *app.App, m *merge.Merged, in [2]*reader.Reader, to string) error {
	from := reader.Origin{
		Files: []reader.OriginFile{{In: in[0].In}, {In: in[1].In}},
		Of: func(tap, index int) capture.Interface {
			x := reader.OriginOf(in[tap].In).Of(0, index)
			letter := string(rune('A' + tap))
			if x.Name == "" {
				x.Name = printable.String(in[tap].In.FileName(0))
			}
			x.Name = letter + ": " + x.Name
			x.Resolution = capture.Nanoseconds // the times were moved
			return x
		},
	}
	out, err := reader.NewSave(a, "-w", to, from)
	if err != nil {
		return err
	}
	err = m.Write([2]merge.Source{in[0], in[1]}, out.Write)
	var cut *capture.CutError
	if errors.As(err, &cut) {
		err = nil // reported when the file was read for the first time
	}
	return errors.Join(err, out.CloseAfter(err, nil))
}

// mergePrinter prints what two captures of one session show together.
type mergePrinter struct {
	app    *app.App
	merged *merge.Merged
	names  [2]string
	o      app.Object
}

const tapNames = "AB"

func (p *mergePrinter) text() error {
	w := p.app.Writer()
	m := p.merged
	for i, t := range m.Taps {
		first, last := t.Session.Span()
		fmt.Fprintf(w, "tap %c  %s  %s, %s", tapNames[i], printable.String(p.names[i]),
			show.Plural(t.Session.Packets(), "packet"), show.SpanText(last.Sub(first)))
		if m.Unfound[i] > 0 {
			fmt.Fprintf(w, "; %s that the other capture has nothing of", show.Plural(m.Unfound[i], "flow"))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "clock  %s\n", report.ClockText(&m.Clock))
	for _, pair := range m.Pairs {
		fa, fb := pair.Flows[0], pair.Flows[1]
		fmt.Fprintf(w, "\nflow %d  %s  %s → %s   at B: flow %d  %s → %s\n", fa.ID, show.FlowName(fa.Flow), fa.A, fa.B,
			fb.ID, pair.AddrAtB(machine.A), pair.AddrAtB(machine.B))
		for _, s := range []machine.Side{machine.A, machine.B} {
			p.way(pair, s)
		}
	}
	return nil
}

func (p *mergePrinter) way(pair *merge.Pair, s machine.Side) {
	x := &pair.Ways[s]
	w := p.app.Writer()
	up, down := tapNames[pair.First[s]], tapNames[1-pair.First[s]]
	fmt.Fprintf(w, "  %s → %s  seen at tap %c first (%s): %d there, %d at %c\n", s, s.Other(), up, pair.FirstKnown,
		x.Upstream, x.Downstream, down)
	fmt.Fprintf(w, "         lost between the taps %d (%.2f %%)", x.Lost, 100*report.LossOf(x))
	for _, n := range []struct {
		count uint64
		text  string
	}{
		{x.LostAtEnds, "of them where the other tap has no packets any more (likely)"},
		{x.DiedBefore, fmt.Sprintf("lost before tap %c", up)},
		{x.DiedAfter, fmt.Sprintf("lost after tap %c", down)},
		{x.Copies, "doubled between them"},
		{x.Reordered, "overtaken"},
		{x.Missed, fmt.Sprintf("received, but missing from the capture at tap %c", down)},
		{x.Unseen, fmt.Sprintf("at tap %c only", down)},
		{x.Undecided + x.Outside, "while the other tap did not record"},
		{x.Ambiguous, "one of several alike"},
	} {
		if n.count > 0 {
			fmt.Fprintf(w, "; %d %s", n.count, n.text)
		}
	}
	fmt.Fprintln(w)
	if d := &x.Delay; d.Known {
		fmt.Fprintf(w, "         delay least %s  median %s  95 %% %s  99 %% %s  most %s\n", report.Exact(d.Least),
			report.Exact(d.Median),
			report.Exact(d.P95), report.Exact(d.P99), report.Exact(d.Most))
	}
}

func (p *mergePrinter) objects() error {
	m, c := p.merged, &p.merged.Clock
	o := &p.o
	o.Begin()
	o.Str("kind", "clock")
	o.Str("file_a", p.names[0])
	o.Str("file_b", p.names[1])
	o.Time("reference_time", c.Reference)
	if c.Known {
		o.Signed("offset_ms", c.Offset)
		o.Millis("offset_uncertainty_ms", c.Within)
	} else {
		o.Null("offset_ms")
		o.Null("offset_uncertainty_ms")
	}
	o.Float("drift_ppm", c.Drift*1e6, 3)
	o.Float("drift_uncertainty_ppm", c.DriftWithin*1e6, 3)
	o.Bool("drift_proved", c.Proved)
	o.Uint("matches_ab", uint64(c.Matches[0]))
	o.Uint("matches_ba", uint64(c.Matches[1]))
	o.Uint("unpaired_flows_a", uint64(m.Unfound[0]))
	o.Uint("unpaired_flows_b", uint64(m.Unfound[1]))
	if err := o.End(p.app.Writer()); err != nil {
		return err
	}
	for _, pair := range m.Pairs {
		for _, s := range []machine.Side{machine.A, machine.B} {
			if err := p.wayObject(pair, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *mergePrinter) wayObject(pair *merge.Pair, s machine.Side) error {
	x := &pair.Ways[s]
	o := &p.o
	o.Begin()
	o.Str("kind", "way")
	p.flow(pair, s)
	o.Str("addr_a", pair.Flows[0].Addr(s).String())
	o.Str("addr_b", pair.AddrAtB(s).String())
	o.Str("first_tap", tapWord(pair.First[s]))
	o.Str("first_tap_certainty", pair.FirstKnown.String())
	for _, n := range []struct {
		key   string
		count uint64
	}{
		{"upstream", x.Upstream},
		{"downstream", x.Downstream},
		{"both", x.Both},
		{"lost", x.Lost},
		{"lost_at_ends", x.LostAtEnds},
		{"missed", x.Missed},
		{"undecided", x.Undecided},
		{"copies", x.Copies},
		{"unseen", x.Unseen},
		{"outside", x.Outside},
		{"reordered", x.Reordered},
		{"ambiguous", x.Ambiguous},
		{"died_before", x.DiedBefore},
		{"died_after", x.DiedAfter},
	} {
		o.Uint(n.key, n.count)
	}
	o.Float("loss", report.LossOf(x), 6)
	for _, d := range []struct {
		key string
		d   time.Duration
	}{
		{"delay_min_ms", x.Delay.Least},
		{"delay_mean_ms", x.Delay.Mean},
		{"delay_p50_ms", x.Delay.Median},
		{"delay_p95_ms", x.Delay.P95},
		{"delay_p99_ms", x.Delay.P99},
		{"delay_max_ms", x.Delay.Most},
	} {
		if x.Delay.Known {
			o.Signed(d.key, d.d)
		} else {
			o.Null(d.key)
		}
	}
	return o.End(p.app.Writer())
}

// flow writes the flow and the side of an object.
func (p *mergePrinter) flow(pair *merge.Pair, s machine.Side) {
	p.o.Uint("flow_a", uint64(pair.Flows[0].ID))
	p.o.Uint("flow_b", uint64(pair.Flows[1].ID))
	if protocol := pair.Flows[0].Protocol; protocol != nil {
		p.o.Str("protocol", protocol.Name)
	} else {
		p.o.Null("protocol")
	}
	p.o.Str("side", s.String())
}

func tapWord(tap int) string { return [2]string{"a", "b"}[tap] }

// packets lists every packet, ordered by A's clock.
func (p *mergePrinter) packets() error {
	w := p.app.Writer()
	for x := range p.merged.Passages() {
		if p.app.Flags.JSON {
			o := &p.o
			o.Begin()
			o.Time("time", x.At)
			p.flow(x.Pair, x.Side)
			for tap, key := range [2]string{"frame_a", "frame_b"} {
				if x.Frames[tap] != 0 {
					o.Uint(key, x.Frames[tap].Frame())
				} else {
					o.Null(key)
				}
			}
			o.Str("outcome", x.Outcome)
			if x.Delayed {
				o.Signed("delay_ms", x.Delay)
			} else {
				o.Null("delay_ms")
			}
			if err := o.End(w); err != nil {
				return err
			}
			continue
		}
		frame := func(tap int) string {
			if x.Frames[tap] == 0 {
				return "-"
			}
			return fmt.Sprint(x.Frames[tap].Frame())
		}
		fmt.Fprintf(w, "%s  flow %d %s → %s  A %7s  B %7s  %-9s", x.At.Time().Format("15:04:05.000000"), x.Pair.Flows[0].ID,
			x.Side, x.Side.Other(),
			frame(0), frame(1), x.Outcome)
		if x.Delayed {
			fmt.Fprintf(w, "  %s", report.Exact(x.Delay))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}
