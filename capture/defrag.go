package capture

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// FragmentStats counts what became of IP fragments.
type FragmentStats struct {
	Fragments   uint64 // seen
	Reassembled uint64 // datagrams made whole
	Expired     uint64 // datagrams given up after 30 s without all their fragments
	Evicted     uint64 // datagrams given up for want of room
	Overlaps    uint64 // fragments that repeated bytes of earlier ones
	Held        int    // datagrams waiting now
	HeldBytes   int
}

const (
	fragmentTimeout = 30 * time.Second // by capture time
	maxPieces       = 2048             // of one datagram: 65,535 bytes over the smallest IPv4 link make 1,366
	pieceCost       = 64               // bytes accounted for each piece beside its data
)

type fragmentKey struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8 // IPv4 only: RFC 791 has it in the key, RFC 8200 does not
	file     int
}

// piece is a stretch of a datagram that came in one fragment and in no earlier one.
type piece struct {
	from, to int // in the datagram's IP payload
	captured int // of to-from
	at       int // of its bytes within assembly.data
	span     Span
}

// assembly is a datagram that is not yet whole.
type assembly struct {
	key        fragmentKey
	first      machine.Instant
	data       []byte  // of all pieces, as they came
	pieces     []piece // in the order of from; disjoint
	total      int     // length of the IP payload; -1 until the last fragment is here
	covered    int     // bytes in pieces, captured or not
	fragments  int
	protocol   uint8 // as the fragment at offset 0 has it
	overlap    bool
	prev, next *assembly // by age
}

func (a *assembly) cost() int { return len(a.data) + pieceCost*len(a.pieces) + 4*pieceCost }

// defragmenter holds the datagrams that are not yet whole.
type defragmenter struct {
	maxBytes, maxCount int
	held               map[fragmentKey]*assembly
	oldest, newest     *assembly
	bytes              int
	free               *assembly // recycled, linked by next
	freeCount          int
	stats              FragmentStats

	payload []byte // the last whole one
	spans   []Span // of it
}

func (d *defragmenter) init(o DecodeOptions) {
	d.maxBytes, d.maxCount = o.FragmentBytes, o.FragmentDatagrams
	if d.maxBytes <= 0 {
		d.maxBytes = 16 << 20
	}
	if d.maxCount <= 0 {
		d.maxCount = 1024
	}
	d.held = make(map[fragmentKey]*assembly)
}

// fragment takes in an IP fragment. Where it makes its datagram whole, the
// cursor goes over to the reassembled payload and fragment is true.
func (d *Decoder) fragment(c *cursor, key fragmentKey, protocol uint8, offset int, more bool, b []byte,
	length int) bool {
	p := c.p
	p.Transport, p.Length, p.Fragments = Fragment, length, 1
	p.Src, p.Dst = netip.AddrPortFrom(c.src, 0), netip.AddrPortFrom(c.dst, 0)
	layer := LayerIPv4
	if !c.src.Is4() {
		layer = LayerIPv6Extension
	}
	switch {
	case length == 0:
		d.short(c, layer, "fragment length", 1, 0)
		return false
	case more && length%8 != 0:
		d.wrong(c, layer, "fragment length", "a multiple of 8, since more follow", length)
		return false
	case offset+length > 0xffff:
		d.wrong(c, layer, "fragment end", "at most 65535", offset+length)
		return false
	}
	// One captured twice must not begin its datagram anew.
	d.duplicates.check(p, c.route(), mix(c.mix, uint64(offset)<<32|uint64(length)), b)
	if p.Duplicate {
		return false
	}
	a, full := d.defrag.add(key, p.At, protocol, offset, more, b, length, Span{Ref: p.Ref, Offset: c.at, Length: len(b)})
	if full {
		d.wrong(c, layer, "fragments", "at most 2048 pieces of a datagram", maxPieces+1)
		return false
	}
	if a == nil {
		return false
	}
	p.Transport, p.Length = NoTransport, 0
	p.Fragments, p.Overlap = a.fragments, a.overlap
	c.protocol, c.length = a.protocol, a.total
	c.data, c.at = d.defrag.payload, 0
	c.spans = d.defrag.spans
	d.defrag.recycle(a)
	return true
}

