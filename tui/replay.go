package tui

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// replayTable is the view of what the references say of each side: conforms,
// consistent, diverges; and of the one at the cursor, why.
type replayTable struct {
	list  draw.List
	rows  []replayRow
	made  *store.Replay // the one that rows are of
	flow  int           // of which rows are shown; 0 for all
	frame int           // which of the frames enter goes to next

	behaviour string // that was asked for; empty for what the packets suggest
	matrix    bool
	work      *store.Replay
}

// replayRow is one side under one behaviour, or a flow that has no reference.
type replayRow struct {
	result *replay.Result
	flow   *analyze.Flow
	reason string // why there is no result
}

// ensure begins a replay where what is shown is of other settings.
func (t *replayTable) ensure(m *Model) {
	if m.store.Learning() {
		return // the run that goes on learns what the replay needs
	}
	if w := t.work; w != nil && w.Behaviour == t.behaviour && w.Matrix == t.matrix && (!w.Outdated() || !w.Done()) {
		return
	}
	t.begin(m)
}

// begin replays what has been read so far.
func (t *replayTable) begin(m *Model) {
	t.work.End()
	t.work = m.store.Replay(t.behaviour, t.matrix)
}

// settle makes the rows of what was found.
func (t *replayTable) settle(m *Model) {
	w := t.work
	if w == nil || !w.Done() || w.File == nil || t.made == w && t.flow == m.flow {
		return
	}
	t.made, t.flow, t.frame = w, m.flow, 0
	t.rows = t.rows[:0]
	for i := range w.File.Results {
		if r := &w.File.Results[i]; m.flow == 0 || r.Flow.ID == m.flow {
			t.rows = append(t.rows, replayRow{result: r, flow: r.Flow})
		}
	}
	for _, x := range w.File.Skipped {
		if m.flow == 0 || x.Flow.ID == m.flow {
			t.rows = append(t.rows, replayRow{flow: x.Flow, reason: x.Reason})
		}
	}
	slices.SortStableFunc(t.rows, func(x, y replayRow) int { return x.flow.ID - y.flow.ID })
}

// selected is the row at the cursor; nil for none.
func (t *replayTable) selected() *replayRow {
	if t.list.Cursor < 0 || t.list.Cursor >= len(t.rows) {
		return nil
	}
	return &t.rows[t.list.Cursor]
}

// enter goes to the packet that diverges; come back and enter again for the
// packets from which that follows.
func (t *replayTable) enter(m *Model) {
	r := t.selected()
	if r == nil || r.result == nil || r.result.Divergence == nil {
		m.fail("nothing diverges here")
		return
	}
	d := r.result.Divergence
	refs := append([]machine.Ref{d.Ref}, d.Frames...)
	i := t.frame % len(refs)
	t.frame++
	id := r.flow.ID
	m.jumpRef(refs[i])
	if m.flow == 0 && m.store.Flow(id) != nil {
		m.flow = id
		m.packet.sift(m)
	}
	switch {
	case m.bad:
	case i == 0:
		m.say("%s: %s expected %s, got %s", d.Rule, d.Field, d.Expected, d.Got)
	default:
		m.say("it follows from this packet, %d of %d", i, len(refs)-1)
	}
}

// openReplay opens the view; in it, what has come since is replayed too.
func (m *Model) openReplay() {
	if m.view != viewReplay {
		m.show(viewReplay)
		return
	}
	if t := &m.replay; t.work == nil || t.work.Done() && (t.work.Stopped() || t.work.Packets() < m.store.Len()) {
		t.begin(m)
		return
	}
	m.say("all that was read has been replayed")
}

// toggleMatrix holds every side against all behaviours, or against its own.
func (m *Model) toggleMatrix() {
	t := &m.replay
	t.matrix = !t.matrix
	if t.matrix {
		m.say("every side against every behaviour that applies")
	} else {
		m.say("every side against its own behaviour")
	}
}

// replayWith holds all sides against a behaviour; empty for what their packets suggest.
func (m *Model) replayWith(behaviour string) {
	names := m.behaviours()
	if behaviour != "" && !slices.Contains(names, behaviour) {
		m.fail("no behaviour %q: there are %s", behaviour, strings.Join(names, ", "))
		return
	}
	m.replay.behaviour = behaviour
	if m.view == viewReplay && m.store.Growing() {
		m.replay.begin(m)
	}
	m.show(viewReplay)
}

