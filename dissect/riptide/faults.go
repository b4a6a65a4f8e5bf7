package riptide

import (
	"github.com/ackscope/ackscope/machine"
	tracker "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// valueFaults gives what looks the values of a flow's messages over for faults of
// the library that only values show; nil where no schema reads them.
func (s *Settings) valueFaults() func(machine.Side, *wire.Message, []byte) tracker.ValueFaults {
	if s.bodies == nil {
		return nil
	}
	return func(from machine.Side, m *wire.Message, b []byte) (found tracker.ValueFaults) {
		body, _ := s.bodies.of(s.Senders[from], m)
		if body == nil {
			return 0
		}
		if m.BodyBits < 8 && len(body.Fields) > 0 {
			found |= tracker.ValuesMissing
		}
		var r bits.Reader
		r.Reset(b, m.BodyBit)
		// Values that do not read to the end are told where the message is dissected.
		_ = body.Visit(&r, func(l *schema.Leaf) {
			switch {
			case l.Lost && l.Field.Item != nil && l.Field.Item.Shape() == schema.Bool:
				found |= tracker.BoolArrayLost
				found &^= tracker.ValuesMissing // it has values, of which nothing is written
			case l.Lost && l.Uint > 0:
				found |= tracker.ShortArrayLost
			case l.Field.Type == "varlong" && beyondVarLong(int64(l.Uint)):
				found |= tracker.VarLongWrong
			}
		})
		return found
	}
}

// beyondVarLong reports whether the library's receivers read a VarLong wrongly.
func beyondVarLong(v int64) bool { return v >= 1<<62 || v < -1<<62 }
