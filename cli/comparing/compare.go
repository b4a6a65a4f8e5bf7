package comparing

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
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/compare"
	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/report"
	"github.com/ackscope/ackscope/show"
)

// CompareCommand builds `ackscope compare`.
func CompareCommand(a *app.App) *cobra.Command {
	var failIf, out string
	var html bool
	c := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Did the new build make it worse? Loss, delays, resends and findings, before and after",
		Long: `compare tells how the captures from after a change differ from those from before it: loss, round
trips, jitter, resends, when messages arrive, bandwidth, and findings. BEFORE and AFTER are each
a capture, or a directory of captures. Flows are compared by protocol and by side: their own
addresses and ports do not matter.

A difference is told in a sentence if it is larger than chance. Chance is estimated from the
captures themselves: from flow to flow, where each side has ten or more, else from one slice of
time to the next. Of a hundred pairs of captures without a difference, at most five report one
(docs/compare.md).`,
		Example: `  ackscope compare before.pcapng after.pcapng
  ackscope compare captures/1.4/ captures/1.5/                   # many flows show smaller differences
  ackscope compare --fail-if 'worse' before.pcapng after.pcapng  # exit 1 when anything is worse
  ackscope compare --fail-if 'arrival.p95 > +20ms or loss > 5%' before.pcapng after.pcapng
  ackscope compare --html -o compare.html before/ after/`,
		Args: func(c *cobra.Command, args []string) error {
			if len(a.Flags.Read) > 0 {
				return app.Usage(c, "compare: expected BEFORE and AFTER behind the command, found -r")
			}
			return app.Arguments(2, 2, "two captures or directories, BEFORE and AFTER")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error { return run(a, args, failIf, html, out) },
	}
	a.Writes(c)
	c.Flags().BoolVar(&html, "html", false, "write a self-contained page to the file of -o")
	c.Flags().StringVarP(&out, "output", "o", "", "write to `FILE`, - for standard output")
	reader.FailIfFlag(c, &failIf, true)
	return c
}

func run(a *app.App, args []string, failIf string, html bool, out string) error {
	condition, err := reader.ParseFailIf(failIf, true)
	if err != nil {
		return err
	}
	switch {
	case html && a.Flags.JSON:
		return errors.New("--html and --json: expected one of them")
	case html && out == "":
		return errors.New("--html: expected where to write the page, as in `ackscope compare --html -o compare.html " +
			"before/ after/`")
	case args[0] == "-" && args[1] == "-":
		return errors.New(`"-" (standard input) is given twice: expected once at most`)
	}
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	var sets [2]compare.Capture
	var failed error // of captures that could not be read
	for i, path := range args {
		if err := collect(a, path, &sets[i]); err != nil {
			if sets[i].Recordings == 0 {
				return errors.Join(failed, err)
			}
			failed = errors.Join(failed, err)
		}
	}
	result, names := compare.Compare(&sets[0], &sets[1]), [2]string{args[0], args[1]}
	write := func(w io.Writer) error {
		switch {
		case html:
			return report.Comparison(w, result, [2]string{filepath.Base(args[0]), filepath.Base(args[1])})
		case a.Flags.JSON:
			return writeJSON(w, result, names)
		case out != "":
			return result.Text(w, names, false, 0)
		}
		return result.Text(w, names, paint, a.Width())
	}
	if out == "" {
		err = write(a.Writer())
	} else {
		err = a.SaveFile("-o", out, outfile.Text, args, write)
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	return gate(a, condition, result, failed)
}

// collect reads the captures of one set.
func collect(a *app.App, path string, to *compare.Capture) error {
	return reader.Each(a, []string{path}, func(from *reader.Recording) error {
		o, err := a.Options()
		if err != nil {
			return err
		}
		src, err := reader.Open(a, from, reader.Options{Keep: capture.KeepPipes, Passes: 2})
		if err != nil {
			return err
		}
		defer src.Close()
		defer src.Done()
		first, err := analyze.Learn(src, o)
		if err != nil {
			return err
		}
		o.Survey = first.Survey()
		to.Options(&o)
		s, err := analyze.Run(src, o)
		to.End(s)
		return a.Ended(err)
	})
}

// gate evaluates --fail-if over the ways of all protocols.
func gate(a *app.App, condition *figures.Condition, r *compare.Result, failed error) error {
	if condition == nil {
		return failed
	}
	var held, open []string
	sides := r.Sides()
	for i := range sides {
		side := &sides[i]
		of := " " + side.Way
		if len(sides) > 2 {
			of += " of " + side.Protocol
		}
		switch result := condition.Evaluate(side); result.Truth {
		case figures.True:
			held = append(held, result.Say(of))
		case figures.Unknown:
			open = append(open, result.Say(of))
		case figures.False:
		}
	}
	switch {
	case len(held) > 0:
		err := &app.GateError{Text: fmt.Sprintf("%s: --fail-if '%s'", strings.Join(held, "; "), condition)}
		if failed == nil {
			return err
		}
		a.Trouble(err) // a failure is graver
	case len(sides) == 0:
		a.Say("", fmt.Errorf("--fail-if '%s' cannot be told: no protocol is in both captures", condition))
	case len(open) > 0:
		a.Say("", fmt.Errorf("--fail-if '%s' cannot be told for %d of %s: %s", condition, len(open),
			show.Plural(len(sides), "side"), open[0]))
	}
	return failed
}
