package replaying

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/replay/whatif"
	"github.com/ackscope/ackscope/show"
)

// whatIf runs captures again under other settings.
func whatIf(a *app.App, args []string, f *replayFlags) error {
	if f.behaviour != "" || f.matrix || f.update || f.junit != "" {
		return errors.New("--what-if: expected none of --behaviour, --matrix, --update and --junit: it compares a capture " +
			"with an estimate, not with a reference")
	}
	changes, err := changes(a, f)
	if err != nil {
		return err
	}
	if err := a.Awaits(args); err != nil {
		return err
	}
	paths, _, failed := capturesOf(a.Paths(args))
	p := &whatIfPrinter{app: a, width: a.Width(), several: len(paths) > 1}
	flows := 0
	for _, path := range paths {
		file, err := whatIfOne(a, path, changes)
		if err == nil && file.Ended != nil {
			err = a.Ended(file.Ended)
		}
		if err != nil {
			failed = append(failed, named(path, err))
		}
		if file == nil {
			continue // the other captures are run again all the same
		}
		flows += len(file.Flows)
		if err := p.print(path, file); err != nil {
			return err
		}
	}
	if flows == 0 && len(failed) == 0 {
		return errors.New("--what-if: no flow that can be run again; what stands above says why")
	}
	return errors.Join(failed...)
}

// changes reads --what-if, and refuses what makes no sense before anything is read.
func changes(a *app.App, f *replayFlags) ([]whatif.Change, error) {
	changes, err := whatif.ParseChanges(f.whatIf)
	if err == nil {
		err = whatif.Check(changes, a.Registry)
	}
	var unknown *whatif.UnknownError
	switch {
	case errors.As(err, &unknown):
		return nil, app.UnknownName("--what-if", unknown.Name, unknown.Names)
	case err != nil:
		return nil, fmt.Errorf("--what-if: %w", err)
	}
	return changes, f.check(a)
}

// parameters returns all settings that --what-if can change. Each name has the description of the
// first protocol that knows it.
func parameters(a *app.App) (list []machine.Parameter) {
	for _, p := range a.Registry.Protocols() {
		for _, x := range p.Parameters {
			if !slices.ContainsFunc(list, func(y machine.Parameter) bool { return y.Name == x.Name }) {
				list = append(list, x)
			}
		}
	}
	return list
}

