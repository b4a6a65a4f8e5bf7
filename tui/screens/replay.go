package screens

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// ReplayTable shows what the references say of each side: conforms, consistent,
// diverges. Below it stands the explanation of the row at the cursor.
type ReplayTable struct {
	list  draw.List
	rows  []replayRow
	made  *store.Replay // the replay that rows show
	flow  int           // the flow that rows show; 0 for all
	frame int           // which frame of the divergence Enter shows next

	behaviour string // the requested one; empty for what the packets suggest
	matrix    bool
	work      *store.Replay
}

// replayRow is the result of one side under one behaviour, or a flow that has
// no reference.
type replayRow struct {
	result *replay.Result
	flow   *analyze.Flow
	reason string // why there is no result
}

// ensure starts a replay if the last one had other settings, or less of the
// capture.
func (t *ReplayTable) ensure(br *browser.Browser) {
	if br.Store.Learning() {
		return // the current run learns what the replay needs
	}
	if w := t.work; w != nil && w.Behaviour == t.behaviour && w.Matrix == t.matrix && (!w.Outdated() || !w.Done()) {
		return
	}
	t.begin(br)
}

// begin replays what has been read so far.
func (t *ReplayTable) begin(br *browser.Browser) {
	t.work.End()
	t.work = br.Store.Replay(t.behaviour, t.matrix)
}

// settle makes the rows of a finished replay.
func (t *ReplayTable) settle(br *browser.Browser) {
	w := t.work
	if w == nil || !w.Done() || w.File == nil || t.made == w && t.flow == br.Flow {
		return
	}
	t.made, t.flow, t.frame = w, br.Flow, 0
	t.rows = t.rows[:0]
	for i := range w.File.Results {
		if r := &w.File.Results[i]; br.Flow == 0 || r.Flow.ID == br.Flow {
			t.rows = append(t.rows, replayRow{result: r, flow: r.Flow})
		}
	}
	for _, x := range w.File.Skipped {
		if br.Flow == 0 || x.Flow.ID == br.Flow {
			t.rows = append(t.rows, replayRow{flow: x.Flow, reason: x.Reason})
		}
	}
	slices.SortStableFunc(t.rows, func(x, y replayRow) int { return x.flow.ID - y.flow.ID })
}

// selected returns the row at the cursor, or nil.
func (t *ReplayTable) selected() *replayRow {
	if t.list.Cursor < 0 || t.list.Cursor >= len(t.rows) {
		return nil
	}
	return &t.rows[t.list.Cursor]
}

// Enter shows the packet that diverges. When the user returns and presses it
// again, it shows the packets that prove the divergence.
func (t *ReplayTable) Enter(br *browser.Browser) {
	r := t.selected()
	if r == nil || r.result == nil || r.result.Divergence == nil {
		br.Fail("nothing diverges here")
		return
	}
	d := r.result.Divergence
	refs := append([]machine.Ref{d.Ref}, d.Frames...)
	i := t.frame % len(refs)
	t.frame++
	id := r.flow.ID
	br.JumpRef(refs[i])
	if br.Flow == 0 && br.Store.Flow(id) != nil {
		br.Flow = id
		br.Refilter()
	}
	switch {
	case br.Bad:
	case i == 0:
		br.Say("%s: %s expected %s, got %s", d.Rule, d.Field, d.Expected, d.Got)
	default:
		br.Say("it follows from this packet, %d of %d", i, len(refs)-1)
	}
}

// Area returns the area of the rows.
func (t *ReplayTable) Area() (rows *draw.List, line, width int) { return &t.list, 4, 0 }

// Move moves the cursor.
func (t *ReplayTable) Move(br *browser.Browser, by int) {
	t.list.Cursor += by
	t.frame, br.Text.List = 0, draw.List{}
}

// Matches searches the explanations of the rows.
func (t *ReplayTable) Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(t.rows), t.list.Cursor, func(row int) bool {
		return s.finds(draw.StripStyles(strings.Join(t.rows[row].explain(br.Store, 0), " ")))
	}
}

