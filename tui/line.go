package tui

import "unicode/utf8"

// line is a line of text being edited, with the history of entered lines.
type line struct {
	text    []rune
	cursor  int
	history []string
	at      int // index in history; len(history) for the new line
	draft   string
}

func (l *line) set(s string) {
	l.text, l.cursor, l.at = []rune(s), utf8.RuneCountInString(s), len(l.history)
}

func (l *line) String() string { return string(l.text) }

// remember adds the text to the history, without duplicates.
func (l *line) remember() {
	s := l.String()
	if s == "" || len(l.history) > 0 && l.history[len(l.history)-1] == s {
		return
	}
	if l.history = append(l.history, s); len(l.history) > 200 {
		l.history = l.history[1:]
	}
}

func (l *line) insert(s string) {
	r := []rune(s)
	l.text = append(l.text[:l.cursor], append(r, l.text[l.cursor:]...)...)
	l.cursor += len(r)
}

// key edits the line. It ignores keys that mean nothing to it.
func (l *line) key(k string) {
	switch k {
	case "Left", "Ctrl-B":
		l.cursor = max(l.cursor-1, 0)
	case "Right", "Ctrl-F":
		l.cursor = min(l.cursor+1, len(l.text))
	case "Home", "Ctrl-A":
		l.cursor = 0
	case "End", "Ctrl-E":
		l.cursor = len(l.text)
	case "Backspace":
		if l.cursor > 0 {
			l.text = append(l.text[:l.cursor-1], l.text[l.cursor:]...)
			l.cursor--
		}
	case "Delete", "Ctrl-D":
		if l.cursor < len(l.text) {
			l.text = append(l.text[:l.cursor], l.text[l.cursor+1:]...)
		}
	case "Ctrl-U":
		l.text, l.cursor = l.text[l.cursor:], 0
	case "Ctrl-K":
		l.text = l.text[:l.cursor]
	case "Ctrl-W":
		from := l.cursor
		for from > 0 && l.text[from-1] == ' ' {
			from--
		}
		for from > 0 && l.text[from-1] != ' ' {
			from--
		}
		l.text = append(l.text[:from], l.text[l.cursor:]...)
		l.cursor = from
	case "Up", "Ctrl-P":
		l.recall(-1)
	case "Down", "Ctrl-N":
		l.recall(1)
	case "Space":
		l.insert(" ")
	default:
		if utf8.RuneCountInString(k) == 1 {
			l.insert(k)
		}
	}
}

func (l *line) recall(by int) {
	to := l.at + by
	if to < 0 || to > len(l.history) {
		return
	}
	if l.at == len(l.history) {
		l.draft = l.String()
	}
	s := l.draft
	if to < len(l.history) {
		s = l.history[to]
	}
	l.text, l.cursor, l.at = []rune(s), utf8.RuneCountInString(s), to
}

// word returns the word that ends at the cursor, and its start.
func (l *line) word() (string, int) {
	from := l.cursor
	for from > 0 && wordRune(l.text[from-1]) {
		from--
	}
	return string(l.text[from:l.cursor]), from
}

func wordRune(r rune) bool {
	return r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// complete replaces the word that ends at the cursor.
func (l *line) complete(word string) {
	_, from := l.word()
	l.replace(from, word)
}

// replace replaces the text between a column and the cursor.
func (l *line) replace(from int, text string) {
	l.text = append(l.text[:from], l.text[l.cursor:]...)
	l.cursor = from
	l.insert(text)
}
