package screens

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// StateView shows what both sides knew at the selected packet. It is computed
// again when another packet is selected, and when the second run knows more.
type StateView struct {
	Entry  int // the packet
	flow   int
	pass   int
	Known  bool            // false while the state is not available: it is then requested again
	Views  [2]machine.View // the views of A and B
	err    error
	diff   int // entry to which the state is compared; -1 for none
	before [2]machine.View
	from   int // entry that before shows
	bits   show.AckBits

	packets *PacketView // draws the row above the state
	lines
}

// fill computes the views of the selected packet.
func (x *StateView) fill(br *browser.Browser) *analyze.Flow {
	f := br.Focus()
	n := br.Selected
	if f == nil || n < 0 || n >= br.Store.Len() {
		x.err, x.Known = store.ErrNoFlow, false
		return nil
	}
	if x.Known && x.Entry == n && x.flow == f.ID && x.pass == br.Store.Pass() {
		return f
	}
	x.Entry, x.flow, x.pass = n, f.ID, br.Store.Pass()
	x.err = analyze.ErrNotReached
	switch {
	case f.Protocol == nil || br.Store.Reached(n) && br.Store.IsNear(f, n):
		x.err = br.Store.StateAt(f, n, &x.Views)
	case br.Store.Reached(n):
		x.err = store.ErrApproach
	}
	x.Known = x.err == nil
	return f
}

// ToggleDiff marks the selected packet for comparison, or ends the comparison.
func (x *StateView) ToggleDiff(br *browser.Browser) {
	if x.diff >= 0 {
		x.diff = -1
		br.Say("no longer showing differences")
		return
	}
	x.diff, x.from = br.Selected, -1
	br.Say("marked frame %s: move on to see what changes", br.SelectedFrame())
}

// text formats the state for a pane.
func (x *StateView) text(br *browser.Browser, width, rows int) []string {
	f := x.fill(br)
	if f == nil {
		return []string{"\x1b[2mno flow whose state is followed\x1b[0m"}
	}
	if x.err != nil {
		return strings.Split(show.Wrap(x.err.Error(), "", width), "\n")
	}
	p := &show.State{
		Paint: true, Flow: f, Sides: []machine.Side{machine.A, machine.B}, Rows: rows, Cells: 32,
		Width: (width - 3) / 2,
	}
	left, right := p.Block(machine.A, &x.Views[0], &x.Views[1]), p.Block(machine.B, &x.Views[1], &x.Views[0])
	if left.Width()+3+right.Width() > width {
		p.Cells = 16
		left, right = p.Block(machine.A, &x.Views[0], &x.Views[1]), p.Block(machine.B, &x.Views[1], &x.Views[0])
	}
	var out []string
	if x.diff >= 0 && x.diff != x.Entry {
		out = append(out, x.differences(br, f, width)...)
	}
	out = append(out, x.beliefs(br, p, width)...)
	half := (width - 3) / 2
	at := max(min(left.Width(), width-3-right.Width()), half)
	for i := range max(len(left.Lines), len(right.Lines)) {
		l, r := "", ""
		n := 0
		if i < len(left.Lines) {
			l, n = left.Lines[i], left.Widths[i]
		}
		if i < len(right.Lines) {
			r = right.Lines[i]
		}
		if n > at {
			l, n = string(show.Fit([]byte(l), at)), at
		}
		if r != "" {
			l += strings.Repeat(" ", at-n) + "\x1b[2m │ \x1b[0m" + r
		}
		out = append(out, l)
	}
	if bits := x.ackBits(br, f, width); len(bits) > 0 {
		out = append(append(out, ""), bits...)
	}
	out = append(append(out, ""),
		joinSides(p.Tables(machine.A, &x.Views[machine.A]), p.Tables(machine.B, &x.Views[machine.B]), width)...)
	return append(out, "\x1b[2m"+p.Legend(&x.Views)+"\x1b[0m")
}

// joinSides joins the tables of both sides: beside each other where they fit,
// else one below the other.
func joinSides(left, right []string, width int) (out []string) {
	at, other := 0, 0
	for _, l := range left {
		at = max(at, draw.TextWidth(l))
	}
	for _, l := range right {
		other = max(other, draw.TextWidth(l))
	}
	at = max(at, (width-3)/2)
	if len(left) == 0 || len(right) == 0 || at+3+other > width {
		return append(left, right...)
	}
	for i := range max(len(left), len(right)) {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = "\x1b[2m │ \x1b[0m" + right[i]
		}
		out = append(out, draw.PadRight(l, at)+r)
	}
	return append(out, "")
}

