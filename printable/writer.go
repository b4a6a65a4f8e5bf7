package printable

import (
	"io"
	"unicode/utf8"
)

// JSONWriter returns a writer for an encoder of encoding/json: what its strings hold
// and Rune refuses becomes \u escapes (see AppendJSON). Each Write has whole
// values, as those of json.Encoder have.
func JSONWriter(to io.Writer) io.Writer { return &writer{to: to, add: AppendJSON} }

// DocumentWriter returns a writer for a document of several lines, such as a page of
// HTML, whose line breaks and tabs are its own: what else Rune refuses becomes an
// escape (see Append). A character may be divided between two Writes.
func DocumentWriter(to io.Writer) io.Writer { return &writer{to: to, add: appendLines, hold: true} }

func appendLines(to, text []byte) []byte {
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] != '\n' && text[n] != '\t' {
			n++
		}
		to = Append(to, text[:n])
		if n < len(text) {
			to = append(to, text[n])
			n++
		}
		text = text[n:]
	}
	return to
}

type writer struct {
	to   io.Writer
	add  func(to, text []byte) []byte
	buf  []byte
	hold bool   // keep the start of a character that a Write ends in
	rest []byte // what was kept
}

// Write returns the length of p where all of it was taken.
func (w *writer) Write(p []byte) (int, error) {
	text := p
	if len(w.rest) > 0 {
		text = append(w.rest, p...)
	}
	end := len(text)
	if w.hold {
		end = wholeRunes(text)
	}
	w.buf = w.add(w.buf[:0], text[:end])
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := w.to.Write(w.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// wholeRunes returns the length of text without a character that has only begun at
// its end.
func wholeRunes(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		at := len(text) - n
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}
