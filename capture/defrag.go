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
	Expired     uint64 // datagrams dropped after 30 s without all their fragments
	Evicted     uint64 // datagrams dropped because room was short
	Overlaps    uint64 // fragments that repeated bytes of earlier ones
	Held        int    // datagrams waiting now
	HeldBytes   int
}

const (
	fragmentTimeout = 30 * time.Second // by capture time
	maxPieces       = 2048             // of one datagram; 65,535 bytes over the smallest IPv4 link are 1,366 pieces
	pieceCost       = 64               // bytes accounted for each piece on top of its data
)

type fragmentKey struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8 // IPv4 only: the key of RFC 791 includes it, that of RFC 8200 does not
	file     int
}

// piece is a range of a datagram that one fragment brought and no earlier one
// had.
type piece struct {
	from, to int // in the datagram's IP payload
	captured int // how many of the to-from bytes were captured
	at       int // where its bytes begin within assembly.data
	span     Span
}

// assembly is a datagram that is not yet whole.
type assembly struct {
	key        fragmentKey
	first      machine.Instant
	data       []byte  // of all pieces, in order of arrival
	pieces     []piece // in order of from; disjoint
	total      int     // length of the IP payload; -1 until the last fragment has arrived
	covered    int     // bytes in pieces, captured or not
	fragments  int
	protocol   uint8 // from the fragment at offset 0
	overlap    bool
	prev, next *assembly // neighbours in order of age
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
	mostHeld           int // datagrams at a time
	mostBytes          int

	payload []byte // the last reassembled payload
	spans   []Span // of payload
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

// fragment adds an IP fragment to its datagram. If that completes the datagram,
// it moves the cursor to the reassembled payload and returns true.
func (d *Decoder) fragment(c *cursor, key fragmentKey, protocol uint8, offset int, more bool, b []byte,
	length int,
) bool {
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
	// A fragment that was captured twice must not start a second datagram.
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
	c.p.Joined, c.p.JoinedAs = c.data, c.protocol
	c.spans = d.defrag.spans
	d.defrag.recycle(a)
	return true
}

// add adds a fragment to its datagram. If that completes the datagram, add
// takes it out of d, writes it to payload and spans, and returns it. The result
// full is true if the datagram was dropped because it has too many pieces.
func (d *defragmenter) add(key fragmentKey, now machine.Instant, protocol uint8, offset int, more bool, b []byte,
	length int, span Span,
) (whole *assembly, full bool) {
	d.stats.Fragments++
	for d.oldest != nil && now.Sub(d.oldest.first) > fragmentTimeout {
		d.stats.Expired++
		d.recycle(d.remove(d.oldest))
	}
	a := d.held[key]
	if a != nil && now.Sub(a.first).Abs() > fragmentTimeout { // capture time went back
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
	d.mostHeld, d.mostBytes = max(d.mostHeld, len(d.held)), max(d.mostBytes, d.bytes)
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

// insert adds the bytes of a fragment that no earlier piece holds. It reports
// whether an earlier piece held some of them.
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

// place inserts [from, to) of a fragment that begins at offset as piece i.
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

// compare sets overlap if a fragment disagrees with the piece that it overlaps.
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

// layOut joins the pieces up to the first byte that was not captured.
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
			break // cut by a snap length
		}
	}
	if len(d.spans) == 0 {
		d.spans = append(d.spans, Span{}) // tells the cursor that it reads a reassembled payload
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

// remove unlinks a datagram from the defragmenter and returns it.
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