// beliefs shows what each side believes the other has, what that side really
// has, and since when they differ. It always returns the same number of lines,
// so that nothing below moves.
func (x *StateView) beliefs(br *browser.Browser, p *show.State, width int) (out []string) {
	since := x.since(br)
	for i, line := range p.Beliefs(&x.Views) {
		const least = 96 // columns for both in one line
		switch {
		case width >= least && since[i] != "":
			out = append(out, line+"   \x1b[33m"+since[i]+"\x1b[0m")
		case width >= least:
			out = append(out, line)
		default:
			out = append(out, line, "   \x1b[33m"+since[i]+"\x1b[0m")
		}
	}
	return append(out, "")
}

// since returns, for each pair of windows, the packet from which belief and
// truth differ. The text is empty where they agree.
func (x *StateView) since(br *browser.Browser) (out []string) {
	now := br.Store.TimeAt(x.Entry)
	for _, side := range []machine.Side{machine.A, machine.B} {
		for _, w := range show.Pairs(&x.Views, side) {
			unknown, lacking := w.Gaps()
			var parts []string
			if s := slotOf(w.Sent, unknown); s != nil && s.Ref != 0 {
				parts = append(parts, fmt.Sprintf("differ since %d, frame %s, %.1f ms ago", s.Sequence64, br.Store.Frame(s.Ref),
					float64(now.Sub(s.SentAt))/1e6))
			}
			if s := slotOf(w.Sent, lacking); s != nil && s.SettledBy != 0 {
				parts = append(parts, fmt.Sprintf("wrong since frame %s named %d, %.1f ms ago", br.Store.Frame(s.SettledBy),
					s.Sequence64, float64(now.Sub(s.AckedAt))/1e6))
			}
			out = append(out, strings.Join(parts, "; "))
		}
	}
	return out
}

// slotOf returns the slot of the first sequence of a list, or nil.
func slotOf(w *machine.Window, list []int64) *machine.Slot {
	for i := range w.Slots {
		if len(list) > 0 && w.Slots[i].Sequence64 == list[0] {
			return &w.Slots[i]
		}
	}
	return nil
}

// ackBits explains the ack bits of the selected packet's header.
func (x *StateView) ackBits(br *browser.Browser, f *analyze.Flow, width int) []string {
	r, err := br.Store.Read(x.Entry)
	if err != nil || f.Protocol == nil || br.Store.FlowID(x.Entry) != f.ID {
		return nil
	}
	r.Datagram.From = br.Store.Entry(x.Entry).Marks.From()
	return x.bits.Lines(f, r, &x.Views[r.Datagram.From], width)
}

// differences lists what changed since the marked packet.
func (x *StateView) differences(br *browser.Browser, f *analyze.Flow, width int) []string {
	if x.from != x.diff {
		if !br.Store.IsNear(f, x.diff) {
			return []string{store.ErrApproach.Error(), ""}
		}
		if err := br.Store.StateAt(f, x.diff, &x.before); err != nil {
			return strings.Split(show.Wrap(err.Error(), "", width), "\n")
		}
		x.from = x.diff
	}
	first, second := br.Store.FrameAt(x.diff), br.SelectedFrame()
	p := &show.State{Paint: true, Flow: f}
	views := [2]*[2]machine.View{&x.before, &x.Views}
	if x.diff > x.Entry {
		first, second = second, first
		views[0], views[1] = views[1], views[0]
	}
	out := []string{"\x1b[1mchanged from frame " + first + " to " + second + "\x1b[0m"}
	for _, side := range []machine.Side{machine.A, machine.B} {
		lines := p.Changes(&views[0][side], &views[1][side])
		if len(lines) == 0 {
			lines = []string{"  nothing"}
		}
		if len(lines) > 14 {
			lines = append(lines[:13], fmt.Sprintf("  and %d more", len(lines)-13))
		}
		out = append(append(out, " "+strings.ToUpper(side.String())), lines...)
	}
	return append(out, "")
}

// Enter shows the packets.
func (x *StateView) Enter(br *browser.Browser) { br.Show(browser.Packets) }

// Draw draws the selected packet's row, and the state of both sides below it.
func (x *StateView) Draw(br *browser.Browser, c draw.Canvas) {
	br.Settle()
	if n := br.Selected; n >= 0 && n < br.Store.Len() {
		x.packets.drawRow(br, c.Part(0, 0, c.W, 1), n, columnsShown(br, c.W), draw.Bold)
	}
	c.Rule(1, x.title(br), true)
	br.Text.Lines = x.text(br, c.W-2, max((c.H-14)/4, 2))
	br.Text.Draw(c.Part(1, 2, c.W-1, c.H-2))
}

// title returns the title of the pane.
func (x *StateView) title(br *browser.Browser) string {
	f := br.Focus()
	if f == nil || f.Protocol == nil {
		return "both sides"
	}
	title := fmt.Sprintf("both sides of flow %d at frame %s", f.ID, br.SelectedFrame())
	if x.diff >= 0 && x.diff < br.Store.Len() {
		title += ", against " + br.Store.FrameAt(x.diff)
	}
	return title
}
