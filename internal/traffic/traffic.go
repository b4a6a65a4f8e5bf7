// Package traffic makes captures of synthetic game traffic of any size, for
// benchmarks and soak runs.
//
//	err := traffic.Write(w, traffic.Options{Packets: 1_000_000, Flows: 64, Seed: 1})
//
// The same options make the same bytes. Each flow is a client and a server that
// send 30 to 60 packets a second. A packet has the article's 8-byte header
// (sequence, ack, ack_bits, little-endian). Its payload is 80 to 120 bytes,
// half noise and half slowly changing. The tap is in the middle of the path:
// half of the loss is before it, half behind it. An endpoint acks what reached
// it.
package traffic

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/agenda"
)

// Options describe a capture. The zero value of Loss is no loss.
type Options struct {
	Packets int
	Flows   int
	Loss    float64 // share of packets lost on the path, 0 to 1
	Seed    uint64
}

const (
	epoch      = 1_700_000_000 * int64(time.Second)
	serverIP   = 0xC0000201 // 192.0.2.1
	firstIP    = 0x0A000002 // 10.0.0.2, of the first client
	serverPort = 40000
	headers    = 14 + 20 + 8 // Ethernet, IPv4, UDP
	ackHeader  = 8
)

// moment is an event that is due: a side sends, its packet passes the tap, or
// it reaches the other side.
type moment struct {
	at     int64 // ns since the epoch
	what   kind
	flow   uint32
	side   uint8
	packet packet
}

type kind uint8

const (
	sends kind = iota
	passesTap
	arrives
)

type packet struct {
	sequence, ack uint16
	bits          uint32
	payload       uint16 // bytes
}

type side struct {
	next    uint16
	heard   bool
	ack     uint16
	ackBits uint32
	period  int64 // ns between sends
}

type flow struct {
	sides  [2]side
	oneWay int64 // ns
	ip     uint32
	port   uint16
}

// Write writes a pcap file (microseconds, Ethernet) of o.Packets packets.
func Write(w io.Writer, o Options) error {
	g := generator{
		rng:   rand.New(rand.NewPCG(o.Seed, 0x61636b73636f7065)),
		out:   bufio.NewWriterSize(w, 1<<20),
		flows: make([]flow, o.Flows),
		noise: make([]byte, 1<<18),
		loss:  o.Loss / 2,
	}
	for i := range g.noise {
		if i/20%2 == 0 {
			g.noise[i] = byte(g.rng.Uint32())
		} else {
			g.noise[i] = byte(i >> 12)
		}
	}
	for i := range g.flows {
		f := &g.flows[i]
		f.oneWay = int64(10*time.Millisecond) + g.rng.Int64N(int64(50*time.Millisecond))
		f.ip, f.port = firstIP+uint32(i), uint16(49152+g.rng.IntN(16000))
		for s := range f.sides {
			f.sides[s].period = int64(float64(time.Second) / (30 + 30*g.rng.Float64()))
			g.due(moment{at: g.rng.Int64N(f.sides[s].period), what: sends, flow: uint32(i), side: uint8(s)})
		}
	}
	g.fileHeader()
	for g.written < o.Packets && g.queue.Len() > 0 {
		g.step(g.queue.Take())
	}
	return g.out.Flush() // a bufio.Writer keeps its first error
}

type generator struct {
	rng     *rand.Rand
	out     *bufio.Writer
	flows   []flow
	noise   []byte
	loss    float64 // loss on each half of the path
	queue   agenda.Agenda[int64, moment]
	record  []byte
	written int
}

func (g *generator) due(m moment) { g.queue.Add(m.at, m) }

func (g *generator) step(m moment) {
	f := &g.flows[m.flow]
	switch m.what {
	case sends:
		s := &f.sides[m.side]
		p := packet{s.next, s.ack, s.ackBits, uint16(80 + g.rng.IntN(41))}
		s.next++
		jitter := g.rng.Int64N(int64(4 * time.Millisecond))
		if g.rng.Float64() >= g.loss {
			g.due(moment{at: m.at + f.oneWay/2 + jitter, what: passesTap, flow: m.flow, side: m.side, packet: p})
			if g.rng.Float64() >= g.loss {
				g.due(moment{at: m.at + f.oneWay + jitter, what: arrives, flow: m.flow, side: m.side, packet: p})
			}
		}
		m.at += s.period + g.rng.Int64N(s.period/5) - s.period/10
		g.due(m)
	case passesTap:
		g.emit(m, f)
	case arrives:
		s := &f.sides[m.side^1]
		switch ahead := int16(m.packet.sequence - s.ack); {
		case !s.heard:
			s.heard, s.ack, s.ackBits = true, m.packet.sequence, 1
		case ahead > 0:
			s.ack, s.ackBits = m.packet.sequence, s.ackBits<<uint(ahead)|1
		case ahead > -32:
			s.ackBits |= 1 << uint(-ahead)
		}
	}
}

func (g *generator) fileHeader() {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4) // microseconds
	b = le.AppendUint16(b, 2)             // version 2.4
	b = le.AppendUint16(b, 4)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 65535) // snap length
	b = le.AppendUint32(b, 1)     // Ethernet
	_, _ = g.out.Write(b)         // Flush returns the error
}

func (g *generator) emit(m moment, f *flow) {
	le, be := binary.LittleEndian, binary.BigEndian
	udp := 8 + ackHeader + int(m.packet.payload)
	length := uint32(headers - 8 + udp)
	srcIP, dstIP, srcPort, dstPort := f.ip, uint32(serverIP), f.port, uint16(serverPort)
	if m.side == 1 {
		srcIP, dstIP, srcPort, dstPort = dstIP, srcIP, dstPort, srcPort
	}
	micros := (epoch + m.at) / 1000
	b := le.AppendUint32(g.record[:0], uint32(micros/1e6))
	b = le.AppendUint32(b, uint32(micros%1e6))
	b = le.AppendUint32(b, length)
	b = le.AppendUint32(b, length)

	b = append(b, 2, 0, 0, 0, 0, 1+m.side, 2, 0, 0, 0, 0, 2-m.side, 8, 0) // Ethernet, IPv4

	ip := len(b)
	b = append(b, 0x45, 0)
	b = be.AppendUint16(b, uint16(20+udp))
	b = be.AppendUint16(b, uint16(g.written)) // identification
	b = append(b, 0x40, 0, 64, 17, 0, 0)      // don't fragment, TTL, UDP, checksum below
	b = be.AppendUint32(b, srcIP)
	b = be.AppendUint32(b, dstIP)
	be.PutUint16(b[ip+10:], checksum(b[ip:]))

	b = be.AppendUint16(b, srcPort)
	b = be.AppendUint16(b, dstPort)
	b = be.AppendUint16(b, uint16(udp))
	b = append(b, 0, 0) // no checksum

	b = le.AppendUint16(b, m.packet.sequence)
	b = le.AppendUint16(b, m.packet.ack)
	b = le.AppendUint32(b, m.packet.bits)
	from := g.rng.IntN(len(g.noise) - int(m.packet.payload))
	b = append(b, g.noise[from:from+int(m.packet.payload)]...)

	g.record = b
	_, _ = g.out.Write(b) // Flush returns the error
	g.written++
}

func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
