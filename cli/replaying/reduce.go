package replaying

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/rewrite"
	"github.com/ackscope/ackscope/show"
)

// ReduceCommand builds `ackscope reduce`.
func ReduceCommand(a *app.App) *cobra.Command {
	var keep, behaviour, write string
	var trials int
	c := &cobra.Command{
		Use:   "reduce --keep RULE IN OUT.pcapng",
		Short: "Find a small capture in which the same finding or divergence still stands",
		Long: `reduce leaves out of a capture what a finding, or a divergence that replay finds,
does not need: other flows, what comes after, and frames in between. What it writes
shows the same, of the same endpoint, to whoever runs findings or replay on it with the
same flags. Its figures differ by 10 % at most, and it shows no finding and no divergence
that IN does not show. Frames stay where that needs them; reduce then says so. A finding
that was certain may be likely. Comments, names and interfaces go along.

A rule that both have is kept as a divergence. The exit status is 2 where the rule does
not stand in the capture.`,
		Example: `  ackscope reduce --keep stale-entry match.pcapng bug.pcapng
  ackscope reduce --keep ack-never-arrived match.pcapng bug.pcapng && ackscope replay bug.pcapng`,
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := a.InOut(c, args, write)
			if err != nil {
				return err
			}
			if keep == "" {
				return fmt.Errorf("--keep: expected the rule of a finding (ackscope explain lists them) or of a divergence")
			}
			if names := behaviourNames(a); behaviour != "" && !slices.Contains(names, behaviour) {
				return app.UnknownName("--behaviour", behaviour, names)
			}
			if trials < 1 {
				return fmt.Errorf("--trials %d: expected 1 or more", trials)
			}
			return reduce(a, from, to, keep, behaviour, trials)
		},
	}
	a.Writes(c)
	c.Flags().StringVarP(&write, "write", "w", "", "write to `OUT.pcapng`, instead of the second argument")
	c.Flags().StringVar(&keep, "keep", "", "the `RULE` that must still stand")
	c.Flags().StringVar(&behaviour, "behaviour", "", "the `NAME` that replay holds all sides against")
	c.Flags().IntVar(&trials, "trials", 2000, "captures to analyse on the way at most")
	_ = c.RegisterFlagCompletionFunc("behaviour", app.CompleteWords(behaviourNames(a)...))
	_ = c.RegisterFlagCompletionFunc("keep", app.CompleteWords(a.ExplainedNames()...))
	return c
}

func reduce(a *app.App, from, to, keep, behaviour string, trials int) error {
	o, err := a.Options()
	if err != nil {
		return err
	}
	in, err := reader.Open(a, reader.File(from), reader.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	// A file that cannot be written is refused before the search.
	out, err := reader.NewSave(a, "", to, reader.OriginOf(in.In))
	if err != nil {
		return err
	}
	frames, err := rewrite.LoadWithin(in.In, a.Share(4))
	if err != nil {
		return err
	}
	if err := a.Ended(frames.Ended()); err != nil {
		return err
	}
	rule := &rewrite.Rule{ID: keep, Analysis: o, Behave: behaviour}
	wipe := tellTrials(a, rule)
	r, err := rewrite.Reduce(frames, rule, trials)
	wipe()
	var absent *rewrite.AbsentError
	if errors.As(err, &absent) {
		if near := filter.Nearest(keep, append(a.ExplainedNames(), absent.Shown...)); near != "" && near != keep {
			return fmt.Errorf("--keep %w; did you mean %s?", err, near)
		}
		return fmt.Errorf("--keep %w", err)
	}
	if err != nil {
		return err
	}
	for i := range r.Frames.Len() {
		if err := out.Write(r.Frames.At(i)); err != nil {
			return err
		}
	}
	if err := out.Close(nil); err != nil {
		return err
	}
	note := "no frame of it can be left out"
	if !r.Least {
		note = fmt.Sprintf("stopped after %d trials", r.Attempts)
	}
	if to != "-" {
		fmt.Fprintf(a.Writer(), "%s of %s: %s\n", show.Plural(r.Frames.Len(), "frame"), show.Grouped(frames.Len()), note)
		x := &r.Shows
		certainty := x.Certainty.String()
		if x.Certainty != r.Was {
			certainty += ", " + r.Was.String() + " in the whole"
		}
		fmt.Fprintf(a.Writer(), "%s (%s), %s %s: %s\n", keep, certainty, strings.ToUpper(x.Side.String()), x.Addr, x.Message)
		if r.Changed {
			fmt.Fprintln(a.Writer(), "frames stay because without them the figures differ by more than 10 %")
		}
		if len(r.New) > 0 {
			fmt.Fprintf(a.Writer(), "frames stay because without them these show that the whole does not: %s\n",
				strings.Join(r.New, ", "))
		}
	}
	return nil
}

// tellTrials prints on a terminal's standard error how far a long reduction is. It returns the
// function that wipes the line.
func tellTrials(a *app.App, rule *rewrite.Rule) (wipe func()) {
	if a.Flags.Quiet || !app.IsTerminal(a.Err) {
		return func() {}
	}
	begun, shown, visible := time.Now(), time.Time{}, false
	rule.Tell = func(trial, frames int) {
		if now := time.Now(); now.Sub(begun) > reader.ProgressAfter && now.Sub(shown) > reader.ProgressEvery {
			fmt.Fprintf(a.Err, "\r\x1b[Ktried %s captures, now one of %s", show.Grouped(trial), show.Plural(frames, "frame"))
			shown, visible = now, true
		}
	}
	return func() {
		if visible {
			fmt.Fprint(a.Err, "\r\x1b[K")
		}
	}
}
