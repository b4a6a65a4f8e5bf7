package tui

import (
	"errors"
	"sort"
	"strings"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/screens"
)

// promptKind is the kind of line being edited.
type promptKind uint8

const (
	promptNone promptKind = iota
	promptFilter
	promptSearch
	promptCommand
	promptBreak
	promptBreakBack
	promptHelp // narrows the help while it is typed
	promptKinds
)

var promptLabels = [promptKinds]string{"", "filter", "/", ":", "break when", "back to", "/"}

// prompt is the line being edited. Each kind has its own history.
type prompt struct {
	kind   promptKind
	line   line
	pasts  [promptKinds][]string
	check  check    // of a filter: the result for the text so far
	shown  []string // completions of the word at the cursor
	chosen int      // index in shown; -1 for none
}

// check is the result of checking a filter's text.
type check struct {
	state  checkState
	text   string // text of the error
	column int    // column of the error, from 0
}

type checkState uint8

const (
	checkEmpty checkState = iota
	checkValid
	checkInvalid
	checkIncomplete
)

// ask opens the line.
func (m *Model) ask(k promptKind) {
	p := &m.prompt
	p.kind, p.chosen, p.shown = k, -1, nil
	p.line = line{history: p.pasts[k]}
	text := ""
	if k == promptFilter && m.Filter != nil {
		text = m.Filter.String()
	}
	p.line.set(text)
	m.recheck()
}

// promptKey handles a key while the line is open.
func (m *Model) promptKey(k string) {
	p := &m.prompt
	switch k {
	case "Esc", "Ctrl-C":
		if p.kind == promptHelp {
			m.sought = ""
		}
		p.kind = promptNone
		return
	case "Enter":
		m.accept()
		return
	case "Tab", "Backtab":
		m.completeNext(map[string]int{"Tab": 1, "Backtab": -1}[k])
		return
	case "Backspace":
		if len(p.line.text) == 0 {
			p.kind = promptNone
			return
		}
	}
	p.chosen, p.shown = -1, nil
	p.line.key(k)
	m.recheck()
}

// Paste inserts pasted text.
func (m *Model) Paste(s string) {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if m.palette.open {
		m.palette.line.insert(s)
		m.palette.narrow()
		return
	}
	if m.prompt.kind == promptNone {
		m.ask(promptFilter)
	}
	m.prompt.line.insert(s)
	m.recheck()
}

func (p *prompt) filters() bool {
	return p.kind == promptFilter || p.kind == promptBreak || p.kind == promptBreakBack
}

// recheck checks the text of a filter.
func (m *Model) recheck() {
	p := &m.prompt
	if p.kind == promptHelp {
		m.sought, m.Text.List = strings.TrimSpace(p.line.String()), draw.List{}
	}
	if !p.filters() {
		p.check = check{}
		return
	}
	p.check = m.checkFilter(p.line.String())
}

func (m *Model) checkFilter(text string) check {
	if strings.TrimSpace(text) == "" {
		return check{}
	}
	_, err := m.o.Table.Compile(text)
	var bad *filter.Error
	if !errors.As(err, &bad) {
		return check{state: checkValid}
	}
	c := check{state: checkInvalid, text: err.Error(), column: bad.Offset}
	// A text that lacks its end, or ends in the beginning of a name, is
	// incomplete, not invalid.
	if bad.Offset >= len(strings.TrimRight(text, " ")) || len(m.completions(text)) > 0 &&
		strings.HasSuffix(text, lastWord(text)) && bad.Offset+len(lastWord(text)) == len(text) {
		c.state = checkIncomplete
	}
	return c
}

func lastWord(text string) string {
	i := len(text)
	for i > 0 && wordRune(rune(text[i-1])) {
		i--
	}
	return text[i:]
}

// completions returns the possible completions of the word that ends the text.
func (m *Model) completions(text string) []string {
	word := lastWord(text)
	var out []string
	if m.prompt.kind == promptHelp {
		return nil
	}
	if m.prompt.kind == promptCommand {
		name, argument, ok := strings.Cut(text, " ")
		if !ok {
			names := make([]string, len(commands))
			for i := range commands {
				names[i] = commands[i].name
			}
			return beginWith(names, word)
		}
		switch name {
		case "columns":
			out = beginWith(browser.PacketColumns, word)
		case "filter", "break":
		default:
			return beginWith(m.argumentsOf(name), argument)
		}
	}
	if word == "" {
		return nil
	}
	for _, f := range m.o.Table.Fields() {
		if strings.HasPrefix(f.Name, word) && f.Name != word {
			out = append(out, f.Name)
		}
	}
	// Names with fewer dots first: a protocol before its fields.
	sort.SliceStable(out, func(i, j int) bool { return strings.Count(out[i], ".") < strings.Count(out[j], ".") })
	return out
}

