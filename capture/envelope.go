package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Envelope holds the headers around a payload in an IP packet that ackscope
// makes. Simulations and rewritten captures consist of such packets in LinkRaw
// frames.
type Envelope struct {
	Src, Dst netip.AddrPort // of one family; IPv4-mapped addresses count as IPv4
	TTL      uint8          // or hop limit; 0 means 64
	ID       uint16         // IPv4 identification
}

const (
	ipv4Header = 20
	ipv6Header = 40
	udpHeader  = 8
	tcpHeader  = 20
	maxIP      = 0xffff
)

// AppendUDP appends an IP packet with a UDP datagram, with correct lengths and
// checksums. It fails if the addresses are not of one family, or if the payload
// does not fit.
func AppendUDP(to []byte, e Envelope, payload []byte) ([]byte, error) {
	to, src, dst, err := appendIP(to, e, protocolUDP, udpHeader+len(payload))
	if err != nil {
		return to, err
	}
	at := len(to)
	to = binary.BigEndian.AppendUint16(to, e.Src.Port())
	to = binary.BigEndian.AppendUint16(to, e.Dst.Port())
	to = binary.BigEndian.AppendUint16(to, uint16(udpHeader+len(payload)))
	to = append(to, 0, 0)
	to = append(to, payload...)
	sum := ^onesComplement(pseudoHeader(src, dst, protocolUDP, len(to)-at), to[at:])
	if sum == 0 {
		sum = 0xffff // 0 would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(to[at+6:], sum)
	return to, nil
}

// TCP flags of Packet.TCPFlags and AppendTCP.
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	FlagPSH
	FlagACK
	FlagURG
)

// AppendTCP appends an IP packet with a TCP segment without options, with
// correct lengths and checksums. It fails in the same cases as AppendUDP.
func AppendTCP(to []byte, e Envelope, seq, ack uint32, flags uint8, window uint16, payload []byte) ([]byte, error) {
	to, src, dst, err := appendIP(to, e, protocolTCP, tcpHeader+len(payload))
	if err != nil {
		return to, err
	}
	at := len(to)
	to = binary.BigEndian.AppendUint16(to, e.Src.Port())
	to = binary.BigEndian.AppendUint16(to, e.Dst.Port())
	to = binary.BigEndian.AppendUint32(to, seq)
	to = binary.BigEndian.AppendUint32(to, ack)
	to = append(to, tcpHeader/4<<4, flags)
	to = binary.BigEndian.AppendUint16(to, window)
	to = append(to, 0, 0, 0, 0)
	to = append(to, payload...)
	binary.BigEndian.PutUint16(to[at+16:], ^onesComplement(pseudoHeader(src, dst, protocolTCP, len(to)-at), to[at:]))
	return to, nil
}

// appendIP appends an IP header for length bytes of payload.
func appendIP(to []byte, e Envelope, protocol uint8, length int) (out []byte, src, dst netip.Addr, err error) {
	src, dst = e.Src.Addr().Unmap(), e.Dst.Addr().Unmap()
	ttl := e.TTL
	if ttl == 0 {
		ttl = 64
	}
	switch {
	case src.Is4() && dst.Is4():
		if ipv4Header+length > maxIP {
			return to, src, dst, fmt.Errorf("IPv4 packet: expected at most %d bytes, found %d", maxIP, ipv4Header+length)
		}
		at := len(to)
		to = append(to, 0x45, 0)
		to = binary.BigEndian.AppendUint16(to, uint16(ipv4Header+length))
		to = binary.BigEndian.AppendUint16(to, e.ID)
		to = append(to, 0, 0, ttl, protocol, 0, 0)
		a, b := src.As4(), dst.As4()
		to = append(append(to, a[:]...), b[:]...)
		binary.BigEndian.PutUint16(to[at+10:], ^onesComplement(0, to[at:]))
	case src.Is6() && dst.Is6():
		if length > maxIP {
			return to, src, dst, fmt.Errorf("IPv6 packet: expected a payload of at most %d bytes, found %d", maxIP, length)
		}
		to = append(to, 0x60, 0, 0, 0)
		to = binary.BigEndian.AppendUint16(to, uint16(length))
		to = append(to, protocol, ttl)
		a, b := src.As16(), dst.As16()
		to = append(append(to, a[:]...), b[:]...)
	default:
		return to, src, dst, fmt.Errorf("IP packet: expected two addresses of one family, found %s and %s", e.Src, e.Dst)
	}
	return to, src, dst, nil
}
