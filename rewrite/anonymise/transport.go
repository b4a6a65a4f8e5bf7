package anonymise

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/capture"
)

// transport writes a UDP or TCP header.
func (r *rewriting) transport(to, from []byte) {
	if r.upper.Kind == capture.LayerTCP {
		r.tcp(to, from)
	} else {
		r.udp(to, from)
	}
}

// ports writes the two ports.
func (r *rewriting) ports(to, from []byte) {
	binary.BigEndian.PutUint16(to, r.names.port(binary.BigEndian.Uint16(from)))
	binary.BigEndian.PutUint16(to[2:], r.names.port(binary.BigEndian.Uint16(from[2:])))
}

// udp writes ports and length.
func (r *rewriting) udp(to, from []byte) {
	r.ports(to, from)
	copy(to[4:6], from[4:6])
}

// tcp writes a TCP header.
func (r *rewriting) tcp(to, from []byte) {
	const least = 20
	r.ports(to, from)
	copy(to[4:8], from[4:8]) // sequence
	flags := from[13]
	if flags&capture.FlagACK != 0 {
		copy(to[8:12], from[8:12])
	}
	to[12], to[13] = from[12]&0xf0, flags // without the reserved bits
	copy(to[14:16], from[14:16])          // window
	if flags&capture.FlagURG != 0 {
		urgent := min(int(binary.BigEndian.Uint16(from[18:])), r.packet.Length)
		binary.BigEndian.PutUint16(to[18:], uint16(max(urgent, 0)))
	}
	tcpOptions(to[least:], from[least:], binary.BigEndian.Uint32(to[8:]))
}

// Options of TCP that describe how the connection works (IANA, TCP Option Kind
// Numbers).
const (
	optionEnd           = 0
	optionSegmentSize   = 2
	optionWindowScale   = 3
	optionSACKPermitted = 4
	optionSACK          = 5
)

// tcpOptions writes the options that describe how the connection works, if they
// have their only valid length. All others become NOPs. Time stamps reveal a
// host's uptime; cookies, tokens and signatures identify it.
func tcpOptions(to, from []byte, acked uint32) {
	for i := range to {
		to[i] = optionNOP
	}
	for at := 0; at < len(from); {
		kind := from[at]
		if kind == optionEnd {
			clear(to[at:])
			return
		}
		if kind == optionNOP {
			at++
			continue
		}
		if at+2 > len(from) || from[at+1] < 2 || at+int(from[at+1]) > len(from) {
			return
		}
		n := int(from[at+1])
		keep := false
		switch kind {
		case optionSegmentSize:
			keep = n == 4
		case optionWindowScale:
			keep = n == 3
		case optionSACKPermitted:
			keep = n == 2
		case optionSACK:
			keep = n > 2 && n%8 == 2 && blocksFollow(from[at+2:at+n], acked)
		}
		if keep {
			copy(to[at:], from[at:at+n])
		}
		at += n
	}
}

// blocksFollow reports whether the blocks of a SACK option are plausible:
// ranges of sequence numbers shortly after the acknowledgement, or before it
// (RFC 2883).
func blocksFollow(b []byte, acked uint32) bool {
	const window = 1 << 24 // no larger windows occur: 16 MiB
	for ; len(b) >= 8; b = b[8:] {
		from, to := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if from-acked+window > 2*window || to-from > window {
			return false
		}
	}
	return true
}

// known reports whether the flow of a frame is known, though its UDP or TCP
// header was not captured completely.
func (r *rewriting) known() bool {
	return r.ip != nil && (r.packet.Transport == capture.UDP || r.packet.Transport == capture.TCP)
}

// cutHeader writes the captured part of a UDP or TCP header.
func (r *rewriting) cutHeader() {
	var head [60]byte // the longest TCP header
	from := r.from[r.at:]
	n := copy(head[:], from)
	var out [60]byte
	switch {
	case r.packet.Transport == capture.UDP:
		r.udp(out[:], head[:])
		n = min(n, 8)
	case n < 20:
		r.ports(out[:], head[:])
	default:
		n = min(n, int(head[12]>>4)*4)
		r.tcp(out[:n], head[:n])
	}
	copy(r.to[r.at:], out[:n])
}

// checksums computes the checksums of IPv4, and of a UDP or TCP packet that was
// captured completely. In other packets the UDP or TCP checksum becomes 0.
func (r *rewriting) checksums() {
	if r.ip == nil {
		return
	}
	h := r.to[r.ip.Offset : r.ip.Offset+r.ip.Length]
	if r.ip.Kind == capture.LayerIPv4 {
		binary.BigEndian.PutUint16(h[10:], ^sum(0, h))
	}
	if r.upper == nil || r.fragmented() {
		return
	}
	var size int
	var pseudo uint32
	if r.ip.Kind == capture.LayerIPv4 {
		size = int(binary.BigEndian.Uint16(h[2:])) - r.ip.Length
		pseudo = add(pseudo, h[12:20])
	} else {
		size = int(binary.BigEndian.Uint16(h[4:])) - (r.upper.Offset - r.ip.Offset - r.ip.Length)
		pseudo = add(pseudo, h[8:24])
		if r.route.given { // the checksum uses the last destination (RFC 8200, "Upper-Layer Checksums")
			pseudo = add(pseudo, r.route.final[:])
		} else {
			pseudo = add(pseudo, h[24:40])
		}
	}
	b, field, protocol := r.to[r.upper.Offset:], 16, uint32(protocolTCP)
	if r.upper.Kind == capture.LayerUDP {
		field, protocol = 6, protocolUDP
		size = min(size, int(binary.BigEndian.Uint16(b[4:])))
	}
	if size < field+2 || size > len(b) {
		return
	}
	value := ^sum(pseudo+protocol+uint32(size), b[:size])
	if value == 0 && protocol == protocolUDP {
		value = 0xffff // 0 would mean that there is none
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

// sum returns the one's complement sum of the Internet checksum.
func sum(from uint32, b []byte) uint16 {
	v := add(from, b)
	for v > 0xffff {
		v = v>>16 + v&0xffff
	}
	return uint16(v)
}
