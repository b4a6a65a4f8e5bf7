package lab

import (
	"fmt"
	"net"
	"net/netip"
)

// Nearby reports whether an address is of this machine or of a private network.
// A server answers only these by default.
func Nearby(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()
}

// Sendable returns an error unless a is the address of one host, with a port.
func Sendable(a netip.AddrPort) error {
	addr := a.Addr().Unmap()
	switch {
	case !addr.IsValid() || addr.IsUnspecified():
		return fmt.Errorf("address %s: expected the address of a host to send to", a)
	case addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("address %s: expected the address of one host, not of many", a)
	case a.Port() == 0:
		return fmt.Errorf("address %s: expected a port", a)
	}
	return nil
}

// Loopback returns loopback address n with any port: 127.0.0.1, 127.0.0.2 and
// so on. With them the parts of a run look like different machines. It returns
// 127.0.0.1 on a system that has no other.
func Loopback(n byte) netip.AddrPort {
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), 0)
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	_ = conn.Close() // the socket was only a test
	return at
}

// plain returns an address with IPv4 as IPv4, even if the socket mapped it into
// IPv6.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
