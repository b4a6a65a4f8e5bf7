package gaffertest

import (
	"math/rand/v2"
	"strings"

	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const talk = `
messages:
  0:
    name: TestMessage
    fields:
      - {name: a, type: bits, bits: 32}
      - {name: b, type: bits, bits: 32}
      - {name: c, type: bits, bits: 32}
  1:
    name: Chat
    fields:
      - {name: mood, type: int, min: -3, max: 60}
      - {name: text, type: string, max: 40}
  2:
    name: Inputs
    fields:
      - {name: held, type: array, min: 0, max: 31, item: {type: bits, bits: 11}}
      - {name: fire, type: bool}
      - {name: at, type: float, if: fire}
`

// Schema returns the schema that a YAML text describes.
func Schema(text string) *schema.Schema {
	s, err := yamlfile.Schema([]byte(text), "test", wire.Coding{})
	if err != nil {
		panic(err)
	}
	return s
}

// Talk is the schema of the messages of soaks. It has the article's own test message,
// one whose layout depends on where it begins, and one whose length depends on its
// content.
var Talk = Schema(talk)

// Tiny is the schema of a game with one type of message, 8 bits wide.
var Tiny = Schema(`{messages: {0: {name: Byte, fields: [{name: v, type: bits, bits: 8}]}}}`)

// drawBody draws a random message of Talk.
func drawBody(rng *rand.Rand) (kind uint32, body []byte) {
	kind = uint32(rng.IntN(3))
	values := map[string]any{}
	switch kind {
	case 0:
		values["a"], values["b"], values["c"] = uint64(rng.Uint32()), uint64(rng.Uint32()), uint64(rng.Uint32())
	case 1:
		values["mood"], values["text"] = int64(rng.IntN(64)-3), strings.Repeat("x", rng.IntN(41))
	case 2:
		held := make([]any, rng.IntN(32))
		for i := range held {
			held[i] = uint64(rng.IntN(1 << 11))
		}
		values["held"], values["fire"], values["at"] = held, rng.IntN(2) == 0, rng.Float32()
	}
	w := bits.NewWriter(nil)
	if err := Talk.Messages[kind].Write(&w, values); err != nil {
		panic(err)
	}
	return kind, w.Data()
}
