package main

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

func (a *app) flowsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "flows [FILE...]",
		Short: "One row for each conversation: protocol, packets, loss, RTT, findings",
		Example: `  ackscope flows match.pcapng
  ackscope flows --json match.pcapng | jq .rtt_ms_a`,
		RunE: func(_ *cobra.Command, args []string) error { return a.showFlows(args) },
	}
}

func (a *app) showFlows(args []string) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	in, err := a.open(args, capture.KeepNothing)
	if err != nil {
		return err
	}
	defer in.Close()
	s, err := analyze.Run(in, o)
	if a.flags.json {
		var o object
		for _, f := range s.Flows() {
			o.begin()
			flowObject(&o, f)
			if err := o.end(a.writer()); err != nil {
				return err
			}
		}
		return a.ended(err)
	}
	a.flowTable(s)
	return a.ended(err)
}

// flowName gives the protocol and dialect for eyes; – where nothing explains the flow.
func flowName(f *analyze.Flow) string {
	if f.Protocol == nil {
		return "–"
	}
	return f.Protocol.Name + "/" + f.Config().Dialect
}

// flowObject writes the contract's keys of a flow.
func flowObject(o *object, f *analyze.Flow) {
	o.uint("frame", f.FirstRef.Frame())
	o.time("time", f.First)
	o.uint("flow", uint64(f.ID))
	if f.Protocol != nil {
		o.str("protocol", f.Protocol.Name)
		o.str("dialect", f.Config().Dialect)
	} else {
		o.null("protocol")
		o.null("dialect")
	}
	o.str("transport", map[capture.Transport]string{capture.UDP: "udp", capture.TCP: "tcp"}[f.Transport])
	o.addr("a", f.A)
	o.addr("b", f.B)
	o.uint("session", uint64(f.Session))
	o.uint("packets_a", f.Packets[machine.A])
	o.uint("packets_b", f.Packets[machine.B])
	o.uint("bytes_a", f.Bytes[machine.A])
	o.uint("bytes_b", f.Bytes[machine.B])
	o.uint("capture_duplicates", f.Duplicates)
	o.time("last_time", f.Last)
	o.float("confidence", f.Verdict.Confidence, 4)
	o.str("reason", f.Verdict.Reason)
	if f.Protocol == nil {
		return
	}
	facts := f.Facts()
	o.str("vantage", facts.Vantage.String())
	o.word("vantage_reason", facts.VantageReason)
	for _, side := range []machine.Side{machine.A, machine.B} {
		sum, _ := f.Summary(side)
		x := "_" + side.String()
		o.str("dialect"+x, f.Config().Dialect)
		o.uint("acked"+x, sum.Acked)
		o.share("never_acked"+x, sum.NeverAcked)
		o.share("loss"+x, sum.Loss)
		o.millis("rtt_ms"+x, sum.RTT)
		o.str("rtt_certainty"+x, sum.RTTKnown.String())
		o.str("loss_certainty"+x, sum.LossKnown.String())
		o.millis("wire_rtt_ms"+x, sum.WireRTT)
		o.uint("received"+x, sum.Received)
		o.uint("duplicates"+x, sum.Duplicates)
		o.uint("stale"+x, sum.Stale)
		o.uint("missing"+x, sum.Missing)
	}
	var found [3]uint64
	for _, x := range f.Findings() {
		found[x.Rule.Severity]++
	}
	o.uint("errors", found[machine.Error])
	o.uint("warnings", found[machine.Warn])
	o.uint("notes", found[machine.Note])
}

// share writes a part of a whole, 0..1; null where it is negative (unknown).
func (o *object) share(k string, v float64) {
	if v < 0 {
		o.null(k)
		return
	}
	o.float(k, v, 8)
}

func (a *app) flowTable(s *analyze.Session) {
	first, last := s.Span()
	fmt.Fprintf(a.writer(), "%d packets · %s · %d flows", s.Packets(), last.Sub(first).Round(time.Millisecond), len(s.Flows()))
	if n := s.Duplicates(); n > 0 {
		fmt.Fprintf(a.writer(), " · %d captured twice", n)
	}
	fmt.Fprint(a.writer(), "\n\n")
	t := table.NewWriter()
	t.SetOutputMirror(a.writer())
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(table.Row{"#", "protocol", "A", "B", "packets A→B / B→A", "never acked", "loss", "RTT ms", "tap", "findings"})
	var unexplained []*analyze.Flow
	for _, f := range s.Flows() {
		row := table.Row{f.ID, flowName(f), f.A, f.B, fmt.Sprintf("%d / %d", f.Packets[0], f.Packets[1])}
		if f.Protocol == nil {
			unexplained = append(unexplained, f)
			t.AppendRow(append(row, "", "", "", "", findingCounts(f)))
			continue
		}
		x, _ := f.Summary(machine.A)
		y, _ := f.Summary(machine.B)
		t.AppendRow(append(row,
			percent(x.NeverAcked)+" / "+percent(y.NeverAcked), percent(x.Loss)+" / "+percent(y.Loss),
			millis(x.RTT)+" / "+millis(y.RTT), f.Facts().Vantage.String(), findingCounts(f)))
	}
	t.Render()
	for _, f := range unexplained {
		fmt.Fprintf(a.writer(), "\nflow %d: %s", f.ID, f.Verdict.Reason)
	}
	if len(unexplained) > 0 {
		fmt.Fprintln(a.writer())
	}
}

func findingCounts(f *analyze.Flow) string {
	var n [3]int
	for _, x := range f.Findings() {
		n[x.Rule.Severity]++
	}
	s := ""
	for sev := machine.Error; ; sev-- {
		if n[sev] > 0 {
			if s != "" {
				s += " "
			}
			s += fmt.Sprintf("%d %s", n[sev], sev)
		}
		if sev == machine.Note {
			return s
		}
	}
}

func percent(v float64) string {
	if v < 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

func millis(d time.Duration) string {
	if d < 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(d)/1e6)
}
