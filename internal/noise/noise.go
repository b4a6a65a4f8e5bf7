// Package noise makes datagrams of other protocols, which detection must not
// claim. For example, noise.Protocols["dns"] makes queries and answers.
package noise

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ackscope/ackscope/machine"
)

// Protocols makes flows of other protocols, by name: real ones, and the worst
// that home-made ones could be. The function returns the payload of the i-th
// datagram of the flow, which the given side sends. The same random source
// makes the same flow.
var Protocols = map[string]func(r *rand.Rand) func(i int, side machine.Side) []byte{
	"dns": func(r *rand.Rand) func(int, machine.Side) []byte {
		var id uint16
		return func(i int, side machine.Side) []byte {
			if side == machine.A {
				id = uint16(r.Uint32())
			}
			b := binary.BigEndian.AppendUint16(nil, id)
			if side == machine.A {
				b = append(b, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
			} else {
				b = append(b, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0)
			}
			return append(b, "\x07example\x03com\x00\x00\x01\x00\x01"...)
		}
	},
	"dns, ids counting up": func(*rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			b := binary.BigEndian.AppendUint16(nil, uint16(500+i))
			flags := byte(1)
			if side == machine.B {
				flags = 0x81
			}
			return append(b, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0, 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0, 0, 1, 0, 1)
		}
	},
	"ntp": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			b := make([]byte, 48)
			b[0] = 0x23 + byte(side)
			b[2], b[3] = 6, 0xe9
			now := uint64(0xe8d4a510)<<32 + uint64(i)*64<<32
			for _, at := range []int{16, 24, 32, 40} {
				binary.BigEndian.PutUint64(b[at:], now+uint64(r.Uint32()))
			}
			return b
		}
	},
	"rtp": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			b := []byte{0x80, 0x60}
			b = binary.BigEndian.AppendUint16(b, uint16(30000+i))
			b = binary.BigEndian.AppendUint32(b, uint32(160*i))
			b = binary.BigEndian.AppendUint32(b, 0xdeadbeef+uint32(side))
			return append(b, randomBytes(r, 160)...)
		}
	},
	"rtp without a fixed first half": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			b := binary.BigEndian.AppendUint16(nil, uint16(i))
			b = binary.BigEndian.AppendUint32(b, uint32(160*i))
			return append(b, randomBytes(r, 100)...)
		}
	},
	"quic": func(r *rand.Rand) func(int, machine.Side) []byte {
		id := randomBytes(r, 8)
		return func(i int, side machine.Side) []byte {
			if i < 2 {
				return append([]byte{0xc3, 0, 0, 0, 1, 8}, append(append([]byte{}, id...), randomBytes(r, 1180)...)...)
			}
			return append(append([]byte{0x40 | byte(r.Uint32()&0x3f)}, id...), randomBytes(r, 20+r.IntN(1100))...)
		}
	},
	"random": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(int, machine.Side) []byte { return randomBytes(r, 1+r.IntN(200)) }
	},
	"random of one length": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(int, machine.Side) []byte { return randomBytes(r, 100) }
	},
	"zeros": func(*rand.Rand) func(int, machine.Side) []byte {
		return func(i int, _ machine.Side) []byte { return make([]byte, 20) }
	},
	"ones": func(*rand.Rand) func(int, machine.Side) []byte {
		return func(i int, _ machine.Side) []byte {
			b := make([]byte, 20)
			for i := range b {
				b[i] = 0xff
			}
			return b
		}
	},
	"a counter, then random bytes":  counter(16, false, func(r *rand.Rand, i int) []byte { return randomBytes(r, 60) }),
	"a big-endian counter":          counter(16, true, func(r *rand.Rand, i int) []byte { return randomBytes(r, 60) }),
	"a counter, then zeros":         counter(16, false, func(*rand.Rand, int) []byte { return make([]byte, 30) }),
	"a 32-bit counter, then zeros":  counter(32, false, func(*rand.Rand, int) []byte { return make([]byte, 30) }),
	"a 32-bit counter, then random": counter(32, false, func(r *rand.Rand, i int) []byte { return randomBytes(r, 60) }),
	"a counter, then ones": counter(16,
		false, func(*rand.Rand, int) []byte { return []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") }),
	"a counter, then text": counter(16,
		false, func(*rand.Rand, int) []byte { return []byte("{\"player\": 3, \"x\": 12.5}") }),
	"a counter, then a tick of its own": counter(16, false, func(r *rand.Rand, i int) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(100000+i*33)), randomBytes(r, 20)...)
	}),
	"a zero byte and a counter": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			return append(binary.LittleEndian.AppendUint16([]byte{0}, uint16(i)), randomBytes(r, 50)...)
		}
	},
	"a type byte of netcode's and a counter in text": func(*rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			return append([]byte{0x15, byte(i)}, "all the same text in every datagram"...)
		}
	},
	"enet": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			b := binary.BigEndian.AppendUint16(nil, 0x8000|uint16(side))
			b = binary.BigEndian.AppendUint16(b, uint16(i*16))
			if i%2 == 0 {
				b = append(b, 0x86, 0)
				b = binary.BigEndian.AppendUint16(b, uint16(i/2+1))
				b = binary.BigEndian.AppendUint16(b, 40)
				return append(b, randomBytes(r, 40)...)
			}
			b = append(b, 0x01, 0) // an acknowledgement of one command
			b = binary.BigEndian.AppendUint16(b, uint16(i/2))
			b = binary.BigEndian.AppendUint16(b, uint16(i/2))
			return binary.BigEndian.AppendUint16(b, uint16(i*16-16))
		}
	},
	"kcp": func(r *rand.Rand) func(int, machine.Side) []byte {
		return func(i int, side machine.Side) []byte {
			b := binary.LittleEndian.AppendUint32(nil, 0x11223344)
			b = append(b, 81, 0)
			b = binary.LittleEndian.AppendUint16(b, 128)
			b = binary.LittleEndian.AppendUint32(b, uint32(1000+i*10))
			b = binary.LittleEndian.AppendUint32(b, uint32(i))
			b = binary.LittleEndian.AppendUint32(b, uint32(max(i-1, 0)))
			b = binary.LittleEndian.AppendUint32(b, 50)
			return append(b, randomBytes(r, 50)...)
		}
	},
}

func counter(width int, bigEndian bool, rest func(*rand.Rand, int) []byte) func(*rand.Rand) func(int,
	machine.Side) []byte {
	return func(r *rand.Rand) func(int, machine.Side) []byte {
		start := r.Uint32()
		var sent [2]uint32
		return func(i int, side machine.Side) []byte {
			v := start + sent[side] + uint32(side)*7777
			sent[side]++
			var b []byte
			for k := range width / 8 {
				shift := 8 * k
				if bigEndian {
					shift = 8 * (width/8 - 1 - k)
				}
				b = append(b, byte(v>>shift))
			}
			return append(b, rest(r, i)...)
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
