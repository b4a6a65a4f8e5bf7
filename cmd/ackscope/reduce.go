package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/rewrite"
	"github.com/ackscope/ackscope/show"
)

func (a *app) reduceCommand() *cobra.Command {
	var keep, behaviour string
	var trials int
	c := &cobra.Command{
		Use:   "reduce --keep RULE IN OUT.pcapng",
		Short: "Find a small capture in which the same finding or divergence still stands",
		Long: `reduce leaves out of a capture what a finding, or a divergence that replay finds,
does not need: other flows, what comes after, and frames in between. What it writes
shows the same rule to whoever runs findings or replay on it.`,
		Example: `  ackscope reduce --keep stale-entry match.pcapng bug.pcapng
  ackscope reduce --keep ack-never-arrived match.pcapng bug.pcapng`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if keep == "" {
				return fmt.Errorf("--keep: expected the rule of a finding (ackscope explain lists them) or of a divergence")
			}
			return a.reduce(args[0], args[1], keep, behaviour, trials)
		},
	}
	c.Flags().StringVar(&keep, "keep", "", "the `RULE` that must still stand")
	c.Flags().StringVar(&behaviour, "behaviour", "", "the `NAME` that replay holds all sides against")
	c.Flags().IntVar(&trials, "trials", 2000, "captures to analyse on the way at most")
	return c
}

func (a *app) reduce(from, to, keep, behaviour string, trials int) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	in, err := capture.Open([]string{from}, capture.Options{Stdin: a.in})
	if err != nil {
		return err
	}
	defer in.Close()
	frames, err := rewrite.Load(in)
	if err != nil {
		return err
	}
	r, err := rewrite.Reduce(frames, &rewrite.Rule{ID: keep, Analysis: o, Behave: behaviour}, trials)
	if err != nil {
		return err
	}
	out, err := a.newSave(to, originOf(in))
	if err != nil {
		return err
	}
	for i := range r.Frames.Len() {
		if err := out.write(r.Frames.At(i)); err != nil {
			return err
		}
	}
	if err := out.close(nil); err != nil {
		return err
	}
	note := "no frame of it can be left out"
	if !r.Least {
		note = fmt.Sprintf("stopped after %d trials", r.Trials)
	}
	if to != "-" {
		fmt.Fprintf(a.writer(), "%s of %d: %s\n", show.Plural(r.Frames.Len(), "frame"), frames.Len(), note)
	}
	return nil
}
