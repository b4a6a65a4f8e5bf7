package batching

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/batch/baseline"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/report"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/unit"
)

// outcome is what a run did.
type outcome struct {
	app      *app.App
	flags    *flags
	plan     *batch.Plan
	progress batch.Progress
	summary  *batch.Summary // nil for a share
}

// states are all states of captures, in the order in which they are told.
func states() []unit.State {
	return append(unit.States(), batch.Unread, batch.TimedOut, batch.Quarantined)
}

// tell prints what the run did, and returns what decides the exit code.
func (o *outcome) tell() error {
	var err error
	if o.app.Flags.JSON {
		err = o.json()
	} else {
		err = o.text()
	}
	if err != nil {
		return err
	}
	var gates []error
	if o.flags.compares() {
		worse, err := o.compare()
		if err != nil {
			return err
		}
		if worse > 0 && o.flags.failIf != "" {
			gates = append(gates, &app.GateError{Text: show.Plural(worse, "difference") + " for the worse: --fail-if worse"})
		}
	}
	if o.flags.failOn != "" {
		if n := graver(o.summary, o.flags.failOn); n > 0 {
			gates = append(gates, &app.GateError{
				Text: fmt.Sprintf("%s of severity %s or above", show.Plural(n, "finding"), o.flags.failOn),
			})
		}
	}
	gate := errors.Join(gates...)
	if failed := o.failed(); failed != nil {
		if gate != nil { // a capture that was not read is graver
			o.app.Trouble(gate)
		}
		return failed
	}
	return gate
}

// failed returns an error for captures that could not be read, or not to their end.
func (o *outcome) failed() error {
	var list []error
	if n := len(o.plan.Failed); n > 0 {
		list = append(list, fmt.Errorf("%s: no capture", show.Plural(n, "argument")))
	}
	if len(o.plan.Captures) == 0 && len(list) == 0 && o.flags.share == "" {
		list = append(list, errors.New("no capture was found"))
	}
	count := o.plan.Unread()
	if o.summary != nil {
		all := o.summary.States()
		count = all[unit.Unreadable] + all[unit.Panicked] + all[unit.Damaged] + all[batch.Unread] + all[batch.TimedOut] +
			all[batch.Quarantined]
		if cut := all[unit.Cut]; cut > 0 && o.app.Flags.Strict {
			count += cut
		} else if cut > 0 {
			o.app.Advise(fmt.Sprintf("%s cut short; captures.parquet names them", are(cut)))
		}
	}
	if count > 0 {
		where := "captures.parquet names them"
		if o.summary == nil {
			where = "the next run tries them again"
		}
		list = append(list, fmt.Errorf("%d of %d captures could not be read to their end: %s", count,
			len(o.plan.Captures), where))
	}
	return errors.Join(list...)
}

func are(n uint64) string {
	if n == 1 {
		return "1 capture is"
	}
	return show.Grouped(n) + " captures are"
}

// text prints the run in words.
func (o *outcome) text() error {
	w := o.app.Writer()
	fmt.Fprintf(w, "%s: %s, %s analysed now, %s kept from before\n", printable.String(o.flags.out),
		show.Plural(len(o.plan.Captures), "capture"), show.Grouped(uint64(o.progress.Done)),
		show.Grouped(uint64(o.progress.Kept)))
	if o.summary == nil {
		_, err := fmt.Fprintf(w, "share %s is done; --combine writes the tables of all shares\n", o.flags.share)
		return err
	}
	var parts []string
	all := o.summary.States()
	for _, s := range states() {
		if n := all[s]; n > 0 {
			parts = append(parts, show.Grouped(n)+" "+string(s))
		}
	}
	total := o.summary.Total(func(*batch.Partition) bool { return true })
	_, err := fmt.Fprintf(w, "%s; %s, %s, %s, %s\n", strings.Join(parts, ", "), show.Plural(total.Packets, "packet"),
		show.Plural(total.Flows, "flow"), show.Plural(total.Findings, "finding"),
		show.Plural(len(o.summary.Partitions), "partition"))
	return err
}

// json prints the run as an object.
func (o *outcome) json() error {
	var x app.Object
	x.Begin()
	x.Str("kind", "batch")
	x.Str("output", o.flags.out)
	x.Uint("captures", uint64(len(o.plan.Captures)))
	x.Uint("analysed", uint64(o.progress.Done))
	x.Uint("kept", uint64(o.progress.Kept))
	x.Bool("written", o.summary != nil)
	if o.summary == nil {
		for _, key := range []string{"packets", "flows", "findings", "partitions"} {
			x.Null(key)
		}
		return x.End(o.app.Writer())
	}
	x.Key("states")
	all := o.summary.States()
	x.Inner(func() {
		for _, s := range states() {
			if n := all[s]; n > 0 {
				x.Uint(string(s), n)
			}
		}
	})
	total := o.summary.Total(func(*batch.Partition) bool { return true })
	x.Uint("packets", total.Packets)
	x.Uint("flows", total.Flows)
	x.Uint("findings", total.Findings)
	x.Uint("partitions", uint64(len(o.summary.Partitions)))
	return x.End(o.app.Writer())
}

// compare compares the run with its baseline, and returns how much is worse.
func (o *outcome) compare() (worse int, err error) {
	from, folder := o.summary, o.flags.out
	if o.flags.baseline != "" {
		folder = o.flags.baseline
		if from, err = batch.ReadSummary(folder); err != nil {
			return 0, fmt.Errorf("--baseline: %w", err)
		}
	}
	before, err := set(folder, from, o.flags.before)
	if err != nil {
		return 0, fmt.Errorf("--before: %w", err)
	}
	after, err := set(o.flags.out, o.summary, o.flags.after)
	if err != nil {
		return 0, fmt.Errorf("--after: %w", err)
	}
	result := baseline.Compare(before, after)
	for _, x := range []struct {
		flag, path string
		write      func(io.Writer) error
	}{
		{"--html", o.flags.html, func(w io.Writer) error { return report.Baseline(w, page(result)) }},
		{"--parquet", o.flags.parquet, result.Parquet},
	} {
		if x.path == "" {
			continue
		}
		if err := o.app.SaveFile(x.flag, x.path, outfile.Text, nil, x.write); err != nil {
			return 0, err
		}
	}
	if o.app.Flags.JSON {
		return result.Worse(), o.differences(result)
	}
	w := o.app.Writer()
	fmt.Fprintln(w)
	return result.Worse(), result.Text(w)
}

// set returns the captures that a flag chooses.
func set(folder string, s *batch.Summary, choice string) (*baseline.Set, error) {
	column, value, _ := strings.Cut(choice, "=")
	name := folder
	if choice != "" {
		name += " " + choice
	}
	return baseline.Of(name, s, column, value)
}

// differences prints the comparison as objects.
func (o *outcome) differences(r *baseline.Result) error {
	var x app.Object
	x.Begin()
	x.Str("kind", "baseline")
	x.Str("before", r.Before.Name)
	x.Str("after", r.After.Name)
	x.Str("headline", r.Headline())
	x.Uint("compared", uint64(len(r.Rules)+len(r.Figures)))
	x.Uint("real", uint64(r.Real()))
	x.Uint("worse", uint64(r.Worse()))
	x.Texts("notes", r.Notes)
	if err := x.End(o.app.Writer()); err != nil {
		return err
	}
	return r.Rows(o.app.Lines(export.Differences))
}
