package yojimbo

import "github.com/ackscope/ackscope/machine"

// Sample is the input of inference: connection packets of both sides, in the order in
// which they passed the tap.
type Sample struct {
	packets []samplePacket
	bytes   int
	missed  int // packets that were not kept

	inferred *Inference
	of       int // number of packets that inferred is based on
}

type samplePacket struct {
	from     machine.Side
	sequence int64
	payload  []byte
}

const (
	// sampleMost is how many packets a Sample keeps.
	// Source: bound, the packets that are kept
	sampleMost = 8192
	// sampleBytes is how many bytes of payload a Sample keeps.
	// Source: bound, the bytes of payload that are kept
	sampleBytes = 4 << 20
)

// Add copies the next connection packet.
func (s *Sample) Add(from machine.Side, sequence int64, payload []byte) {
	if len(s.packets) >= sampleMost || s.bytes+len(payload) > sampleBytes {
		s.missed++
		return
	}
	s.bytes += len(payload)
	s.packets = append(s.packets, samplePacket{from, sequence, append([]byte(nil), payload...)})
}

// clone returns a copy; the packets themselves never change.
func (s *Sample) clone() *Sample {
	c := *s
	c.packets = s.packets[:len(s.packets):len(s.packets)]
	return &c
}
