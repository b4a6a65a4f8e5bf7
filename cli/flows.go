package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

func (a *app) flowsCommand() *cobra.Command {
	live, watch, text := &liveFlags{}, &watchFlags{}, ""
	c := &cobra.Command{
		Use:   "flows [FILE...]",
		Short: "One row for each conversation: protocol, packets, loss, RTT, findings",
		Long: `flows lists every conversation of two endpoints with what each side knew at the end: which of
its packets it learned to have arrived, and loss and round-trip time as its own library
computes them. Of a flow that no protocol explains, the reason stands below the table.

A filter (-Y) of flow.* and finding.* fields, addresses and ports is asked at the flow's end.
Of one that has fields of packets, events or messages too, a flow passes when one of its
packets does, with the flow's figures as they stood at that packet.

With -i, or --live, the table is drawn anew every second on a terminal. In a pipe each flow is
printed when it has ended or was let go (docs/capture.md), the others at the end.`,
		Example: `  ackscope flows match.pcapng
  ackscope flows --json match.pcapng | jq .rtt_ms_a
  ackscope flows -Y 'flow.rtt > 80ms && frame.len > 1200' match.pcapng
  ackscope flows -i any -a duration:30
  ackscope flows -i eth0 -f 'udp port 7777' --metrics :9090 --alert error --json`,
		RunE: func(_ *cobra.Command, args []string) error { return a.showFlows(live, watch, text, args) },
	}
	live.register(c)
	a.writes(c)
	watch.register(a, c, true)
	a.joinFlag(c)
	a.filterFlag(c, &text)
	return c
}

func (a *app) showFlows(live *liveFlags, watch *watchFlags, text string, args []string) error {
	if live.list {
		return a.listInterfaces()
	}
	paint, err := a.painter()
	if err != nil {
		return err
	}
	only, err := a.compile(text)
	if err != nil {
		return err
	}
	p := &flowPrinter{app: a, paint: paint, picked: &flowPick{filter: only}}
	if a.flags.json {
		p.rows = export.NewRows(export.Flows, a.lines(&export.Flows.Schema))
	}
	return live.each(a, watch, args, func(r *recording) error {
		if live.streams(watch) {
			return p.watch(live, watch, r)
		}
		return p.once(live, r)
	})
}

// tellFlows gives flows to an encoder.
func (a *app) tellFlows(text string, args []string, to export.Encoder) error {
	only, err := a.compile(text)
	if err != nil {
		return err
	}
	p := &flowPrinter{app: a, picked: &flowPick{filter: only}, rows: export.NewRows(export.Flows, to)}
	return a.each(args, func(r *recording) error { return p.once(&liveFlags{}, r) })
}

// flowPrinter prints flows.
type flowPrinter struct {
	app    *app
	paint  painter
	picked *flowPick
	rows   *export.Rows[export.FlowRow]      // nil for eyes
	told   map[*analyze.Flow]machine.Instant // of the last packet, when it was printed as provisional
}

// once prints the flows of files that are read to their end.
func (p *flowPrinter) once(live *liveFlags, from *recording) error {
	var rowErr error
	p.app.memory.gone = func(f *analyze.Flow, why analyze.Reason) {
		if p.rows != nil && rowErr == nil {
			rowErr = p.flow(f, why.String(), false)
		}
		delete(p.picked.passed, f)
	}
	s, err := p.app.analyzeOnce(live, from, p.picked)
	if s == nil {
		return err
	}
	if rowErr != nil {
		return rowErr
	}
	if printErr := p.all(s); printErr != nil {
		return printErr
	}
	return p.app.ended(err)
}

// all prints the flows of a session that has ended.
func (p *flowPrinter) all(s *analyze.Session) error {
	if p.rows == nil {
		if err := p.app.heading(p.picked.from); err != nil {
			return err
		}
		return p.app.flowTable(s, p.picked, p.paint)
	}
	for _, f := range s.Flows() {
		if err := p.flow(f, "", false); err != nil {
			return err
		}
	}
	return nil
}

// flow adds a row; with why the flow was let go, and whether it may change.
func (p *flowPrinter) flow(f *analyze.Flow, ended string, provisional bool) error {
	if !p.picked.passes(f) {
		return nil
	}
	return p.rows.Add(&export.FlowRow{Flow: f, File: p.picked.from.file(f.FirstRef), Ended: ended, Provisional: provisional})
}

// analyzeOnce reads a recording in one run: memory stays flat. The error is how
// reading ended, or why it could not begin; then there is no session.
func (a *app) analyzeOnce(live *liveFlags, from *recording, picked *flowPick) (*analyze.Session, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	picked.begin(from)
	if picked.asksPackets() {
		o.Sink = picked.take
	}
	if err := live.check(); err != nil {
		return nil, err
	}
	in, err := a.open(from, capture.KeepNothing)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f := &feed{source: in, most: live.left(), progress: a.newProgress(in, 1)}
	if live.write != "" {
		if f.copyTo, err = a.newCopy(live.write, live.format, in); err != nil {
			return nil, err
		}
	}
	s, err := analyze.Run(f, o)
	f.progress.done()
	live.counted += f.frames
	if f.copyTo != nil {
		if closeErr := f.copyTo.closeAfter(err, nil); closeErr != nil {
			err = errors.Join(a.ended(err), closeErr)
		}
	}
	return s, err
}

// flowPick says which flows pass a filter.
type flowPick struct {
	filter  *filter.Filter
	from    *recording
	reading filter.Reading
	passed  map[*analyze.Flow]bool // by one of their packets
}

// begin forgets what was read of the recording before.
func (p *flowPick) begin(from *recording) { *p = flowPick{filter: p.filter, from: from} }

// asksPackets reports whether the filter is about more than whole flows.
func (p *flowPick) asksPackets() bool {
	return p.filter.Scope()&^(filter.OfFlow|filter.OfAddress|filter.OfFinding) != 0
}

// take asks the filter about a packet, with the flow's figures as they stand.
func (p *flowPick) take(r *analyze.Record) {
	if r.Flow == nil || p.passed[r.Flow] {
		return
	}
	if r.Frame == nil && r.Datagram.Bytes == nil && p.filter.Scope()&(filter.OfPacket|filter.OfAddress) != 0 {
		return // what a flow's end settled is no packet
	}
	if p.filter.Match(p.reading.Take(r)) {
		if p.passed == nil {
			p.passed = map[*analyze.Flow]bool{}
		}
		p.passed[r.Flow] = true
	}
}

// passes asks it about a flow at its end.
func (p *flowPick) passes(f *analyze.Flow) bool {
	if p.filter.String() == "" || p.asksPackets() {
		return p.filter.String() == "" || p.passed[f]
	}
	for _, r := range filter.FlowRecords(f, p.from.path(f.FirstRef)) {
		if p.filter.Match(r) {
			return true
		}
	}
	return false
}
