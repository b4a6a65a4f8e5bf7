package riptide

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/wire"
)

// valueExamples are bodies of captured packets with their documented values.
var valueExamples = []struct {
	dialect *Dialect
	big     bool
	bytes   string
	types   string
	want    []any
}{
	{V21, false, "5210c6963656760000", "string ushort", []any{"alice", uint64(7)}},
	{V21, false, "43d07027f7e676066257263797f6e666fdffff0f", "string int", []any{"wrong version", int64(-42)}},
	{
		V21, false, "4520b19636b656460662f6260742573647 97e67676682d0100", "string int",
		[]any{"kicked for testing", int64(1234567)},
	},
	{V21, false, "0702001810610f", "ushort", []any{uint64(62993)}},
	{V21, false, "270200081820b50d", "ushort", []any{uint64(56146)}},
	{
		V21, false, "47002030041000c07812", "byte sbyte bool short ushort",
		[]any{uint64(67), int64(0), true, int64(0), uint64(37830)},
	},
	{
		V21, false, "57002030ff3f0040ba13", "byte sbyte bool short ushort",
		[]any{uint64(243), int64(-1), true, int64(1), uint64(40402)},
	},
	{V21, false, "970070c0c15308bd", "bool[]", []any{boolsOf("0011110010100001000010111101")}},
	{V20, false, "070800070013e20601", "bool[]", []any{boolsOf("0100011101100000100")}},
	{DevN, false, "0708000700157d3f07", "bool[]", []any{boolsOf("101111101111110011100")}},
	{
		V20, false, "07040002007f7f01ff7fff7f", "byte sbyte bool short ushort",
		[]any{uint64(127), int64(127), true, int64(32767), uint64(32767)},
	},
	{
		DevN, false, "0704000200ff80018c06ffff", "byte sbyte bool short ushort",
		[]any{uint64(255), int64(-128), true, int64(1676), uint64(65535)},
	},
	{
		DevN, false, "0607007d0900546397130300 0066779b43 0361636b", "uint short bool float string",
		[]any{uint64(0x13976354), int64(3), false, float64(math.Float32frombits(0x439b7766)), "ack"},
	},
	{V20, false, "0305616c6963650700", "string ushort", []any{"alice", uint64(7)}},
	// By hand: two-byte length, high byte first, in either byte order.
	{DevN, false, "0701000100 813d", "length", []any{317}},
	{DevN, true, "0700010001 813d", "length", []any{317}},
	{Notes, true, "0700010001 fffffffe 3f800000", "int float", []any{int64(-2), float64(1)}},
}

func boolsOf(s string) (out []bool) {
	for _, c := range s {
		out = append(out, c == '1')
	}
	return out
}

