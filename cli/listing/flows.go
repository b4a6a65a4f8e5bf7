package listing

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// FlowsCommand builds `ackscope flows`.
func FlowsCommand(a *app.App) *cobra.Command {
	live, watch, text, picked, failIf := &reader.LiveFlags{}, &reader.WatchFlags{}, "", &flowPick{}, ""
	c := &cobra.Command{
		Use:   "flows [FILE...]",
		Short: "One row for each conversation: protocol, packets, loss, RTT, findings",
		Long: `flows lists every conversation of two endpoints with what each side knew at the end: which of
its packets it learned to have arrived, and loss and round-trip time as its own library
computes them. Flows that no protocol explains are counted below the table. With --all, or
where all flows are such, they are in the table. -V lists all flows too. It says why no protocol
explains one, and which versions of its library each side of the others can be.

A filter (-Y) of flow.* and finding.* fields, addresses and ports looks at the end of each flow.
If it has fields of packets, events or messages too, it shows a flow of which one packet matches.
The flow's figures are then those at that packet.

With -i, or --live, the table is drawn anew every second on a terminal. In a pipe each flow is
printed when it ends, or when ackscope drops it to save memory (docs/capture.md).`,
		Example: `  ackscope flows match.pcapng
  ackscope flows -V match.pcapng                 # versions of each side; why some have no protocol
  ackscope flows --json match.pcapng | jq .rtt_ms_a
  ackscope flows -Y 'flow.rtt > 80ms && frame.len > 1200' match.pcapng
  ackscope flows --fail-if 'rtt.p95 > 150ms' match.pcapng   # exit 1 when it holds
  ackscope flows -i any -a duration:30
  ackscope flows -i eth0 -f 'udp port 7777' --metrics :9090 --alert error --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			gate, err := reader.NewGate(a, failIf)
			if err != nil {
				return err
			}
			return gate.End(showFlows(a, live, watch, text, picked, gate, args))
		},
	}
	reader.RegisterWatched(a, c, live, watch, &text)
	reader.FailIfFlag(c, &failIf, false)
	c.Flags().BoolVar(&picked.all, "all", false, "list the flows of no known protocol too (--json always does)")
	c.Flags().BoolVarP(&picked.reasons, "verbose", "V", false,
		"list all flows; say which versions the sides can be, and why no protocol explains a flow")
	return c
}

func showFlows(a *app.App, live *reader.LiveFlags, watch *reader.WatchFlags, text string, picked *flowPick,
	gate *reader.Gate, args []string,
) error {
	if live.List {
		return reader.ListInterfaces(a)
	}
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	only, err := reader.Compile(a, text)
	if err != nil {
		return err
	}
	if live.Streams(watch) {
		if err := reader.NoHindsight(only); err != nil {
			return err
		}
	}
	picked.filter = only
	p := &flowPrinter{app: a, paint: paint, gate: gate, picked: picked}
	if a.Flags.JSON {
		p.rows = export.NewRows(export.Flows, a.Lines(&export.Flows.Schema))
	}
	if live.Streams(watch) {
		return live.Each(a, watch, args, func(r *reader.Recording) error { return p.watch(live, watch, r) })
	}
	err = live.Each(a, watch, args, func(r *reader.Recording) error { return p.once(live, r) })
	picked.say(a, err)
	return err
}

// ExportFlows passes flows to an encoder.
func ExportFlows(a *app.App, text string, args []string, to export.Encoder) error {
	only, err := reader.Compile(a, text)
	if err != nil {
		return err
	}
	p := &flowPrinter{app: a, picked: &flowPick{filter: only}, rows: export.NewRows(export.Flows, to)}
	err = reader.Each(a, args, func(r *reader.Recording) error { return p.once(&reader.LiveFlags{}, r) })
	p.picked.say(a, err)
	return err
}

// flowPrinter prints flows.
type flowPrinter struct {
	app     *app.App
	paint   show.Painter
	picked  *flowPick
	gate    *reader.Gate                      // of --fail-if
	rows    *export.Rows[export.FlowRow]      // nil for text
	figures machine.Figures                   // of the flow whose row is written
	printed map[*analyze.Flow]machine.Instant // time of the last packet when the flow was printed as provisional
}

// once prints the flows of files that are read to their end.
func (p *flowPrinter) once(live *reader.LiveFlags, from *reader.Recording) error {
	var rowErr error
	p.app.Memory.Gone = func(f *analyze.Flow, why analyze.Reason) {
		p.gate.Flow(f)
		if p.rows != nil && rowErr == nil {
			rowErr = p.flow(f, why.String(), false)
		}
		delete(p.picked.passed, f)
	}
	s, err := analyzeOnce(p.app, live, from, p.picked, p.gate)
	if s == nil {
		return err
	}
	p.gate.Session(s)
	if rowErr != nil {
		return rowErr
	}
	if printErr := p.all(s); printErr != nil {
		return printErr
	}
	return p.app.Ended(err)
}

// all prints the flows of a session that has ended.
func (p *flowPrinter) all(s *analyze.Session) error {
	if p.rows == nil {
		if err := reader.Heading(p.app, p.picked.from); err != nil {
			return err
		}
		return flowTable(p.app, s, p.picked, p.paint)
	}
	for _, f := range s.Flows() {
		if err := p.flow(f, "", false); err != nil {
			return err
		}
	}
	return nil
}

// flow adds a row. ended says why the flow was discarded; provisional says that
// the flow may change.
func (p *flowPrinter) flow(f *analyze.Flow, ended string, provisional bool) (err error) {
	if !p.picked.passes(f) {
		return nil
	}
	f.Unpacked(&p.figures, func() {
		err = p.rows.Add(&export.FlowRow{
			Flow: f, File: p.picked.from.File(f.FirstRef), Ended: ended,
			Provisional: provisional,
		})
	})
	return err
}

// analyzeOnce reads a recording in one run, in constant memory. The error is
// how reading ended. If reading could not begin, there is no session.
func analyzeOnce(a *app.App, live *reader.LiveFlags, from *reader.Recording,
	picked *flowPick, gate *reader.Gate,
) (*analyze.Session, error) {
	o, err := a.Options()
	if err != nil {
		return nil, err
	}
	picked.begin(from)
	if picked.asksPackets() {
		o.Sink = picked.take
	}
	packets := o.Sink
	o.Sink = gate.Sink(from, packets)
	if err := live.Check(); err != nil {
		return nil, err
	}
	fates := picked.filter.Needs() & filter.NeedFate
	opened := reader.Options{Keep: capture.KeepNothing, Passes: 1}
	if fates != 0 {
		opened = reader.Options{Keep: capture.KeepPipes, Passes: 3}
	}
	f, err := reader.Open(a, from, opened)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fates != 0 {
		first, err := analyze.Learn(f, o)
		if err != nil {
			return nil, err
		}
		o.Survey = first.Survey()
		if picked.reading.Hindsight, err = reader.Hindsight(a, f, o, fates); err != nil {
			return nil, err
		}
	}
	f.Most = live.Left()
	if live.Write != "" {
		if f.Save, err = reader.NewCopy(a, live.Write, live.Format, f.In); err != nil {
			return nil, err
		}
	}
	s, err := analyze.Run(f, o)
	live.Counted += f.Frames
	// The whole file may show that a flow was read by the wrong profile. The file can be read again,
	// if nothing of it is written or printed yet.
	if s.Misread() && f.Save == nil && len(s.Gone()) == 0 && f.Rewind() == nil {
		o.Survey = s.Survey()
		picked.begin(from)
		o.Sink = gate.Sink(from, packets)
		s, err = analyze.Run(f, o)
	}
	f.Done()
	if f.Save != nil {
		if closeErr := f.Save.CloseAfter(err, nil); closeErr != nil {
			err = errors.Join(a.Ended(err), closeErr)
		}
	}
	return s, err
}

// flowPick says which flows are listed: those that pass a filter.
type flowPick struct {
	filter  *filter.Filter
	all     bool // list flows of no known protocol too
	reasons bool // say why no protocol explains them
	from    *reader.Recording
	reading filter.Reading
	passed  map[*analyze.Flow]bool // flows of which a packet passed
	empty   reader.Empty           // of all recordings
}

// begin forgets the previous recording.
func (p *flowPick) begin(from *reader.Recording) {
	*p = flowPick{filter: p.filter, all: p.all, reasons: p.reasons, from: from, empty: p.empty}
}

// say tells, after the last recording, that the filter let no flow pass. err is how reading ended.
func (p *flowPick) say(a *app.App, err error) {
	p.empty.Of, p.empty.Filtered = "flow", p.filter.String() != ""
	if p.empty.Filtered && p.empty.Seen > 0 && (err == nil || reader.Unread(err) != nil) {
		p.empty.Say(a)
	}
}

// listed returns the flows to list: those of known protocols first, in their order. others is
// the number of further flows, which no protocol explains. They are listed too if the user asks
// for them, by a flag or a filter, and if there are no others.
func (p *flowPick) listed(s *analyze.Session) (flows []*analyze.Flow, others int) {
	var rest []*analyze.Flow
	for _, f := range s.Flows() {
		switch {
		case !p.passes(f):
		case f.Protocol != nil:
			flows = append(flows, f)
		default:
			rest = append(rest, f)
		}
	}
	if p.all || p.reasons || p.filter.String() != "" || len(flows) == 0 {
		return append(flows, rest...), 0
	}
	return flows, len(rest)
}

// asksPackets reports whether the filter names more than whole flows.
func (p *flowPick) asksPackets() bool {
	return p.filter.Scope()&^(filter.OfFlow|filter.OfAddress|filter.OfFinding) != 0
}

// take applies the filter to a packet, with the flow's current figures.
func (p *flowPick) take(r *analyze.Record) {
	if r.Flow == nil || p.passed[r.Flow] {
		return
	}
	if r.Frame == nil && r.Datagram.Bytes == nil && p.filter.Scope()&(filter.OfPacket|filter.OfAddress) != 0 {
		return // the end of a flow is not a packet
	}
	if p.filter.Match(p.reading.Take(r)) {
		if p.passed == nil {
			p.passed = map[*analyze.Flow]bool{}
		}
		p.passed[r.Flow] = true
	}
}

// passes reports whether a flow passes at its end, and counts it.
func (p *flowPick) passes(f *analyze.Flow) bool {
	p.empty.Seen++
	if !p.matches(f) {
		return false
	}
	p.empty.Shown++
	return true
}

func (p *flowPick) matches(f *analyze.Flow) bool {
	if p.filter.String() == "" || p.asksPackets() {
		return p.filter.String() == "" || p.passed[f]
	}
	for _, r := range filter.FlowRecords(f, p.from.Path(f.FirstRef)) {
		if p.filter.Match(r) {
			return true
		}
	}
	return false
}
