package printable

import (
	"io"
	"unicode/utf8"
)

// JSONWriter returns a writer for an encoder of encoding/json. Characters in
// its strings that Rune refuses become \u escapes (see AppendJSON). Each Write
// must contain whole values, as with json.Encoder.
func JSONWriter(to io.Writer) io.Writer { return &writer{to: to, add: AppendJSON} }

// DocumentWriter returns a writer for a document of several lines, such as an
// HTML page. It keeps line breaks and tabs. Other characters that Rune refuses
// become escapes (see Append). A character may be divided between two Writes.
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
	hold bool   // hold back the start of a character at the end of a Write
	rest []byte // what was held back
}

// Write returns len(p) if all of p was processed.
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

// wholeRunes returns the length of text without an incomplete character at its
// end.
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
