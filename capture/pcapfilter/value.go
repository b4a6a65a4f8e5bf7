package pcapfilter

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// value parses the value that the qualifiers apply to.
func (p *parser) value(q qualifiers) (node, error) {
	switch q.kind {
	case "port":
		n, err := p.number(65535)
		return port{q.proto, q.direction, n, n, p.tags}, err
	case "portrange":
		return p.portRange(q)
	case "proto":
		most := uint32(255)
		if q.proto == "ether" {
			most = 65535
		}
		n, err := p.number(most)
		return number{q.proto, n, p.tags}, err
	case "net":
		return p.network(q)
	}
	if q.proto == "ether" {
		return p.station(q)
	}
	text := p.next()
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		switch {
		case strings.Contains(text, "/"):
			return nil, p.failBefore("expected an address, found %q: say net before a network", text)
		case text == "":
			return nil, p.fail("expected an address, found the end")
		}
		return nil, p.failBefore("expected an address, found %q (names are not looked up)", text)
	}
	return p.hosts(q, netip.PrefixFrom(address, address.BitLen()))
}

func (p *parser) number(most uint32) (uint32, error) {
	text := p.next()
	n, err := strconv.ParseUint(text, 0, 32)
	switch {
	case text == "":
		return 0, p.fail("expected a number, found the end")
	case err != nil || strings.Contains(text, "_"):
		return 0, p.failBefore("expected a number, found %q (names are not looked up)", text)
	case uint32(n) > most:
		return 0, p.failBefore("expected a number to %d, found %q", most, text)
	case len(text) > 1 && text[0] == '0' && text[1] != 'x' && text[1] != 'X':
		return 0, p.failBefore("expected a decimal number or 0x…, found %q", text)
	}
	return uint32(n), nil
}

func (p *parser) portRange(q qualifiers) (node, error) {
	text := p.next()
	low, high, ok := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(low, 10, 16)
	b, errB := strconv.ParseUint(high, 10, 16)
	switch {
	case text == "":
		return nil, p.fail("expected LOW-HIGH, found the end")
	case !ok || errA != nil || errB != nil:
		return nil, p.failBefore("expected LOW-HIGH, of ports to 65535, found %q", text)
	}
	if a > b { // as in libpcap
		a, b = b, a
	}
	return port{q.proto, q.direction, uint32(a), uint32(b), p.tags}, nil
}

// network parses ADDRESS/BITS, ADDRESS mask MASK, and the short form whose
// length implies the mask: 10, 10.1, 10.1.2.
func (p *parser) network(q qualifiers) (node, error) {
	text := p.next()
	if text == "" {
		return nil, p.fail("expected a network, found the end")
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		address, parts, ok := shortAddress(text)
		if !ok {
			return nil, p.failBefore("expected a network as 10.1.0.0/16, found %q", text)
		}
		prefix = netip.PrefixFrom(address, 8*parts)
		if address.Is6() {
			prefix = netip.PrefixFrom(address, 128)
		}
		if _, ok := p.accept("mask"); ok {
			if prefix, err = p.mask(address, parts); err != nil {
				return nil, err
			}
			text = prefix.String()
		}
	}
	if prefix.Masked() != prefix {
		return nil, p.failBefore("expected no bits set behind the network's, found %q", text)
	}
	return p.hosts(q, prefix)
}

// mask parses the mask of "net ADDRESS mask MASK".
func (p *parser) mask(address netip.Addr, parts int) (netip.Prefix, error) {
	text := p.next()
	m, err := netip.ParseAddr(text)
	if err != nil || !m.Is4() || !address.Is4() || parts != 4 {
		return netip.Prefix{}, p.failBefore("expected an IPv4 network and its mask, four numbers each, found %q", text)
	}
	raw := m.As4()
	ones := bits.LeadingZeros32(^binary.BigEndian.Uint32(raw[:]))
	prefix := netip.PrefixFrom(address, ones)
	if binary.BigEndian.Uint32(raw[:]) != uint32(uint64(0xffffffff)<<(32-ones)) {
		return netip.Prefix{}, p.failBefore("expected a mask of ones and then zeros, found %q", text)
	}
	return prefix, nil
}

// shortAddress parses an address that may omit its last numbers.
func shortAddress(text string) (netip.Addr, int, bool) {
	if strings.Contains(text, ":") {
		a, err := netip.ParseAddr(text)
		return a, 4, err == nil && a.Zone() == ""
	}
	parts := strings.Count(text, ".") + 1
	if parts > 4 {
		return netip.Addr{}, 0, false
	}
	a, err := netip.ParseAddr(text + strings.Repeat(".0", 4-parts))
	return a, parts, err == nil
}

// hosts returns the test of an address or a network.
func (p *parser) hosts(q qualifiers, prefix netip.Prefix) (node, error) {
	v6 := prefix.Addr().Is6()
	if prefix.Addr().Is4In6() {
		return nil, p.failBefore("expected an IPv4 or an IPv6 address, found one within the other: %q", prefix.Addr())
	}
	if q.proto != "" && v6 != (q.proto == "ip6") {
		return nil, p.failBefore("%s does not go with the address %s", q.proto, prefix.Addr())
	}
	return host{q.proto, q.direction, prefix, p.tags}, nil
}
