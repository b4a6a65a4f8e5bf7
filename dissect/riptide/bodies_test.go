package riptide

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/schema/yamlfile"
	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// valuesOf reads the values of a user message, or of connect, reject or kick data, by the schema of
// the flow. It returns the schema's name for the message, and the values in order. Arrays that the
// sender's library left off the wire are schema.Missing. Both results are empty where no schema
// describes the message.
func valuesOf(ctx dissect.Context, dg *machine.Datagram) (name string, values schema.Record, err error) {
	set := settingsOf(ctx.Config)
	s := set.Senders[ctx.From]
	var m wire.Message
	if err := s.Codec.Parse(dg.Bytes, max(dg.Length, len(dg.Bytes)), &m); err != nil {
		return "", nil, err
	}
	body, _ := set.bodies.of(s, &m)
	if body == nil {
		return "", nil, nil
	}
	values, err = read(s, body, &m, dg.Bytes, m.BodyBit)
	return body.Name, values, err
}

// withSchema returns the descriptor that reads values by a schema's text.
func withSchema(t testing.TB, src []byte) *dissect.Protocol {
	t.Helper()
	s, err := yamlfile.Schema(src, "schema.yaml", wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := With(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func captureSchema(t testing.TB) *dissect.Protocol {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(pcaps, "riptide-messages.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return withSchema(t, src)
}

// TestSchemaValues reads the messages of the endpoints at the tap by the schema file, as the
// classifier reads the flow. It compares them with the endpoints' logs.
func TestSchemaValues(t *testing.T) {
	p := captureSchema(t)
	messages, values, missing := 0, 0, 0
	for _, path := range captures(t, riptideRuns...) {
		if strings.Contains(path, "rwrap") {
			continue // one kind of message, 66,000 times: TestValues has it
		}
		tr := truthOf(t, path)
		flows := flowsOf(t, path)
		verdict := map[*byte]*dissect.Config{}
		for _, f := range flows {
			c := p.Classify()
			for i := range f.datagrams {
				c.Feed(&f.datagrams[i])
			}
			config := c.Verdict().Config
			for i := range f.datagrams {
				if b := f.datagrams[i].Bytes; len(b) > 0 {
					verdict[&b[0]] = config
				}
			}
		}
		pairs, _, _ := pairSends(t, path, flows, tr)
		for _, x := range pairs {
			messages++
			ctx := dissect.Context{Config: verdict[&x.b[0]], From: x.from}
			name, record, err := valuesOf(ctx, &machine.Datagram{Bytes: x.b, Length: len(x.b)})
			if err != nil || name == "" || len(record) != len(x.line.Values) {
				t.Errorf("%s id %d %s: %s has %d values, want %d, %v", filepath.Base(path), x.m.MessageID, x.m.Type, name,
					len(record), len(x.line.Values), err)
				continue
			}
			for i, got := range record.Values() {
				if _, lost := got.(schema.Missing); lost {
					missing++
					if v := tr.version[x.line.Endpoint]; !strings.HasPrefix(v, "2.1.") && v != "pytide-2.1.0-alpha" {
						t.Errorf("%s: %s %s is said to be missing", filepath.Base(path), v, x.line.Values[i].Type)
					}
					continue
				}
				if !equal(widen(got), &x.line.Values[i]) {
					t.Errorf("%s id %d: value %d is %v, log %s", filepath.Base(path), x.m.MessageID, i, got, x.line.Values[i].Value)
				}
				values++
			}
		}
	}
	t.Logf("%d messages, %d values equal to the logs, %d arrays left off the wire", messages, values, missing)
	if messages < 20_000 || missing == 0 {
		t.Errorf("%d messages, %d missing arrays", messages, missing)
	}
}

// widen converts single floats to doubles, as the comparison has them.
func widen(v any) any {
	switch v := v.(type) {
	case float32:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = widen(v[i])
		}
		return out
	}
	return v
}

// TestSchemaData reads connect, reject and kick data from captured packets.
func TestSchemaData(t *testing.T) {
	p := captureSchema(t)
	for _, e := range []struct{ profile, bytes, want string }{
		{"2.2.1", "5210c6963656760000", `connect_data {"v0":"alice","v1":7}`},
		{"2.2.1", "43d07027f7e676066257263797f6e666fdffff0f", `reject_data {"v0":"wrong version","v1":-42}`},
		{"2.2.1", "4520b19636b656460662f626074257364797e67676682d0100", `kick_data {"v0":"kicked for testing","v1":1234567}`},
		{"2.1-dev-n", "03040d77726f6e672076657273696f6ed6ffffff", `reject_data {"v0":"wrong version","v1":-42}`},
		{"2.0", "04050d77726f6e672076657273696f6ed6ffffff", `reject_data {"v0":"wrong version","v1":-42}`},
		{"2.0", "0305616c6963650700", `connect_data {"v0":"alice","v1":7}`},
		{
			"2.1-dev-n", "0607007d0900546397130300 0066779b430361636b",
			`notify {"v0":328688468,"v1":3,"v2":false,"v3":310.9328,"v4":"ack"}`,
		},
		{
			"2.1-dev-n", "0708000700157d3f07",
			`bools {"v0":[true,false,true,true,true,true,true,false,true,true,true,true,true,true,false,false,true,true,true,false,false]}`,
		},
		{"2.2.1", "2300", ` null`},
		{"2.2.1", "02", ` null`},
		{"2.2.1", "1400", ` null`},
		{"2.2.1", "05", ` null`},
		{"2.2.1", "1000", `empty {}`},
	} {
		var config *dissect.Config
		for _, known := range p.Profiles {
			if known.Name == e.profile {
				config = known.Config
			}
		}
		ctx, dg := dissect.Context{Config: config}, datagram(t, e.bytes)
		name, record, err := valuesOf(ctx, dg)
		got, _ := json.Marshal(record)
		if record == nil && name == "" {
			got = []byte("null")
		}
		if s := name + " " + string(got); err != nil || s != e.want {
			t.Errorf("%s %s: %s, %v; want %s", e.profile, e.bytes, s, err, e.want)
		}
		// The fields are the same values, each at its place.
		var d dissect.Dissection
		Dissect(ctx, dg, &d)
		at := uint32(0)
		for _, f := range d.Fields[1:] {
			if f.Spec == nil {
				t.Fatalf("%s: a field without description", e.bytes)
			}
			if f.Bits == 0 || f.Spec.Kind == dissect.KindGroup && f.Depth == 1 {
				continue
			}
			if f.Bit < at {
				t.Errorf("%s: %s at bit %d, behind %d", e.bytes, f.Spec.Name, f.Bit, at)
			}
			at = f.Bit + f.Bits
		}
		if d.Problem != nil || at != uint32(dg.Length)*8 {
			t.Errorf("%s: fields up to bit %d of %d, %v", e.bytes, at, dg.Length*8, d.Problem)
		}
	}
}

// TestSchemaMisfits: a message that the schema does not explain to its end is a problem, and so is
// an impossible schema.
func TestSchemaMisfits(t *testing.T) {
	p := withSchema(t, []byte("messages: {1: {name: m, fields: [{name: a, type: byte}]}}"))
	ctx := dissect.Context{Config: p.Profiles[0].Config}
	for _, bytes := range []string{"1000", "10a0bc0d"} {
		_, _, err := valuesOf(ctx, datagram(t, bytes))
		var d dissect.Dissection
		Dissect(ctx, datagram(t, bytes), &d)
		if !errors.Is(err, common.ErrShort) && !errors.Is(err, common.ErrTrailing) || d.Problem == nil {
			t.Errorf("%s: %v, %v", bytes, err, d.Problem)
		}
	}
	for _, src := range []string{
		"packets: {7: {name: x, fields: [{name: a, type: byte}]}}",
		"messages: {70000: {name: x, fields: [{name: a, type: byte}]}}",
	} {
		s, err := yamlfile.Schema([]byte(src), "x.yaml", wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := With(nil, s); err == nil {
			t.Errorf("%s is taken", src)
		}
	}
}

// TestCodingAgreesWithReader writes a body of every type by the schema in every dialect and reads
// it value by value. Then it does the opposite.
func TestCodingAgreesWithReader(t *testing.T) {
	src := `
messages:
  1:
    name: all
    fields:
      - {name: a, type: byte}
      - {name: b, type: bool}
      - {name: c, type: short}
      - {name: d, type: string}
      - {name: e, type: array, item: {type: bool}}
      - {name: f, type: long}
      - {name: g, type: array, item: {type: ushort}}
      - {name: h, type: vec3}
      - {name: i, type: double}
      - {name: j, type: bytes, count: 3}
`
	values := schema.Record{
		{Name: "a", Value: uint64(200)},
		{Name: "b", Value: true},
		{Name: "c", Value: int64(-2)},
		{Name: "d", Value: strings.Repeat("héllo", 40)},
		{Name: "e", Value: []any{true, false, true, true, false, false, false, true, true}},
		{Name: "f", Value: int64(-1) << 62},
		{Name: "g", Value: []any{uint64(1), uint64(65535)}},
		{Name: "h", Value: []any{1.5, -2.0, 0.25}},
		{Name: "i", Value: 1e300},
		{Name: "j", Value: []byte{1, 2, 3}},
	}
	base, err := yamlfile.Schema([]byte(src), "all.yaml", wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range hypotheses {
		s, err := base.With(wire.Coding{Codec: c})
		if err != nil {
			t.Fatal(err)
		}
		w := bits.NewWriter(nil)
		if err := s.Messages[1].Write(&w, values); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Messages[1].Measure(0, values); err != nil || n != w.Pos() {
			t.Errorf("%s: measured %d bits, wrote %d, %v", c.Dialect.Name, n, w.Pos(), err)
		}
		// By hand.
		v := c.Writer(nil)
		v.Uint(200, 8)
		v.Bool(true)
		v.Int(-2, 16)
		v.Text(strings.Repeat("héllo", 40))
		v.Length(9)
		v.Bools([]bool{true, false, true, true, false, false, false, true, true})
		v.Int(-1<<62, 64)
		v.Length(2)
		v.Uint(1, 16)
		v.Uint(65535, 16)
		for _, f := range []float64{1.5, -2, 0.25} {
			v.Float(f, 32)
		}
		v.Float(1e300, 64)
		v.Bytes([]byte{1, 2, 3})
		if string(v.Body()) != string(w.Data()) || v.Bits() != w.Pos() {
			t.Errorf("%s big %v:\nschema %x\nwriter %x", c.Dialect.Name, c.BigEndian, w.Data(), v.Body())
		}
		m := wire.Message{Type: wire.Reliable, Sequence: 2, MessageID: 1}
		b, err := c.Append(nil, &m, w.Data(), w.Pos())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Parse(b, len(b), &m); err != nil {
			t.Fatal(err)
		}
		var r bits.Reader
		r.Reset(b, m.BodyBit)
		got, err := s.Read(1, &r)
		if err != nil {
			t.Fatalf("%s: %v", c.Dialect.Name, err)
		}
		x, _ := json.Marshal(got)
		y, _ := json.Marshal(values)
		if string(x) != string(y) {
			t.Errorf("%s:\n got %s\nwant %s", c.Dialect.Name, x, y)
		}
	}
}
