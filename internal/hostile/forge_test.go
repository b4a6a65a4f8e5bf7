package hostile

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"github.com/ackscope/ackscope/capture"
)

// forger makes packets with worst-case costs, as Ethernet frames. Its flows
// share no address with real ones: it uses 198.18.0.0/15 and more.
type forger struct {
	rng   *rand.Rand
	frame []byte
	load  [1400]byte
	n     uint32
	known []known // flows that are recognised before they turn hostile
}

// forgeries are the kinds of forged packets, by name. Each returns the nth
// packet of its kind.
var forgeries = []struct {
	name string
	make func(*forger, uint32) []byte
}{
	{"spoofed", (*forger).spoofed},
	{"spoofed game", (*forger).spoofedGame},
	{"answered", (*forger).answered},
	{"tags", (*forger).tags},
	{"fragments", (*forger).fragments},
	{"sequence jumps", (*forger).jumps},
	{"long strings", (*forger).strings},
	{"segments out of order", (*forger).segments},
	{"many streams", (*forger).streams},
	{"spoofed streams", (*forger).spoofedStreams},
	{"IPv6 fragments", (*forger).fragments6},
	{"turned gaffer", (*forger).turnedGaffer},
	{"turned riptide", (*forger).turnedRiptide},
	{"turned srdp", (*forger).turnedSRDP},
	{"turned stream", (*forger).turnedStream},
}

func (f *forger) ethernet(kind uint16, tags ...uint16) {
	f.frame = append(f.frame[:0], 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)
	for _, t := range tags {
		f.frame = binary.BigEndian.AppendUint16(f.frame, 0x8100)
		f.frame = binary.BigEndian.AppendUint16(f.frame, t)
	}
	f.frame = binary.BigEndian.AppendUint16(f.frame, kind)
}

func host(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 | byte(n>>16&1), byte(n >> 8), byte(n)})
}

func (f *forger) udp(src, dst netip.AddrPort, payload []byte) []byte {
	var err error
	if f.frame, err = capture.AppendUDP(f.frame, capture.Envelope{Src: src, Dst: dst, ID: uint16(f.rng.Uint32())},
		payload); err != nil {
		panic(err)
	}
	return f.frame
}

var victim = netip.MustParseAddrPort("203.0.113.9:7777")

// forged returns the source of the nth flow of a kind: 2^17 addresses, then the
// ports.
func forged(n uint32) netip.AddrPort { return netip.AddrPortFrom(host(n), uint16(1024+n>>17)) }

func (f *forger) noise(n int) []byte {
	b := f.load[:n]
	for i := 0; i+4 <= n; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], f.rng.Uint32())
	}
	return b
}

// spoofed makes a new flow each time: one datagram of noise.
func (f *forger) spoofed(n uint32) []byte {
	f.ethernet(0x0800)
	return f.udp(forged(n), victim, f.noise(40+int(n%60)))
}

// spoofedGame makes flows of five datagrams with the headers of each protocol.
func (f *forger) spoofedGame(n uint32) []byte {
	f.ethernet(0x0800)
	flow, at := n/5, uint16(n%5)
	b := f.noise(60)
	switch flow % 3 {
	case 0:
		b[0], b[1] = 0, 0
		binary.LittleEndian.PutUint16(b[1:], at)
		binary.LittleEndian.PutUint16(b[3:], 0xffff)
		binary.LittleEndian.PutUint32(b[5:], 0)
	case 1:
		b[0] = 0x53
		b[1] = 0
		binary.BigEndian.PutUint16(b[2:], at)
	default:
		b[0] = byte(at)
	}
	return f.udp(netip.AddrPortFrom(host(flow), uint16(20000+flow>>17)), victim, b)
}

// answered makes new flows of one datagram and its answer.
func (f *forger) answered(n uint32) []byte {
	f.ethernet(0x0800)
	a := netip.AddrPortFrom(host(n/2), uint16(40000+n>>18))
	if n%2 == 0 {
		return f.udp(a, victim, f.noise(50))
	}
	return f.udp(victim, a, f.noise(50))
}

// tags nests as many VLAN tags as a frame can hold.
func (f *forger) tags(n uint32) []byte {
	var tags [300]uint16
	f.ethernet(0x0800, tags[:n%300]...)
	return f.udp(forged(n|1<<31), victim, f.noise(40))
}

