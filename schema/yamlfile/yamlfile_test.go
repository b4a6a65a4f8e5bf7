package yamlfile

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/wire/bits"
)

// byBits is the simplest coding.
type byBits struct{}

func (byBits) Word(c bits.Cursor, v *uint64, n int) error { return c.Bits(v, n) }
func (byBits) Bool(c bits.Cursor, v *uint64) error        { return c.Bits(v, 1) }
func (byBits) Count(c bits.Cursor, v *uint64, least, most uint64) error {
	return c.Bits(v, 16)
}
func (byBits) Bytes(c bits.Cursor, v *[]byte, n int) error { return c.Bytes(v, n) }
func (byBits) Text(c bits.Cursor, v *[]byte, most int) error {
	return c.Bytes(v, most)
}
func (byBits) BoolItem(c bits.Cursor, v *uint64, _, _ int) error            { return c.Bits(v, 1) }
func (byBits) MostCount() int64                                             { return 0 }
func (byBits) Alias(string) (string, int)                                   { return "", 0 }
func (byBits) Lost(string) (items, count bool)                              { return false, false }
func (byBits) Number(string) (func(bits.Cursor, *uint64) error, bool, bool) { return nil, false, false }

func TestSchema(t *testing.T) {
	s, err := Schema([]byte(`
messages:
  3:
    name: Move
    fields:
      - {name: tick, type: bits, bits: 32}
      - {name: n, type: bits, bits: "3 + 1"}
      - {name: x, type: int, min: -1000, max: 1000, if: tick > 0}
`), "move.yaml", byBits{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Messages[3].Name != "Move" || len(s.Messages[3].Fields) != 3 {
		t.Fatalf("read %+v", s.Messages[3])
	}
}

// TestSchemaErrors: errors name the line of the fault.
func TestSchemaErrors(t *testing.T) {
	for name, c := range map[string]struct{ src, want, line string }{
		"unknown key": {"messages:\n  0:\n    name: A\n    feilds: []\n", "feilds", "line 4: "},
		"unknown type": {
			"messages:\n  0:\n    fields:\n      - name: a\n        type: integer\n",
			`unknown type "integer"`, "line 5: ",
		},
		"missing bits": {"messages:\n  0:\n    fields:\n      - name: a\n        type: bits\n", "needs bits", "line 4: "},
		"bad condition": {
			"messages:\n  0:\n    fields:\n      - name: a\n        type: bool\n        if: b == 1\n",
			`named "b"`, "line 6: ",
		},
		"range": {
			"messages:\n  0:\n    fields:\n      - {name: a, type: int, min: 5, max: 4}\n",
			"above max", "line 4: ",
		},
		"twice": {
			"messages:\n  0:\n    fields:\n      - {name: a, type: bool}\n      - {name: a, type: bool}\n",
			"earlier field", "line 5: ",
		},
		"name": {"messages:\n  0:\n    name: \"A\\e[31m\"\n", "U+001B at byte 2", "line 3: "},
		"name of field": {
			"messages:\n  0:\n    fields:\n      - {name: \"a\\u202e\", type: bool}\n",
			"U+202E at byte 2", "line 4: ",
		},
		"name of item": {"messages:\n  0:\n    fields:\n      - {name: a, type: array, count: 1, item: {name: \"b c\", " +
			"type: bool}}\n", "U+0020 at byte 2", "line 4: "},
		"no yaml":    {"messages: [\n", "", ""},
		"wrong type": {"messages:\n  0:\n    name: A\n    fields: 3\n", "", "line 4: "},
	} {
		_, err := Schema([]byte(c.src), "x.yaml", byBits{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if s := err.Error(); !strings.HasPrefix(s, "x.yaml: ") || !strings.Contains(s, c.want) ||
			!strings.Contains(s, c.line) {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// TestTagWithoutValue: the library dereferences nil for such a tag.
func TestTagWithoutValue(t *testing.T) {
	for _, src := range []string{"messages:\n  0:\n    fields:\n      !\n", "messages: !\n", "!", "messages:\n  0: !x\n"} {
		if _, err := Schema([]byte(src), "x.yaml", byBits{}); err != nil && !strings.HasPrefix(err.Error(), "x.yaml: ") {
			t.Errorf("%q: %v", src, err)
		}
		var to struct {
			Messages map[string][]string `yaml:"messages"`
		}
		if err := Read([]byte(src), "x.yaml", &to); err != nil && !strings.HasPrefix(err.Error(), "x.yaml: ") {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte("messages:\n  0:\n    fields:\n      ! #0"))
	f.Add([]byte("messages:\n  0:\n    fields:\n      - {name: a, type: int, min: 5, max: 4}\n"))
	f.Add([]byte("messages: {1: {name: M, fields: [{name: a, type: array, count: 3, item: {type: uint8}}]}}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Schema(src, "x", byBits{})
		if err != nil {
			return
		}
		for _, k := range schema.Kinds(s.Messages) {
			r := bits.NewReader([]byte("0123456789abcdef"))
			_ = s.Skip(k, &r) // must return
		}
	})
}
