package tui

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/screens"
)

// copyMost limits the bytes for the clipboard: terminals take no more.
// Source: hterm's osc52.sh: a sequence of 100,000 bytes, the most that it takes, holds 74,994.
const copyMost = 74_000

// copyForm is a form in which the item at the cursor is copied.
type copyForm uint8

const (
	copyText copyForm = iota
	copyHex
	copyJSON
	copyFilter
	copyCommand
)

// copySelection copies the item at the cursor to the clipboard.
func (m *Model) copySelection(form copyForm) {
	text, err := m.copyOf(form)
	text = strings.TrimSpace(text)
	switch {
	case err != nil:
		m.Fail("%v", err)
		return
	case text == "":
		m.Fail("nothing to copy")
		return
	case len(text) > copyMost && form == copyJSON: // a part of it would be no JSON
		m.Fail("%s bytes: the clipboard of a terminal takes %s", show.Grouped(len(text)), show.Grouped(copyMost))
		return
	}
	cut := ""
	if n := len(text); n > copyMost {
		cut = fmt.Sprintf("the first %s of %s bytes: ", show.Grouped(copyMost), show.Grouped(n))
		text = text[:copyMost]
		for !utf8.ValidString(text[len(text)-min(utf8.UTFMax, len(text)):]) && len(text) > copyMost-utf8.UTFMax {
			text = text[:len(text)-1]
		}
	}
	m.copied = text
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += " …"
	}
	m.Say("copied: %s%s", cut, line)
}

// copyOf returns the item at the cursor in a form.
func (m *Model) copyOf(form copyForm) (string, error) {
	x := m.screen().About(m.Browser)
	switch form {
	case copyHex:
		return x.Hex(m.Browser)
	case copyJSON:
		return x.JSON(m.Browser)
	case copyFilter:
		return x.Filter(m.Browser)
	case copyCommand:
		return m.commandOf(&x)
	case copyText:
	}
	return clean(m.screen().Copy(m.Browser)), nil
}

// clean escapes what is not printable, except the ends of lines and of columns. A copy is pasted into
// shells and editors, and a capture may hold sequences that control them.
func clean(text string) string {
	var out []byte
	for text != "" {
		n := strings.IndexAny(text, "\n\t")
		if n < 0 {
			return string(show.AppendClean(out, text))
		}
		out = append(show.AppendClean(out, text[:n]), text[n])
		text = text[n+1:]
	}
	return string(out)
}

// commandOf returns the command line that shows the item at the cursor, with the files and the
// flags with which the program was called.
func (m *Model) commandOf(x *screens.Subject) (string, error) {
	var words []string
	flow := func() string { return strconv.Itoa(x.Flow.ID) }
	filtered := func(command ...string) error {
		text, err := x.Filter(m.Browser)
		words = append(command, "-Y", text)
		return err
	}
	var err error
	switch v := m.View; {
	case v == browser.Replay:
		words = []string{"replay"}
	case x.Finding != nil:
		err = filtered("findings")
	case x.Message != nil && x.Message.ID >= 0:
		err = filtered("messages")
	case v == browser.Flows && x.Flow != nil:
		err = filtered("flows")
	case v == browser.Overview && x.Entry < 0:
		words = []string{"overview"}
	case v == browser.Autopsy:
		words = []string{"autopsy"}
	case v == browser.State && x.Entry >= 0 && x.Flow != nil:
		words = []string{"state", "--flow", flow(), "--at", m.SelectedFrame()}
	case v == browser.Graphs && x.Flow != nil:
		words = []string{"graph", "--flow", flow()}
	default:
		err = filtered("packets", "-V")
	}
	in := m.Store.Input()
	files := make([]string, in.Files())
	for i := range files {
		files[i] = in.FileName(i)
	}
	c := overview.NewCommand("", files, m.o.Flags, words[0], words[1:]...)
	return c.String(), err
}
