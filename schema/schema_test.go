package schema_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// gafferCoding is the layout of the article series, in the simplest
// implementation. The tests of the real one use captures.
type gafferCoding struct{}

func (gafferCoding) Word(c bits.Cursor, v *uint64, n int) error { return c.Bits(v, n) }
func (gafferCoding) Bool(c bits.Cursor, v *uint64) error        { return c.Bits(v, 1) }
func (gafferCoding) Count(c bits.Cursor, v *uint64, least, most uint64) error {
	d := *v - least
	if err := c.Bits(&d, bits.Required(least, most)); err != nil {
		return err
	}
	if d > most-least {
		return wire.ErrRange
	}
	*v = d + least
	return nil
}

func (gafferCoding) Bytes(c bits.Cursor, v *[]byte, n int) error {
	if err := c.Align(); err != nil {
		return err
	}
	return c.Bytes(v, n)
}

func (g gafferCoding) Text(c bits.Cursor, v *[]byte, most int) error {
	n := uint64(len(*v))
	if err := g.Count(c, &n, 0, uint64(most)); err != nil {
		return err
	}
	return g.Bytes(c, v, int(n))
}
func (gafferCoding) BoolItem(c bits.Cursor, v *uint64, _, _ int) error { return c.Bits(v, 1) }
func (gafferCoding) MostCount() int64                                  { return 0 }
func (gafferCoding) Alias(string) (string, int)                        { return "", 0 }
func (gafferCoding) Lost(string) (items, count bool)                   { return false, false }
func (gafferCoding) Number(kind string) (func(bits.Cursor, *uint64) error, bool, bool) {
	if kind != "pair" { // a number in two nibbles, the high one first
		return nil, false, false
	}
	return func(c bits.Cursor, v *uint64) error {
		high, low := *v>>4, *v&15
		if err := c.Bits(&high, 4); err != nil {
			return err
		}
		if err := c.Bits(&low, 4); err != nil {
			return err
		}
		*v = high<<4 | low
		return nil
	}, false, true
}

func of(v int64) *int64 { return &v }

func compile(t testing.TB, fields ...*schema.Field) *schema.Body {
	t.Helper()
	s := &schema.Schema{Messages: map[uint32]*schema.Body{0: {Name: "M", Fields: fields}}}
	if err := s.Compile(gafferCoding{}); err != nil {
		t.Fatal(err)
	}
	return s.Messages[0]
}

// everything returns a body with every type, nested and conditional.
func everything(t testing.TB) *schema.Body {
	return compile(t,
		&schema.Field{Name: "kind", Type: "bits", Bits: "3"},
		&schema.Field{Name: "x", Type: "int", Min: of(-1000), Max: of(1000)},
		&schema.Field{Name: "big", Type: "uint64"},
		&schema.Field{Name: "small", Type: "int8"},
		&schema.Field{Name: "fire", Type: "bool"},
		&schema.Field{Name: "speed", Type: "float", If: "fire"},
		&schema.Field{Name: "exact", Type: "double", If: "!fire || kind >= 4"},
		&schema.Field{Name: "name", Type: "string", Max: of(63)},
		&schema.Field{Type: "align"},
		&schema.Field{Name: "blob", Type: "bytes", Max: of(20)},
		&schema.Field{Name: "key", Type: "bytes", Count: "kind + 1"},
		&schema.Field{
			Name: "scores", Type: "array", Min: of(1), Max: of(4),
			Item: &schema.Field{Type: "int", Min: of(0), Max: of(9)},
		},
		&schema.Field{Name: "points", Type: "array", Count: "kind % 3", Fields: []*schema.Field{
			{Name: "flag", Type: "bool"},
			{Name: "p", Type: "pair", If: "flag && kind == 5"},
		}},
		&schema.Field{
			Name: "place", Type: "group",
			Fields: []*schema.Field{{Name: "y", Type: "int16"}, {Name: "z", Type: "uint8"}},
		},
		&schema.Field{Type: "zeros", Bits: "[1, 70, 3][kind % 3]"},
	)
}

