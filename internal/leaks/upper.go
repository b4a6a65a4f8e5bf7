package leaks

import "encoding/binary"

// Ports of the flow of the game: the profile article of dissect/gaffer.
const (
	gamePortA = 30000
	gamePortB = 40000
)

// game returns the next datagram of the game.
func (m *Marks) game(at int) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(at))
	ack, bits := at-1, uint32(0xffffffff)
	if at == 0 {
		ack = 0xffff
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(ack))
	b = binary.LittleEndian.AppendUint32(b, bits)
	return append(b, m.bytes("payload of a game", 20+m.chance.IntN(40))...)
}

// udp returns a UDP datagram.
func udp(from, to int, payload []byte) []byte {
	return join(be16(from), be16(to), be16(8+len(payload)), be16(0), payload)
}

// foreign returns a datagram of another protocol in the flow of the game.
func (m *Marks) foreign() []byte {
	n := 1 + m.chance.IntN(60)
	if m.chance.IntN(3) == 0 {
		n = 1 + m.chance.IntN(12)
	}
	return udp(gamePortA, gamePortB, m.bytes("foreign datagram in a known flow", max(n, window)))
}

// datagram returns a UDP datagram of a protocol that ackscope does not read.
func (m *Marks) datagram() []byte {
	inner := join(m.mac("inner MAC"), m.mac("inner MAC"), be16(0x0800), m.ipv4(17, udp(1, 2,
		m.bytes("inner payload", 12)), nil))
	return m.one(
		func() []byte { return udp(5353, 53, m.dns()) },
		func() []byte { return udp(68, 67, m.dhcp()) },
		func() []byte { return udp(4789, 4789, join([]byte{8, 0, 0, 0, 0, 0, 7, 0}, inner)) }, // VXLAN
		func() []byte { return udp(6081, 6081, join([]byte{0, 0, 0x65, 0x58, 0, 0, 7, 0}, inner)) },
		func() []byte { return udp(2152, 2152, join([]byte{0x30, 0xff, 0, 40, 0, 0, 0, 1}, inner[14:])) },
		func() []byte { return udp(443, 50000, m.bytes("payload of QUIC", 30)) },
		func() []byte { return udp(9000, 9001, m.text("payload of text", 30)) },
	)
}

func (m *Marks) dns() []byte {
	name := m.text("name in DNS", 12)
	return join(m.bytes("id and flags of DNS", 4), []byte{0, 1, 0, 0, 0, 0, 0, 0, 12}, name, []byte{
		3, 'c',
		'o', 'm', 0, 0, 1, 0, 1,
	})
}

func (m *Marks) dhcp() []byte {
	return join([]byte{1, 1, 6, 0}, m.bytes("transaction of DHCP", 4), be32(0), m.ip4("address in DHCP"),
		m.ip4("address in DHCP"), be32(0), be32(0),
		m.mac("MAC in DHCP"), make([]byte, 202), []byte{99, 130, 83, 99, 12, 12}, m.text("host name in DHCP", 12),
		[]byte{255})
}

// tcp returns a TCP segment.
func (m *Marks) tcp() []byte {
	const ack, syn, urg = 0x10, 2, 0x20
	options := m.tcpOptions()
	flags, acked, urgent := byte(ack), be32(7), be16(0)
	if m.chance.IntN(3) == 0 {
		flags, acked = syn, m.bytes("acknowledgement that is none", 4)
	}
	if m.chance.IntN(4) == 0 {
		flags, urgent = flags|urg, be16(3)
	}
	sequence := be32(uint32(m.chance.IntN(1000)))
	return join(be16(gamePortA+m.chance.IntN(2)), be16(80), sequence, acked,
		[]byte{byte((20+len(options))/4<<4) | byte(m.chance.IntN(16)), flags}, be16(500), be16(0), urgent,
		options, m.bytes("payload of TCP", 4+m.chance.IntN(40)))
}

// tcpOptions returns options of at most 40 bytes, a multiple of four.
func (m *Marks) tcpOptions() []byte {
	option := func(kind byte, n int) []byte {
		return join([]byte{kind, byte(2 + n)}, m.bytes("option of TCP", n))
	}
	b := m.one(
		func() []byte { return nil },
		func() []byte { return option(8, 8) },   // timestamps
		func() []byte { return option(19, 16) }, // MD5
		func() []byte { return option(34, 8) },  // Fast Open
		func() []byte { return option(30, 10) }, // Multipath TCP
		func() []byte { return option(2, 6) },
		// a maximum segment size of a wrong length
		func() []byte { return option(5, 16) },                                            // SACK of an invalid range
		func() []byte { return join([]byte{0}, m.bytes("bytes behind the options", 11)) }, // after the end of the options
		func() []byte { return join([]byte{3, 40}, m.bytes("option of TCP that is cut", 8)) },
		func() []byte { return join([]byte{254, 10}, m.bytes("experimental option of TCP", 8)) },
	)
	for len(b)%4 != 0 {
		b = append(b, 1)
	}
	return b
}
