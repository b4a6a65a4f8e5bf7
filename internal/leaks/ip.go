package leaks

import "encoding/binary"

// ipv4 returns an IPv4 packet. The length of options is a multiple of four
// bytes.
func (m *Marks) ipv4(protocol byte, payload, options []byte) []byte {
	return m.ipv4Part(protocol, payload, options, 0)
}

// ipv4Part is ipv4 with the 16 bits of flags and fragment offset.
func (m *Marks) ipv4Part(protocol byte, payload, options []byte, fragment int) []byte {
	n := 20 + len(options)
	return join([]byte{0x40 | byte(n/4), 0}, be16(n+len(payload)), be16(1+m.chance.IntN(5)), be16(fragment),
		[]byte{64, protocol}, be16(0),
		m.ip4("IPv4 address"), m.ip4("IPv4 address"), options, payload)
}

// flow returns a packet between the two hosts of the game. Its addresses are
// always the same.
func (m *Marks) flow(six, back bool, payload []byte, extras func(next byte) (byte, []byte)) []byte {
	x, y := byte(1), byte(2)
	if back {
		x, y = y, x
	}
	next, between := byte(17), []byte(nil)
	if extras != nil {
		next, between = extras(17)
	}
	if six {
		head := func(last byte) []byte { return []byte{0x20, 0x01, 0x0d, 0xb8, 0xde, 0xad, 15: last} }
		m.address("IPv6 address of the game", head(x))
		return join([]byte{0x60, 0, 0, 0}, be16(len(between)+len(payload)), []byte{next, 64}, head(x), head(y),
			between, payload)
	}
	p := m.ipv4(17, payload, nil)
	copy(p[12:], []byte{198, 51, 100, x, 198, 51, 100, y})
	m.address("IPv4 address of the game", p[12:16])
	m.address("IPv4 address of the game", p[16:20])
	return p
}

// options returns IPv4 options.
func (m *Marks) options() []byte {
	route := func(kind byte) []byte {
		return join([]byte{kind, 11, 12}, m.ip4("route in an option of IPv4"),
			m.ip4("route in an option of IPv4"), []byte{0})
	}
	return m.one(
		func() []byte { return route(7) },   // record route
		func() []byte { return route(131) }, // loose source route
		func() []byte { return route(137) }, // strict source route
		func() []byte {
			return join([]byte{68, 12, 13, 1}, m.ip4("address in a time stamp"), m.bytes("time stamp of IPv4", 4))
		},
		func() []byte { return join([]byte{0x9e, 8}, m.bytes("option of IPv4", 6)) },
		func() []byte { return join([]byte{0, 0}, m.bytes("bytes behind the options of IPv4", 6)) },
		func() []byte { return join([]byte{7, 60}, m.bytes("option of IPv4 that is cut", 6)) },
	)
}

// ipv6 returns an IPv6 packet with extension headers.
func (m *Marks) ipv6(protocol byte, payload []byte) []byte {
	next, between := protocol, []byte(nil)
	for range m.chance.IntN(4) {
		var kind byte
		var b []byte
		kind, b = m.extension(next)
		next, between = kind, join(b, between)
	}
	return join([]byte{0x60, 0, 0, 0}, be16(len(between)+len(payload)), []byte{next, 64},
		m.ip6("IPv6 address"), m.ip6("IPv6 address"), between, payload)
}

// extension returns an extension header and its number. next is the number of
// the header that follows.
func (m *Marks) extension(next byte) (kind byte, b []byte) {
	const hopByHop, routing, fragment, authentication, destinations = 0, 43, 44, 51, 60
	kind = []byte{
		hopByHop, routing, routing, routing, fragment, authentication, destinations,
		destinations,
	}[m.chance.IntN(8)]
	switch kind {
	case hopByHop:
		b = join([]byte{next, 1, 0x3e, 12}, m.bytes("hop-by-hop option", 12))
	case destinations:
		b = m.one(
			func() []byte { return join([]byte{next, 2, 1, 2, 0, 0, 0xc9, 16}, m.ip6("home address")) },
			func() []byte { return join([]byte{next, 1, 0x1e, 12}, m.bytes("destination option", 12)) },
			func() []byte { return join([]byte{next, 1, 1, 12}, m.bytes("padding of options", 12)) },
			func() []byte { return join([]byte{next, 0}, m.bytes("destination options that are none", 6)) },
		)
	case routing:
		b = m.one(
			func() []byte {
				return join([]byte{next, 4, 0, byte(m.chance.IntN(3))}, m.bytes("reserved bytes of a routing header",
					4), m.ip6("routing header"), m.ip6("routing header"))
			},
			func() []byte {
				return join([]byte{next, 2, 2, 1, 0, 0, 0, 0}, m.ip6("home address of a routing header"))
			},
			func() []byte {
				return join([]byte{next, 6, 4, byte(m.chance.IntN(3)), 1, 0}, be16(0), m.ip6("segment"),
					m.ip6("segment"), []byte{0x80, 14}, m.bytes("TLV of a segment route", 14))
			},
			func() []byte { return join([]byte{next, 2, 3, 1}, m.bytes("compressed route", 20)) },
			func() []byte {
				return join([]byte{next, 2, byte(5 + m.chance.IntN(250)), 9}, m.bytes("unknown route", 20))
			},
		)
	case fragment:
		b = join([]byte{next, 0, 0, 0}, m.bytes("identification of an IPv6 fragment", 4))
	case authentication:
		b = join([]byte{next, 4, 0, 0}, m.bytes("authentication header", 20))
	}
	return kind, b
}