// behaviours lists those of the protocols of the capture.
func (m *Model) behaviours() (names []string) {
	for _, p := range m.store.Protocols() {
		for _, b := range p.Behaviours {
			names = append(names, b.Name)
		}
	}
	return names
}

// explain words a row for the pane below.
func (r *replayRow) explain(s *store.Store, width int) (out []string) {
	wrap := func(indent, text string) {
		out = append(out, strings.Split(show.Wrap(text, indent, width), "\n")...)
	}
	if r.result == nil {
		wrap("", fmt.Sprintf("flow %d: %s", r.flow.ID, r.reason))
		return out
	}
	x := r.result
	head := fmt.Sprintf("flow %d %s %s held against %s: ", r.flow.ID, strings.ToUpper(x.Side.String()), x.Addr(), x.Behaviour)
	if x.Divergence != nil {
		head += "\x1b[31m" + x.Verdict() + "\x1b[0m"
	} else {
		head += "\x1b[1m" + x.Verdict() + "\x1b[0m"
	}
	out = append(out, head)
	how := "strictly: the tap stands at this side, what it received passed in order"
	if !x.Flow.Facts().Vantage.Near(x.Side) {
		how = "by evidence: the tap is far from this side, and only what its own packets prove is given to the reference"
	}
	wrap("  ", how)
	if x.Undecided > 0 {
		text := fmt.Sprintf("%s of %s could not be decided", show.Grouped(x.Undecided), show.Plural(x.Compared, "packet"))
		if x.Why != "" {
			text += ": " + x.Why
		}
		wrap("  ", text)
	}
	if in := x.Inferred; in != (machine.Inferred{}) {
		text := "inferred: " + show.Grouped(in.Submitted) + " packets or messages asked for"
		if in.Refused > 0 {
			text += ", " + show.Grouped(in.Refused) + " refused"
		}
		if in.Tick > 0 {
			text += ", a frame of " + waitText(in.Tick)
		}
		wrap("  ", text)
	}
	d := x.Divergence
	if d == nil {
		return out
	}
	out = append(out, "", fmt.Sprintf("\x1b[1mfirst divergence: frame %s\x1b[0m  %s", s.Frame(d.Ref), d.Rule))
	expected, got := differing(bitText(d.Expected), bitText(d.Got))
	out = append(out, "  "+d.Field, "    expected  "+expected, "    got       "+got)
	wrap("  ", d.Because)
	if len(d.Frames) > 0 {
		frames := make([]string, len(d.Frames))
		for i, ref := range d.Frames {
			frames[i] = s.Frame(ref)
		}
		wrap("  ", "follows from frame "+strings.Join(frames, ", "))
	}
	out = append(out, "", "\x1b[1mboth states there\x1b[0m")
	reference, captured := strings.Split(d.Reference, "\n"), strings.Split(d.Captured, "\n")
	for i := range max(len(reference), len(captured)) {
		var one, other string
		if i < len(reference) {
			one = reference[i]
		}
		if i < len(captured) {
			other = captured[i]
		}
		one, other = differing(one, other)
		out = append(out, "  reference  "+one, "  captured   "+other)
	}
	return append(out, "", "\x1b[2menter goes to the packet, again to those from which it follows; then S shows both sides\x1b[0m")
}

