package screens

import (
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// Screen is one way to show the user's position. A Screen is either a Table or
// a scroller.
type Screen interface {
	Draw(br *browser.Browser, c draw.Canvas)
	// Move moves the cursor by rows.
	Move(br *browser.Browser, by int)
	// Enter opens the item at the cursor.
	Enter(br *browser.Browser)
	// Matches returns the number of rows, the cursor's row, and a function that
	// reports whether a row matches the search.
	Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool)
	// Copy returns the item at the cursor as text.
	Copy(br *browser.Browser) string
	// About returns the item at the cursor.
	About(br *browser.Browser) Subject
}

// Table is a screen of rows with a cursor.
type Table interface {
	Screen
	// Area returns the cursor, the screen line of the first row, and the width of
	// the rows in columns. A width of 0 means all columns.
	Area() (rows *draw.List, line, width int)
}

// scroller is a screen that is not a table.
type scroller interface {
	// End goes to the first row when way is negative, else to the last.
	End(br *browser.Browser, way int)
	// Page returns the number of rows at the last drawing.
	Page(br *browser.Browser) int
	// GoTo moves the cursor to a row, as Matches counts rows.
	GoTo(br *browser.Browser, row int)
}

// far is more rows than any table has.
const far = 1 << 30

// End goes to the first row of a screen when way is negative, else to the last.
func End(br *browser.Browser, s Screen, way int) {
	if x, ok := s.(scroller); ok {
		x.End(br, way)
		return
	}
	s.Move(br, way*far)
}

// Page returns the number of rows of a screen at the last drawing.
func Page(br *browser.Browser, s Screen) int {
	if x, ok := s.(scroller); ok {
		return x.Page(br)
	}
	rows, _, _ := s.(Table).Area()
	return rows.Height
}

// goTo moves the cursor of a screen to a row.
func goTo(br *browser.Browser, s Screen, row int) {
	if x, ok := s.(scroller); ok {
		x.GoTo(br, row)
		return
	}
	rows, _, _ := s.(Table).Area()
	s.Move(br, row-rows.Cursor)
}

// Sorter is a table that can be sorted.
type Sorter interface {
	SortNext(br *browser.Browser)
	SortTurn(br *browser.Browser)
}

// Set holds the screens of one capture.
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
	Overview *Overview
}

// NewSet returns the screens of a browser's capture. autopsy is nil if no
// protocol has pages of autopsies.
func NewSet(br *browser.Browser, autopsy AutopsyFunc) *Set {
	br.Layout.FlowSort = min(max(br.Layout.FlowSort, 0), len(flowColumns)-1)
	s := &Set{
		Flows: &FlowTable{sort: br.Layout.FlowSort, reverse: br.Layout.FlowReverse}, State: &StateView{diff: -1},
		Messages: &MessageTable{}, Findings: &FindingTable{}, Autopsy: &Autopsy{describe: autopsy}, Replay: &ReplayTable{},
	}
	s.Packets = &PacketView{state: s.State}
	s.State.packets = s.Packets
	s.Ladder, s.Graphs = &Ladder{scrubber: scrubber{s.Packets}}, &Graphs{scrubber: scrubber{s.Packets}}
	s.Overview = &Overview{flows: s.Flows, replay: s.Replay}
	br.Picked = s.Flows.selected
	return s
}

// Screen returns the screen of a view.
func (s *Set) Screen(v browser.View) Screen {
	return [...]Screen{
		browser.Flows: s.Flows, browser.Packets: s.Packets, browser.State: s.State,
		browser.Ladder: s.Ladder, browser.Graphs: s.Graphs, browser.Messages: s.Messages,
		browser.Findings: s.Findings, browser.Autopsy: s.Autopsy, browser.Replay: s.Replay,
		browser.Overview: s.Overview,
	}[v]
}

// leastParts is the least height at which a view is split in two. Below it the
// list has the whole view.
const leastParts = 9

// lines implements Screen for screens of text.
type lines struct{}

func (lines) Move(br *browser.Browser, by int) { br.Text.Scroll(by) }

func (lines) End(br *browser.Browser, way int) { br.Text.Scroll(way * far) }

func (lines) Page(br *browser.Browser) int { return br.Text.List.Height }

func (lines) Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(br.Text.Lines), br.Text.List.Top, func(row int) bool { return s.finds(br.Text.Lines[row]) }
}

func (lines) GoTo(br *browser.Browser, row int) { br.Text.List.Top = row }

func (lines) Copy(br *browser.Browser) string { return plainText(br.Text.Lines) }

// scrubber implements Screen for screens that show the selected packet within
// its flow. Moving steps along the flow.
type scrubber struct{ packets *PacketView }

func (scrubber) Move(br *browser.Browser, by int) { br.Step(by) }

func (scrubber) End(br *browser.Browser, way int) { br.StepToEnd(way) }

// Page returns a number of packets: this screen has no rows.
func (scrubber) Page(*browser.Browser) int { return 20 }

func (scrubber) Enter(br *browser.Browser) { br.Show(browser.Packets) }

func (s scrubber) Matches(br *browser.Browser, x *Search) (rows, at int, has func(row int) bool) {
	return s.packets.matches(br, x)
}

func (scrubber) GoTo(br *browser.Browser, row int) { br.SelectRow(row) }

func (s scrubber) Copy(br *browser.Browser) string { return s.packets.Copy(br) }
