package lab

import (
	"fmt"
	"net/netip"
)

// Nearby reports whether an address is of this machine or of a private network:
// whom a server answers unless told otherwise.
func Nearby(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()
}

// Sendable checks an address that is to be sent to: one host and one port.
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

// plain gives an address with IPv4 as IPv4, whatever the socket made of it.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
