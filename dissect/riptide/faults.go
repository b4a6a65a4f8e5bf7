package riptide

import (
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// valueFaults returns a function that finds the library's faults which show only in the values of
// messages. It returns nil where no schema reads them.
func (s *Settings) valueFaults() func(machine.Side, *wire.Message, []byte) model.ValueFaults {
	if s.bodies == nil {
		return nil
	}
	return func(from machine.Side, m *wire.Message, b []byte) (found model.ValueFaults) {
		body, _ := s.bodies.of(s.Senders[from], m)
		if body == nil {
			return 0
		}
		if m.BodyBits < 8 && len(body.Fields) > 0 {
			found |= model.ValuesMissing
		}
		var r bits.Reader
		r.Reset(b, m.BodyBit)
		var bytes wholeBytes
		// Dissect reports values that do not read to the end.
		_ = body.Visit(&r, func(l *schema.Leaf) {
			if m.Type.User() && bytes.before(l) { // data of other types was written into another message first
				found |= model.BytesThenMore
			}
			switch {
			case l.Lost && l.Field.Item != nil && l.Field.Item.Shape() == schema.Bool:
				found |= model.BoolArrayLost
				found &^= model.ValuesMissing // it has values, but none of them was written
			case l.Lost && l.Uint > 0:
				found |= model.ShortArrayLost
			case l.Field.Type == "varlong" && beyondVarLong(int64(l.Uint)):
				found |= model.VarLongWrong
			}
		})
		return found
	}
}

// wholeBytes finds values that follow whole bytes (a text, a byte[]) which begin at a byte
// boundary. Releases 2.1.0 and 2.1.1 copy such bytes in words of 64 bits. The rest of the last word
// keeps its old bits.
type wholeBytes struct {
	end     int // of the last ones found; 0 for none
	aligned bool
	array   *schema.Field // whose items they are
}

const wordBits = 64

// before reports whether a value follows such bytes.
func (w *wholeBytes) before(l *schema.Leaf) bool {
	item := l.Item >= 0 && l.Field.Type == "byte"
	if item && l.Field == w.array && l.Bit == w.end {
		w.end += l.Bits
		return false
	}
	stale := w.end > 0 && w.aligned && w.end%wordBits != 0
	w.end, w.array = 0, nil
	if item || l.Field.Shape() == schema.Text && len(l.Bytes) > 0 {
		w.end, w.aligned = l.Bit+l.Bits, l.Bit%8 == 0
	}
	if item {
		w.array = l.Field
	}
	return stale
}

// beyondVarLong reports whether the library's receivers read a VarLong wrongly.
func beyondVarLong(v int64) bool { return v >= 1<<62 || v < -1<<62 }