// fragments returns the fragments of a UDP datagram in shuffled order.
func (m *Marks) fragments(six bool) (list [][]byte) {
	whole := udp(7, 8, m.bytes("fragmented payload", 100))
	if m.chance.IntN(2) == 0 {
		whole = udp(gamePortA, gamePortB, m.bytes("foreign payload in fragments", 100))
	}
	protocol := byte(17)
	switch m.chance.IntN(8) {
	case 0:
		protocol, whole = 6, m.tcp()
	case 1:
		protocol, whole = []byte{1, 50, 132}[m.chance.IntN(3)], m.bytes("fragments of another protocol", 100)
	}
	const piece, more = 40, 1
	id := m.bytes("identification of IPv6 fragments", 4)
	address := m.chance.IntN(8)
	for at := 0; at < len(whole); at += piece {
		end := min(at+piece, len(whole))
		if m.chance.IntN(12) == 0 {
			end = min(end+8, len(whole)) // a fragment that overlaps the next
		}
		follows := 0
		if end < len(whole) {
			follows = more
		}
		var p []byte
		if six {
			p = join([]byte{0x60, 0, 0, 0}, be16(8+end-at), []byte{44, 64}, m.ip6("IPv6 address"),
				m.ip6("IPv6 address"), []byte{protocol, 0}, be16(at|follows), id, whole[at:end])
			p[23], p[39] = byte(address), byte(address+1)
		} else {
			p = m.ipv4Part(protocol, whole[at:end], nil, at/8|follows<<13)
			copy(p[4:], []byte{9, 9})
			copy(p[12:], []byte{198, 51, 100, byte(address), 198, 51, 100, byte(address + 1)})
			m.address("IPv4 address", p[12:16])
			m.address("IPv4 address", p[16:20])
		}
		list = append(list, p)
	}
	m.chance.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if m.chance.IntN(3) == 0 {
		list = list[1:] // a datagram that is never complete
	}
	return list
}

// other returns an IP packet that is neither UDP nor TCP.
func (m *Marks) other() []byte {
	quoted := func() []byte { return m.ipv4(17, udp(1, 2, m.bytes("quoted payload", 16)), nil) }
	return m.one(
		func() []byte { return m.ipv4(1, join([]byte{3, 3, 0, 0, 0, 0, 0, 0}, quoted()), nil) },
		func() []byte { return m.ipv4(1, join([]byte{8, 0, 0, 0}, m.bytes("ping", 40)), m.options()) },
		func() []byte { return m.ipv4(2, join([]byte{0x16, 0, 0, 0}, m.ip4("group of IGMP")), nil) },
		func() []byte { return m.ipv4(47, join([]byte{0, 0, 8, 0}, quoted()), nil) }, // GRE
		func() []byte { return m.ipv4(4, quoted(), nil) },                            // IP in IP
		func() []byte { return m.ipv4(41, m.ipv6(17, udp(3, 4, m.bytes("payload of 6in4", 16))), nil) },
		func() []byte { return m.ipv4(50, m.bytes("ESP", 40), nil) },
		func() []byte { return m.ipv4(132, join(be16(1), be16(2), m.bytes("SCTP", 24)), nil) },
		func() []byte { return m.ipv4(byte(100+m.chance.IntN(150)), m.bytes("unknown protocol", 24), nil) },
		func() []byte {
			return m.ipv6(58, join([]byte{135, 0, 0, 0, 0, 0, 0, 0}, m.ip6("neighbour"), []byte{1, 1},
				m.mac("MAC of a neighbour")))
		},
		func() []byte { return m.ipv6(byte(100+m.chance.IntN(150)), m.bytes("unknown protocol over IPv6", 24)) },
		func() []byte { return m.ipv6(59, m.bytes("bytes behind no next header", 16)) },
	)
}

// packet returns an IP packet of a random kind.
func (m *Marks) packet() []byte {
	upper := func() (byte, []byte) {
		if m.chance.IntN(3) == 0 {
			return 6, m.tcp()
		}
		return 17, m.datagram()
	}
	return m.one(
		func() []byte { protocol, b := upper(); return m.ipv4(protocol, b, nil) },
		func() []byte { protocol, b := upper(); return m.ipv4(protocol, b, m.options()) },
		func() []byte { protocol, b := upper(); return m.ipv6(protocol, b) },
		func() []byte { protocol, b := upper(); return m.ipv6(protocol, b) },
		func() []byte { return m.other() },
		func() []byte { // wrong lengths
			p := m.ipv4(17, m.datagram(), nil)
			binary.BigEndian.PutUint16(p[20+4:], uint16(m.chance.IntN(2000)))
			return p
		},
		func() []byte { // bytes after the packet
			return join(m.ipv4(17, m.datagram(), nil), m.bytes("bytes behind the IP packet", 4+m.chance.IntN(20)))
		},
		func() []byte { return m.flow(m.chance.IntN(2) == 0, false, m.foreign(), nil) },
		func() []byte { return m.flow(true, false, m.foreign(), m.extension) },
	)
}
