package tracker

import (
	"encoding/binary"
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// heldLog holds datagrams back in few bytes. Captures of very many short flows consist of such
// datagrams. Each is a byte of heldFlags and varints, some 20 bytes in all. First come the
// differences of its time and frame to the datagram before. Those of its sequence and ack are to
// the one before of its side. All of them wrap. The zero value is empty.
type heldLog struct {
	packed []byte
	count  int
	before heldBefore
}

// heldBefore is what the next datagram's differences are to.
type heldBefore struct {
	at            machine.Instant
	ref           machine.Ref
	sequence, ack [2]uint32 // of each side
	packets       [2]uint16 // of each side
}

type heldFlags uint8

const (
	heldFromB    heldFlags = 1 << iota
	heldHeader             // ack and ackBits follow
	heldFragment           // id and count follow
)

const (
	// firstHeld is how many bytes a log has room for at first: three or four datagrams.
	// Source: bound, the first size of a log
	firstHeld = 64
	// heldUsual is how many bytes a datagram takes at most, as a rule.
	// Source: bound, the usual size of a datagram in a log
	heldUsual = 24
	// heldShort is up to which size a log grows by firstHeld.
	// Source: bound, the size of the log of a short flow
	heldShort = 512
)

func (l *heldLog) len() int { return l.count }

// Holds reports whether the tracker holds datagrams back, because its vantage is open.
func (t *Tracker) Holds() bool { return t.Held.count > 0 }

// add appends a datagram.
func (l *heldLog) add(p *sighting) {
	if n := len(l.packed); n+heldUsual > cap(l.packed) && n < heldShort {
		// By a few datagrams: append would take twice the memory.
		l.packed = append(make([]byte, 0, n+firstHeld), l.packed...)
	}
	b, side, flags := l.packed, p.from&1, heldFlags(p.from&1)
	if p.header {
		flags |= heldHeader
	}
	if p.id != 0 || p.count != 0 {
		flags |= heldFragment
	}
	b = append(b, byte(flags))
	b = binary.AppendVarint(b, int64(p.at)-int64(l.before.at))
	b = binary.AppendVarint(b, int64(p.ref)-int64(l.before.ref))
	b = binary.AppendVarint(b, int64(int32(p.sequence-l.before.sequence[side])))
	b = binary.AppendUvarint(b, uint64(p.length))
	b = binary.AppendVarint(b, int64(p.length)-int64(p.payload))
	l.before.at, l.before.ref, l.before.sequence[side] = p.at, p.ref, p.sequence
	l.before.packets[side]++
	if p.header {
		b = binary.AppendVarint(b, int64(int32(p.ack-l.before.ack[side])))
		b = binary.AppendUvarint(b, p.ackBits)
		l.before.ack[side] = p.ack
	}
	if flags&heldFragment != 0 {
		b = binary.AppendUvarint(b, uint64(p.id))
		b = binary.AppendUvarint(b, uint64(p.count))
	}
	l.packed = b
	l.count++
}

// each calls do with every datagram in order. The datagram is valid during the call.
func (l *heldLog) each(do func(p *sighting)) {
	var p sighting
	var before heldBefore
	for from := l.packed; len(from) > 0; {
		from = before.next(from, &p)
		do(&p)
	}
}

// list returns all datagrams in order.
func (l *heldLog) list() []sighting {
	list := make([]sighting, l.count)
	var before heldBefore
	from := l.packed
	for i := range list {
		from = before.next(from, &list[i])
	}
	return list
}

// next reads the first datagram of from, and returns what follows it.
func (l *heldBefore) next(from []byte, p *sighting) []byte {
	flags := heldFlags(from[0])
	from = from[1:]
	unsigned := func() uint64 {
		v, n := binary.Uvarint(from)
		from = from[n:]
		return v
	}
	signed := func() int64 {
		v, n := binary.Varint(from)
		from = from[n:]
		return v
	}
	side := flags & heldFromB
	l.at += machine.Instant(signed())
	l.ref += machine.Ref(signed())
	l.sequence[side] += uint32(signed())
	*p = sighting{
		at: l.at, ref: l.ref, sequence: l.sequence[side], from: machine.Side(side), length: uint32(unsigned()),
	}
	p.payload = uint32(int64(p.length) - signed())
	if flags&heldHeader != 0 {
		l.ack[side] += uint32(signed())
		p.header, p.ack, p.ackBits = true, l.ack[side], unsigned()
	}
	if flags&heldFragment != 0 {
		p.id, p.count = uint16(unsigned()), uint16(unsigned())
	}
	return from
}

// clone returns an independent copy.
func (l *heldLog) clone() heldLog {
	c := *l
	c.packed = slices.Clone(l.packed)
	return c
}