// Copy returns the explanation of the row at the cursor.
func (t *ReplayTable) Copy(br *browser.Browser) string {
	if r := t.selected(); r != nil {
		return plainText(r.explain(br.Store, 0))
	}
	return ""
}

// Stop stops a running replay. It returns false if there is none.
func (t *ReplayTable) Stop() bool {
	w := t.work
	if w == nil || w.Done() || w.Stopped() {
		return false
	}
	w.Stop()
	return true
}

// Open opens the view. If it is open, Open replays again, with the packets that
// have arrived since.
func (t *ReplayTable) Open(br *browser.Browser) {
	if br.View != browser.Replay {
		br.Show(browser.Replay)
		return
	}
	if t.work == nil || t.work.Done() && (t.work.Stopped() || t.work.Packets() < br.Store.Len()) {
		t.begin(br)
		return
	}
	br.Say("all that was read has been replayed")
}

// ToggleMatrix switches between comparing every side with all behaviours and
// with its own.
func (t *ReplayTable) ToggleMatrix(br *browser.Browser) {
	t.matrix = !t.matrix
	if t.matrix {
		br.Say("every side against every behaviour that applies")
	} else {
		br.Say("every side against its own behaviour")
	}
}

// With compares all sides with one behaviour. An empty name restores what the
// packets suggest.
func (t *ReplayTable) With(br *browser.Browser, behaviour string) {
	names := br.Store.Behaviours()
	if behaviour != "" && !slices.Contains(names, behaviour) {
		br.Fail("no behaviour %q: there are %s", behaviour, strings.Join(names, ", "))
		return
	}
	t.behaviour = behaviour
	if br.View == browser.Replay && br.Store.Growing() {
		t.begin(br)
	}
	br.Show(browser.Replay)
}

// explain formats a row for the pane below the table.
func (r *replayRow) explain(s *store.Store, width int) (out []string) {
	wrap := func(indent, text string) {
		out = append(out, strings.Split(show.Wrap(text, indent, width), "\n")...)
	}
	if r.result == nil {
		wrap("", fmt.Sprintf("flow %d: %s", r.flow.ID, r.reason))
		return out
	}
	x := r.result
	head := fmt.Sprintf("flow %d %s %s held against %s: ", r.flow.ID, strings.ToUpper(x.Side.String()),
		x.Addr(), x.Behaviour)
	if x.Divergence != nil {
		head += "\x1b[31m" + x.Verdict() + "\x1b[0m"
	} else {
		head += "\x1b[1m" + x.Verdict() + "\x1b[0m"
	}
	out = append(out, head)
	how := "captured here: every packet must be just what the reference would send"
	if !x.Flow.Facts().Vantage.Near(x.Side) {
		how = "inferred from its acks: the reference gets only what this side's own packets prove that it received"
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
			text += ", a frame of " + show.Wait(in.Tick)
		}
		if in.Resend != "" {
			text += fmt.Sprintf(", messages again after %s (%v)", in.Resend, in.ResendKnown)
		}
		wrap("  ", text)
	}
	d := x.Divergence
	if d == nil {
		return out
	}
	out = append(out, "", fmt.Sprintf("\x1b[1mfirst divergence: frame %s\x1b[0m  %s", s.Frame(d.Ref), d.Rule))
	expected, got := differing(withBits(d.Expected, d.ExpectedBits), withBits(d.Got, d.GotBits))
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
	return append(out, "", "\x1b[2menter goes to the packet, again to those from which it follows; then S shows both "+
		"sides\x1b[0m")
}

// withBits appends the bits of a value to its text; it appends nothing to other text.
func withBits(text string, x machine.Bits) string {
	if x.Width == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text + "  ")
	for i := x.Width - 1; i >= 0; i-- {
		b.WriteByte('0' + byte(x.Value>>i&1))
		if i%8 == 0 && i > 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// differing marks the characters that differ between two texts. Texts of
// different lengths are returned unchanged.
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
