package screens

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// MessageTable shows the life of each message of one flow.
type MessageTable struct {
	list    draw.List
	flow    int
	spread  bool // on a narrow screen: show how latencies are spread instead of a life
	all     []store.Life
	rows    []int // rows of the table: indices of all
	sort    int
	reverse bool
	sorted  int // length of all when the order was made
	filter  *filter.Filter
	refused error  // why the filter is ignored; nil if it is applied
	passed  []bool // whether messages pass the filter; as many as were checked
	work    *store.Collect
	later   *messageOrder // being made in the background; nil for none
	bars    []string      // how latencies are spread, by type
	follow  following
}

// messagesMost limits the lives that are kept.
const messagesMost = 1 << 20

// ensure starts to collect the messages of the flow in focus.
func (t *MessageTable) ensure(br *browser.Browser) {
	f := br.Focus()
	if f == nil || f.ID == t.flow {
		return
	}
	t.work.End()
	*t = MessageTable{
		flow: f.ID, sort: t.sort, reverse: t.reverse, spread: t.spread, filter: t.filter, refused: t.refused,
		follow: t.follow,
	}
	if f.Protocol == nil || f.Protocol.NewTracker == nil {
		return
	}
	take := func(r *analyze.Record, _ machine.Tracker) bool {
		t.all = store.AppendLives(t.all, r)
		return len(t.all) < messagesMost
	}
	t.work = br.Store.Collect(f, -1,
		take, func() { t.all, t.rows, t.passed, t.sorted, t.later, t.bars = nil, nil, nil, 0, nil, nil })
}

// settle filters and sorts the messages that have arrived.
func (t *MessageTable) settle(br *browser.Browser) {
	if t.filter != br.Filter {
		t.filter, t.refused, t.passed, t.sorted = br.Filter, br.Refusal(browser.Messages), nil, -1
	}
	if t.filtered() {
		f := br.Store.Flow(t.flow)
		for i := len(t.passed); i < len(t.all) && f != nil && br.Store.Spend(store.MatchSteps); i++ {
			t.passed = append(t.passed, br.MessagePasses(f, &t.all[i]))
			t.sorted = -1
		}
		if len(t.passed) < len(t.all) {
			br.Store.Redraw() // redraw, which continues here
		}
	}
	if t.sorted != len(t.all) {
		t.order(br)
	}
	t.seekPacket(br)
}

// filtered reports whether the filter applies to the messages.
func (t *MessageTable) filtered() bool { return t.filter != nil && t.refused == nil }

// MessageColumns names the columns by which messages can be sorted.
var MessageColumns = []string{"first sent", "wait", "sends", "arrived", "type", "cause"}

// Area returns the area of the rows.
func (t *MessageTable) Area() (rows *draw.List, line, width int) { return &t.list, 4, 0 }

// Move moves the cursor.
func (t *MessageTable) Move(br *browser.Browser, by int) {
	t.list.Cursor += by
	br.Text.List = draw.List{}
}

// Matches searches the type, the numbers, the mode and the cause of a message.
func (t *MessageTable) Matches(_ *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(t.rows), t.list.Cursor, func(row int) bool {
		x := &t.all[t.rows[row]]
		return s.finds(fmt.Sprint(x.Title, " id ", x.ID, " seq ", x.Sequence, " ", x.Mode, " ", x.Cause))
	}
}

// Copy returns the life of the message at the cursor.
func (t *MessageTable) Copy(br *browser.Browser) string {
	if x := t.selected(); x != nil {
		return plainText(lifeText(br.Store, x))
	}
	return ""
}

// NextFoot switches the foot of a narrow screen between the spread of latencies
// and the message's life.
func (t *MessageTable) NextFoot() { t.spread = !t.spread }

// SortTurn reverses the order.
func (t *MessageTable) SortTurn(br *browser.Browser) {
	t.reverse = !t.reverse
	t.order(br)
}

// SortBy sorts by the column with a name. It returns false if there is no such
// column.
func (t *MessageTable) SortBy(br *browser.Browser, name string) bool {
	i := slices.Index(MessageColumns, name)
	if i >= 0 {
		t.sort = i - 1
		t.SortNext(br)
	}
	return i >= 0
}

// SortNext sorts by the next column.
func (t *MessageTable) SortNext(br *browser.Browser) {
	t.sort = (t.sort + 1) % len(MessageColumns)
	t.reverse = t.sort >= 1 && t.sort <= 3
	t.order(br)
	br.Say("sorted by %s: i turns it around", MessageColumns[t.sort])
}

// selected returns the life at the cursor, or nil.
func (t *MessageTable) selected() *store.Life {
	if t.list.Cursor < 0 || t.list.Cursor >= len(t.rows) {
		return nil
	}
	return &t.all[t.rows[t.list.Cursor]]
}

// Enter shows the packet that carried the message first.
func (t *MessageTable) Enter(br *browser.Browser) {
	if x := t.selected(); x != nil {
		br.JumpRef(x.Frames[0])
	}
}

// JumpBlocking selects the message that holds this one back.
func (t *MessageTable) JumpBlocking(br *browser.Browser) {
	x := t.selected()
	if x == nil || x.BlockedBy < 0 {
		br.Fail("nothing blocked this message")
		return
	}
	row := 0
	blocked := *x
	br.RunJob("looking for what blocked it", func() bool {
		for ; row < len(t.rows); row++ {
			if !br.Store.Spend(1) {
				return false
			}
			if y := &t.all[t.rows[row]]; y.ID == blocked.BlockedBy && y.From == blocked.From && y.Channel == blocked.Channel {
				t.list.Cursor = row
				br.Say("%d was held back %s by %d", blocked.ID, show.Wait(blocked.Wait), y.ID)
				return true
			}
		}
		br.Fail("message %d, which blocked it, was not seen", blocked.BlockedBy)
		return true
	})
}