func read(t *testing.T, r *Reader, types string) (out []any) {
	t.Helper()
	for _, name := range strings.Fields(types) {
		var v any
		var err error
		switch name {
		case "byte":
			v, err = r.Uint(8)
		case "sbyte":
			v, err = r.Int(8)
		case "short":
			v, err = r.Int(16)
		case "ushort":
			v, err = r.Uint(16)
		case "int":
			v, err = r.Int(32)
		case "uint":
			v, err = r.Uint(32)
		case "float":
			v, err = r.Float(32)
		case "bool":
			v, _, err = r.Bool()
		case "length":
			v, err = r.Length()
		case "string":
			var b []byte
			b, err = r.Text(nil)
			v = string(b)
		case "bool[]":
			var n int
			if n, err = r.Length(); err == nil {
				v, err = r.Bools(nil, n)
			}
		default:
			t.Fatalf("no type %q", name)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

func TestValueExamples(t *testing.T) {
	for _, e := range valueExamples {
		b := unhex(t, e.bytes)
		c := Codec{Dialect: e.dialect, BigEndian: e.big}
		var m Message
		if err := c.Parse(b, len(b), &m); err != nil {
			t.Errorf("%s: %v", e.bytes, err)
			continue
		}
		r := c.Values(b, &m)
		if got := read(t, &r, e.types); !reflect.DeepEqual(got, e.want) {
			t.Errorf("%s %s: got %v, want %v", e.dialect.Name, e.bytes, got, e.want)
		}
		if !r.Whole() {
			t.Errorf("%s %s: %d bits left", e.dialect.Name, e.bytes, r.Left())
		}
		// Write the values again.
		w := c.Writer(nil)
		for i, name := range strings.Fields(e.types) {
			write(&w, e.want[i], name)
		}
		out, err := c.Append(nil, &m, w.Body(), w.Bits())
		if err != nil || w.Err() != nil || !bytes.Equal(out, b) {
			t.Errorf("%s %s: written again as %x, %v %v", e.dialect.Name, e.bytes, out, err, w.Err())
		}
	}
}

func write(w *Writer, v any, name string) {
	width := map[string]int{"byte": 8, "sbyte": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "float": 32}[name]
	switch v := v.(type) {
	case uint64:
		w.Uint(v, width)
	case int64:
		w.Int(v, width)
	case float64:
		w.Float(v, width)
	case bool:
		w.Bool(v)
	case int:
		w.Length(v)
	case string:
		w.Text(v)
	case []bool:
		w.Length(len(v))
		w.Bools(v)
	}
}

// TestVarints checks the documented codings and every edge of a group.
func TestVarints(t *testing.T) {
	c := Codec{Dialect: V21}
	for hex, want := range map[string]uint64{
		"d501": 213, "8001": 128, "808001": 16384, "c0b802": 40000, "e701": 231,
		"00": 0, "ffffffffffffffffff01": math.MaxUint64,
	} {
		w := c.Writer(nil)
		w.VarUint(want)
		if !bytes.Equal(w.Body(), unhex(t, hex)) {
			t.Errorf("%d is written as %x, want %s", want, w.Body(), hex)
		}
	}
	for v, want := range map[int64]string{
		0: "00", -1: "01", 1: "02", -2: "03", 64: "8001",
		math.MinInt64: "ffffffffffffffffff01", math.MaxInt64: "feffffffffffffffff01",
	} {
		w := c.Writer(nil)
		w.VarInt(v)
		if !bytes.Equal(w.Body(), unhex(t, want)) {
			t.Errorf("%d is written as %x, want %s", v, w.Body(), want)
		}
	}
	for shift := range 64 {
		for _, v := range []uint64{1 << shift, 1<<shift - 1, math.MaxUint64 >> shift} {
			w := c.Writer(nil)
			w.Raw(1, 3) // off a byte boundary
			w.VarUint(v)
			w.VarInt(int64(v))
			w.VarInt(-int64(v))
			m := Message{Type: Notify}
			b, err := c.Append(nil, &m, w.Body(), w.Bits())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Parse(b, len(b), &m); err != nil {
				t.Fatal(err)
			}
			r := c.Values(b, &m)
			_, _ = r.Raw(3)
			x, e1 := r.VarUint()
			y, e2 := r.VarInt()
			z, e3 := r.VarInt()
			if x != v || y != int64(v) || z != -int64(v) || e1 != nil || e2 != nil || e3 != nil || !r.Whole() {
				t.Fatalf("%d: %d %d %d, %v %v %v", v, x, y, z, e1, e2, e3)
			}
		}
	}
	long := Message{Type: Notify}
	b, _ := c.Append(nil, &long, bytes.Repeat([]byte{0xff}, 11), 88)
	if err := c.Parse(b, len(b), &long); err != nil {
		t.Fatal(err)
	}
	r := c.Values(b, &long)
	if _, err := r.VarUint(); !errors.Is(err, wire.ErrRange) || r.Pos() != 44 {
		t.Errorf("eleven groups: %v at %d", err, r.Pos())
	}
}

func TestLengths(t *testing.T) {
	for _, d := range Dialects {
		c := Codec{Dialect: d}
		for _, n := range []int{0, 1, 126, 127, 128, 129, 255, 256, 16383, 16384, 32767} {
			w := c.Writer(nil)
			w.Length(n)
			want := 8
			if n > 127 {
				want = 16
			}
			if d == V21 && n > 16383 {
				want = 24
			}
			r := bodyReader(t, c, &w)
			if got, err := r.Length(); got != n || err != nil || w.Bits() != want || w.Err() != nil {
				t.Errorf("%s: length %d in %d bits (want %d) reads as %d, %v", d.Name, n, w.Bits(), want, got, err)
			}
		}
		w := c.Writer(nil)
		w.Length(32768)
		if (w.Err() == nil) != (d == V21) {
			t.Errorf("%s: length 32768: %v", d.Name, w.Err())
		}
	}
	w := Codec{Dialect: V20}.Writer(nil)
	if w.Raw(1, 3); w.Err() == nil {
		t.Error("raw bits in a byte-aligned form")
	}
}

func bodyReader(t *testing.T, c Codec, w *Writer) Reader {
	t.Helper()
	m := Message{Type: Unreliable, MessageID: 1}
	b, err := c.Append(nil, &m, w.Body(), w.Bits())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Parse(b, len(b), &m); err != nil {
		t.Fatal(err)
	}
	return c.Values(b, &m)
}

// TestBoolBytes: only 1 is true in the byte-aligned forms.
func TestBoolBytes(t *testing.T) {
	for v, want := range map[byte][2]bool{0: {false, true}, 1: {true, true}, 2: {false, false}, 255: {false, false}} {
		b := []byte{0, 1, 0, v}
		var m Message
		c := Codec{Dialect: Notes}
		if err := c.Parse(b, 4, &m); err != nil {
			t.Fatal(err)
		}
		r := c.Values(b, &m)
		if value, canonical, err := r.Bool(); err != nil || [2]bool{value, canonical} != want {
			t.Errorf("byte %d: %v %v %v", v, value, canonical, err)
		}
	}
}

// FuzzValues reads any bytes as any type. It must not panic, and the position must not change where
// a value cannot be read.
func FuzzValues(f *testing.F) {
	for _, e := range valueExamples {
		f.Add(unhex(f, e.bytes), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, uint8(4), false)
	}
	f.Fuzz(func(t *testing.T, b, types []byte, which uint8, big bool) {
		c := Codec{Dialect: Dialects[int(which)%len(Dialects)], BigEndian: big}
		var m Message
		if c.Parse(b, len(b), &m) != nil {
			return
		}
		r := c.Values(b, &m)
		for _, k := range types {
			at := r.Pos()
			var err error
			switch k % 10 {
			case 0:
				_, err = r.Uint(8 << (k / 10 % 4))
			case 1:
				_, err = r.Int(8 << (k / 10 % 4))
			case 2:
				_, err = r.Float(32 << (k / 10 % 2))
			case 3:
				_, _, err = r.Bool()
			case 4:
				_, err = r.Bools(nil, int(k))
			case 5:
				_, err = r.Length()
			case 6:
				_, err = r.Raw(int(k%64) + 1)
			case 7:
				_, err = r.Bytes(nil, int(k/10))
			case 8:
				_, err = r.Text(nil)
			case 9:
				_, err = r.VarUint()
			}
			if err != nil && r.Pos() != at || r.Pos() > len(b)*8 {
				t.Fatalf("type %d at %d: %v, now at %d", k, at, err, r.Pos())
			}
			r.Whole()
		}
	})
}

func BenchmarkValues(b *testing.B) {
	b.ReportAllocs()
	p := unhex(b, "47002030041000c07812")
	c := Codec{Dialect: V21}
	var m Message
	for b.Loop() {
		if c.Parse(p, len(p), &m) != nil {
			b.Fatal()
		}
		r := c.Values(p, &m)
		_, _ = r.Uint(8)
		_, _ = r.Int(8)
		_, _, _ = r.Bool()
		_, _ = r.Int(16)
		if _, err := r.Uint(16); err != nil {
			b.Fatal(err)
		}
	}
}
