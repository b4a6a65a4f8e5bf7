package tui

import (
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// Options are what the program gives the screens.
type Options struct {
	Table *filter.Table // the fields that filters know
	Theme string        // dark, light or mono; empty to guess
	// Filter is in force from the start; empty for none.
	Filter string
	// Config is where layout and columns are kept; empty to keep nothing.
	Config string
	// Autopsy words how a connection ended, from its records; nothing for one that
	// had not ended by the instant end. nil where no protocol has such pages.
	Autopsy func(f *analyze.Flow, end machine.Instant, each func(analyze.Sink)) []string
	// Files names the captures that can be looked at, and File is which of them this
	// is. One capture alone needs no name.
	Files []string
	File  int
	// Save begins a capture file for frames of the input.
	Save func(path string, in *capture.Input) (store.Saver, error)
}

// view names a screen.
type view uint8

const (
	viewFlows view = iota
	viewPackets
	viewState
	viewLadder
	viewGraphs
	viewMessages
	viewFindings
	viewAutopsy
	viewReplay
	viewCount
)

var viewNames = [viewCount]string{"flows", "packets", "state", "ladder", "graphs", "messages", "findings", "autopsy", "replay"}

// pane is a part of the packets view that can have the keys.
type pane uint8

const (
	paneList pane = iota
	paneTree
	paneHex
	paneState
	paneCount
)

// Model is everything that the screens show, and how keys change it. It knows
// no terminal: app.go draws it. Its methods want the store's lock held.
type Model struct {
	store *store.Store
	o     Options
	w, h  int

	view view
	back []location
	help bool
	quit bool
	next int // the capture to go to when it quits; Options.File for none

	flows  flowTable
	flow   int // the one that is open; 0 for all packets
	packet packetList
	detail detail     // tree and bytes of the selected packet
	sides  sidesAt    // what both knew at the selected packet
	text   draw.Pager // state, autopsy and help as lines

	messages messageTable
	findings findingTable
	ladder   ladder
	graphs   graphs

	prompt prompt
	keys   keyState
	ended  *autopsyPage
	replay replayTable
	marks  map[rune]location
	note   string // told in the last line until the next key
	bad    bool
	copied string // to be put on the clipboard
	redraw bool
	// suspend asks for the shell, until that goes on with the program.
	suspend bool

	config config
	search search
	hunt   *hunt
	job    *job
	saving *saving

	asking  *store.Reader // of frames that a filter asks for in views that list none
	leaving bool          // once what is being saved is
}

// location is a place to come back to.
type location struct {
	view  view
	flow  int
	entry int
}

// NewModel makes the model of a store.
func NewModel(s *store.Store, o Options) *Model {
	m := &Model{store: s, o: o, marks: map[rune]location{}, config: defaultConfig(), next: o.File, w: 80, h: 24}
	m.note = m.fileTitle()
	m.packet.selected = -1
	m.sides.diff = -1
	if o.Config != "" {
		m.config.load(o.Config)
	}
	m.flows.sort, m.flows.reverse = m.config.FlowSort, m.config.FlowReverse
	if o.Filter != "" {
		if f, err := o.Table.Compile(o.Filter); err == nil {
			m.packet.filter = f
			m.packet.sift(m)
		} else {
			m.fail("%v", err)
		}
	}
	return m
}

// Resize tells the size of the screen.
func (m *Model) Resize(w, h int) { m.w, m.h = w, h }

// Quit reports whether the user has left.
func (m *Model) Quit() bool { return m.quit }

// say tells something in the last line.
func (m *Model) say(format string, args ...any) { m.note, m.bad = fmt.Sprintf(format, args...), false }

// fail tells what went wrong.
func (m *Model) fail(format string, args ...any) { m.note, m.bad = fmt.Sprintf(format, args...), true }

// here is the present place.
func (m *Model) here() location { return location{m.view, m.flow, m.packet.selected} }

// leave remembers the present place, to come back to.
func (m *Model) leave() {
	if n := len(m.back); n > 0 && m.back[n-1] == m.here() {
		return
	}
	if m.back = append(m.back, m.here()); len(m.back) > 100 {
		m.back = m.back[1:]
	}
}

// show opens a view.
func (m *Model) show(v view) {
	if v == m.view {
		return
	}
	m.leave()
	m.view, m.text.List = v, draw.List{}
}

// goTo puts everything as it was at a location.
func (m *Model) goTo(l location) {
	m.view = l.view
	if m.flow != l.flow {
		m.flow = l.flow
		m.packet.sift(m)
	}
	if l.entry >= 0 {
		m.packet.selected, m.packet.follow = l.entry, false
	}
}

// open shows the packets of a flow, or all of them for 0.
func (m *Model) open(flow int) {
	m.leave()
	if m.flow != flow || m.view == viewFlows {
		m.flow = flow
		m.packet.sift(m)
		if f := m.flowOpen(); f != nil && (m.packet.selected < 0 || m.store.FlowID(m.packet.selected) != flow) {
			if n, ok := m.store.Find(f.FirstRef); ok {
				m.packet.selected = n
			}
		}
	}
	m.view = viewPackets
}

// flowOpen is the flow that is open; nil for none.
func (m *Model) flowOpen() *analyze.Flow {
	return m.store.Flow(m.flow)
}

// focus is the flow that views of one flow show: the open one, else that of the
// selected packet, else the one at the cursor of the flows, else the only one
// that has a protocol.
func (m *Model) focus() *analyze.Flow {
	if f := m.flowOpen(); f != nil {
		return f
	}
	if n := m.packet.selected; n >= 0 && n < m.store.Len() && m.view != viewFlows {
		if f := m.store.FlowOf(n); f != nil {
			return f
		}
	}
	if f := m.flows.selected(m); f != nil {
		return f
	}
	return nil
}

// jump goes to a packet, and can be taken back.
func (m *Model) jump(n int) {
	if n < 0 || n >= m.store.Len() {
		m.fail("no packet %d: the capture has %s%s", n+1, show.Grouped(m.store.Len()), map[bool]string{true: "", false: " so far"}[m.store.Pass() > 1 && !m.store.Growing()])
		return
	}
	m.leave()
	if m.flow != 0 && m.store.FlowID(n) != m.flow {
		m.flow = 0
		m.packet.sift(m)
	}
	m.packet.selected, m.packet.follow = n, false
	switch m.view {
	case viewPackets, viewState, viewLadder, viewGraphs:
	default:
		m.view = viewPackets
	}
}

// jumpRef goes to a frame.
func (m *Model) jumpRef(ref machine.Ref) {
	n, ok := m.store.Find(ref)
	if ref == 0 || !ok {
		m.fail("that packet was not captured")
		return
	}
	m.jump(n)
}

// selectedRef names the selected packet's frame.
func (m *Model) selectedRef() string {
	if n := m.packet.selected; n >= 0 && n < m.store.Len() {
		return m.store.FrameAt(n)
	}
	return "–"
}

// countText writes a count that comes before a key.
func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
