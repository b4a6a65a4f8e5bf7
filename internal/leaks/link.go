package leaks

// linkTypes are LINKTYPE_ numbers: all that package capture reads, and some
// that it does not.
var linkTypes = []int{0, 1, 1, 1, 12, 14, 101, 108, 113, 113, 228, 229, 276, 276, 105, 127, 147, 195}

// frame wraps an IP packet in the headers of a link type.
func (m *Marks) frame(link int, packet []byte) []byte {
	six := len(packet) > 0 && packet[0]>>4 == 6
	kind := be16(0x0800)
	if six {
		kind = be16(0x86dd)
	}
	switch link {
	case 0, 108:
		family := make([]byte, 4)
		family[3] = 2
		if six {
			family[3] = 28
		}
		if link == 0 && m.chance.IntN(2) == 0 {
			family[0], family[3] = family[3], 0
		}
		return join(family, packet)
	case 1:
		return m.ethernet(kind, packet)
	case 113:
		return join(be16(m.chance.IntN(5)), be16(1), be16(6), m.mac("MAC of Linux cooked v1"), be16(0), kind, packet)
	case 276:
		return join(kind, be16(0), be32(uint32(3+m.chance.IntN(3))), be16(1), []byte{byte(m.chance.IntN(5)), 6},
			m.mac("MAC of Linux cooked v2"), be16(0), packet)
	case 12, 14, 101, 228, 229:
		return packet
	}
	return join(m.bytes("header of an unknown link type", 16), packet)
}

// ethernet wraps a packet in Ethernet, with tags and other headers between.
func (m *Marks) ethernet(kind, packet []byte) []byte {
	head := join(m.mac("MAC"), m.mac("MAC"))
	tag := func() []byte { return be16(m.chance.IntN(1 << 16)) }
	trailer := []byte(nil)
	if m.chance.IntN(4) == 0 {
		trailer = m.bytes("trailer of Ethernet", 4+m.chance.IntN(30))
	}
	return m.one(
		func() []byte { return join(head, kind, packet, trailer) },
		func() []byte { return join(head, kind, packet, trailer) },
		func() []byte { return join(head, be16(0x8100), tag(), kind, packet, trailer) },
		func() []byte { return join(head, be16(0x88a8), tag(), be16(0x8100), tag(), kind, packet, trailer) },
		func() []byte {
			return join(head, be16(8+len(packet)), []byte{0xaa, 0xaa, 3, 0, 0, 0}, kind, packet, trailer)
		},
		func() []byte {
			ppp := be16(0x21)
			if kind[0] == 0x86 {
				ppp = be16(0x57)
			}
			return join(head, be16(0x8864), []byte{0x11, 0}, be16(m.chance.IntN(1<<16)), be16(2+len(packet)), ppp,
				packet, trailer)
		},
	)
}

// alien returns a frame without an IP packet, or with one at an unexpected
// place.
func (m *Marks) alien(link int) []byte {
	inner := m.ipv4(17, udp(1, 2, m.bytes("payload under a label", 16)), nil)
	var kind int
	var body []byte
	switch m.chance.IntN(9) {
	case 0: // ARP
		kind, body = 0x0806, join([]byte{0, 1, 8, 0, 6, 4, 0, 1}, m.mac("MAC in ARP"), m.ip4("address in ARP"),
			m.mac("MAC in ARP"), m.ip4("address in ARP"))
	case 1: // LLDP
		kind, body = 0x88cc, join([]byte{2, 7, 4}, m.mac("MAC in LLDP"), []byte{10, 16}, m.text("name in LLDP", 16))
	case 2: // 802.1X
		kind, body = 0x888e, join([]byte{1, 0, 0, 20, 2, 1, 0, 20, 1}, m.text("identity in 802.1X", 15))
	case 3: // MPLS
		kind, body = 0x8847, join([]byte{0, 1, 1, 64}, inner)
	case 4: // PPPoE discovery
		kind, body = 0x8863, join([]byte{0x11, 9, 0, 0, 0, 12, 1, 3, 0, 8}, m.text("name in PPPoE", 8))
	case 5: // PPP in PPPoE that is not IP
		kind, body = 0x8864, join([]byte{0x11, 0, 0, 1, 0, 22, 0xc0, 0x21}, m.bytes("LCP", 20))
	case 6:
		kind, body = 0x0600+m.chance.IntN(0x200), m.bytes("unknown EtherType", 30)
	case 7: // LLC: CDP
		kind, body = 40, join([]byte{0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0}, m.text("name in CDP", 32))
	case 8: // an invalid IP header
		kind, body = 0x0800, m.bytes("IP that is none", 40)
	}
	switch link {
	case 1:
		return join(m.mac("MAC"), m.mac("MAC"), be16(kind), body)
	case 113:
		return join(be16(0), be16(1), be16(6), m.mac("MAC of Linux cooked v1"), be16(0), be16(kind), body)
	case 276:
		return join(be16(kind), be16(0), be32(3), be16(1), []byte{0, 8}, m.bytes("address of eight bytes", 8), body)
	case 0, 108:
		return join(m.bytes("unknown address family", 4), body)
	}
	return body
}

// record is a frame of the capture.
type record struct {
	link   int
	data   []byte
	length int
}

// frames returns the frames of a capture of one link type: a flow of a game,
// and other traffic between them and on its addresses.
func (m *Marks) frames(link int) (list []record) {
	six := link == 229 || link != 228 && m.chance.IntN(3) == 0
	put := func(b []byte) {
		r := record{link, b, len(b)}
		if m.chance.IntN(12) == 0 { // a snap length
			r.data = r.data[:m.chance.IntN(len(b)+1)]
		}
		list = append(list, r)
	}
	const turns = 60
	for at := range turns {
		whole := func(back bool) {
			ports := [2]int{gamePortA, gamePortB}
			if back {
				ports[0], ports[1] = ports[1], ports[0]
			}
			b := m.frame(link, m.flow(six, back, udp(ports[0], ports[1], m.game(at)), nil))
			list = append(list, record{link, b, len(b)})
		}
		whole(false)
		if at > 2 {
			switch m.chance.IntN(4) {
			case 0:
				put(m.alien(link))
			case 1:
				for _, p := range m.fragments(m.chance.IntN(2) == 0) {
					put(m.frame(link, p))
				}
			default:
				put(m.frame(link, m.packet()))
			}
		}
		whole(true)
	}
	if m.chance.IntN(2) == 0 && len(list) > 0 { // a fragment that is cut in the payload's header
		last := m.frame(link, m.flow(six, false, m.foreign(), nil))
		list = append(list, record{link, last, len(last) + 500})
	}
	return list
}
