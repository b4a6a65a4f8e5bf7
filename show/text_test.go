package show

import (
	"math"
	"testing"
	"time"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"short\n", 80, "short\n"},
		{"exactly ten", 11, "exactly ten"},
		{"exactly ten", 10, "exactly t…"},
		{"exactly ten\n", 10, "exactly t…\n"},
		{"a → b → c", 9, "a → b → c"},
		{"a → b → c", 5, "a → …"},
		{"\x1b[31mred\x1b[0m and more", 7, "\x1b[31mred\x1b[0m an…\x1b[0m"},
		{"\x1b[31mred\x1b[0m", 3, "\x1b[31mred\x1b[0m"},
		{"anything at all", 0, "anything at all"},
	} {
		if got := string(Fit([]byte(c.line), c.width)); got != c.want {
			t.Errorf("Fit(%q, %d) = %q, expected %q", c.line, c.width, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text, indent string
		width        int
		want         string
	}{
		{"one two three", "  ", 9, "  one two\n  three"},
		{"one two three", "", 0, "one two three"},
		{"unbreakable", "", 4, "unbreakable"},
		{"", "", 10, ""},
	} {
		if got := Wrap(c.text, c.indent, c.width); got != c.want {
			t.Errorf("Wrap(%q, %d) = %q, expected %q", c.text, c.width, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain é": "plain é", "\x1b[2J": `\x1b[2J`, "a\nb\tc": `a\nb\tc`, "\xff": `\xff`, "\u202e": `\u202e`, "\x7f": `\x7f`,
	} {
		if got := string(AppendClean(nil, in)); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
	}
}

// A duration that a wrong timestamp made long or negative fits its column.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{math.MaxInt64, "292.3 y"},
		{math.MinInt64, "-292.3 y"},
		{-3 * 24 * time.Hour, "-3.0 d"},
		{47 * time.Hour, "169200.00 s"},
		{1500 * time.Millisecond, "1.50 s"},
		{8_800_000, "8.8 ms"},
		{0, "0.0 ms"},
	} {
		if got := Wait(c.d); got != c.want {
			t.Errorf("%d is written %q, expected %q", int64(c.d), got, c.want)
		}
	}
}
