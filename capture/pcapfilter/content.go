package pcapfilter

import (
	"net"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

type (
	// content compares a number in a packet, or its length: udp[8:4] = 1.
	content struct {
		of           string // a protocol, or len
		offset, size uint32
		depth        int
		masked       bool
		mask         uint32
		operator     string
		value        uint32
	}
	// station is an Ethernet address: as source, as destination, as either or as
	// both.
	station struct {
		direction direction
		address   net.HardwareAddr
	}
	// groupAddress is broadcast or multicast, of a protocol.
	groupAddress struct {
		of    string // "ether", "ip", "ip6"
		all   bool   // broadcast
		depth int
	}
	// outgoing passes the packets that this host sends.
	outgoing struct{}
)

// Offsets and values of Ethernet headers and of group addresses.
const (
	linkDestination, linkSource = 0, 6
	groupBit                    = 1 // of the first byte of an Ethernet address
	leastMulticast4             = 224
	firstMulticast6             = 0xff
	packetOutgoing              = 4 // PACKET_OUTGOING of the kernel
)

// transports are the protocols over IPv4 whose bytes a filter can name.
var transports = map[string]uint32{
	"tcp": protocolTCP, "udp": protocolUDP, "sctp": protocolSCTP, "icmp": protocolICMP,
	"igmp": protocolIGMP,
}

// networks are the protocols over Ethernet whose bytes a filter can name.
var networks = map[string]uint32{"ip": typeIPv4, "ip6": typeIPv6, "arp": typeARP, "rarp": typeRARP}

// offsetNames and valueNames are the named constants of pcap-filter(7).
var (
	offsetNames = map[string]uint32{"tcpflags": 13, "icmptype": 0, "icmpcode": 1, "icmp6type": 0, "icmp6code": 1}
	valueNames  = map[string]uint32{
		"tcp-fin": 1, "tcp-syn": 2, "tcp-rst": 4, "tcp-push": 8, "tcp-ack": 16, "tcp-urg": 32, "tcp-ece": 64, "tcp-cwr": 128,
		"icmp-echoreply": 0, "icmp-unreach": 3, "icmp-sourcequench": 4, "icmp-redirect": 5, "icmp-echo": 8,
		"icmp-timxceed": 11, "icmp-paramprob": 12,
	}
)

// content parses the rest of a comparison, after a protocol or len:
// [OFFSET:SIZE] & MASK = VALUE.
func (p *parser) content(of string) (node, error) {
	n := content{of: of, depth: p.tags, size: oneByte}
	if of != "len" {
		if err := p.place(&n); err != nil {
			return nil, err
		}
	}
	if _, ok := p.accept("&"); ok {
		var err error
		if n.mask, err = p.constant(); err != nil {
			return nil, err
		}
		n.masked = true
	}
	var ok bool
	if n.operator, ok = p.accept("=", "==", "!=", "<", "<=", ">", ">="); !ok {
		return nil, p.fail("expected & and a mask, or a comparison (= != < <= > >=), found %s", found(p.peek()))
	}
	var err error
	n.value, err = p.constant()
	return n, err
}

// place parses [OFFSET] or [OFFSET:SIZE].
func (p *parser) place(n *content) error {
	p.next() // the bracket
	text := p.next()
	offset, size, sized := strings.Cut(text, ":")
	at, err := strconv.ParseUint(offset, 0, 16)
	if v, named := offsetNames[offset]; named {
		at, err = uint64(v), nil
	}
	if text == "" {
		return p.fail("expected OFFSET or OFFSET:SIZE, found the end")
	}
	if err != nil || sized && size != "1" && size != "2" && size != "4" {
		return p.failBefore("expected OFFSET or OFFSET:SIZE, an offset to 65535 and a size of 1, 2 or 4, found %q", text)
	}
	n.offset = uint32(at)
	if sized {
		n.size = uint32(size[0] - '0')
	}
	if _, ok := p.accept("]"); !ok {
		return p.fail("expected ], found %s", found(p.peek()))
	}
	return nil
}

// constant parses a number, the name of a number, or several of these with |
// between them.
func (p *parser) constant() (v uint32, err error) {
	for {
		var one uint32
		name := p.peek()
		if _, ok := p.accept("("); ok {
			if p.depth++; p.depth > nesting {
				return 0, p.fail("expected at most %d parentheses and negations in each other", nesting)
			}
			one, err = p.constant()
			p.depth--
			if _, ok := p.accept(")"); err == nil && !ok {
				err = p.fail("expected a closing parenthesis, found %s", found(p.peek()))
			}
		} else if named, ok := valueNames[name]; ok {
			p.next()
			one = named
		} else {
			one, err = p.number(0xffffffff)
		}
		if err != nil {
			return 0, err
		}
		v |= one
		if _, ok := p.accept("|"); !ok {
			return v, nil
		}
	}
}

// station parses an Ethernet address.
func (p *parser) station(q qualifiers) (node, error) {
	text := p.next()
	address, err := net.ParseMAC(text)
	switch {
	case text == "":
		return nil, p.fail("expected an Ethernet address, found the end")
	case err != nil || len(address) != 6:
		return nil, p.failBefore("expected an Ethernet address as 02:00:5e:10:00:01, found %q", text)
	}
	return station{q.direction, address}, nil
}

// groupAddress parses broadcast or multicast after a protocol.
func (p *parser) groupAddress(of string) (node, error) {
	word := p.next()
	if of == "" {
		of = "ether"
	}
	if of != "ether" && (word == "broadcast" || of != "ip" && of != "ip6") {
		return nil, p.failBefore("%s does not go with %s", of, word)
	}
	return groupAddress{of, word == "broadcast", p.tags}, nil
}

func (n content) generate(c *code, yes, no label) {
	compare := func(load func()) func(yes, no label) {
		return func(yes, no label) {
			load()
			if n.masked {
				c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: n.mask})
			}
			switch n.operator {
			case "=", "==":
				c.jump(bpf.JumpEqual, n.value, yes, no)
			case "!=":
				c.jump(bpf.JumpEqual, n.value, no, yes)
			case ">":
				c.jump(bpf.JumpGreaterThan, n.value, yes, no)
			case "<=":
				c.jump(bpf.JumpGreaterThan, n.value, no, yes)
			case ">=":
				c.jump(bpf.JumpGreaterOrEqual, n.value, yes, no)
			case "<":
				c.jump(bpf.JumpGreaterOrEqual, n.value, no, yes)
			}
		}
	}
	size := int(n.size)
	switch kind, isNetwork := networks[n.of]; {
	case n.of == "len":
		compare(func() { c.emit(bpf.LoadExtension{Num: bpf.ExtLen}) })(yes, no)
	case n.of == "ether":
		compare(func() { c.load(false, n.offset, size) })(yes, no)
	case isNetwork:
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, kind, yes, no) },
			compare(func() { c.loadNetwork(n.depth, n.offset, size) }))
	case n.of == "icmp6":
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, typeIPv6, yes, no) },
			func(yes, no label) { c.test(n.depth, ipv6Next, protocolICMPv6, yes, no) },
			compare(func() { c.loadNetwork(n.depth, ipv6Header+n.offset, size) }))
	default: // of IPv4 only, and of the first fragment, as in libpcap
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, typeIPv4, yes, no) },
			func(yes, no label) { c.test(n.depth, ipv4Protocol, transports[n.of], yes, no) },
			func(yes, no label) { c.firstFragment(n.depth, yes, no) },
			compare(func() {
				c.skipHeader(n.depth)
				c.loadTransport(n.depth, n.offset, size)
			}))
	}
}

