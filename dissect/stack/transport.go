package stack

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// decodeUDP decodes a UDP header as gopacket does. Of a header that was cut, it
// keeps the ports.
func decodeUDP(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 4 || len(data) >= 8 {
		return layers.LayerTypeUDP.Decode(data, p)
	}
	l := &layers.UDP{
		BaseLayer: layers.BaseLayer{Contents: data},
		SrcPort:   layers.UDPPort(binary.BigEndian.Uint16(data)), DstPort: layers.UDPPort(binary.BigEndian.Uint16(data[2:])),
	}
	p.AddLayer(l)
	p.SetTransportLayer(l)
	p.SetTruncated()
	return short("UDP", 8, len(data))
}

// decodeTCP decodes a TCP header as gopacket does. Of a header that was cut, it
// keeps the ports, and the sequence number if it is there. Errors of ICMP quote
// no more than these, which is no fault of the frame.
func (r *run) decodeTCP(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 4 || len(data) >= 20 {
		return layers.LayerTypeTCP.Decode(data, p)
	}
	l := &layers.TCP{
		BaseLayer: layers.BaseLayer{Contents: data},
		SrcPort:   layers.TCPPort(binary.BigEndian.Uint16(data)), DstPort: layers.TCPPort(binary.BigEndian.Uint16(data[2:])),
	}
	if len(data) >= 8 {
		l.Seq = binary.BigEndian.Uint32(data[4:])
	}
	p.AddLayer(l)
	p.SetTransportLayer(l)
	if r.quoted && len(data) >= 8 {
		return nil
	}
	p.SetTruncated()
	return short("TCP", 20, len(data))
}

// decodeGTP decodes a GTP header as gopacket does. It refuses extension headers
// that do not end within the bytes. With those, gopacket 1.1.19 prints to
// standard output, or never ends.
func decodeGTP(data []byte, p gopacket.PacketBuilder) error {
	const extended, most = 0x04, 1 << 10
	if len(data) >= 12 && data[0]&extended != 0 {
		for at := 12; data[at-1] != 0; {
			if at >= len(data) || data[at] == 0 || at+4*int(data[at]) > min(len(data), most) {
				return fmt.Errorf("expected extension headers that end within %d bytes, found one at byte %d that does not",
					min(len(data), most), at)
			}
			at += 4 * int(data[at])
		}
	}
	return layers.LayerTypeGTPv1U.Decode(data, p)
}