// add puts a fragment in its place. It gives the datagram once it is whole,
// taken out and laid out in payload and spans; full tells that it was given up
// for being in too many pieces.
func (d *defragmenter) add(key fragmentKey, now machine.Instant, protocol uint8, offset int, more bool, b []byte,
	length int, span Span) (whole *assembly, full bool) {
	d.stats.Fragments++
	for d.oldest != nil && now.Sub(d.oldest.first) > fragmentTimeout {
		d.stats.Expired++
		d.recycle(d.remove(d.oldest))
	}
	a := d.held[key]
	if a != nil && now.Sub(a.first).Abs() > fragmentTimeout { // the clock went back
		d.stats.Expired++
		d.recycle(d.remove(a))
		a = nil
	}
	if a == nil {
		a = d.create(key, now)
	}
	d.bytes -= a.cost()
	a.fragments++
	if offset == 0 {
		a.protocol = protocol
	}
	if !more && a.total < 0 {
		a.total = offset + length
	}
	if a.insert(offset, b, length, span) {
		d.stats.Overlaps++
	}
	d.bytes += a.cost()
	if len(a.pieces) > maxPieces {
		d.stats.Evicted++
		d.recycle(d.remove(a))
		return nil, true
	}
	if a.total >= 0 && a.covered >= a.total && a.contiguous() {
		d.remove(a)
		d.layOut(a)
		d.stats.Reassembled++
		return a, false
	}
	for len(d.held) > d.maxCount || d.bytes > d.maxBytes {
		d.stats.Evicted++
		d.recycle(d.remove(d.oldest))
	}
	return nil, false
}

// insert adds what of a fragment no earlier piece holds; true where some did.
func (a *assembly) insert(offset int, b []byte, length int, span Span) (overlaps bool) {
	end := offset + length
	i := 0
	for i < len(a.pieces) && a.pieces[i].to <= offset {
		i++
	}
	for from := offset; from < end; i++ {
		to := end
		if i < len(a.pieces) {
			to = min(to, a.pieces[i].from)
		}
		if from < to {
			a.place(i, from, to, offset, b, span)
			i++
		}
		if i >= len(a.pieces) || a.pieces[i].from >= end {
			return overlaps
		}
		overlaps = true
		a.compare(&a.pieces[i], offset, b)
		from = a.pieces[i].to
	}
	return overlaps
}

// place puts [from, to) of a fragment that begins at offset in as piece i.
func (a *assembly) place(i, from, to, offset int, b []byte, span Span) {
	begin, finish := min(from-offset, len(b)), min(to-offset, len(b))
	span.Offset += begin
	span.Length = finish - begin
	n := piece{from: from, to: to, captured: finish - begin, at: len(a.data), span: span}
	a.data = append(a.data, b[begin:finish]...)
	a.pieces = append(a.pieces, piece{})
	copy(a.pieces[i+1:], a.pieces[i:])
	a.pieces[i] = n
	a.covered += to - from
}

// compare notes where a fragment disagrees with the piece that it overlaps.
func (a *assembly) compare(p *piece, offset int, b []byte) {
	from := max(p.from, offset)
	to := min(p.from+p.captured, offset+len(b))
	if from < to && !bytes.Equal(a.data[p.at+from-p.from:p.at+to-p.from], b[from-offset:to-offset]) {
		a.overlap = true
	}
}

func (a *assembly) contiguous() bool {
	at := 0
	for _, p := range a.pieces {
		if p.from > at {
			return false
		}
		at = p.to
		if at >= a.total {
			return true
		}
	}
	return false
}

// layOut joins the pieces, as far as they were captured without a gap.
func (d *defragmenter) layOut(a *assembly) {
	d.payload, d.spans = d.payload[:0], d.spans[:0]
	for _, p := range a.pieces {
		n := min(p.captured, a.total-p.from)
		if n <= 0 {
			break
		}
		p.span.Length = n
		d.payload = append(d.payload, a.data[p.at:p.at+n]...)
		d.spans = append(d.spans, p.span)
		if n < p.to-p.from {
			break // a snap length cut it
		}
	}
	if len(d.spans) == 0 {
		d.spans = append(d.spans, Span{}) // marks the cursor as on a reassembled payload
	}
}

func (d *defragmenter) create(key fragmentKey, now machine.Instant) *assembly {
	a := d.free
	if a != nil {
		d.free = a.next
		d.freeCount--
	} else {
		a = new(assembly)
	}
	*a = assembly{key: key, first: now, total: -1, data: a.data[:0], pieces: a.pieces[:0], prev: d.newest}
	if d.newest != nil {
		d.newest.next = a
	} else {
		d.oldest = a
	}
	d.newest = a
	d.held[key] = a
	d.bytes += a.cost()
	return a
}

// remove takes a datagram out.
func (d *defragmenter) remove(a *assembly) *assembly {
	delete(d.held, a.key)
	d.bytes -= a.cost()
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		d.oldest = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		d.newest = a.prev
	}
	a.prev, a.next = nil, nil
	return a
}

// recycle keeps the memory of a few datagrams for later ones.
func (d *defragmenter) recycle(a *assembly) {
	if d.freeCount < 16 {
		a.next = d.free
		d.free = a
		d.freeCount++
	}
}
