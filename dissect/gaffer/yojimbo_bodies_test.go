package gaffer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"testing"

	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// gameBodies and testBodies read the bodies of the recorded runs by hand. They use no
// schema and are an oracle for it. They return values, to compare with the logs.
type bodyReader func(kind uint32, r *bits.Reader) (map[string]any, error)

func (f bodyReader) Skip(kind uint32, r *bits.Reader) error { _, err := f(kind, r); return err }

func bodiesOf(schema string) bodyReader {
	if schema == "game" {
		return gameBodies
	}
	return testBodies
}

// blockTypes returns the message types of a schema that carry a block.
func blockTypes(schema string) []uint32 {
	switch schema {
	case "game":
		return []uint32{3}
	case "yojimbo-test":
		return []uint32{1}
	}
	return nil
}

func take(r *bits.Reader, n int) uint64 {
	v, ok := r.Bits(n)
	if !ok {
		panic(&common.ParseError{Field: "body", Bit: r.Pos(), Err: common.ErrShort})
	}
	return v
}

func caught(err *error) {
	if x := recover(); x != nil {
		e, ok := x.(*common.ParseError)
		if !ok {
			panic(x)
		}
		*err = e
	}
}

func gameBodies(kind uint32, r *bits.Reader) (v map[string]any, err error) {
	defer caught(&err)
	switch kind {
	case 0:
		return map[string]any{
			"tick": take(r, 32), "mx": int64(take(r, 11)) - 1000, "my": int64(take(r, 11)) - 1000,
			"fire": take(r, 1) == 1,
		}, nil
	case 1:
		n := int(take(r, 6))
		if !r.Align() {
			return nil, &common.ParseError{Field: "text", Bit: r.Pos(), Err: common.ErrPadding}
		}
		b, ok := r.Bytes(n)
		if !ok {
			return nil, &common.ParseError{Field: "text", Bit: r.Pos(), Err: common.ErrShort}
		}
		return map[string]any{"text": string(b)}, nil
	case 2:
		f := func() float64 { return float64(math.Float32frombits(uint32(take(r, 32)))) }
		return map[string]any{"x": f(), "y": f(), "z": f(), "big": strconv.FormatUint(take(r, 32)|take(r, 32)<<32, 10)}, nil
	case 3:
		return map[string]any{"tag": take(r, 16)}, nil
	}
	return map[string]any{}, nil
}

var testTable = []int{1, 320, 120, 4, 256, 45, 11, 13, 101, 100, 84, 95, 203, 2, 3, 8, 512, 5, 3, 7, 50}

func testBodies(kind uint32, r *bits.Reader) (v map[string]any, err error) {
	defer caught(&err)
	switch kind {
	case 0:
		sequence := take(r, 16)
		for n := testTable[sequence%21]; n > 0; n -= 64 {
			if take(r, min(n, 64)) != 0 {
				return nil, &common.ParseError{Field: "body", Bit: r.Pos(), Err: common.ErrPadding}
			}
		}
		return map[string]any{"sequence": sequence, "zero_bits": testTable[sequence%21]}, nil
	case 1:
		return map[string]any{"sequence": take(r, 16)}, nil
	}
	return nil, &common.ParseError{Field: "type", Bit: r.Pos(), Err: common.ErrRange}
}

// bodyText makes a logged body and a read one comparable: floats have nine digits.
func bodyText(t testing.TB, v map[string]any, block []byte) string {
	m := map[string]any{}
	for k, x := range v {
		m[k] = x
		if f, ok := x.(float64); ok {
			m[k] = json.Number(strconv.FormatFloat(f, 'g', 9, 32))
		}
	}
	if block != nil {
		h := fnv.New32a()
		h.Write(block) // a hash never fails
		m["block_bytes"], m["block_fnv1a32"] = len(block), fmt.Sprintf("%08x", binary.BigEndian.Uint32(h.Sum(nil)))
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// loggedText converts a logged body into that form.
func loggedText(t testing.TB, raw json.RawMessage) string {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for k, x := range m {
		if f, ok := x.(float64); ok {
			if k == "x" || k == "y" || k == "z" {
				m[k] = json.Number(strconv.FormatFloat(float64(float32(f)), 'g', 9, 32))
			} else {
				m[k] = int64(f)
			}
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// configuration returns the run's configuration, as its endpoints were set up.
func (r *yojimboRun) configuration(t testing.TB) *wire.Yojimbo {
	t.Helper()
	y := &wire.Yojimbo{
		MessageTypes: r.config.Types, BlockTypes: blockTypes(r.config.Schema),
		Bodies: bodiesOf(r.config.Schema),
	}
	for _, c := range r.config.Channels {
		kind := wire.ReliableOrdered
		if c.Type == "unreliable_unordered" {
			kind = wire.UnreliableUnordered
		}
		y.Channels = append(y.Channels, wire.YojimboChannel{
			Type: kind, DisableBlocks: c.DisableBlocks, MaxMessages: c.MaxMessages, MaxBlockSize: c.MaxBlockSize,
			BlockFragmentSize: c.BlockFragmentSize, SendQueue: c.SendQueue, ReceiveQueue: c.ReceiveQueue,
		})
	}
	if err := y.Validate(); err != nil {
		t.Fatal(err)
	}
	return y
}