// beginWith returns the words that are longer than a text and begin with it.
func beginWith(words []string, text string) (out []string) {
	for _, w := range words {
		if strings.HasPrefix(w, text) && w != text {
			out = append(out, w)
		}
	}
	return out
}

// argumentsOf returns the possible arguments of a command, or nil if it takes
// any.
func (m *Model) argumentsOf(name string) (out []string) {
	switch name {
	case "theme":
		return draw.Themes
	case "time":
		return browser.TimeWords
	case "set":
		return []string{"follow", "nofollow"}
	case "layout":
		return []string{"save", "reset"}
	case "replay":
		return m.Store.Behaviours()
	case "sort":
		if m.View == browser.Messages {
			return screens.MessageColumns
		}
		return screens.FlowColumns()
	}
	return out
}

// argumentAt returns the column at which a command's argument begins, if the
// argument is completed as a whole. It returns false for commands that complete
// single words. Whole arguments may contain blanks.
func (p *prompt) argumentAt() (int, bool) {
	name, _, ok := strings.Cut(p.line.String(), " ")
	if p.kind != promptCommand || !ok || name == "columns" || name == "filter" || name == "break" {
		return 0, false
	}
	return len([]rune(name)) + 1, true
}

// completeNext replaces the word at the cursor by the next completion.
func (m *Model) completeNext(way int) {
	p := &m.prompt
	if p.shown == nil {
		p.shown, p.chosen = m.completions(string(p.line.text[:p.line.cursor])), -1
		if len(p.shown) == 0 {
			return
		}
	}
	p.chosen = (p.chosen + way + len(p.shown)) % len(p.shown)
	if p.chosen < 0 {
		p.chosen = len(p.shown) - 1
	}
	if from, ok := p.argumentAt(); ok {
		p.line.replace(from, p.shown[p.chosen])
	} else {
		p.line.complete(p.shown[p.chosen])
	}
	shown, chosen := p.shown, p.chosen
	m.recheck()
	p.shown, p.chosen = shown, chosen
}

// accept runs the line.
func (m *Model) accept() {
	p := &m.prompt
	text := strings.TrimSpace(p.line.String())
	if p.filters() && text != "" {
		f, err := m.o.Table.Compile(text)
		if err != nil {
			m.Fail("%v", err)
			var bad *filter.Error
			if errors.As(err, &bad) {
				p.line.cursor = min(len([]rune(text[:min(bad.Offset, len(text))])), len(p.line.text))
			}
			return // the user can correct it
		}
		p.remember()
		kind := p.kind
		p.kind = promptNone
		switch kind {
		case promptFilter:
			m.filterBy(f)
		case promptBreak:
			m.runUntil(f, 1)
		case promptBreakBack:
			m.runUntil(f, -1)
		}
		return
	}
	p.remember()
	kind := p.kind
	p.kind = promptNone
	switch kind {
	case promptFilter:
		m.filterBy(nil)
	case promptSearch:
		m.searchFor(text)
	case promptCommand:
		m.command(text)
	}
}

func (p *prompt) remember() {
	p.line.remember()
	p.pasts[p.kind] = p.line.history
}

// filterBy shows the packets that pass a filter; nil shows all.
func (m *Model) filterBy(f *filter.Filter) {
	if f == nil && m.Filter == nil {
		return
	}
	m.SetFilter(f)
	if m.View == browser.Flows {
		m.screens.Flows.Outdate()
		return
	}
	switch m.View {
	case browser.State, browser.Ladder, browser.Graphs, browser.Messages, browser.Findings:
	default:
		m.Show(browser.Packets)
	}
}

// searchFor sets the search and goes to the first match.
func (m *Model) searchFor(text string) {
	if text == "" {
		return
	}
	if err := m.search.Set(text); err != nil {
		m.Fail("%v", err)
		return
	}
	m.search.Next(m.Browser, m.screen(), 1)
}
