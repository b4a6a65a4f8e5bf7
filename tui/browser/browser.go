package browser

import (
	"fmt"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// Browser is one user's position in a capture: the view, flow and packet on
// screen, the filter, the places visited before, and the last notice.
type Browser struct {
	Store  *store.Store
	Table  *filter.Table // the fields that filters know
	Layout *Layout
	W, H   int // columns and rows of the whole screen

	View View
	Flow int // the open flow; 0 for all packets
	Selection
	Marks map[rune]Place
	Text  draw.Pager // state, autopsy, help and explanations, as lines

	// Picked returns the flow at the cursor of the flow list, or nil.
	Picked func(*Browser) *analyze.Flow

	Note string // shown in the last line until the next key
	Bad  bool   // whether Note is an error

	back         []Place
	job          *job
	filterReader *store.Reader // reads frames for filters in views that list no packets
}

// New returns a browser that shows the list of flows.
func New(s *store.Store, t *filter.Table, l *Layout) *Browser {
	return &Browser{
		Store: s, Table: t, Layout: l, W: 80, H: 24, Selection: Selection{Selected: -1}, Marks: map[rune]Place{},
		Picked: func(*Browser) *analyze.Flow { return nil },
	}
}

// Say shows a notice in the last line.
func (br *Browser) Say(format string, args ...any) {
	br.Note, br.Bad = fmt.Sprintf(format, args...), false
}

// Fail shows an error in the last line.
func (br *Browser) Fail(format string, args ...any) {
	br.Note, br.Bad = fmt.Sprintf(format, args...), true
}

// Place is a position that the user can return to.
type Place struct {
	View  View
	Flow  int
	Entry int
}

// Here returns the current place.
func (br *Browser) Here() Place { return Place{br.View, br.Flow, br.Selected} }

// Leave pushes the current place onto the history, which keeps the last 100.
func (br *Browser) Leave() {
	if n := len(br.back); n > 0 && br.back[n-1] == br.Here() {
		return
	}
	if br.back = append(br.back, br.Here()); len(br.back) > 100 {
		br.back = br.back[1:]
	}
}

// Show opens a view.
func (br *Browser) Show(v View) {
	if v == br.View {
		return
	}
	br.Leave()
	br.View, br.Text.List = v, draw.List{}
}

// GoTo restores a place.
func (br *Browser) GoTo(p Place) {
	br.View = p.View
	br.OpenFlow(p.Flow)
	if p.Entry >= 0 {
		br.Selected, br.Follow = p.Entry, false
	}
}

// Open shows the packets of one flow, or of all flows for 0.
func (br *Browser) Open(flow int) {
	br.Leave()
	if br.Flow != flow || br.View == Flows || br.View == Overview {
		br.Flow = flow
		br.Refilter()
		if f := br.Opened(); f != nil && (br.Selected < 0 || br.Store.FlowID(br.Selected) != flow) {
			if n, ok := br.Store.Find(f.FirstRef); ok {
				br.Selected = n
			}
		}
	}
	br.View = Packets
}

// OpenFlow selects one flow, or all flows for 0, and keeps the current view.
func (br *Browser) OpenFlow(flow int) {
	if br.Flow != flow {
		br.Flow = flow
		br.Refilter()
	}
}

// Opened returns the open flow, or nil.
func (br *Browser) Opened() *analyze.Flow { return br.Store.Flow(br.Flow) }

// Focus returns the flow that the views of one flow show. It takes the first
// that exists:
//
//  1. the open flow
//  2. the selected packet's flow, except in the list of flows
//  3. what Picked returns
func (br *Browser) Focus() *analyze.Flow {
	if f := br.Opened(); f != nil {
		return f
	}
	if n := br.Selected; n >= 0 && n < br.Store.Len() && br.View != Flows && br.View != Overview {
		if f := br.Store.FlowOf(n); f != nil {
			return f
		}
	}
	return br.Picked(br)
}

// Jump selects a packet. JumpBack undoes it.
func (br *Browser) Jump(n int) {
	if n < 0 || n >= br.Store.Len() {
		soFar := " so far"
		if br.Store.Pass() > 1 && !br.Store.Growing() {
			soFar = ""
		}
		br.Fail("no packet %d: the capture has %s%s", n+1, show.Grouped(br.Store.Len()), soFar)
		return
	}
	br.Leave()
	if br.Flow != 0 && br.Store.FlowID(n) != br.Flow {
		br.OpenFlow(0)
	}
	br.Selected, br.Follow = n, false
	switch br.View {
	case Packets, State, Ladder, Graphs:
	default:
		br.View = Packets
	}
}

// JumpRef selects the packet of a frame.
func (br *Browser) JumpRef(ref machine.Ref) {
	n, ok := br.Store.Find(ref)
	if ref == 0 || !ok {
		br.Fail("that packet was not captured")
		return
	}
	br.Jump(n)
}

// Back closes the view and returns to the view that opened it, or else to the
// flows.
func (br *Browser) Back() {
	p, ok := br.cameFrom()
	if !ok {
		br.Leave()
		p = Place{View: Flows, Flow: br.Flow}
	}
	br.View, br.Text.List = p.View, draw.List{}
	br.OpenFlow(p.Flow)
}

// cameFrom returns the place that opened the view, and drops the history from
// there on. It skips views that show the same packet or flow in another way:
// they replace each other. From the packets it returns to the finding, message
// or divergence that led there.
func (br *Browser) cameFrom() (Place, bool) {
	for n := len(br.back) - 1; n >= 0; n-- {
		p := br.back[n]
		if p.View == br.View || br.View != Packets && p.View != Flows && p.View != Packets && p.View != Overview {
			continue
		}
		br.back = br.back[:n]
		return p, true
	}
	return Place{}, false
}

// JumpBack returns to where the last jump began.
func (br *Browser) JumpBack() {
	n := len(br.back)
	if n == 0 {
		br.Fail("nowhere to go back to")
		return
	}
	p := br.back[n-1]
	br.back = br.back[:n-1]
	br.GoTo(p)
}

// SelectedFrame returns the frame number of the selected packet, or "–".
func (br *Browser) SelectedFrame() string {
	if n := br.Selected; n >= 0 && n < br.Store.Len() {
		return br.Store.FrameAt(n)
	}
	return "–"
}
