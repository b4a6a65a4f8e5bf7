package tui

import (
	"strconv"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/screens"
	"github.com/ackscope/ackscope/tui/store"
)

// Options configure the UI.
type Options struct {
	Table *filter.Table // the fields that filters know
	Theme string        // dark, light or mono; empty to choose by the terminal
	// Filter is the display filter at the start; empty for none.
	Filter string
	// Config is the file of layout and columns; empty to save nothing.
	Config string
	// Autopsy describes how a connection ended. It is nil if no protocol has
	// autopsies.
	Autopsy screens.AutopsyFunc
	// Files names the captures that the user can go to. File is the index of the
	// open one. Files may be empty for a single capture.
	Files []string
	File  int
	// Save creates a capture file for frames of the input.
	Save func(path string, in *capture.Input) (store.Saver, error)
	// Overview opens the overview first, where no filter and no frame is asked for.
	Overview bool
	// Flags are those that a command needs to read the captures as this program does.
	Flags []string
	// Begin is where the screens open. The zero value opens the list of flows.
	Begin Begin
}

// Begin is a frame to open, and why. The frame must have that time: a file that was made from
// another may have its comments, and other frames.
type Begin struct {
	Ref  machine.Ref // zero for none
	At   machine.Instant
	Text string
}

// begin selects the frame of Options.Begin as soon as it is read, unless the user was faster.
func (m *Model) begin() {
	b := m.o.Begin
	n, ok := m.Store.Find(b.Ref)
	if b.Ref == 0 || !ok {
		return
	}
	m.o.Begin = Begin{}
	if m.Store.TimeAt(n) == b.At {
		m.Jump(n)
		m.Say("%s", b.Text)
	}
}

// Model holds the screens, and how keys change them. It does not use the
// terminal: app.go draws it. Its methods require the store's lock.
type Model struct {
	*browser.Browser // the user's position
	screens          *screens.Set
	o                Options

	help    bool
	sought  string // the text that the help is narrowed to
	prompt  prompt
	palette palette
	keys    keyState
	hints   []hint         // of the last line, as it was drawn
	kept    browser.Layout // as it was read
	theme   string         // that the terminal or --theme chose
	search  screens.Search
	until   *untilRun
	saving  *saving

	quit    bool
	next    int    // index of the capture to open after quitting; Options.File for none
	leaving bool   // quit when the file is saved
	copied  string // text for the clipboard
	redraw  bool
	suspend bool // the user asked for the shell (Ctrl-Z)
}

// NewModel returns the model of a store.
func NewModel(s *store.Store, o Options) *Model {
	layout := &browser.Layout{}
	if o.Config != "" {
		loadLayout(layout, o.Config)
	}
	m := &Model{Browser: browser.New(s, o.Table, layout), o: o, next: o.File, kept: *layout}
	m.screens = screens.NewSet(m.Browser, o.Autopsy)
	m.Note = m.fileTitle()
	if o.Overview && o.Filter == "" && o.Begin.Ref == 0 {
		m.View = browser.Overview
	}
	if o.Filter != "" {
		if f, err := o.Table.Compile(o.Filter); err == nil {
			m.Browser.SetFilter(f)
		} else {
			m.Fail("%v", err)
		}
	}
	return m
}

// screen returns the screen of the current view.
func (m *Model) screen() screens.Screen { return m.screens.Screen(m.View) }

// countText formats the count typed before a key.
func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
