package host

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
)

// A sample in a capture file, in the order of the fields of Sample. Numbers are those of
// binary.AppendUvarint. Lists and texts have their length in front:
//
//	0  'A' 'S' 'H'  magic
//	3  version      1
//	4  time         nanoseconds
//	.. system       8 bytes, little-endian
//	.. addresses    each: length (4 or 16), bytes
//	.. ports, flags (bit 0: Cut)
//	.. sockets      each: local, remote (address, port), inode, uid, queue, drops, pid, name, group, why
//	.. counts       five
//	.. devices      each: name, five counts
const (
	magic   = "ASH"
	version = 1
)

// MostEncoded is the length of a sample in bytes that Append does not exceed.
const MostEncoded = 60 << 10

// Append appends a sample to a buffer.
func (s *Sample) Append(to []byte) []byte {
	begin := len(to)
	to = append(to, magic...)
	to = append(to, version)
	to = binary.AppendUvarint(to, uint64(max(s.At, 0)))
	to = binary.LittleEndian.AppendUint64(to, s.System)
	to = binary.AppendUvarint(to, uint64(len(s.Addresses)))
	for _, a := range s.Addresses {
		to = appendAddress(to, a)
	}
	to = binary.AppendUvarint(to, uint64(len(s.Ports)))
	for _, p := range s.Ports {
		to = binary.AppendUvarint(to, uint64(p))
	}
	const tail = maxDevices * (16 + 5*binary.MaxVarintLen64) // bytes for what follows the sockets
	var sockets []byte
	n, cut := 0, s.Cut
	for i := range s.Sockets {
		sockets = s.Sockets[i].append(sockets)
		if len(to)-begin+len(sockets)+tail > MostEncoded {
			cut = true
			break
		}
		n++
	}
	if n < len(s.Sockets) { // encode again what fits
		sockets = sockets[:0]
		for i := range s.Sockets[:n] {
			sockets = s.Sockets[i].append(sockets)
		}
	}
	flags := byte(0)
	if cut {
		flags = 1
	}
	to = append(to, flags)
	to = append(binary.AppendUvarint(to, uint64(n)), sockets...)
	for _, c := range s.Counts.list() {
		to = binary.AppendUvarint(to, *c)
	}
	to = binary.AppendUvarint(to, uint64(len(s.Devices)))
	for i := range s.Devices {
		to = appendText(to, s.Devices[i].Name)
		for _, c := range s.Devices[i].list() {
			to = binary.AppendUvarint(to, *c)
		}
	}
	return to
}

func (c *Counts) list() [5]*uint64 {
	return [...]*uint64{&c.NoPorts, &c.ReceiveErrors, &c.BufferErrors, &c.ChecksumErrors, &c.Softnet}
}

func (d *Device) list() [5]*uint64 {
	return [...]*uint64{&d.ReceiveDrops, &d.TransmitDrops, &d.ReceiveFIFO, &d.TransmitFIFO, &d.ReceiveErrors}
}

func (x *Socket) append(to []byte) []byte {
	for _, a := range []netip.AddrPort{x.Local, x.Remote} {
		to = binary.AppendUvarint(appendAddress(to, a.Addr()), uint64(a.Port()))
	}
	for _, n := range []uint64{x.Inode, uint64(x.UID), x.Queue, x.Drops, uint64(max(x.Owner.PID, 0))} {
		to = binary.AppendUvarint(to, n)
	}
	return appendText(appendText(appendText(to, x.Owner.Name), x.Owner.Group), x.Owner.Why)
}

func appendAddress(to []byte, a netip.Addr) []byte {
	b := a.AsSlice()
	return append(binary.AppendUvarint(to, uint64(len(b))), b...)
}

func appendText(to []byte, text string) []byte {
	text = clip(text)
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// errSample is the error of Parse.
var errSample = errors.New("host sample: expected the form of version 1")

// parser reads a sample. After a failure it returns zeros.
type parser struct {
	b      []byte
	failed bool
}

func (p *parser) number(most uint64) uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 || n > most {
		p.failed, p.b = true, nil
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *parser) bytes(most uint64) []byte {
	n := p.number(most)
	if n > uint64(len(p.b)) {
		p.failed, p.b = true, nil
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) address() netip.Addr {
	b := p.bytes(16)
	a, ok := netip.AddrFromSlice(b)
	if !ok && len(b) > 0 {
		p.failed = true
	}
	return a.Unmap()
}

func (p *parser) text() string { return clip(string(p.bytes(maxText))) }

// Parse reads a sample. It never keeps b, which may come from anywhere.
func Parse(b []byte) (*Sample, error) {
	if len(b) < 4 || string(b[:3]) != magic || b[3] != version {
		return nil, errSample
	}
	p := parser{b: b[4:]}
	s := &Sample{At: machine.Instant(p.number(math.MaxInt64))}
	if len(p.b) < 8 {
		return nil, errSample
	}
	s.System, p.b = binary.LittleEndian.Uint64(p.b), p.b[8:]
	for n := p.number(maxAddresses); n > 0 && !p.failed; n-- {
		s.Addresses = append(s.Addresses, p.address())
	}
	for n := p.number(maxPorts); n > 0 && !p.failed; n-- {
		s.Ports = append(s.Ports, uint16(p.number(math.MaxUint16)))
	}
	s.Cut = p.number(math.MaxUint8)&1 != 0
	for n := p.number(maxSockets); n > 0 && !p.failed; n-- {
		s.Sockets = append(s.Sockets, p.socket())
	}
	for _, c := range s.Counts.list() {
		*c = p.number(math.MaxUint64)
	}
	for n := p.number(maxDevices); n > 0 && !p.failed; n-- {
		d := Device{Name: p.text()}
		for _, c := range d.list() {
			*c = p.number(math.MaxUint64)
		}
		s.Devices = append(s.Devices, d)
	}
	if p.failed {
		return nil, errSample
	}
	return s, nil
}

func (p *parser) socket() (x Socket) {
	for _, a := range []*netip.AddrPort{&x.Local, &x.Remote} {
		addr := p.address()
		*a = netip.AddrPortFrom(addr, uint16(p.number(math.MaxUint16)))
	}
	x.Inode, x.UID = p.number(math.MaxUint64), uint32(p.number(math.MaxUint32))
	x.Queue, x.Drops = p.number(math.MaxUint64), p.number(math.MaxUint64)
	x.Owner.PID = int(p.number(math.MaxInt32))
	x.Owner.Name, x.Owner.Group, x.Owner.Why = p.text(), p.text(), p.text()
	return x
}