func example() schema.Record {
	return schema.Record{
		{Name: "kind", Value: uint64(5)},
		{Name: "x", Value: int64(-1000)},
		{Name: "big", Value: uint64(math.MaxUint64)},
		{Name: "small", Value: int64(-128)},
		{Name: "fire", Value: true},
		{Name: "speed", Value: float32(1.5)},
		{Name: "exact", Value: math.Inf(-1)},
		{Name: "name", Value: "Ünï"},
		{Name: "blob", Value: []byte{1, 2, 3}},
		{Name: "key", Value: []byte{9, 8, 7, 6, 5, 4}},
		{Name: "scores", Value: []any{uint64(9), uint64(0)}},
		{Name: "points", Value: []any{
			schema.Record{{Name: "flag", Value: true}, {Name: "p", Value: uint64(0xab)}},
			schema.Record{{Name: "flag", Value: false}},
		}},
		{Name: "place", Value: schema.Record{{Name: "y", Value: int64(-2)}, {Name: "z", Value: uint64(255)}}},
	}
}

// TestOneWalk: reading, writing and measuring agree, at whatever bit of a byte
// the body begins.
func TestOneWalk(t *testing.T) {
	b, want := everything(t), example()
	for at := range 8 {
		w := bits.NewWriter(nil)
		w.Bits(0, at)
		if err := b.Write(&w, want); err != nil {
			t.Fatal(err)
		}
		n, err := b.Measure(at, want)
		if err != nil || at+n != w.Pos() {
			t.Fatalf("from bit %d: measured %d bits, wrote %d: %v", at, n, w.Pos()-at, err)
		}
		var r bits.Reader
		r.Reset(w.Data(), at)
		got, err := b.Read(&r)
		if err != nil || r.Pos() != w.Pos() {
			t.Fatalf("read up to bit %d of %d: %v", r.Pos(), w.Pos(), err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %v, want %v", got, want)
		}
	}
}

// TestLayout compares the bits with a layout made by hand, low bit of a byte
// first.
func TestLayout(t *testing.T) {
	b := compile(t,
		&schema.Field{Name: "a", Type: "bits", Bits: "2"},
		&schema.Field{Name: "b", Type: "int", Min: of(-10), Max: of(10)}, // 5 bits
		&schema.Field{Name: "s", Type: "string", Max: of(7)},             // 3 bits, then padding to a whole byte
		&schema.Field{Name: "f", Type: "float"},
	)
	w := bits.NewWriter(nil)
	if err := b.Write(&w, map[string]any{"a": 1, "b": -7, "s": "hi", "f": 1.0}); err != nil {
		t.Fatal(err)
	}
	// 01 | 00011 | 0 10 -> 0b0_00011_01, 0b000000_01; "hi"; 0x3f800000.
	if got := hex.EncodeToString(w.Data()); got != "0d01"+"6869"+"0000803f" {
		t.Errorf("written as %s", got)
	}
}

// TestMalformed: data that claims more than it holds is an error.
func TestMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		fields []*schema.Field
		data   string
		kind   error
		field  string
		bit    int
	}{
		"out of range": {[]*schema.Field{{Name: "x", Type: "int", Min: of(0), Max: of(4)}}, "07", wire.ErrRange, "x", 0},
		"cut": {
			[]*schema.Field{{Name: "a", Type: "uint8"}, {Name: "x", Type: "uint32"}},
			"07000000",
			wire.ErrShort, "x", 8,
		},
		"long text": {[]*schema.Field{{Name: "s", Type: "string", Max: of(65535)}}, "ffff41", wire.ErrShort, "s", 0},
		"long bytes": {
			[]*schema.Field{{Name: "n", Type: "uint16"}, {Name: "s", Type: "bytes", Count: "n * 1000"}},
			"ffff41", wire.ErrRange, "s", 16,
		},
		"negative": {
			[]*schema.Field{{Name: "n", Type: "int8"}, {Name: "s", Type: "bytes", Count: "n"}},
			"ff",
			wire.ErrRange, "s", 8,
		},
		"wide word": {
			[]*schema.Field{{Name: "n", Type: "uint8"}, {Name: "s", Type: "bits", Bits: "n"}},
			"41",
			wire.ErrRange, "s", 8,
		},
		"padding": {[]*schema.Field{{Name: "a", Type: "bool"}, {Type: "align"}}, "03", wire.ErrPadding, "align", 1},
		"zeros": {
			[]*schema.Field{{Name: "a", Type: "bool"}, {Type: "zeros", Bits: "5"}},
			"10",
			wire.ErrPadding, "zeros", 1,
		},
		"many nothings": {
			[]*schema.Field{{
				Name: "a", Type: "array", Count: "60000",
				Fields: []*schema.Field{{Name: "b", Type: "array", Count: "60000", Item: &schema.Field{Type: "bits", Bits: "0"}}},
			}},
			"", wire.ErrRange, "", 0,
		},
	} {
		b := compile(t, c.fields...)
		data, _ := hex.DecodeString(c.data)
		r := bits.NewReader(data)
		_, err := b.Read(&r)
		var pe *wire.ParseError
		if !errors.As(err, &pe) || !errors.Is(err, c.kind) || c.field != "" && (pe.Field != c.field || pe.Bit != c.bit) {
			t.Errorf("%s: %v, want %v in %s at bit %d", name, err, c.kind, c.field, c.bit)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	b := everything(t)
	for name, change := range map[string]func(m map[string]any){
		"missing":         func(m map[string]any) { delete(m, "x") },
		"above its range": func(m map[string]any) { m["x"] = 1001 },
		"too wide":        func(m map[string]any) { m["kind"] = 8 },
		"not a bool":      func(m map[string]any) { m["fire"] = 1 },
		"fraction":        func(m map[string]any) { m["x"] = 1.5 },
		"long text":       func(m map[string]any) { m["name"] = strings.Repeat("x", 64) },
		"wrong count":     func(m map[string]any) { m["key"] = []byte{1} },
		"too many":        func(m map[string]any) { m["scores"] = []any{1, 1, 1, 1, 1} },
		"too few":         func(m map[string]any) { m["scores"] = []any{} },
		"no list":         func(m map[string]any) { m["points"] = 3 },
		"does not fit":    func(m map[string]any) { m["small"] = 128 },
	} {
		m := map[string]any{}
		for _, x := range example() {
			m[x.Name] = x.Value
		}
		change(m)
		w := bits.NewWriter(nil)
		if err := b.Write(&w, m); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

func TestJSON(t *testing.T) {
	got, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":5,"x":-1000,"big":18446744073709551615,"small":-128,"fire":true,"speed":1.5,"exact":"-Infinity","name":"Ünï",` +
		`"blob":"010203","key":"090807060504","scores":[9,0],"points":[{"flag":true,"p":171},{"flag":false}],"place":{"y":-2,"z":255}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The other direction: values from JSON can be written.
	d := json.NewDecoder(bytes.NewReader(got))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	w := bits.NewWriter(nil)
	if err := everything(t).Write(&w, m); err != nil {
		t.Fatal(err)
	}
	again := bits.NewWriter(nil)
	if err := everything(t).Write(&again, example()); err != nil || !bytes.Equal(w.Data(), again.Data()) {
		t.Errorf("by JSON %x, directly %x", w.Data(), again.Data())
	}
}

func TestVisit(t *testing.T) {
	b := compile(t,
		&schema.Field{Name: "n", Type: "bits", Bits: "4"},
		&schema.Field{Name: "list", Type: "array", Count: "n", Item: &schema.Field{Type: "bits", Bits: "4"}},
		&schema.Field{Name: "g", Type: "group", Fields: []*schema.Field{{Name: "t", Type: "bytes", Count: "1"}}},
	)
	r := bits.NewReader([]byte{0x32, 0x04, 'x'})
	var got []string
	if err := b.Visit(&r, func(l *schema.Leaf) {
		text, err := json.Marshal([]any{l.Field.Name, l.Depth, l.Item, l.Bit, l.Bits, l.Uint, string(l.Bytes)})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`["n",0,-1,0,4,2,""]`, `["list",0,-1,4,0,2,""]`, `["",1,0,4,4,3,""]`, `["",1,1,8,4,4,""]`,
		`["g",0,-1,12,0,0,""]`, `["t",1,-1,12,12,0,"x"]`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestExpressions compares expressions with values computed by hand.
func TestExpressions(t *testing.T) {
	for text, want := range map[string]uint64{
		"1 + 2 * 3": 7, "(1 + 2) * 3": 9, "10 - 3 - 2": 5, "7 / 2": 3, "7 % 4": 3, "7 / 0": 0, "7 % 0": 0,
		"1 << 5": 32, "64 >> 3": 8, "1 << 64": 0, "1 << -1": 0, "6 & 3": 2, "6 | 3": 7, "6 ^ 3": 5,
		"3 < 4": 1, "4 <= 4": 1, "4 < 4": 0, "4 != 4": 0, "!4": 0, "!0 + 1": 2, "--3": 3,
		"1 && 0 || 1": 1, "1 || 0 && 0": 1, "[5, 6, 7][1 + 1]": 7, "[5][1]": 0, "0x10": 16, "five + 1": 6,
		"five == 5 && 2 > 1": 1,
	} {
		b := compile(t, &schema.Field{Name: "five", Type: "bits", Bits: "3"},
			&schema.Field{Name: "v", Type: "bits", Bits: text})
		n, err := b.Measure(0, map[string]any{"five": 5, "v": 0})
		if err != nil || uint64(n) != 3+want {
			t.Errorf("%s: %d, want %d (%v)", text, n-3, want, err)
		}
	}
	for _, text := range []string{"1 +", "(1", "1 2", "nobody", "[1][", "[1", "99999999999999999999", "1 = 2", "", "é"} {
		s := &schema.Schema{
			Messages: map[uint32]*schema.Body{0: {Fields: []*schema.Field{{Name: "v", Type: "bits", Bits: text}}}},
		}
		var wrong *schema.Error
		if err := s.Compile(gafferCoding{}); !errors.As(err, &wrong) ||
			wrong.Path != "$.messages.0.fields[0].bits" && text != "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzRead: no bytes cause a panic or unbounded work, and a record that was
// read can be written again.
func FuzzRead(f *testing.F) {
	b := everything(f)
	w := bits.NewWriter(nil)
	if err := b.Write(&w, example()); err != nil {
		f.Fatal(err)
	}
	f.Add(w.Data(), uint8(0))
	f.Add([]byte{}, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, at uint8) {
		var r bits.Reader
		r.Reset(data, int(at%8))
		got, err := b.Read(&r)
		var pe *wire.ParseError
		if err != nil {
			if !errors.As(err, &pe) || pe.Bit > len(data)*8+8 {
				t.Fatalf("%v", err)
			}
			return
		}
		again := bits.NewWriter(nil)
		again.Bits(0, int(at%8))
		if err := b.Write(&again, got); err != nil {
			t.Fatalf("%v was read, and is not written: %v", got, err)
		}
		if again.Pos() != r.Pos() {
			t.Fatalf("%d bits were read, %d written", r.Pos(), again.Pos())
		}
		second := bits.NewReader(again.Data())
		second.Bits(int(at % 8))
		var first bits.Reader
		first.Reset(data, int(at%8))
		for first.Pos() < r.Pos() {
			n := min(r.Pos()-first.Pos(), 64)
			x, _ := first.Bits(n)
			y, _ := second.Bits(n)
			if x != y {
				t.Fatalf("written again it differs before bit %d", first.Pos())
			}
		}
	})
}

func FuzzExpression(f *testing.F) {
	f.Add("1 + [2, n][n] << 3 && !n")
	f.Fuzz(func(t *testing.T, text string) {
		s := &schema.Schema{Messages: map[uint32]*schema.Body{0: {Fields: []*schema.Field{
			{Name: "n", Type: "uint64"}, {Name: "v", Type: "bits", Bits: text, If: text},
		}}}}
		if s.Compile(gafferCoding{}) != nil {
			return
		}
		r := bits.NewReader(bytes.Repeat([]byte{0xa5}, 24))
		_ = s.Skip(0, &r) // must return, whatever the expression is
	})
}

func BenchmarkSkip(b *testing.B) {
	body := everything(b)
	w := bits.NewWriter(nil)
	if err := body.Write(&w, example()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := bits.NewReader(w.Data())
		if err := body.Visit(&r, nil); err != nil {
			b.Fatal(err)
		}
	}
}
