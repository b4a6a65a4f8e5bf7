package anonymise

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/capture"
)

// framer rewrites what stands around a payload.
type framer struct{ names *names }

const (
	experimental   = 0x88b5 // EtherType for local experiments: what a frame becomes of which nothing may stay
	experimentalIP = 253    // and the IP protocol
	optionNOP      = 1
)

// rewrite gives a frame other addresses and another payload: payload, where the
// whole of it lies in the frame, and patches where it comes in pieces. It is false
// for a frame of which nothing but its length is left.
func (w *framer) rewrite(f *capture.Frame, p *capture.Packet, payload []byte, patches []patch) bool {
	b := f.Data
	var ip, transport *capture.Layer
	at := 0 // behind the last header that is understood
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Offset+l.Length > len(b) {
			break
		}
		at = l.Offset + l.Length
		switch h := b[l.Offset:at]; l.Kind {
		case capture.LayerEthernet:
			w.names.mac(h[0:6])
			w.names.mac(h[6:12])
		case capture.LayerSLL:
			w.hardware(h[6:14], binary.BigEndian.Uint16(h[4:]))
		case capture.LayerSLL2:
			w.hardware(h[12:20], uint16(h[11]))
		case capture.LayerIPv4:
			w.names.addr(h[12:16])
			w.names.addr(h[16:20])
			for i := 20; i < len(h); i++ {
				h[i] = optionNOP
			}
			ip = l
		case capture.LayerIPv6:
			w.names.addr(h[8:24])
			w.names.addr(h[24:40])
			h[1], h[2], h[3] = h[1]&0xf0, 0, 0 // the flow label names a flow
			ip = l
		case capture.LayerUDP, capture.LayerTCP:
			transport = l
		}
	}
	body := b[min(at, len(b)):]
	switch {
	case transport != nil:
		w.transport(b, transport, p)
		clear(body)
		copy(body, payload)
	case ip != nil && fragment(b, ip):
		w.fragment(b, ip, body)
	default:
		clear(body)
		w.blank(b, p, ip)
	}
	for _, x := range patches {
		if x.at >= 0 && x.at < len(b) {
			copy(b[x.at:], x.bytes)
		}
	}
	if ip != nil && ip.Kind == capture.LayerIPv4 {
		h := b[ip.Offset : ip.Offset+ip.Length]
		h[10], h[11] = 0, 0
		binary.BigEndian.PutUint16(h[10:], ^sum(0, h))
	}
	if transport != nil && len(patches) == 0 {
		w.checksum(b, ip, transport)
	}
	return transport != nil || ip != nil && fragment(b, ip)
}

// hardware replaces the address of a cooked header.
func (w *framer) hardware(b []byte, length uint16) {
	if length == 6 {
		w.names.mac(b[:6])
		clear(b[6:])
		return
	}
	clear(b)
}

// transport replaces ports; options of TCP that tell of the host become NOPs.
func (w *framer) transport(b []byte, l *capture.Layer, p *capture.Packet) {
	h := b[l.Offset : l.Offset+l.Length]
	if len(h) < 4 {
		return
	}
	binary.BigEndian.PutUint16(h, w.names.port(p.Src.Port()))
	binary.BigEndian.PutUint16(h[2:], w.names.port(p.Dst.Port()))
	if l.Kind == capture.LayerTCP && len(h) > 20 {
		options := h[20:]
		for len(options) > 0 {
			n := 1
			if options[0] > optionNOP {
				if len(options) < 2 || int(options[1]) < 2 || int(options[1]) > len(options) {
					break
				}
				n = int(options[1])
			}
			if options[0] >= 8 { // timestamps count a host's uptime
				for i := range n {
					options[i] = optionNOP
				}
			}
			options = options[n:]
		}
	}
}

// fragment reports whether an IP header is that of a fragment.
func fragment(b []byte, ip *capture.Layer) bool {
	if ip.Kind == capture.LayerIPv4 {
		return binary.BigEndian.Uint16(b[ip.Offset+6:])&0x3fff != 0
	}
	return b[ip.Offset+6] == 44
}

