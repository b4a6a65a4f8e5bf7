package gaffer

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// messageValues returns a message's name and values, read by the flow's schema. It
// returns nothing if there is no schema, or the tracker did not keep the body.
func messageValues(c *dissect.Config, m *machine.Message) (string, dissect.Values) {
	var known wire.Bodies
	switch p := c.Profile.(type) {
	case *wire.Profile:
		known = p.Messages.Bodies
	case *secured:
		if y := p.connection(c); y != nil {
			known = y.Bodies
		}
	}
	b, ok := known.(*bodies)
	if !ok || m.Untyped || m.Bits < 0 {
		return "", nil
	}
	name := b.Name(m.Type)
	var r bits.Reader
	r.Reset(m.Body, int(m.BodyBit))
	record, err := b.Read(m.Type, &r)
	if err != nil || record == nil {
		return name, nil
	}
	return name, record
}
