package screens

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/store"
)

// Search is a search for text in the rows on screen, or for bytes in the
// packets.
type Search struct {
	Text   string         // as typed; empty for none
	bytes  []byte         // of a search such as 0x0a1b
	match  *regexp.Regexp // of a search such as ~expression
	reader *store.Reader
	line   []byte
}

// Set sets the search: text, bytes such as 0x0a1b, or ~ and a regular
// expression.
func (s *Search) Set(text string) error {
	x := Search{Text: text, reader: s.reader, line: s.line}
	switch {
	case strings.HasPrefix(text, "0x"):
		b, err := hex.DecodeString(strings.NewReplacer(" ", "", ":", "").Replace(text[2:]))
		if err != nil || len(b) == 0 {
			*s = x
			return fmt.Errorf("%s: expected bytes such as 0x0a1b", text)
		}
		x.bytes = b
	case strings.HasPrefix(text, "~"):
		r, err := regexp.Compile("(?i)" + text[1:])
		if err != nil {
			*s = x
			return err
		}
		x.match = r
	}
	*s = x
	return nil
}

// finds reports whether a text matches.
func (s *Search) finds(text string) bool {
	if s.match != nil {
		return s.match.MatchString(text)
	}
	return strings.Contains(strings.ToLower(text), strings.ToLower(s.Text))
}

// findsPacket reports whether a packet or its row matches.
func (s *Search) findsPacket(br *browser.Browser, n int) bool {
	if s.reader == nil {
		s.reader = br.Store.NewReader()
	}
	r, err := s.reader.Read(n)
	if err != nil {
		return false
	}
	if s.bytes != nil {
		return bytes.Contains(r.Frame.Data, s.bytes)
	}
	s.line = show.AppendInfo(show.AppendProtocol(append(s.line[:0], r.Src.String()+" "+r.Dst.String()+" "...), r),
		s.reader.Reading)
	return s.finds(string(s.line))
}

// Next goes to the next match on a screen, or to the previous one when way is
// -1.
func (s *Search) Next(br *browser.Browser, screen Screen, way int) {
	if s.Text == "" {
		br.Fail("nothing to search for: / begins")
		return
	}
	rows, at, _ := screen.Matches(br, s)
	if rows == 0 {
		br.Fail("%s: not found", s.Text)
		return
	}
	i, text := 1, s.Text
	br.RunJob("searching for "+text, func() bool {
		now, _, has := screen.Matches(br, s) // the rows may have changed since
		if s.Text != text {
			return true
		}
		for ; i <= rows; i++ {
			if !br.Store.Spend(store.MatchSteps) {
				return false
			}
			row := ((at+way*i)%rows + rows) % rows
			if row >= now || !has(row) {
				continue
			}
			goTo(br, screen, row)
			if (row-at)*way <= 0 {
				br.Say("%s: went on from the other end", text)
			}
			return true
		}
		br.Fail("%s: not found", text)
		return true
	})
}
