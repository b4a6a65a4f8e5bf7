package riptide

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// The messages of the kit's applications. docs/lab-riptide.yaml is their schema.
const firstID = 40 // the id of Move; Chat and Scores follow

// value is the type of one value of a message.
type value uint8

const (
	uintValue value = iota
	floatValue
	boolValue
	textValue
	intsValue
)

var layouts = [...][]value{
	{uintValue, floatValue, floatValue, boolValue},
	{textValue},
	{intsValue},
}

// shot is the values of a notify message, which has no id.
var shot = []value{uintValue, floatValue}

// layoutOf returns the types of the values of a kit's message, or nil for any other message.
func layoutOf(channel uint8, id uint16) []value {
	switch {
	case channel == riptide.ChannelNotify:
		return shot
	case id >= firstID && int(id) < firstID+len(layouts):
		return layouts[id-firstID]
	}
	return nil
}

var words = [...]string{"alpha", "bravo", "gg", "left flank", "🎮 go", ""}

// draw writes a random value.
func (v value) draw(w *wire.Writer, rng *rand.Rand) {
	switch v {
	case uintValue:
		w.Uint(rng.Uint64()>>rng.IntN(64), 32)
	case floatValue:
		w.Float(float64(float32(rng.NormFloat64()*100)), 32)
	case boolValue:
		w.Bool(rng.IntN(2) == 1)
	case textValue:
		w.Text(words[rng.IntN(len(words))])
	case intsValue:
		n := rng.IntN(40)
		w.Length(n)
		for range n {
			w.Int(int64(int32(rng.Uint32())), 32)
		}
	}
}

// read reads a value, in the format of the logs.
func (v value) read(r *wire.Reader) (sim.Line, error) {
	switch v {
	case uintValue:
		x, err := r.Uint(32)
		return sim.Line{"type": "uint", "value": x}, err
	case floatValue:
		x, err := r.Float(32)
		bits := math.Float32bits(float32(x))
		return sim.Line{
			"type": "float", "value": x,
			"bits": hex.EncodeToString([]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)}),
		}, err
	case boolValue:
		x, _, err := r.Bool()
		return sim.Line{"type": "bool", "value": x}, err
	case textValue:
		x, err := r.Text(nil)
		return sim.Line{"type": "string", "value": string(x)}, err
	}
	n, err := r.Length()
	if err != nil || n > r.Left()/32 {
		return nil, fmt.Errorf("int[]: %d elements in %d bits: %w", n, r.Left(), err)
	}
	list := make([]int64, 0, n)
	for range n {
		x, err := r.Int(32)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return sim.Line{"type": "int[]", "value": list}, nil
}

// valuesOf returns all values of a kit's message, or none for any other. It returns nil where they
// cannot be read.
func valuesOf(codec wire.Codec, channel uint8, id uint16, payload []byte) []sim.Line {
	values := []sim.Line{}
	r := codec.Values(payload, &wire.Message{BodyBits: 8 * len(payload)})
	for _, v := range layoutOf(channel, id) {
		line, err := v.read(&r)
		if err != nil {
			return nil
		}
		values = append(values, line)
	}
	return values
}