// fragment clears a piece of a datagram but for a UDP header; what is known of its
// contents comes as patches.
func (w *framer) fragment(b []byte, ip *capture.Layer, body []byte) {
	first := false
	if ip.Kind == capture.LayerIPv4 {
		first = binary.BigEndian.Uint16(b[ip.Offset+6:])&0x1fff == 0 && b[ip.Offset+9] == 17
	} else if x := ip.Offset + ip.Length; x+8 <= len(b) {
		first = binary.BigEndian.Uint16(b[x+2:])&0xfff8 == 0 && b[x] == 17
	}
	if !first || len(body) < 8 {
		clear(body)
		return
	}
	clear(body[8:])
	binary.BigEndian.PutUint16(body, w.names.port(binary.BigEndian.Uint16(body)))
	binary.BigEndian.PutUint16(body[2:], w.names.port(binary.BigEndian.Uint16(body[2:])))
	body[6], body[7] = 0, 0 // the pieces are not summed up: no checksum
}

// blank marks a frame as one of no protocol.
func (w *framer) blank(b []byte, p *capture.Packet, ip *capture.Layer) {
	if ip != nil {
		if ip.Kind == capture.LayerIPv4 {
			b[ip.Offset+9] = experimentalIP
		} else {
			b[ip.Offset+6] = experimentalIP
		}
		return
	}
	if len(p.Layers) == 0 {
		clear(b)
		return
	}
	l := p.Layers[len(p.Layers)-1]
	if l.Offset+l.Length > len(b) {
		clear(b)
		return
	}
	switch h := b[l.Offset : l.Offset+l.Length]; l.Kind {
	case capture.LayerEthernet, capture.LayerVLAN, capture.LayerSLL, capture.LayerSNAP:
		binary.BigEndian.PutUint16(h[len(h)-2:], experimental)
	case capture.LayerSLL2:
		binary.BigEndian.PutUint16(h, experimental)
	}
}

// checksum makes the transport's checksum right where the capture has all of the
// packet; where it has not, UDP gets none and TCP keeps a wrong one.
func (w *framer) checksum(b []byte, ip, l *capture.Layer) {
	field := l.Offset + 6
	if l.Kind == capture.LayerTCP {
		field = l.Offset + 16
	}
	if ip == nil || field+2 > len(b) {
		return
	}
	binary.BigEndian.PutUint16(b[field:], 0)
	var size int
	var pseudo uint32
	protocol := uint32(17)
	if l.Kind == capture.LayerTCP {
		protocol = 6
	}
	if ip.Kind == capture.LayerIPv4 {
		size = int(binary.BigEndian.Uint16(b[ip.Offset+2:])) - ip.Length
		pseudo = add(pseudo, b[ip.Offset+12:ip.Offset+20])
	} else {
		size = int(binary.BigEndian.Uint16(b[ip.Offset+4:])) - (l.Offset - ip.Offset - ip.Length)
		pseudo = add(pseudo, b[ip.Offset+8:ip.Offset+40])
	}
	if l.Kind == capture.LayerUDP {
		size = min(size, int(binary.BigEndian.Uint16(b[l.Offset+4:])))
	}
	if size <= 0 || l.Offset+size > len(b) {
		return
	}
	value := ^sum(pseudo+protocol+uint32(size), b[l.Offset:l.Offset+size])
	if value == 0 && l.Kind == capture.LayerUDP {
		value = 0xffff
	}
	binary.BigEndian.PutUint16(b[field:], value)
}

// add adds 16-bit words.
func add(to uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		to += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		to += uint32(b[0]) << 8
	}
	return to
}

// sum gives the one's complement sum of the Internet checksum.
func sum(from uint32, b []byte) uint16 {
	v := add(from, b)
	for v > 0xffff {
		v = v>>16 + v&0xffff
	}
	return uint16(v)
}
