package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// relayBits is the least that a message must say for two of them to be taken for
// the same one.
const relayBits = 32

// content gives what stands for a user's message wherever it is passed on: its id,
// how it is sent and its values. The bits of its first byte that are no value
// belong to the id.
func content(s *side, p *sighting, m *wire.Message) (c machine.Content, ok bool) {
	if m.Type != wire.Unreliable && m.Type != wire.Reliable || m.BodyBits < relayBits || p.length > len(p.bytes) {
		return c, false
	}
	hash := machine.Digest(0, p.bytes[m.BodyBit/8:]) ^ (uint64(m.MessageID)<<8|uint64(m.Type))*0x9E3779B97F4A7C15
	return machine.Content{From: s.side, At: p.at, Ref: p.ref, Hash: hash, Number: uint32(m.MessageID), Rule: riptide.Relayed}, true
}
