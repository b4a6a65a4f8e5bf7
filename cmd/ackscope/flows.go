package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
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
	watch.register(a, c, true)
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
	if live.streams(watch) {
		return p.watch(live, watch, args)
	}
	return p.once(live, args)
}

// tellFlows gives flows to an encoder.
func (a *app) tellFlows(live *liveFlags, text string, args []string, to export.Encoder) error {
	only, err := a.compile(text)
	if err != nil {
		return err
	}
	p := &flowPrinter{app: a, picked: &flowPick{filter: only}, rows: export.NewRows(export.Flows, to)}
	return p.once(live, args)
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
func (p *flowPrinter) once(live *liveFlags, args []string) error {
	s, err := p.app.analyzeOnce(live, args, p.picked)
	if s == nil {
		return err
	}
	if printErr := p.all(s); printErr != nil {
		return printErr
	}
	return p.app.ended(err)
}

// all prints the flows of a session that has ended.
func (p *flowPrinter) all(s *analyze.Session) error {
	if p.rows == nil {
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
	return p.rows.Add(&export.FlowRow{Flow: f, File: several(p.picked.names, f.FirstRef), Ended: ended, Provisional: provisional})
}

// watch prints flows while they go on.
func (p *flowPrinter) watch(live *liveFlags, watch *watchFlags, args []string) error {
	o, err := p.app.options()
	if err != nil {
		return err
	}
	r, err := live.begin(p.app, watch, args)
	if err != nil {
		return err
	}
	p.picked.names = r.names
	if p.picked.asksPackets() {
		o.Sink = p.picked.take
	}
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		if p.rows != nil && r.err == nil {
			r.err = p.flow(f, why.String(), false)
		}
		delete(p.picked.passed, f)
		delete(p.told, f)
	}
	if r.screen = p.app.newScreen(); r.screen != nil || p.rows != nil {
		r.tick = func() { p.tick(r) }
	}
	s, err := r.run(o)
	if s != nil {
		err = errors.Join(err, p.all(s))
	}
	return p.app.ended(errors.Join(err, r.end()))
}

// tick shows the flows as they are now.
func (p *flowPrinter) tick(r *running) {
	if r.screen != nil {
		var text bytes.Buffer
		width, height := r.screen.size()
		_ = p.app.writeFlowTable(&text, r.session, p.picked, p.paint, tableRoom{width, height - 4}) // a buffer does not fail
		r.screen.draw(text.Bytes())
		return
	}
	if p.told == nil {
		p.told = map[*analyze.Flow]machine.Instant{}
	}
	for _, f := range r.session.Flows() {
		if at, ok := p.told[f]; (!ok || at != f.Last) && r.err == nil {
			p.told[f] = f.Last
			r.err = p.flow(f, "", true)
		}
	}
}

// analyzeOnce reads captures in one run: memory stays flat. The error is how
// reading ended, or why it could not begin; then there is no session.
func (a *app) analyzeOnce(live *liveFlags, args []string, picked *flowPick) (*analyze.Session, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	if picked.asksPackets() {
		o.Sink = picked.take
	}
	if err := live.check(); err != nil {
		return nil, err
	}
	in, err := a.open(args, capture.KeepNothing)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for i := range in.Files() {
		picked.names = append(picked.names, in.FileName(i))
	}
	f := &feed{source: in, most: live.count, progress: a.newProgress(in, 1)}
	if live.write != "" {
		if f.copyTo, err = a.newSave(live.write, interfacesOf(in)); err != nil {
			return nil, err
		}
	}
	s, err := analyze.Run(f, o)
	f.progress.done()
	if f.copyTo != nil {
		if closeErr := f.copyTo.close(nil); err == nil {
			err = closeErr
		}
	}
	return s, err
}

// flowPick says which flows pass a filter.
type flowPick struct {
	filter  *filter.Filter
	names   []string
	reading filter.Reading
	passed  map[*analyze.Flow]bool // by one of their packets
}

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
	for _, r := range filter.FlowRecords(f, p.names[f.FirstRef.File()]) {
		if p.filter.Match(r) {
			return true
		}
	}
	return false
}

