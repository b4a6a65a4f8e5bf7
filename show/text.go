package show

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// AppendClean appends text from a capture and escapes what would control a
// terminal: it is printable.Append.
func AppendClean[T string | []byte](to []byte, s T) []byte { return printable.Append(to, s) }

// Pad appends blanks until the text since from is width characters wide.
func Pad(to []byte, from, width int) []byte {
	for n := utf8.RuneCount(to[from:]); n < width; n++ {
		to = append(to, ' ')
	}
	return to
}

// PadLeft appends s, which is ASCII, right-aligned in width characters.
func PadLeft(to []byte, s []byte, width int) []byte {
	for n := len(s); n < width; n++ {
		to = append(to, ' ')
	}
	return append(to, s...)
}

// Fit cuts a line to a width, so that it does not wrap on a terminal. The last
// character is then "…". Colours have no width. A width of 0 cuts nothing.
func Fit(line []byte, width int) []byte {
	if width <= 0 || len(line) <= width {
		return line
	}
	ended := len(line) > 0 && line[len(line)-1] == '\n'
	columns, last, coloured := 0, 0, false
	for i := 0; i < len(line); {
		if line[i] == 0x1b {
			coloured = true
			for i < len(line) && line[i] != 'm' {
				i++
			}
			i++
			continue
		}
		_, n := utf8.DecodeRune(line[i:])
		if line[i] == '\n' {
			break
		}
		if columns++; columns == width {
			last = i
		}
		i += n
	}
	if columns <= width {
		return line
	}
	line = append(line[:last], "…"...)
	if coloured {
		line = append(line, "\x1b[0m"...)
	}
	if ended {
		line = append(line, '\n')
	}
	return line
}

// Wrap breaks text between words into lines of at most width, each after the
// indent. A width of 0 breaks nothing.
func Wrap(text, indent string, width int) string {
	if width <= 0 {
		return indent + text
	}
	var b strings.Builder
	columns := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case columns == 0:
			b.WriteString(indent)
			columns = len(indent)
		case columns+1+n > width:
			b.WriteString("\n" + indent)
			columns = len(indent)
		default:
			b.WriteByte(' ')
			columns++
		}
		b.WriteString(word)
		columns += n
	}
	return b.String()
}

const hexDigits = "0123456789abcdef"

// Wait formats a duration for a narrow column. One wrong timestamp can make it
// years long, or negative.
func Wait(d time.Duration) string {
	const day = 24 * time.Hour
	switch long := max(d, -max(d, -math.MaxInt64)); {
	case long >= 365*day:
		return strconv.FormatFloat(d.Hours()/(365.25*24), 'f', 1, 64) + " y"
	case long >= 2*day:
		return strconv.FormatFloat(d.Hours()/24, 'f', 1, 64) + " d"
	case long >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
}

// ArrivalText says how long a message took to arrive, with the bounds that the capture proves:
// "24 ms, at most 31". Bounds that meet are a single figure. An estimate that is wider than
// itself says nothing, so the bounds stand alone: "20 to 310 ms". What is unknown is "?".
func ArrivalText(m *machine.Message) string {
	least, most, _ := m.Latency()
	about := m.About()
	switch low, high := Rounded(least), Rounded(most); {
	case about < 0:
		return "?"
	case low == high:
		return low + " ms"
	case m.Estimate.Known() && m.Estimate.Width() <= about:
		return Rounded(about) + " ms, at most " + high
	default:
		return low + " to " + high + " ms"
	}
}

// Rounded formats a duration in milliseconds as precisely as people read it: "3.4", "24".
func Rounded(d time.Duration) string {
	switch v := float64(d) / 1e6; {
	case d == 0:
		return "0"
	case v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
}
