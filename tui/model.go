package tui

import (
	"strconv"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/screens"
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
	// Autopsy words how a connection ended; nil where no protocol has such pages.
	Autopsy screens.WordAutopsy
	// Files names the captures that can be looked at, and File is which of them this
	// is. One capture alone needs no name.
	Files []string
	File  int
	// Save begins a capture file for frames of the input.
	Save func(path string, in *capture.Input) (store.Saver, error)
}

// Model is the screens and how keys change them. It knows no terminal: app.go draws it.
// Its methods want the store's lock held.
type Model struct {
	*browser.Browser // where the user is
	screens          *screens.Set
	o                Options

	help   bool
	prompt prompt
	keys   keyState
	search screens.Search
	until  *untilRun
	saving *saving

	quit    bool
	next    int    // the capture to go to when it quits; Options.File for none
	leaving bool   // once what is being saved is
	copied  string // to be put on the clipboard
	redraw  bool
	suspend bool // it asks for the shell, until that goes on with the program
}

// NewModel makes the model of a store.
func NewModel(s *store.Store, o Options) *Model {
	layout := &browser.Layout{}
	if o.Config != "" {
		loadLayout(layout, o.Config)
	}
	m := &Model{Browser: browser.New(s, o.Table, layout), o: o, next: o.File}
	m.screens = screens.NewSet(m.Browser, o.Autopsy)
	m.Note = m.fileTitle()
	if o.Filter != "" {
		if f, err := o.Table.Compile(o.Filter); err == nil {
			m.Browser.SetFilter(f)
		} else {
			m.Fail("%v", err)
		}
	}
	return m
}

// screen is the one that is shown.
func (m *Model) screen() screens.Screen { return m.screens.Screen(m.View) }

// countText writes a count that comes before a key.
func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