// completeChanges completes --what-if: "resend=50ms,win" is one word to a shell.
func completeChanges(a *app.App, _ *cobra.Command, _ []string, word string) ([]cobra.Completion,
	cobra.ShellCompDirective,
) {
	before := word[:strings.LastIndexByte(word, ',')+1]
	var list []cobra.Completion
	for _, p := range parameters(a) {
		list = append(list, cobra.CompletionWithDesc(before+p.Usage(), p.Doc))
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func whatIfOne(a *app.App, path string, changes []whatif.Change) (*whatif.File, error) {
	o, err := a.Options()
	if err != nil {
		return nil, err
	}
	o.Limits = a.Limits(app.JudgeCost)
	source, err := reader.Open(a, reader.File(path), reader.Options{Keep: capture.KeepPipes, Passes: 2})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	file, err := whatif.Run(source, o, changes)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// whatIfPrinter prints estimates.
type whatIfPrinter struct {
	app     *app.App
	width   int
	several bool // several captures: their names are printed as they were given
	o       app.Object
}

func (p *whatIfPrinter) print(path string, file *whatif.File) error {
	for i := range file.Flows {
		f := &file.Flows[i]
		if p.app.Flags.JSON {
			for s := range f.Sides {
				if err := p.object(path, f, machine.Side(s)); err != nil {
					return err
				}
			}
			continue
		}
		if err := p.text(path, f); err != nil {
			return err
		}
	}
	for _, s := range file.Skipped {
		text := fmt.Sprintf("%s  flow %d  not run again: %s\n", p.name(path), s.Flow.ID, s.Reason)
		if p.app.Flags.JSON {
			fmt.Fprint(p.app.Err, "ackscope: "+text)
		} else if _, err := fmt.Fprint(p.app.Writer(), text); err != nil {
			return err
		}
	}
	return p.app.Flush()
}

func (p *whatIfPrinter) name(path string) string {
	if p.several {
		return printable.String(path)
	}
	return printable.String(filepath.Base(path))
}

// runs returns the three columns of a side.
func runs(s *whatif.Side) [3]*whatif.Outcome {
	return [3]*whatif.Outcome{&s.Original, &s.Rehearsal, &s.WhatIf}
}

var quantiles = []struct {
	name string
	at   float64
}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"max", 1}}

func (p *whatIfPrinter) object(path string, f *whatif.Flow, s machine.Side) error {
	o, x := &p.o, &f.Sides[s]
	o.Begin()
	o.Str("file", path)
	o.Uint("flow", uint64(f.Flow.ID))
	o.Str("protocol", f.Flow.Protocol.Name)
	o.Str("dialect", f.Flow.Config().Dialect)
	o.Str("side", s.String())
	o.Addr("addr", f.Flow.Addr(s))
	o.Str("vantage", f.Vantage.String())
	o.Key("settings")
	o.Buf = append(o.Buf, '[')
	for i := range f.Settings {
		settingJSON(o, &f.Settings[i])
	}
	o.Buf = append(o.Buf, ']')
	o.Key("what_if")
	o.Buf = append(o.Buf, '[')
	for i := range f.Changed {
		settingJSON(o, &f.Changed[i])
	}
	o.Buf = append(o.Buf, ']')
	for i, run := range runs(x) {
		o.Key([...]string{"original", "rehearsal", "estimate"}[i])
		o.Buf = append(o.Buf, '{')
		outcomeJSON(o, run)
		o.Buf = append(o.Buf, '}')
	}
	if f.Silences > 0 {
		o.Uint("silences", uint64(f.Silences))
		o.Millis("silent_ms", f.Silent)
	}
	o.Float("fit", x.Fit, 4)
	o.Str("certainty", whatif.Certainty(x.Fit).String())
	return o.End(p.app.Writer())
}

func settingJSON(o *app.Object, v *machine.Setting) {
	if o.Buf[len(o.Buf)-1] == '}' {
		o.Buf = append(o.Buf, ',')
	}
	o.Buf = append(o.Buf, '{')
	o.Str("name", v.Name)
	o.Float("value", v.Value, 3)
	o.Str("unit", v.Unit)
	o.Str("certainty", v.Certainty.String())
	o.Str("why", v.Why)
	o.Buf = append(o.Buf, '}')
}

func outcomeJSON(o *app.Object, x *whatif.Outcome) {
	o.Uint("packets", x.Packets)
	o.Uint("bytes", x.Bytes)
	o.Uint("resends", x.Resends)
	o.Uint("lost", x.Lost)
	o.Uint("guessed", x.Guessed)
	o.Uint("doubtful", x.Doubtful)
	o.Uint("delivered", uint64(len(x.Latency)))
	o.Uint("undelivered", uint64(x.Undelivered))
	if x.Refused > 0 {
		o.Uint("refused", uint64(x.Refused))
	}
	for _, q := range quantiles {
		quantileJSON(o, "latency_ms_"+q.name, x.Latency, q.at)
	}
	for _, q := range quantiles {
		quantileJSON(o, "wait_ms_"+q.name, x.Wait, q.at)
	}
}

func quantileJSON(o *app.Object, key string, sorted []time.Duration, q float64) {
	if len(sorted) == 0 {
		o.Null(key)
		return
	}
	o.Millis(key, whatif.Quantile(sorted, q))
}

func (p *whatIfPrinter) text(path string, f *whatif.Flow) error {
	w := p.app.Writer()
	fmt.Fprintf(w, "%s  flow %d  %s %s, captured at %s\n", p.name(path), f.Flow.ID, f.Flow.Protocol.Name,
		f.Flow.Config().Dialect, f.Vantage)
	for i := range f.Settings {
		v := &f.Settings[i]
		line := fmt.Sprintf("  %-7s %s (%s: %s)", v.Name, v, v.Certainty, v.Why)
		for k := range f.Changed {
			if c := &f.Changed[k]; c.Name == v.Name {
				line = fmt.Sprintf("  %-7s %s -> %s (%s: %s)", v.Name, v, c, v.Certainty, v.Why)
			}
		}
		fmt.Fprintln(w, line)
	}
	for s := range f.Sides {
		p.side(f, machine.Side(s))
	}
	if f.Silences > 0 {
		note := fmt.Sprintf(
			"the runs step over %s, %s in all: nobody sent, so an endpoint had stopped or the capture has a gap",
			show.Plural(f.Silences, "silence"), show.SpanText(f.Silent))
		fmt.Fprint(w, show.Wrap(note, "  ", p.width)+"\n")
	}
	for _, a := range f.Assumed {
		fmt.Fprint(w, show.Wrap("taken for granted: "+a, "  ", p.width)+"\n")
	}
	return nil
}

func (p *whatIfPrinter) side(f *whatif.Flow, s machine.Side) {
	w, x := p.app.Writer(), &f.Sides[s]
	fmt.Fprintf(w, "  %s -> %s  %-22s %12s %12s %12s\n", strings.ToUpper(s.String()), strings.ToUpper(s.Other().String()),
		f.Flow.Addr(s), "original", "rehearsal", "what-if")
	row := func(name string, cell func(*whatif.Outcome) string) {
		fmt.Fprintf(w, "    %-28s", name)
		for _, run := range runs(x) {
			fmt.Fprintf(w, " %12s", cell(run))
		}
		fmt.Fprintln(w)
	}
	for _, q := range quantiles {
		row("message latency "+q.name, func(o *whatif.Outcome) string { return millisCell(o.Latency, q.at) })
	}
	for _, q := range quantiles[1:] {
		row("  held by earlier ones "+q.name, func(o *whatif.Outcome) string { return millisCell(o.Wait, q.at) })
	}
	row("messages delivered", func(o *whatif.Outcome) string { return show.Grouped(len(o.Latency)) })
	row("  not by the end", func(o *whatif.Outcome) string { return show.Grouped(o.Undelivered + o.Refused) })
	row("sent again", func(o *whatif.Outcome) string { return show.Grouped(o.Resends) })
	row("packets", func(o *whatif.Outcome) string { return show.Grouped(o.Packets) })
	row("bytes", func(o *whatif.Outcome) string { return show.Grouped(o.Bytes) })
	note := fmt.Sprintf("the rehearsal, run with the capture's own settings, reproduces it within %.1f %%: the estimate "+
		"is %s", 100*x.Fit, whatif.Certainty(x.Fit))
	if n, all := x.WhatIf.Guessed+x.WhatIf.Doubtful, x.WhatIf.Packets; n > 0 {
		note += fmt.Sprintf("; of %s sent, %s met a fate that the capture leaves open", show.Plural(all, "packet"),
			show.Grouped(n))
	}
	fmt.Fprint(w, show.Wrap(note, "    ", p.width)+"\n")
}

func millisCell(sorted []time.Duration, q float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(whatif.Quantile(sorted, q))/1e6)
}
