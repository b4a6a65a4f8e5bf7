package capture

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// TestUnfilled: a field that holds the sum of the pseudo-header alone is not filled in yet. The
// whole checksum is, and 0 means that there is none.
func TestUnfilled(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	const payload = "some bytes"
	pseudo := pseudoHeader(src, dst, protocolUDP, 8+len(payload))
	udp := binary.BigEndian.AppendUint16(nil, 4000)
	udp = binary.BigEndian.AppendUint16(udp, 5000)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(payload)))
	udp = append(append(udp, 0, 0), payload...)
	for _, c := range []struct {
		name string
		sum  uint16
		want bool
	}{
		{"of the pseudo-header", onesComplement(pseudo, nil), true},
		{"of all", ^onesComplement(pseudo, udp), false},
		{"none", 0, false},
	} {
		for _, verify := range []bool{false, true} { // the short way and the long one
			ip := []byte{0x45, 0, 0, byte(20 + len(udp)), 0, 1, 0, 0, 64, protocolUDP, 0, 0}
			ip = append(append(ip, src.AsSlice()...), dst.AsSlice()...)
			frame := append(append(make([]byte, 12), 8, 0), append(ip, udp...)...)
			binary.BigEndian.PutUint16(frame[14+20+6:], c.sum)
			var p Packet
			f := Frame{LinkType: LinkEthernet, Length: len(frame), Data: frame}
			NewDecoder(DecodeOptions{Verify: verify}).Decode(&f, &p)
			if p.Transport != UDP || p.Unfilled() != c.want {
				t.Errorf("%s, verify %v: %v, unfilled %v, expected %v", c.name, verify, p.Transport, p.Unfilled(), c.want)
			}
		}
	}
}
