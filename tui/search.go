package tui

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// search looks for text in the rows shown, or for bytes in the packets.
type search struct {
	text   string
	bytes  []byte         // of 0x…
	match  *regexp.Regexp // of ~…
	reader *store.Reader
	line   []byte
}

// searchFor sets what is looked for and goes to the first match.
func (m *Model) searchFor(text string) {
	s := &m.search
	if text == "" {
		return
	}
	*s = search{text: text, reader: s.reader, line: s.line}
	switch {
	case strings.HasPrefix(text, "0x"):
		b, err := hex.DecodeString(strings.NewReplacer(" ", "", ":", "").Replace(text[2:]))
		if err != nil || len(b) == 0 {
			m.fail("%s: expected bytes such as 0x0a1b", text)
			return
		}
		s.bytes = b
	case strings.HasPrefix(text, "~"):
		r, err := regexp.Compile("(?i)" + text[1:])
		if err != nil {
			m.fail("%v", err)
			return
		}
		s.match = r
	}
	m.searchOn(1)
}

// finds reports whether a text holds what is looked for.
func (s *search) finds(text string) bool {
	if s.match != nil {
		return s.match.MatchString(text)
	}
	return strings.Contains(strings.ToLower(text), strings.ToLower(s.text))
}

// searchOn goes to the next match, or to the one before.
func (m *Model) searchOn(way int) {
	s := &m.search
	if s.text == "" {
		m.fail("nothing to search for: / begins")
		return
	}
	rows, at, _ := m.searchable()
	if rows == 0 {
		m.fail("%s: not found", s.text)
		return
	}
	i, text := 1, s.text
	m.goOn("searching for "+text, func() bool {
		now, _, has := m.searchable() // more rows may have come, or others
		if s.text != text {
			return true
		}
		for ; i <= rows; i++ {
			if !m.store.Spend(store.MatchSteps) {
				return false
			}
			row := ((at+way*i)%rows + rows) % rows
			if row >= now || !has(row) {
				continue
			}
			m.moveTo(row)
			if (row-at)*way <= 0 {
				m.say("%s: went on from the other end", text)
			}
			return true
		}
		m.fail("%s: not found", text)
		return true
	})
}

// searchable gives the rows of the view, where the cursor is, and whether a row
// has what is looked for.
func (m *Model) searchable() (rows, at int, has func(row int) bool) {
	s := &m.search
	switch m.view {
	case viewFlows:
		return len(m.flows.order), m.flows.list.Cursor, func(row int) bool {
			var b strings.Builder
			for i := range flowColumns {
				fmt.Fprint(&b, flowColumns[i].text(m, m.flows.order[row]), " ")
			}
			return s.finds(b.String())
		}
	case viewMessages:
		return len(m.messages.rows), m.messages.list.Cursor, func(row int) bool {
			x := &m.messages.all[m.messages.rows[row]]
			return s.finds(fmt.Sprint(x.Title, " id ", x.ID, " seq ", x.Sequence, " ", x.Mode, " ", x.Cause))
		}
	case viewFindings:
		return len(m.findings.rows), m.findings.list.Cursor, func(row int) bool {
			x := &m.findings.rows[row]
			if x.finding != nil {
				return s.finds(x.rule.ID + " " + x.finding.Message())
			}
			return s.finds(x.rule.ID + " " + x.rule.Summary)
		}
	case viewReplay:
		return len(m.replay.rows), m.replay.list.Cursor, func(row int) bool {
			return s.finds(draw.StripStyles(strings.Join(m.replay.rows[row].explain(m.store, 0), " ")))
		}
	case viewState, viewAutopsy:
		return len(m.text.Lines), m.text.List.Top, func(row int) bool { return s.finds(m.text.Lines[row]) }
	}
	if m.view == viewPackets && m.packet.pane == paneTree {
		return len(m.detail.shown), m.detail.row(), func(row int) bool { return s.finds(draw.StripStyles(m.detail.lineText(m.detail.shown[row]))) }
	}
	return m.packet.rows(m), m.packet.here(), func(row int) bool {
		n, ok := m.packet.entry(m, row)
		if !ok {
			return false
		}
		if s.reader == nil {
			s.reader = m.store.NewReader()
		}
		r, err := s.reader.Read(n)
		if err != nil {
			return false
		}
		if s.bytes != nil {
			return bytes.Contains(r.Frame.Data, s.bytes)
		}
		s.line = show.AppendInfo(show.AppendProtocol(append(s.line[:0], r.Src.String()+" "+r.Dst.String()+" "...), r), s.reader.Reading)
		return s.finds(string(s.line))
	}
}

// moveTo puts the cursor of the view on a row.
func (m *Model) moveTo(row int) {
	if l := m.table(); l != nil {
		m.move(row - l.Cursor)
		return
	}
	switch {
	case m.view == viewState, m.view == viewAutopsy:
		m.text.List.Top = row
	case m.view == viewPackets && m.packet.pane == paneTree:
		m.detail.cursor = m.detail.shownAt(row)
	default:
		if n, ok := m.packet.entry(m, row); ok {
			m.packet.selected, m.packet.list.Cursor, m.packet.follow = n, row, false
		}
	}
}
