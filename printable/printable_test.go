package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestString(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"plain text_1.2-3":     "plain text_1.2-3",
		"é 日本 ✓ 😀 \ufffd":      "é 日本 ✓ 😀 \ufffd",
		"a\x1b[31m":            `a\x1b[31m`,
		"\x00\x07\x7f\r":       `\x00\x07\x7f\x0d`,
		"a\nb\tc":              `a\nb\tc`,
		"\u0085\u009b31m":      `\u0085\u009b31m`,
		"\x9b31m":              `\x9b31m`,
		"\u202e\u2066\u200f":   `\u202e\u2066\u200f`,
		"\u061c\u2028\u2029":   `\u061c\u2028\u2029`,
		"\ufeff\u00ad\ue000":   `\ufeff\u00ad\ue000`,
		"\U000e0041\U000f0000": `\U000e0041\U000f0000`,
		"\xff\xc3":             `\xff\xc3`,
		"\xed\xa0\x80":         `\xed\xa0\x80`,
		`a\x1b`:                `a\x1b`,
	} {
		if got := String(in); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
	}
}

// TestForbidden checks all characters that must never appear in output.
func TestForbidden(t *testing.T) {
	for r := range rune(utf8.MaxRune) + 1 {
		bad := r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069
		if bad && Rune(r) {
			t.Errorf("U+%04X may stand in output", r)
		}
		if !utf8.ValidRune(r) {
			continue
		}
		if got := String(string(r)); !Clean(got) || strings.ContainsRune(got, '\n') {
			t.Fatalf("U+%04X becomes %q", r, got)
		}
		escaped := append(AppendJSONRune([]byte{'"'}, r), '"')
		var back string
		if r == '"' || r == '\\' {
			continue
		}
		if err := json.Unmarshal(escaped, &back); err != nil || back != string(r) || !Clean(string(escaped)) {
			t.Fatalf("U+%04X: JSON %q gives %q, %v", r, escaped, back, err)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	value := map[string]string{"a\u202e\x7f": "x\u2028\U000e0041\u009b\n\x1b"}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	got := AppendJSON(nil, text)
	var back map[string]string
	if err := json.Unmarshal(got, &back); err != nil || back["a\u202e\x7f"] != value["a\u202e\x7f"] ||
		!Clean(string(got)) {
		t.Errorf("%q: %v %v", got, back, err)
	}
}

func TestWriters(t *testing.T) {
	text := "é\u202e😀\n\tx\x1b\U000e0041\xff\n"
	want := "é" + `\u202e` + "😀\n\tx" + `\x1b\U000e0041\xff` + "\n"
	var all, single bytes.Buffer
	if n, err := DocumentWriter(&all).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	w := DocumentWriter(&single)
	for i := range len(text) {
		if _, err := w.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if all.String() != want || single.String() != want {
		t.Errorf("%q\n%q, expected\n%q", &all, &single, want)
	}
	if _, err := JSONWriter(iotest.TruncateWriter(&all, 0)).Write([]byte("{}\n")); err != nil {
		t.Error(err)
	}
}

func TestName(t *testing.T) {
	for _, name := range []string{"", "a", "Move_2.x-y", strings.Repeat("n", MostName)} {
		if err := Name(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"a b": "U+0020 at byte 2", "é": "U+00E9 at byte 1", "a\xff": "byte 0xff", "a\n": "U+000A", "a\U000e0041": "U+E0041",
		"a:b": "U+003A", "a,b": "U+002C", strings.Repeat("n", MostName+1): "at most 100",
	} {
		if err := Name(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", name, err, want)
		}
	}
}

func TestWord(t *testing.T) {
	for word, want := range map[string]string{
		"feilds": `"feilds"`, "": `""`, "b == 1": `"b == 1"`,
		strings.Repeat("a", 32): "a text of 32 bytes", "p@ss": "a text of 4 bytes", "a\x1b": "a text of 2 bytes",
		"correct horse battery": "a text of 21 bytes", "Tr0ub4d0r3": `a text of 10 bytes`, "crc32": `"crc32"`,
		"65536": `"65536"`,
	} {
		if got := Word(word); got != want {
			t.Errorf("%q: %s, expected %s", word, got, want)
		}
	}
}
