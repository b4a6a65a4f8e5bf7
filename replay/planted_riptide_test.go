package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/ackscope/ackscope/dissect/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

func (s *subject) riptideTeller() func(rng *rand.Rand, at int) []change {
	c, ok := s.flow.Config().Profile.(*riptide.Settings)
	if !ok {
		return nil
	}
	return func(rng *rand.Rand, at int) []change { return s.riptideLies(c, rng, at) }
}

// riptideLies changes any field of a message's header.
func (s *subject) riptideLies(c *riptide.Settings, rng *rand.Rand, at int) (list []change) {
	d := &s.list[at]
	codec := c.Senders[s.side].Codec
	var m wire.Message
	if codec.Parse(d.Bytes, d.Length, &m) != nil {
		return nil
	}
	codec.WalkMessage(d.Bytes, d.Length, &m, func(f wire.Field, bit, width int, value uint64) {
		b := bytes.Clone(d.Bytes)
		v := drawn(rng, value, width)
		for i := range width {
			n := bit + i
			b[n/8] = b[n/8]&^(1<<(n%8)) | byte(v>>i&1)<<(n%8)
		}
		list = append(list, change{field: fmt.Sprintf("%s %s", m.Type, f), bytes: b})
	})
	return list
}
