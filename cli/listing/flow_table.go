package listing

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/show"
)

// tableRoom is the size available for a table; 0 means no limit.
type tableRoom struct{ width, rows int }

// flowTable prints the verdict and the table.
func flowTable(a *app.App, s *analyze.Session, picked *flowPick, paint show.Painter) error {
	return writeFlowTable(a.Writer(), s, picked, paint, tableRoom{width: a.Width()})
}

func writeFlowTable(w io.Writer, s *analyze.Session, picked *flowPick, paint show.Painter, room tableRoom) error {
	title := overview.Heading(recordingName(picked.from), overview.TapText(s.Flows()), s)
	for _, head := range []string{title, goneText(s)} {
		if room.rows > 0 {
			head = string(show.Fit([]byte(head), room.width))
		}
		if head != "" {
			fmt.Fprintln(w, head)
		}
	}
	flows, others := picked.listed(s)
	if len(flows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if room.rows > 0 && len(flows) > room.rows { // keep the flows with the most to say, in their order
		slices.SortStableFunc(flows, func(x, y *analyze.Flow) int { return cmp.Compare(flowWeight(y), flowWeight(x)) })
		flows = flows[:max(1, room.rows)]
		slices.SortFunc(flows, func(x, y *analyze.Flow) int { return cmp.Compare(x.ID, y.ID) })
	}
	c := &app.Columns{
		Paint: paint, Fit: room.width,
		Heads: []string{
			"#", "protocol", "A", "B", "packets A→B / B→A", "never acked", "loss", "RTT ms", "resends",
			"tap", "findings",
		},
		Right: []bool{true, false, false, false, true, true, true, true, true, false, false},
	}
	var ended machine.Figures // of the flow whose row is written
	rows, row := len(flows), func(i int) { flows[i].Unpacked(&ended, func() { flowRow(c, flows[i]) }) }
	if !c.Fits(rows, row) {
		// One line for each side takes half the width. What is found always stays.
		c.Heads = []string{"#", "protocol", "side", "packets", "never acked", "loss", "RTT ms", "findings"}
		c.Right = []bool{true, false, false, true, true, true, true, false}
		c.Yields = []int{0, 5, 0, 2, 1, 3, 4, 0}
		rows, row = 2*len(flows), func(i int) {
			f := flows[i/2]
			f.Unpacked(&ended, func() { sideRow(c, f, machine.Side(i%2)) })
		}
	}
	if err := c.Render(w, rows, row); err != nil {
		return err
	}
	if others > 0 {
		fmt.Fprintf(w, "\n%s\n", overview.OthersText(others, true))
	}
	if picked.reasons {
		reasons(w, flows, c.Fit)
	}
	return nil
}

// reasons prints which flow a flow continues, which versions each side can be, or why it has no
// protocol.
func reasons(w io.Writer, flows []*analyze.Flow, width int) {
	first := true
	for _, f := range flows {
		for _, text := range reasonsOf(f) {
			if first {
				fmt.Fprintln(w)
				first = false
			}
			fmt.Fprintln(w, show.Wrap(fmt.Sprintf("flow %d: %s", f.ID, show.AppendClean(nil, text)), "", width))
		}
	}
}

// reasonsOf returns what -V says of a flow, a sentence each.
func reasonsOf(f *analyze.Flow) (list []string) {
	if was := show.WasText(f); was != "" {
		list = append(list, was)
	}
	if f.Protocol == nil {
		if f.Verdict.Reason != "" {
			list = append(list, f.Verdict.Reason)
		}
		return list
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		if v, ok := f.Versions(side); ok && len(v.Open) > 0 {
			list = append(list, fmt.Sprintf("%s is %s", strings.ToUpper(side.String()), show.VersionText(&v)))
		}
	}
	return list
}

// flowWeight ranks flows if there is no room for all. Flows of a known protocol
// come first, then flows with more packets.
func flowWeight(f *analyze.Flow) uint64 {
	n := f.Packets[machine.A] + f.Packets[machine.B]
	if f.Protocol != nil {
		n |= 1 << 63
	}
	return n
}

// goneText counts the discarded flows. It returns "" if there are none.
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

func flowRow(c *app.Columns, f *analyze.Flow) {
	c.Str("", show.FlowNumber(f))
	if f.Protocol == nil {
		c.Str(show.Dim, "–")
	} else {
		c.Str("", show.FlowName(f))
	}
	c.Add(show.Cyan, f.A.AppendTo)
	c.Add(show.Purple, f.B.AppendTo)
	c.Both(show.Grouped(f.Packets[0]), show.Grouped(f.Packets[1]))
	if x, ok := f.Summary(machine.A); !ok {
		for range 5 {
			c.Str("", "")
		}
	} else {
		y, _ := f.Summary(machine.B)
		c.Both(show.Percent(x.NeverAcked), show.Percent(y.NeverAcked))
		c.Both(show.Percent(x.Loss), show.Percent(y.Loss))
		c.Both(show.Millis(x.RTT), show.Millis(y.RTT))
		resends := ""
		if n := x.Resends + y.Resends; n > 0 {
			resends = show.Grouped(n)
		}
		c.Str("", resends)
		c.Str("", show.TapText(f))
	}
	findingsCell(c, f, show.SeverityNoun)
}

// sideRow adds a row of one side of a flow, for narrow terminals.
func sideRow(c *app.Columns, f *analyze.Flow, side machine.Side) {
	if side == machine.A {
		c.Str("", show.FlowNumber(f))
		c.Str("", show.FlowName(f))
	} else {
		c.Str("", "")
		c.Str("", "")
	}
	c.Add([]show.Style{show.Cyan, show.Purple}[side], func(b []byte) []byte {
		b = append(append(b, strings.ToUpper(side.String())...), ' ')
		return f.Addr(side).AppendTo(b)
	})
	c.Str("", show.Grouped(f.Packets[side]))
	if sum, ok := f.Summary(side); ok {
		c.Str("", show.Percent(sum.NeverAcked))
		c.Str("", show.Percent(sum.Loss))
		c.Str("", show.Millis(sum.RTT))
	} else {
		c.Str("", "")
		c.Str("", "")
		c.Str("", "")
	}
	if side == machine.A {
		findingsCell(c, f, machine.Severity.String)
	} else {
		c.Str("", "")
	}
}

// findingsCell adds a cell that counts a flow's findings, the gravest first.
func findingsCell(c *app.Columns, f *analyze.Flow, noun func(machine.Severity) string) {
	n := show.Severities(f)
	var parts []string
	worst := show.Style("")
	for sev := machine.Note; sev <= machine.Error; sev++ {
		if n[sev] > 0 {
			parts = append([]string{show.Plural(n[sev], noun(sev))}, parts...)
			worst = show.SeverityStyle(sev)
		}
	}
	c.Str(worst, strings.Join(parts, "  "))
}