// tableRoom is the room for a table: 0 is any.
type tableRoom struct{ width, rows int }

// flowTable prints the verdict and the table.
func (a *app) flowTable(s *analyze.Session, picked *flowPick, paint painter) error {
	return a.writeFlowTable(a.writer(), s, picked, paint, tableRoom{width: a.width()})
}

func (a *app) writeFlowTable(w io.Writer, s *analyze.Session, picked *flowPick, paint painter, room tableRoom) error {
	for _, head := range []string{verdict(s, picked.names), goneText(s)} {
		if room.rows > 0 {
			head = string(show.Fit([]byte(head), room.width))
		}
		if head != "" {
			fmt.Fprintln(w, head)
		}
	}
	var flows []*analyze.Flow
	for _, f := range s.Flows() {
		if picked.passes(f) {
			flows = append(flows, f)
		}
	}
	if len(flows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if room.rows > 0 && len(flows) > room.rows { // those with the most to say, in their order
		slices.SortStableFunc(flows, func(x, y *analyze.Flow) int { return cmp.Compare(flowWeight(y), flowWeight(x)) })
		flows = flows[:max(1, room.rows)]
		slices.SortFunc(flows, func(x, y *analyze.Flow) int { return cmp.Compare(x.ID, y.ID) })
	}
	c := &columns{
		paint: paint, fit: room.width,
		heads: []string{"#", "protocol", "A", "B", "packets A→B / B→A", "never acked", "loss", "RTT ms", "resends", "tap", "findings"},
		right: []bool{true, false, false, false, true, true, true, true, true, false, false},
	}
	rows, row := len(flows), func(i int) { flowRow(c, flows[i]) }
	if !c.fits(rows, row) {
		// A line for each side takes half the room.
		c.heads = []string{"#", "protocol", "side", "packets", "never acked", "loss", "RTT ms", "findings"}
		c.right = []bool{true, false, false, true, true, true, true, false}
		rows, row = 2*len(flows), func(i int) { sideRow(c, flows[i/2], machine.Side(i%2)) }
	}
	if err := c.render(w, rows, row); err != nil {
		return err
	}
	unexplained := 0
	for _, f := range flows {
		if f.Protocol == nil && f.Verdict.Reason != "" {
			if unexplained++; unexplained == 1 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, show.Wrap(fmt.Sprintf("flow %d: %s", f.ID, show.AppendClean(nil, f.Verdict.Reason)), "", c.fit))
		}
	}
	return nil
}

// flowWeight ranks flows where there is no room for all: those of a protocol that
// is known, then by packets.
func flowWeight(f *analyze.Flow) uint64 {
	n := f.Packets[machine.A] + f.Packets[machine.B]
	if f.Protocol != nil {
		n |= 1 << 63
	}
	return n
}

// goneText sums the flows that were let go; empty where there are none.
func goneText(s *analyze.Session) string {
	var flows, packets, resends uint64
	for _, x := range s.Gone() {
		flows += x.Flows
		packets += x.Packets[0] + x.Packets[1]
		resends += x.Sides[0].Resends + x.Sides[1].Resends
	}
	if flows == 0 {
		return ""
	}
	text := show.Plural(flows, "flow") + " ended and no longer listed: " + show.Plural(packets, "packet")
	if resends > 0 {
		text += ", " + show.Plural(resends, "resend")
	}
	return text
}

func flowRow(c *columns, f *analyze.Flow) {
	c.add("", func(b []byte) []byte { return strconv.AppendInt(b, int64(f.ID), 10) })
	if f.Protocol == nil {
		c.str(dim, "–")
	} else {
		c.str("", show.FlowName(f))
	}
	c.add(cyan, f.A.AppendTo)
	c.add(purple, f.B.AppendTo)
	c.str("", show.Grouped(f.Packets[0])+" / "+show.Grouped(f.Packets[1]))
	if _, ok := f.Summary(machine.A); !ok {
		for range 5 {
			c.str("", "")
		}
	} else {
		x, _ := f.Summary(machine.A)
		y, _ := f.Summary(machine.B)
		c.str("", show.Percent(x.NeverAcked)+" / "+show.Percent(y.NeverAcked))
		c.str("", show.Percent(x.Loss)+" / "+show.Percent(y.Loss))
		c.str("", show.Millis(x.RTT)+" / "+show.Millis(y.RTT))
		resends := ""
		if n := x.Resends + y.Resends; n > 0 {
			resends = show.Grouped(n)
		}
		c.str("", resends)
		c.str("", show.TapText(f))
	}
	findingsCell(c, f)
}