// fragments begins datagrams that never end, and continues others that never
// began.
func (f *forger) fragments(n uint32) []byte {
	f.ethernet(0x0800)
	at := len(f.frame)
	b := f.udp(netip.AddrPortFrom(host(n), 1), victim, f.noise(1000))
	offset := uint16(n % 8 * 128)
	binary.BigEndian.PutUint16(b[at+6:], 0x2000|offset)
	binary.BigEndian.PutUint16(b[at+4:], uint16(n/8))
	return b
}

// jumps makes one flow whose sequence numbers jump by half their range each
// time.
func (f *forger) jumps(n uint32) []byte {
	f.ethernet(0x0800)
	b := f.noise(60)
	b[0] = 0
	binary.LittleEndian.PutUint16(b[1:], uint16(n*0x7fff))
	binary.LittleEndian.PutUint16(b[3:], uint16(n*0x4001))
	binary.LittleEndian.PutUint32(b[5:], f.rng.Uint32())
	x, y := netip.MustParseAddrPort("198.51.100.7:50000"), victim
	if n%2 > 0 {
		x, y = y, x
	}
	return f.udp(x, y, b)
}

// strings makes Riptide messages: a VarLong without end, a string that claims
// 64 kB, arrays that claim more bits than there are.
func (f *forger) strings(n uint32) []byte {
	f.ethernet(0x0800)
	b := f.noise(64)
	b[0] = byte(n % 3)
	for i := 1; i < len(b); i++ {
		b[i] = 0xff
	}
	x, y := netip.MustParseAddrPort("198.51.100.8:50000"), victim
	if n%2 > 0 {
		x, y = y, x
	}
	return f.udp(x, y, b)
}

func (f *forger) tcp(src, dst netip.AddrPort, seq uint32, flags uint8, payload []byte) []byte {
	var err error
	if f.frame, err = capture.AppendTCP(f.frame, capture.Envelope{Src: src, Dst: dst, ID: uint16(f.rng.Uint32())}, seq, 1,
		flags, 65535, payload); err != nil {
		panic(err)
	}
	return f.frame
}

// segments makes one TCP stream whose first byte never arrives.
func (f *forger) segments(n uint32) []byte {
	f.ethernet(0x0800)
	if n == 0 {
		return f.tcp(netip.MustParseAddrPort("198.51.100.9:50000"), victim, 0, capture.FlagSYN, nil)
	}
	return f.tcp(netip.MustParseAddrPort("198.51.100.9:50000"), victim, 2+n*1201, capture.FlagACK, f.noise(1200))
}

// streams makes many such streams, in turn.
func (f *forger) streams(n uint32) []byte {
	f.ethernet(0x0800)
	const many = 1 << 15
	src := netip.AddrPortFrom(host(n%many), 60000)
	if n < many {
		return f.tcp(src, victim, 0, capture.FlagSYN, nil)
	}
	return f.tcp(src, victim, 2+(n/many)*1201, capture.FlagACK, f.noise(1200))
}

// spoofedStreams opens a stream from a new address each time, and leaves a gap
// in it.
func (f *forger) spoofedStreams(n uint32) []byte {
	f.ethernet(0x0800)
	src := netip.AddrPortFrom(host(n/3), uint16(30000+n/3>>17))
	switch n % 3 {
	case 0:
		return f.tcp(src, victim, n, capture.FlagSYN, nil)
	case 1:
		return f.tcp(src, victim, n, capture.FlagACK, f.noise(20))
	}
	return f.tcp(src, victim, n+1000, capture.FlagACK, f.noise(400))
}

// fragments6 is fragments over IPv6.
func (f *forger) fragments6(n uint32) []byte {
	f.ethernet(0x86dd)
	b := append(f.frame, 0x60, 0, 0, 0, 4, 8, 44, 64) // 8 bytes of header and 1024 of payload
	src := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(src[12:], n/8)
	b = append(append(b, src[:]...), 0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9)
	b = append(b, 17, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(n%8*1024)|1) // more fragments follow
	b = binary.BigEndian.AppendUint32(b, n/8)
	f.frame = append(b, f.noise(1024)...)
	return f.frame
}

