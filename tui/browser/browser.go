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

// Browser is one user's way through a capture: the view, flow and packet that are shown,
// the filter, the places left before, and what was told last.
type Browser struct {
	Store  *store.Store
	Table  *filter.Table // the fields that filters know
	Layout *Layout
	W, H   int // columns and rows of the whole screen

	View View
	Flow int // the one that is open; 0 for all packets
	Selection
	Marks map[rune]Place
	Text  draw.Pager // state, autopsy, help and explanations, as lines

	// Picked gives the flow at the cursor of the flows; nil for none.
	Picked func(*Browser) *analyze.Flow

	Note string // told in the last line until the next key
	Bad  bool   // it tells what went wrong

	back         []Place
	job          *job
	filterReader *store.Reader // of frames that a filter asks for in views that list none
}

// New begins at the flows of a capture.
func New(s *store.Store, t *filter.Table, l *Layout) *Browser {
	return &Browser{
		Store: s, Table: t, Layout: l, W: 80, H: 24, Selection: Selection{Selected: -1}, Marks: map[rune]Place{},
		Picked: func(*Browser) *analyze.Flow { return nil },
	}
}

// Say tells something in the last line.
func (br *Browser) Say(format string, args ...any) {
	br.Note, br.Bad = fmt.Sprintf(format, args...), false
}

// Fail tells what went wrong.
func (br *Browser) Fail(format string, args ...any) {
	br.Note, br.Bad = fmt.Sprintf(format, args...), true
}

// Place is a place to come back to.
type Place struct {
	View  View
	Flow  int
	Entry int
}

// Here is the present place.
func (br *Browser) Here() Place { return Place{br.View, br.Flow, br.Selected} }

// Leave remembers the present place, to come back to.
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

// GoTo puts everything as it was at a place.
func (br *Browser) GoTo(p Place) {
	br.View = p.View
	br.OpenFlow(p.Flow)
	if p.Entry >= 0 {
		br.Selected, br.Follow = p.Entry, false
	}
}

// Open shows the packets of a flow, or all of them for 0.
func (br *Browser) Open(flow int) {
	br.Leave()
	if br.Flow != flow || br.View == Flows {
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

// OpenFlow has the packets of a flow shown, or all of them for 0, in the present view.
func (br *Browser) OpenFlow(flow int) {
	if br.Flow != flow {
		br.Flow = flow
		br.Refilter()
	}
}

// Opened is the flow that is open; nil for none.
func (br *Browser) Opened() *analyze.Flow { return br.Store.Flow(br.Flow) }

// Focus is the flow that views of one flow show: the open one, else that of the
// selected packet, else the one at the cursor of the flows, else the only one
// that has a protocol.
func (br *Browser) Focus() *analyze.Flow {
	if f := br.Opened(); f != nil {
		return f
	}
	if n := br.Selected; n >= 0 && n < br.Store.Len() && br.View != Flows {
		if f := br.Store.FlowOf(n); f != nil {
			return f
		}
	}
	return br.Picked(br)
}

// Jump goes to a packet, and can be taken back.
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

// JumpRef goes to a frame.
func (br *Browser) JumpRef(ref machine.Ref) {
	n, ok := br.Store.Find(ref)
	if ref == 0 || !ok {
		br.Fail("that packet was not captured")
		return
	}
	br.Jump(n)
}

// Back closes the view and goes where it was opened from; to the flows from anywhere
// else.
func (br *Browser) Back() {
	p, ok := br.cameFrom()
	if !ok {
		br.Leave()
		p = Place{View: Flows, Flow: br.Flow}
	}
	br.View, br.Text.List = p.View, draw.List{}
	br.OpenFlow(p.Flow)
}

// cameFrom returns where the view was opened from, and forgets what lies behind that.
// Views that show a packet or a flow in another way stand beside each other: what
// was opened from one of them replaces it. A packet that a finding, a message or a
// divergence led to goes back to that.
func (br *Browser) cameFrom() (Place, bool) {
	for n := len(br.back) - 1; n >= 0; n-- {
		p := br.back[n]
		if p.View == br.View || br.View != Packets && p.View != Flows && p.View != Packets {
			continue
		}
		br.back = br.back[:n]
		return p, true
	}
	return Place{}, false
}

// JumpBack goes where the last jump began.
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

// SelectedFrame names the selected packet's frame.
func (br *Browser) SelectedFrame() string {
	if n := br.Selected; n >= 0 && n < br.Store.Len() {
		return br.Store.FrameAt(n)
	}
	return "–"
}