// sideRow is one side of a flow, where a terminal has no room for both.
func sideRow(c *columns, f *analyze.Flow, side machine.Side) {
	if side == machine.A {
		c.add("", func(b []byte) []byte { return strconv.AppendInt(b, int64(f.ID), 10) })
		c.str("", show.FlowName(f))
	} else {
		c.str("", "")
		c.str("", "")
	}
	c.add([]style{cyan, purple}[side], func(b []byte) []byte {
		b = append(append(b, strings.ToUpper(side.String())...), ' ')
		return f.Addr(side).AppendTo(b)
	})
	c.str("", show.Grouped(f.Packets[side]))
	if sum, ok := f.Summary(side); ok {
		c.str("", show.Percent(sum.NeverAcked))
		c.str("", show.Percent(sum.Loss))
		c.str("", show.Millis(sum.RTT))
	} else {
		c.str("", "")
		c.str("", "")
		c.str("", "")
	}
	if side == machine.A {
		findingsCell(c, f)
	} else {
		c.str("", "")
	}
}

// findingsCell counts a flow's findings, the gravest first.
func findingsCell(c *columns, f *analyze.Flow) {
	n := show.Severities(f)
	var parts []string
	worst := style("")
	for sev := machine.Note; sev <= machine.Error; sev++ {
		if n[sev] > 0 {
			parts = append([]string{show.Plural(n[sev], show.SeverityNoun(sev))}, parts...)
			worst = show.SeverityStyle(sev)
		}
	}
	c.str(worst, strings.Join(parts, "  "))
}

// verdict is the first line: what was read, how long it is, where it was taken.
func verdict(s *analyze.Session, names []string) string {
	first, last := s.Span()
	what := names[0]
	if len(names) > 1 {
		what = show.Plural(len(names), "file")
	} else if what == "-" {
		what = "standard input"
	} else {
		what = filepath.Base(what)
	}
	parts := []string{what, show.Plural(s.Packets(), "packet"), show.SpanText(last.Sub(first)), show.Plural(s.Begun(), "flow")}
	if n := s.Duplicates(); n > 0 {
		parts = append(parts, show.Grouped(n)+" captured twice")
	}
	if tap := tapVerdict(s.Flows()); tap != "" {
		parts = append(parts, tap)
	}
	missing, grave := uint64(0), [machine.Error + 1]uint64{}
	for _, f := range s.Flows() {
		for i, n := range show.Severities(f) {
			grave[i] += n
		}
		for _, x := range f.Findings() {
			if x.Rule.ID == "capture-loss" {
				missing += x.Count
			}
		}
	}
	if n := s.Dropped(); n > 0 {
		parts = append(parts, "the tap dropped "+show.Plural(n, "packet"))
	} else if missing > 0 {
		parts = append(parts, "the capture itself lost packets")
	}
	if n := grave[machine.Error]; n > 0 {
		parts = append(parts, show.Plural(n, "error"))
	}
	return string(show.AppendClean(nil, strings.Join(parts, " · ")))
}

// tapVerdict says where the tap stood, where all flows agree.
func tapVerdict(flows []*analyze.Flow) string {
	near := ""
	for _, f := range flows {
		if f.Protocol == nil {
			continue
		}
		at := ""
		switch f.Facts().Vantage {
		case machine.VantageA:
			at = "tap at " + f.A.Addr().String()
		case machine.VantageB:
			at = "tap at " + f.B.Addr().String()
		case machine.VantageBoth:
			at = "tap at both ends"
		case machine.VantageBetween:
			at = "tap between the ends"
		case machine.VantageUnknown:
			continue
		}
		if near != "" && near != at {
			return ""
		}
		near = at
	}
	return near
}