func (n station) generate(c *code, yes, no label) {
	at := func(offset uint32) func(yes, no label) {
		return func(yes, no label) { c.bytes(offset, n.address, yes, no) }
	}
	c.directed(n.direction, yes, no, at(linkSource), at(linkDestination))
}

// bytes compares six bytes at an offset of the frame: a word, then a half word.
func (c *code) bytes(offset uint32, b net.HardwareAddr, yes, no label) {
	c.all(yes, no,
		func(yes, no label) {
			c.load(false, offset+2, wordBytes)
			c.jump(bpf.JumpEqual, uint32(b[2])<<24|uint32(b[3])<<16|uint32(b[4])<<8|uint32(b[5]), yes, no)
		},
		func(yes, no label) {
			c.load(false, offset, halfBytes)
			c.jump(bpf.JumpEqual, uint32(b[0])<<8|uint32(b[1]), yes, no)
		})
}

func (n groupAddress) generate(c *code, yes, no label) {
	switch {
	case n.all:
		c.bytes(linkDestination, net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, yes, no)
	case n.of == "ether":
		c.load(false, linkDestination, oneByte)
		c.jump(bpf.JumpBitsSet, groupBit, yes, no)
	case n.of == "ip":
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, typeIPv4, yes, no) },
			func(yes, no label) {
				c.loadNetwork(n.depth, ipv4Destination, oneByte)
				c.jump(bpf.JumpGreaterOrEqual, leastMulticast4, yes, no)
			})
	default:
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, typeIPv6, yes, no) },
			func(yes, no label) { c.test(n.depth, ipv6Destination, firstMulticast6, yes, no) })
	}
}

func (outgoing) generate(c *code, yes, no label) {
	c.emit(bpf.LoadExtension{Num: bpf.ExtType})
	c.jump(bpf.JumpEqual, packetOutgoing, yes, no)
}
