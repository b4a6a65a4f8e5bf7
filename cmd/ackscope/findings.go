package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

func (a *app) findingsCommand() *cobra.Command {
	var failOn string
	c := &cobra.Command{
		Use:   "findings [FILE...]",
		Short: "What is wrong, how surely, and in which frames",
		Example: `  ackscope findings match.pcapng
  ackscope findings --fail-on error regressions/*.pcapng   # exit 1 when there is one`,
		RunE: func(_ *cobra.Command, args []string) error { return a.findings(args, failOn) },
	}
	c.Flags().StringVar(&failOn, "fail-on", "", "exit 1 when a finding is this grave: `note|warn|error`")
	return c
}

func (a *app) findings(args []string, failOn string) error {
	gate := machine.Severity(255)
	if failOn != "" {
		var ok bool
		if gate, ok = parseSeverity(failOn); !ok {
			return fmt.Errorf("--fail-on %q: expected note, warn or error", failOn)
		}
	}
	s, in, err := a.study(args, nil)
	if in != nil {
		defer in.Close()
	}
	if s == nil {
		return err
	}
	grave := 0
	w := a.writer()
	var o object
	for _, f := range s.Flows() {
		found := f.Findings()
		if len(found) > 0 && !a.flags.json {
			fmt.Fprintf(w, "flow %d  %s  %s → %s\n", f.ID, flowName(f), f.A, f.B)
		}
		for _, x := range found {
			if x.Rule.Severity >= gate {
				grave++
			}
			if a.flags.json {
				o.begin()
				findingObject(&o, x)
				if len(a.flags.read)+len(args) > 1 {
					o.str("file", in.FileName(x.Refs[0].File()))
				}
				if err := o.end(w); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, " %-5s %-8s  %-24s  %s %s\n   %s\n   frames %s\n", strings.ToUpper(x.Rule.Severity.String()), x.Certainty, x.Rule.ID,
				x.Side, f.Addr(x.Side), x.Message(), frameList(x))
		}
	}
	if err := a.ended(err); err != nil {
		return err
	}
	if grave > 0 {
		return &gateError{fmt.Sprintf("%d findings of severity %s or above", grave, failOn)}
	}
	return nil
}

func findingObject(o *object, x *analyze.Finding) {
	f := x.Flow
	o.uint("frame", x.Refs[0].Frame())
	o.time("time", x.First)
	o.uint("flow", uint64(f.ID))
	if f.Protocol != nil {
		o.str("protocol", f.Protocol.Name)
		o.str("dialect", f.Config().Dialect)
	} else {
		o.null("protocol")
		o.null("dialect")
	}
	o.str("side", x.Side.String())
	o.addr("addr", f.Addr(x.Side))
	o.str("rule", x.Rule.ID)
	o.str("severity", x.Rule.Severity.String())
	o.str("certainty", x.Certainty.String())
	o.str("message", x.Message())
	o.uint("count", x.Count)
	o.frames("frames", x.Refs)
	o.time("last_time", x.Last)
}

func frameList(x *analyze.Finding) string {
	var b strings.Builder
	for i, r := range x.Refs {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r.Frame())
	}
	if more := x.Count - uint64(len(x.Refs)); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

func parseSeverity(word string) (machine.Severity, bool) {
	for _, s := range []machine.Severity{machine.Note, machine.Warn, machine.Error} {
		if s.String() == word {
			return s, true
		}
	}
	return 0, false
}