// bitText adds to a number in hexadecimal its bits.
func bitText(s string) string {
	digits, ok := strings.CutPrefix(s, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil || len(digits) > 16 {
		return s
	}
	width := max(4*len(digits), bits.Len64(n))
	var b strings.Builder
	b.WriteString(s + "  ")
	for i := width - 1; i >= 0; i-- {
		b.WriteByte('0' + byte(n>>i&1))
		if i%8 == 0 && i > 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// differing gives two texts with what differs between them marked, where they
// are equally long; as they are otherwise.
func differing(one, other string) (string, string) {
	x, y := []rune(one), []rune(other)
	if len(x) != len(y) {
		return one, other
	}
	mark := func(a, b []rune) string {
		var out strings.Builder
		marked := false
		for i, r := range a {
			if differs := r != b[i]; differs != marked {
				marked = differs
				out.WriteString(map[bool]string{true: "\x1b[33m", false: "\x1b[0m"}[marked])
			}
			out.WriteRune(r)
		}
		if marked {
			out.WriteString("\x1b[0m")
		}
		return out.String()
	}
	return mark(x, y), mark(y, x)
}

// drawReplay draws the verdicts, and why below.
func (m *Model) drawReplay(c draw.Canvas) {
	t := &m.replay
	t.ensure(m)
	t.settle(m)
	title := "replay against the references"
	if t.behaviour != "" {
		title = "replay against " + t.behaviour
	}
	if t.matrix {
		title += ", every behaviour"
	}
	w := t.work
	switch {
	case w == nil:
		title += ": the capture is being read first"
	case w.Stopped():
		title += ": stopped (R begins anew)"
	case !w.Done():
		title += fmt.Sprintf(", at work: %d%%", w.Percent())
		if w.Again() {
			title += ", reading again"
		}
	case w.Packets() < m.store.Len():
		title += fmt.Sprintf(", of the first %s (R runs again)", show.Plural(w.Packets(), "packet"))
	}
	c.Rule(0, title, true)
	if w != nil && w.Err() != nil && !w.Stopped() {
		c.Text(2, 2, draw.Error, w.Err().Error())
		return
	}
	if len(t.rows) == 0 {
		if w != nil && w.Done() && !w.Stopped() {
			c.Text(2, 2, draw.Dim, "no flow here has a protocol with a reference")
		}
		return
	}
	height := min(len(t.rows)+2, c.H/2)
	switch {
	case c.H >= 30:
		height = min(len(t.rows)+2, c.H-24)
	case c.H < leastParts:
		height = c.H
	}
	rows := height - 2
	t.list.Fit(len(t.rows), rows)
	wide := c.W >= 110
	head := fmt.Sprintf("%4s  %-2s %-21s  %-26s  %-10s  ", "flow", "", "address", "behaviour", "verdict")
	if !wide {
		head = fmt.Sprintf("%4s  %-2s %-20s  %-10s  ", "flow", "", "behaviour", "verdict")
	}
	c.Text(1, 1, draw.Title, head+"why")
	for y := range rows {
		i := t.list.Top + y
		if i >= len(t.rows) {
			break
		}
		r := &t.rows[i]
		row := c.Part(0, y+2, c.W, 1)
		chosen := i == t.list.Cursor
		pick := func(want draw.Role) draw.Role {
			if chosen {
				return draw.Selected
			}
			return want
		}
		if chosen {
			row.Fill(0, draw.Selected)
			row.Text(0, 0, draw.Selected, "▶")
		}
		x := row.Text(1, 0, pick(draw.Text), fmt.Sprintf("%4d  ", r.flow.ID))
		if r.result == nil {
			row.Text(x, 0, pick(draw.Dim), "–  "+r.reason)
			continue
		}
		side := draw.SideA
		if r.result.Side == machine.B {
			side = draw.SideB
		}
		x = row.Text(x, 0, pick(side), fmt.Sprintf("%-2s ", strings.ToUpper(r.result.Side.String())))
		if wide {
			x = row.Text(x, 0, pick(side), fmt.Sprintf("%-21s  ", r.result.Addr()))
			x = row.Text(x, 0, pick(draw.Text), fmt.Sprintf("%-26s  ", r.result.Behaviour))
		} else {
			x = row.Text(x, 0, pick(draw.Text), fmt.Sprintf("%-20s  ", r.result.Behaviour))
		}
		verdict, of := strings.ToUpper(r.result.Verdict()), draw.Error
		var why string
		switch d := r.result.Divergence; {
		case d != nil:
			why = fmt.Sprintf("frame %s %s: %s expected %s, got %s", m.store.Frame(d.Ref), d.Rule, d.Field, d.Expected, d.Got)
		case r.result.Undecided > 0:
			verdict, of = r.result.Verdict(), draw.Text
			why = fmt.Sprintf("%s of %s could not be decided", show.Grouped(r.result.Undecided), show.Plural(r.result.Compared, "packet"))
		default:
			verdict, of = r.result.Verdict(), draw.Good
			why = show.Plural(r.result.Compared, "packet")
		}
		if !r.result.Expected {
			of = draw.Dim
		}
		x = row.Text(x, 0, pick(of), fmt.Sprintf("%-10s  ", verdict))
		row.Text(x, 0, pick(draw.Text), why)
	}
	below := c.Part(0, height, c.W, c.H-height)
	below.Rule(0, "why", false)
	if r := t.selected(); r != nil {
		m.text.Lines = r.explain(m.store, below.W-2)
		m.text.Draw(below.Part(1, 1, below.W-1, below.H-1))
	}
}