// known is a real flow with its packets.
type known struct {
	packets []capture.Packet // their payloads are copies
	a, b    netip.AddrPort   // a sent the first packet
}

// Positions of the forger's known flows among the captures of genuine.
const (
	knownGaffer, knownRiptide, knownStream, knownSRDP = 0, 1, 2, 4
	turnsAfter                                        = 400 // packets, or all that the flow has
)

// learn keeps the packets of the first flow of each capture.
func (f *forger) learn(frames []capture.Frame) {
	f.known = make([]known, knownSRDP+1)
	d := capture.NewDecoder(capture.DecodeOptions{})
	var p capture.Packet
	for i := range frames {
		d.Decode(&frames[i], &p)
		k := &f.known[frames[i].Ref.File()]
		if len(k.packets) == 0 {
			k.a, k.b = p.Src, p.Dst
		}
		ours := p.Src == k.a && p.Dst == k.b || p.Src == k.b && p.Dst == k.a
		if !ours || p.Transport == capture.NoTransport || len(k.packets) == turnsAfter {
			continue
		}
		c := p
		c.Payload = append([]byte(nil), p.Payload...)
		k.packets = append(k.packets, c)
	}
}

// turned makes new flows that copy a real one. When the flow has been
// recognised, twist damages its packets.
func (f *forger) turned(n uint32, of int, twist func(b []byte) []byte) []byte {
	k := &f.known[of]
	p := &k.packets[int(n)%len(k.packets)]
	b := append(f.load[:0], p.Payload...)
	if int(n) >= len(k.packets) {
		b = twist(b)
	}
	src, dst := turnedFrom(of), victim
	if p.Src != k.a {
		src, dst = dst, src
	}
	f.ethernet(0x0800)
	return f.udp(src, dst, b)
}

func turnedFrom(of int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(20 + of)}), 50000)
}

// turnedGaffer jumps by half the range of its sequence numbers and acks each
// time.
func (f *forger) turnedGaffer(n uint32) []byte {
	return f.turned(n, knownGaffer, func(b []byte) []byte {
		for i := 1; i < min(len(b), 5); i++ {
			b[i] = byte(f.rng.Uint32())
		}
		return b
	})
}

// turnedRiptide has VarLongs without end, strings and arrays that claim 64 kB,
// and messages that end within their first bits.
func (f *forger) turnedRiptide(n uint32) []byte {
	return f.turned(n, knownRiptide, func(b []byte) []byte {
		from := 1 + f.rng.IntN(8)
		for i := from; i < len(b); i++ {
			b[i] = 0xff
		}
		if n%3 == 0 {
			b = b[:min(len(b), from)]
		}
		return b
	})
}

// turnedSRDP jumps over half of its packet ids each time.
func (f *forger) turnedSRDP(n uint32) []byte {
	return f.turned(n, knownSRDP, func(b []byte) []byte {
		if len(b) >= 4 {
			binary.BigEndian.PutUint16(b[1:], uint16(n*0x7fff))
		}
		return b
	})
}

// turnedStream is a stream of Riptide in which a byte is then missing for good.
func (f *forger) turnedStream(n uint32) []byte {
	k := &f.known[knownStream]
	f.ethernet(0x0800)
	if int(n) >= len(k.packets) {
		seq := uint32(0)
		for i := range k.packets {
			if p := &k.packets[i]; p.Src == k.a && p.TCPFlags&capture.FlagSYN == 0 {
				seq = p.TCPSeq + uint32(len(p.Payload))
			}
		}
		return f.tcp(turnedFrom(knownStream), victim, seq+1+(n-uint32(len(k.packets)))*1201, capture.FlagACK, f.noise(1200))
	}
	p := &k.packets[n]
	src, dst := turnedFrom(knownStream), victim
	if p.Src != k.a {
		src, dst = dst, src
	}
	return f.tcp(src, dst, p.TCPSeq, p.TCPFlags, p.Payload)
}

// next makes the next packet, of all kinds in turn or of one kind.
func (f *forger) next(kind int) []byte {
	n := f.n
	f.n++
	if kind >= 0 {
		return forgeries[kind].make(f, n)
	}
	k := len(forgeries)
	return forgeries[int(n)%k].make(f, n/uint32(k))
}