// lifeText describes a message's life.
func lifeText(s *store.Store, x *store.Life) []string {
	what := fmt.Sprintf("%s→%s  %s", x.From, x.From.Other(), x.Mode)
	if x.Channel >= 0 {
		what += fmt.Sprintf("  channel %d", x.Channel)
	}
	if x.ID >= 0 {
		what += fmt.Sprintf("  id %d", x.ID)
	}
	out := []string{"\x1b[1m" + x.Title + "\x1b[0m  " + what, ""}
	at := func(frame machine.Ref, t machine.Instant) string {
		return fmt.Sprintf("frame %-8s +%.1f ms", s.Frame(frame), float64(t.Sub(x.At))/1e6)
	}
	out = append(out, fmt.Sprintf("first sent  frame %s  sequence %d  %s", s.Frame(x.Frames[0]), x.Sequence,
		x.At.Time().Format("15:04:05.000000")))
	if n := min(x.Attempts, machine.MessageFrames); n > 1 {
		frames := make([]string, 0, n)
		for _, ref := range x.Frames[1:n] {
			frames = append(frames, s.Frame(ref))
		}
		again := "sent again  once: frame "
		switch {
		case x.Parts > 0:
			again = fmt.Sprintf("%s in %s: also frames ", show.Plural(x.Parts, "part"), show.Plural(x.Attempts, "packet"))
		case x.Attempts > 2:
			again = fmt.Sprintf("sent again  %d times: frames ", x.Attempts-1)
		}
		again += strings.Join(frames, ", ")
		if x.Attempts > n {
			again += " …"
		}
		out = append(out, again)
		if x.Cause != "" {
			out = append(out, "            because: "+x.Cause+"  ("+x.Sure.String()+")")
		}
	}
	switch {
	case x.AckedBy != 0:
		out = append(out, "acked       "+at(x.AckedBy, x.AckedAt))
	case x.Acked == machine.No:
		out = append(out, "acked       never")
	}
	switch x.Delivered {
	case machine.Yes:
		out = append(out, "arrived     after "+show.ArrivalText(&x.Message)+arrivalGrade(&x.Message))
		if x.InOrder.Known() && x.Wait > 0 {
			least, most, _ := machine.Elapsed(&x.Sent, &x.InOrder)
			out = append(out, "in order    after "+show.Rounded(least)+" to "+show.Rounded(most)+" ms")
		}
		out = append(out, "proved by   "+at(x.DeliveredBy, x.DeliveredAt)+"  ("+x.Certainty.String()+")")
		if x.Deliveries > 1 {
			out = append(out, fmt.Sprintf("\x1b[31mdelivered %d times\x1b[0m", x.Deliveries))
		}
	case machine.No:
		out = append(out, "\x1b[31mdelivered   never\x1b[0m  ("+x.Certainty.String()+")")
	default:
		out = append(out, "delivered   the capture does not say")
	}
	if x.Wait > 0 {
		out = append(out, fmt.Sprintf("\x1b[33mheld back\x1b[0m   %s by message %d (x goes there)", show.Wait(x.Wait),
			x.BlockedBy))
	}
	return out
}

// arrivalGrade says how surely the bounds of the arrival are known.
func arrivalGrade(m *machine.Message) string {
	if _, _, c := m.Latency(); c != machine.Unknown {
		return "  (bounds " + c.String() + ")"
	}
	return ""
}

// lifeLine draws a life as a line of width characters:
//
//	s───══d═▒▒─a·······
//
// Its signs:
//
//	s  the first send
//	r  a resend
//	d  the arrival, as it is estimated
//	═  the bounds of the arrival
//	▒  the time held back after it
//	a  the ack
//
// The line covers span, which is the same for every message on screen.
func lifeLine(s *store.Store, x *store.Life, width int, span time.Duration) string {
	cells := []rune(strings.Repeat("·", max(width, 1)))
	put := func(t machine.Instant, r rune) {
		if span > 0 && t >= x.At && t.Sub(x.At) <= span {
			cells[scale.Part(t.Sub(x.At), span, len(cells)-1)] = r
		}
	}
	if span > 0 {
		for i := range scale.Part(x.Extent(), span, len(cells)-1) + 1 {
			cells[i] = '─'
		}
	}
	arrived := x.Delivered == machine.Yes && x.Arrived.Known()
	if arrived && span > 0 {
		band(cells, x.At, span, x.Arrived.From, x.Arrived.To, '═')
		if middle := estimated(&x.Message); x.Wait > 0 {
			band(cells, x.At, span, middle, middle.Add(x.Wait), '▒')
		}
	}
	for _, ref := range x.Frames[1:max(min(x.Attempts, machine.MessageFrames), 1)] {
		if n, ok := s.Find(ref); ref != 0 && ok {
			put(s.TimeAt(n), 'r')
		}
	}
	if arrived {
		put(estimated(&x.Message), 'd')
	}
	if x.AckedBy != 0 {
		put(x.AckedAt, 'a')
	}
	cells[0] = 's'
	return string(cells)
}

// band fills the cells between two instants, as far as they lie within span after a start.
func band(cells []rune, start machine.Instant, span time.Duration, from, to machine.Instant, r rune) {
	first := scale.Part(max(0, from.Sub(start)), span, len(cells)-1)
	last := scale.Part(min(max(0, to.Sub(start)), span), span, len(cells)-1)
	for i := first; i <= last && i < len(cells); i++ {
		cells[i] = r
	}
}

// estimated returns the likely instant of a message's arrival.
func estimated(m *machine.Message) machine.Instant {
	if m.Estimate.Known() {
		return m.Estimate.Middle()
	}
	return m.Arrived.Middle()
}
