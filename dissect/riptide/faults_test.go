package riptide

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestBytesThenMore: a value after whole bytes is in doubt where these begin at a byte boundary and
// end within a word of 64 bits. The values of an unreliable message with a small id begin at bit
// 12.
func TestBytesThenMore(t *testing.T) {
	p := withSchema(t, []byte(`
messages:
  1: {name: plain, fields: [{name: text, type: string}, {name: n, type: int}]}
  2: {name: aligned, fields: [{name: flags, type: bits, bits: 4}, {name: text, type: string}, {name: n, type: int}]}
  3: {name: last, fields: [{name: flags, type: bits, bits: 4}, {name: text, type: string}]}
  4: {name: array, fields: [{name: flags, type: bits, bits: 4}, {name: data, type: array, item: {type: byte}}, {name: more, type: bool}]}
`))
	c := wire.Codec{Dialect: wire.V21}
	for _, x := range []struct {
		id     uint16
		values map[string]any
		stale  bool
	}{
		{1, map[string]any{"text": "abc", "n": 7}, false},
		{2, map[string]any{"flags": 1, "text": "abc", "n": 7}, true},    // ends at bit 48
		{2, map[string]any{"flags": 1, "text": "", "n": 7}, false},      // no bytes
		{2, map[string]any{"flags": 1, "text": "abcde", "n": 7}, false}, // ends at bit 64
		{3, map[string]any{"flags": 1, "text": "abc"}, false},           // nothing follows
		{4, map[string]any{"flags": 1, "data": []any{1, 2, 3}, "more": true}, true},
	} {
		set := both(Sender{Codec: c, Builds: wire.BuildsOf(wire.V21)})
		set.bodies = p.Profiles[0].Config.Profile.(*Settings).bodies
		body, _ := set.bodies.of(set.Senders[0], &wire.Message{Type: wire.Unreliable, MessageID: x.id})
		var w bits.Writer
		if err := body.Write(&w, x.values); err != nil {
			t.Fatal(err)
		}
		b, err := c.Append(nil, &wire.Message{Type: wire.Unreliable, MessageID: x.id}, w.Data(), w.Pos())
		if err != nil {
			t.Fatal(err)
		}
		var m wire.Message
		if err := c.Parse(b, len(b), &m); err != nil {
			t.Fatal(err)
		}
		found := set.valueFaults()(machine.A, &m, b)
		if stale := found&model.BytesThenMore != 0; stale != x.stale {
			t.Errorf("message %d of %v: in doubt %v, expected %v", x.id, x.values, stale, x.stale)
		}
	}
}
