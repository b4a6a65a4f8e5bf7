package screens

import (
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// Screen is one way to show where the user is. It is a Table, or a scroller.
type Screen interface {
	Draw(br *browser.Browser, c draw.Canvas)
	// Move moves the cursor by so many rows.
	Move(br *browser.Browser, by int)
	// Enter opens what is at the cursor.
	Enter(br *browser.Browser)
	// Matches returns the rows, where the cursor is, and whether a row has what is
	// looked for.
	Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool)
	// Copy returns what is at the cursor as text.
	Copy(br *browser.Browser) string
}

// Table is a screen of rows, with a cursor in them.
type Table interface {
	Screen
	// Area returns the cursor, the line of the screen where the rows begin, and how many
	// columns they take; 0 for all.
	Area() (rows *draw.List, line, width int)
}

// scroller is a screen that is no table.
type scroller interface {
	// End goes to the first row where way is below 0, else to the last.
	End(br *browser.Browser, way int)
	// Page is how many rows were drawn last.
	Page(br *browser.Browser) int
	// GoTo puts the cursor on a row that Matches has counted.
	GoTo(br *browser.Browser, row int)
}

// far is beyond the rows of any table.
const far = 1 << 30

// End goes to the first row of a screen where way is below 0, else to the last.
func End(br *browser.Browser, s Screen, way int) {
	if x, ok := s.(scroller); ok {
		x.End(br, way)
		return
	}
	s.Move(br, way*far)
}

// Page is how many rows of a screen were drawn last.
func Page(br *browser.Browser, s Screen) int {
	if x, ok := s.(scroller); ok {
		return x.Page(br)
	}
	rows, _, _ := s.(Table).Area()
	return rows.Height
}

// goTo puts the cursor of a screen on a row.
func goTo(br *browser.Browser, s Screen, row int) {
	if x, ok := s.(scroller); ok {
		x.GoTo(br, row)
		return
	}
	rows, _, _ := s.(Table).Area()
	s.Move(br, row-rows.Cursor)
}

// Sorter is a table whose rows can be put in another order.
type Sorter interface {
	SortNext(br *browser.Browser)
	SortTurn(br *browser.Browser)
}

// Set is the screens of one capture.
type Set struct {
	Flows    *FlowTable
	Packets  *PacketView
	State    *StateView
	Ladder   *Ladder
	Graphs   *Graphs
	Messages *MessageTable
	Findings *FindingTable
	Autopsy  *Autopsy
	Replay   *ReplayTable
}

// NewSet makes the screens of a browser's capture. autopsy is nil where no protocol has
// such pages.
func NewSet(br *browser.Browser, autopsy WordAutopsy) *Set {
	br.Layout.FlowSort = min(max(br.Layout.FlowSort, 0), len(flowColumns)-1)
	s := &Set{
		Flows: &FlowTable{sort: br.Layout.FlowSort, reverse: br.Layout.FlowReverse}, State: &StateView{diff: -1},
		Messages: &MessageTable{}, Findings: &FindingTable{}, Autopsy: &Autopsy{word: autopsy}, Replay: &ReplayTable{},
	}
	s.Packets = &PacketView{state: s.State}
	s.State.packets = s.Packets
	s.Ladder, s.Graphs = &Ladder{scrubber: scrubber{s.Packets}}, &Graphs{scrubber: scrubber{s.Packets}}
	br.Picked = s.Flows.selected
	return s
}

// Screen returns the screen of a view.
func (s *Set) Screen(v browser.View) Screen {
	return [...]Screen{
		browser.Flows: s.Flows, browser.Packets: s.Packets, browser.State: s.State,
		browser.Ladder: s.Ladder, browser.Graphs: s.Graphs, browser.Messages: s.Messages,
		browser.Findings: s.Findings, browser.Autopsy: s.Autopsy, browser.Replay: s.Replay,
	}[v]
}

// leastParts is the height from which on a view is parted in two: below that the
// list has all of it.
const leastParts = 9

// lines is what screens of text have in common: they show the browser's text.
type lines struct{}

func (lines) Move(br *browser.Browser, by int) { br.Text.Scroll(by) }

func (lines) End(br *browser.Browser, way int) { br.Text.Scroll(way * far) }

func (lines) Page(br *browser.Browser) int { return br.Text.List.Height }

func (lines) Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(br.Text.Lines), br.Text.List.Top, func(row int) bool { return s.finds(br.Text.Lines[row]) }
}

func (lines) GoTo(br *browser.Browser, row int) { br.Text.List.Top = row }

func (lines) Copy(br *browser.Browser) string { return plainText(br.Text.Lines) }

// scrubber is what screens have in common that show the selected packet in its flow:
// moving steps along the flow.
type scrubber struct{ packets *PacketView }

func (scrubber) Move(br *browser.Browser, by int) { br.Step(by) }

func (scrubber) End(br *browser.Browser, way int) { br.StepToEnd(way) }

// Page is a step of some packets: they are not shown in rows.
func (scrubber) Page(*browser.Browser) int { return 20 }

func (scrubber) Enter(br *browser.Browser) { br.Show(browser.Packets) }

func (s scrubber) Matches(br *browser.Browser, x *Search) (rows, at int, has func(row int) bool) {
	return s.packets.matches(br, x)
}

func (scrubber) GoTo(br *browser.Browser, row int) { br.SelectRow(row) }

func (s scrubber) Copy(br *browser.Browser) string { return s.packets.Copy(br) }
