package pcapfilter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
)

// node is a part of a filter. It generates code that ends in a jump to yes or
// to no.
type node interface {
	generate(c *code, yes, no label)
}

type (
	always      struct{}
	negation    struct{ of node }
	conjunction struct{ left, right node }
	disjunction struct{ left, right node }

	// The other nodes test a packet. depth is how many VLAN tags precede the bytes
	// that they test.
	protocol struct {
		name  string
		depth int
	}
	number struct { // proto N
		of    string // "", ip, ip6, ether
		value uint32
		depth int
	}
	host struct {
		proto     string
		direction direction
		prefix    netip.Prefix
		depth     int
	}
	port struct {
		proto     string
		direction direction
		low, high uint32
		depth     int
	}
	tag struct {
		depth int
		any   bool
		id    uint32
	}
	length struct {
		atLeast bool
		bytes   uint32
	}
)

// Numbers in the headers that filters test.
const (
	typeIPv4, typeARP, typeRARP, typeIPv6 = 0x0800, 0x0806, 0x8035, 0x86dd

	protocolICMP, protocolIGMP, protocolTCP, protocolUDP, protocolFragment = 1, 2, 6, 17, 44
	protocolESP, protocolAH, protocolICMPv6, protocolSCTP                  = 50, 51, 58, 132

	ipv4Offset, ipv4Protocol, ipv4Source, ipv4Destination = 6, 9, 12, 16
	ipv6Next, ipv6Source, ipv6Destination, ipv6Header     = 6, 8, 24, 40
	arpSource, arpDestination                             = 14, 24

	offsetMask       = 0x1fff // of the fragment offset
	headerLengthMask = 0xf    // of IPv4's first byte, in words
	identifierMask   = 0xfff  // of a VLAN tag

	oneByte, halfBytes, wordBytes, tagBytes = 1, 2, 4, 4
)

var tagTypes = [...]uint32{0x8100, 0x88a8, 0x9100}

func (always) generate(c *code, yes, _ label) { c.jumpTo(yes) }

func (n negation) generate(c *code, yes, no label) { n.of.generate(c, no, yes) }

func (n conjunction) generate(c *code, yes, no label) {
	right := c.label()
	n.left.generate(c, right, no)
	c.place(right)
	n.right.generate(c, yes, no)
}

func (n disjunction) generate(c *code, yes, no label) {
	right := c.label()
	n.left.generate(c, yes, right)
	c.place(right)
	n.right.generate(c, yes, no)
}

// isType tests the EtherType.
func (c *code) isType(depth int, value uint32, yes, no label) {
	c.loadType(depth)
	c.jump(bpf.JumpEqual, value, yes, no)
}

// all generates tests that must all succeed. Each test receives the labels of
// its own outcome.
func (c *code) all(yes, no label, tests ...func(yes, no label)) {
	for _, test := range tests[:len(tests)-1] {
		next := c.label()
		test(next, no)
		c.place(next)
	}
	tests[len(tests)-1](yes, no)
}

// any generates tests of which one must succeed.
func (c *code) any(yes, no label, tests ...func(yes, no label)) {
	for _, test := range tests[:len(tests)-1] {
		next := c.label()
		test(yes, next)
		c.place(next)
	}
	tests[len(tests)-1](yes, no)
}

func (n protocol) generate(c *code, yes, no label) {
	switch n.name {
	case "ip":
		c.isType(n.depth, typeIPv4, yes, no)
	case "ip6":
		c.isType(n.depth, typeIPv6, yes, no)
	case "arp":
		c.isType(n.depth, typeARP, yes, no)
	case "rarp":
		c.isType(n.depth, typeRARP, yes, no)
	case "tcp":
		number{"", protocolTCP, n.depth}.generate(c, yes, no)
	case "udp":
		number{"", protocolUDP, n.depth}.generate(c, yes, no)
	case "sctp":
		number{"", protocolSCTP, n.depth}.generate(c, yes, no)
	case "esp":
		number{"", protocolESP, n.depth}.generate(c, yes, no)
	case "ah":
		number{"", protocolAH, n.depth}.generate(c, yes, no)
	case "igmp":
		number{"ip", protocolIGMP, n.depth}.generate(c, yes, no)
	case "icmp":
		number{"ip", protocolICMP, n.depth}.generate(c, yes, no)
	case "icmp6":
		number{"ip6", protocolICMPv6, n.depth}.generate(c, yes, no)
	}
}

func (n number) generate(c *code, yes, no label) {
	if n.of == "ether" {
		c.isType(n.depth, n.value, yes, no)
		return
	}
	v4 := func(yes, no label) {
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, typeIPv4, yes, no) },
			func(yes, no label) { c.test(n.depth, ipv4Protocol, n.value, yes, no) })
	}
	v6 := func(yes, no label) {
		c.all(yes, no,
			func(yes, no label) { c.isType(n.depth, typeIPv6, yes, no) },
			func(yes, no label) {
				c.any(yes, no,
					func(yes, no label) { c.test(n.depth, ipv6Next, n.value, yes, no) },
					func(yes, no label) {
						c.all(yes, no,
							func(yes, no label) { c.test(n.depth, ipv6Next, protocolFragment, yes, no) },
							func(yes, no label) { c.test(n.depth, ipv6Header, n.value, yes, no) })
					})
			})
	}
	switch n.of {
	case "ip":
		v4(yes, no)
	case "ip6":
		v6(yes, no)
	default:
		c.any(yes, no, v4, v6)
	}
}

// test compares a byte of the network header.
func (c *code) test(depth int, offset, value uint32, yes, no label) {
	c.loadNetwork(depth, offset, oneByte)
	c.jump(bpf.JumpEqual, value, yes, no)
}

// directed tests the source, the destination, either or both.
func (c *code) directed(d direction, yes, no label, src, dst func(yes, no label)) {
	switch d {
	case source:
		src(yes, no)
	case destination:
		dst(yes, no)
	case both:
		c.all(yes, no, src, dst)
	default:
		c.any(yes, no, src, dst)
	}
}

func (n host) generate(c *code, yes, no label) {
	addressed := func(kind, src, dst uint32) func(yes, no label) {
		return func(yes, no label) {
			c.all(yes, no,
				func(yes, no label) { c.isType(n.depth, kind, yes, no) },
				func(yes, no label) {
					c.directed(n.direction, yes, no,
						func(yes, no label) { n.address(c, src, yes, no) },
						func(yes, no label) { n.address(c, dst, yes, no) })
				})
		}
	}
	v4 := addressed(typeIPv4, ipv4Source, ipv4Destination)
	arp := addressed(typeARP, arpSource, arpDestination)
	rarp := addressed(typeRARP, arpSource, arpDestination)
	switch {
	case n.prefix.Addr().Is6():
		addressed(typeIPv6, ipv6Source, ipv6Destination)(yes, no)
	case n.proto == "ip":
		v4(yes, no)
	case n.proto == "arp":
		arp(yes, no)
	case n.proto == "rarp":
		rarp(yes, no)
	default:
		c.any(yes, no, v4, arp, rarp)
	}
}

// address compares the leading bits of the address at an offset, one word at a
// time.
func (n host) address(c *code, offset uint32, yes, no label) {
	raw := n.prefix.Addr().AsSlice()
	for left := n.prefix.Bits(); left > 0; left -= 32 {
		c.loadNetwork(n.depth, offset, wordBytes)
		if left < 32 {
			c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(0) << (32 - left)})
		}
		next := yes
		if left > 32 {
			next = c.label()
		}
		c.jump(bpf.JumpEqual, binary.BigEndian.Uint32(raw), next, no)
		if left > 32 {
			c.place(next)
		}
		raw, offset = raw[wordBytes:], offset+wordBytes
	}
	if n.prefix.Bits() == 0 {
		c.jumpTo(yes)
	}
}

func (n port) generate(c *code, yes, no label) {
	protocols := map[string][]uint32{
		"": {protocolSCTP, protocolTCP, protocolUDP}, "tcp": {protocolTCP},
		"udp": {protocolUDP}, "sctp": {protocolSCTP},
	}[n.proto]
	carried := func(offset uint32) func(yes, no label) {
		return func(yes, no label) {
			c.loadNetwork(n.depth, offset, oneByte)
			for i, p := range protocols {
				if i == len(protocols)-1 {
					c.jump(bpf.JumpEqual, p, yes, no)
					break
				}
				next := c.label()
				c.jump(bpf.JumpEqual, p, yes, next)
				c.place(next)
			}
		}
	}
	ports := func(load func(offset uint32)) func(yes, no label) {
		at := func(offset uint32) func(yes, no label) {
			return func(yes, no label) { load(offset); n.within(c, yes, no) }
		}
		return func(yes, no label) { c.directed(n.direction, yes, no, at(0), at(halfBytes)) }
	}
	c.any(yes, no,
		func(yes, no label) {
			c.all(yes, no,
				func(yes, no label) { c.isType(n.depth, typeIPv6, yes, no) },
				carried(ipv6Next),
				ports(func(offset uint32) { c.loadNetwork(n.depth, ipv6Header+offset, halfBytes) }))
		},
		func(yes, no label) {
			c.all(yes, no,
				func(yes, no label) { c.isType(n.depth, typeIPv4, yes, no) },
				carried(ipv4Protocol),
				func(yes, no label) { c.firstFragment(n.depth, yes, no) }, // the fragment that holds the ports
				func(yes, no label) {
					c.skipHeader(n.depth)
					ports(func(offset uint32) { c.loadTransport(n.depth, offset, halfBytes) })(yes, no)
				})
		})
}

// firstFragment tests that an IPv4 packet is whole or a first fragment.
func (c *code) firstFragment(depth int, yes, no label) {
	c.loadNetwork(depth, ipv4Offset, halfBytes)
	c.jump(bpf.JumpBitsSet, offsetMask, no, yes)
}

// within compares the loaded port with the range.
func (n port) within(c *code, yes, no label) {
	if n.low == n.high {
		c.jump(bpf.JumpEqual, n.low, yes, no)
		return
	}
	high := c.label()
	c.jump(bpf.JumpGreaterOrEqual, n.low, high, no)
	c.place(high)
	c.jump(bpf.JumpGreaterThan, n.high, no, yes)
}

func (n length) generate(c *code, yes, no label) {
	c.emit(bpf.LoadExtension{Num: bpf.ExtLen})
	if n.atLeast {
		c.jump(bpf.JumpGreaterOrEqual, n.bytes, yes, no)
	} else {
		c.jump(bpf.JumpGreaterThan, n.bytes, no, yes)
	}
}
