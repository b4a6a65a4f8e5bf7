package analyze

import (
	"encoding/binary"
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// heldStore has the memory of datagrams that are held. Very many flows can hold a few each, and
// they come and go. So they share blocks, which contain no pointers and are used again. A page
// without a used block goes back: once the protocols of all flows are known, there is no need of it.
type heldStore struct {
	pages  []*heldPage // nil for those that went back
	vacant []uint32    // indexes of those in pages
	roomy  []uint32    // indexes of pages with a free block, and of some that have none any more
	unused int         // pages without a used block
	used   int         // blocks
	spare  *heldReader
}

// heldPage is blocks that are allocated at a time.
type heldPage struct {
	blocks [heldPageBlocks]heldBlock
	free   uint32 // index of the first free one, from 1; 0 for none
	used   int
	listed bool // in heldStore.roomy
}

// heldReader is what reading datagrams needs.
type heldReader struct {
	bytes    []byte // of all datagrams, in a row
	datagram machine.Datagram
}

// heldReaderMost bounds the buffer that is kept: few flows hold more.
const heldReaderMost = 1 << 18

// heldBlock is a piece of a flow's datagrams. Blocks are numbered from 1.
type heldBlock struct {
	data [heldBlockBytes]byte
	next uint32 // the block with the next piece, or the next free one of its page, from 1; 0 for none
}

const (
	heldBlockBytes = 124 // with the number, two cache lines: two heads
	heldPageBlocks = 255 // with the rest of a page, 32 kB
	// heldUnused is how many pages without a used block are kept for later flows.
	heldUnused = 4
	// heldSparse is how many pages are too few to be worth moving datagrams: 1 MB.
	heldSparse = 32
	// heldCost is counted for each datagram that is held, beside its bytes: its times and lengths.
	heldCost = 24
	// heldLength is the longest datagram that can be held.
	heldLength = 1<<25 - 1
)

// heldDatagrams are datagrams of one flow, in a heldStore. Each is a byte of flags, some varints and
// its bytes. The varints are its time and frame, as differences to the one before, and its length and
// that of the bytes. The differences wrap, so that every time comes back as it was.
type heldDatagrams struct {
	at          machine.Instant // of the newest
	ref         machine.Ref
	kept        int // bytes of all datagrams
	count       int
	first, last uint32
	used        uint8 // bytes in the last block
}

// Flags of a held datagram.
const (
	heldFromB  = 1 << 0
	heldBehind = 1 << 1
	heldGaps   = 1 << 2
	heldBig    = 1 << 3 // a prefix is big-endian
	heldPrefix = 4      // the lowest of 3 bits for the size of a prefix
)

func (s *heldStore) block(n uint32) *heldBlock {
	return &s.pages[(n-1)/heldPageBlocks].blocks[(n-1)%heldPageBlocks]
}

// take returns a free block.
func (s *heldStore) take() uint32 {
	page, p := s.open()
	at := p.free
	b := &p.blocks[at-1]
	p.free, b.next = b.next, 0
	s.used++
	if p.used++; p.used == 1 {
		s.unused--
	}
	return page*heldPageBlocks + at
}

// open returns a page with a free block, and its index.
func (s *heldStore) open() (uint32, *heldPage) {
	for n := len(s.roomy); n > 0; n-- {
		page := s.roomy[n-1]
		switch p := s.pages[page]; {
		case p == nil: // it went back
		case p.free != 0:
			return page, p
		default:
			p.listed = false
		}
		s.roomy = s.roomy[:n-1]
	}
	p := &heldPage{free: 1, listed: true}
	for i := range p.blocks[:heldPageBlocks-1] {
		p.blocks[i].next = uint32(i) + 2
	}
	page := uint32(len(s.pages))
	if n := len(s.vacant); n > 0 {
		page, s.vacant = s.vacant[n-1], s.vacant[:n-1]
		s.pages[page] = p
	} else {
		s.pages = append(s.pages, p)
	}
	s.roomy = append(s.roomy, page)
	s.unused++
	return page, p
}

// give frees a block.
func (s *heldStore) give(n uint32) {
	page, at := (n-1)/heldPageBlocks, (n-1)%heldPageBlocks
	p := s.pages[page]
	p.blocks[at].next, p.free = p.free, at+1
	s.used--
	if !p.listed {
		p.listed = true
		s.roomy = append(s.roomy, page)
	}
	if p.used--; p.used > 0 {
		return
	}
	if s.unused < heldUnused {
		s.unused++
		return
	}
	s.pages[page] = nil
	s.vacant = append(s.vacant, page)
}

// sparse reports whether the used blocks fit in three quarters of the pages.
func (s *heldStore) sparse() bool {
	pages := len(s.pages) - len(s.vacant)
	return pages > heldSparse && 4*s.used < 3*pages*heldPageBlocks
}

// evacuate begins to give pages back: it returns how many pages suffice. The caller moves all
// datagrams into these, and calls truncate.
func (s *heldStore) evacuate() (keep uint32) {
	s.roomy = s.roomy[:0]
	for room := 0; room < s.used; keep++ {
		if p := s.pages[keep]; p != nil {
			room += heldPageBlocks
			if p.listed = p.free != 0; p.listed {
				s.roomy = append(s.roomy, keep)
			}
		}
	}
	return keep
}

// move moves the datagrams of h into the first pages.
func (s *heldStore) move(h *heldDatagrams, keep uint32) {
	before := uint32(0)
	for n := h.first; n != 0; {
		b, at := s.block(n), n
		if (n-1)/heldPageBlocks >= keep {
			at = s.take()
			to := s.block(at)
			*to = *b
			s.used-- // the other one is dropped with its page
			if before == 0 {
				h.first = at
			} else {
				s.block(before).next = at
			}
		}
		before, n = at, b.next
	}
	h.last = before
}

// truncate gives the other pages back.
func (s *heldStore) truncate(keep uint32) {
	clear(s.pages[keep:])
	s.pages = s.pages[:keep]
	s.vacant = slices.DeleteFunc(s.vacant, func(page uint32) bool { return page >= keep })
	s.unused = 0
	for _, p := range s.pages {
		if p != nil && p.used == 0 {
			s.unused++
		}
	}
}

// add appends a datagram.
func (s *heldStore) add(h *heldDatagrams, d *machine.Datagram) {
	var room [1 + 5*binary.MaxVarintLen64]byte
	flags := d.From&1*heldFromB | machine.Side(d.Prefix.Bytes)<<heldPrefix
	if d.Behind {
		flags |= heldBehind
	}
	if d.Gaps {
		flags |= heldGaps
	}
	if d.Prefix.BigEndian {
		flags |= heldBig
	}
	b := append(room[:0], byte(flags))
	b = binary.AppendVarint(b, int64(d.At)-int64(h.at))
	b = binary.AppendVarint(b, int64(d.Ref)-int64(h.ref))
	b = binary.AppendUvarint(b, uint64(min(d.Length, heldLength)))
	b = binary.AppendUvarint(b, uint64(len(d.Bytes)))
	s.write(h, b)
	s.write(h, d.Bytes)
	h.at, h.ref = d.At, d.Ref
	h.kept += len(d.Bytes)
	h.count++
}

func (s *heldStore) write(h *heldDatagrams, b []byte) {
	for len(b) > 0 {
		if h.first == 0 || h.used == heldBlockBytes {
			n := s.take()
			if h.first == 0 {
				h.first = n
			} else {
				s.block(h.last).next = n
			}
			h.last, h.used = n, 0
		}
		n := copy(s.block(h.last).data[h.used:], b)
		h.used += uint8(n)
		b = b[n:]
	}
}

// each calls do with every datagram in order. It is valid during the call.
func (s *heldStore) each(h *heldDatagrams, do func(d *machine.Datagram)) {
	r := s.spare
	s.spare = nil // do may ask for the datagrams of another flow
	if r == nil {
		r = new(heldReader)
	}
	r.bytes = r.bytes[:0]
	for n := h.first; n != 0; {
		b := s.block(n)
		r.bytes = append(r.bytes, b.data[:]...)
		n = b.next
	}
	d, from := &r.datagram, r.bytes
	at, ref := machine.Instant(0), machine.Ref(0)
	for range h.count {
		flags := from[0]
		from = from[1:]
		at += machine.Instant(heldVarint(&from))
		ref += machine.Ref(heldVarint(&from))
		length, kept := heldUvarint(&from), heldUvarint(&from)
		*d = machine.Datagram{
			At: at, Ref: ref, From: machine.Side(flags & heldFromB), Behind: flags&heldBehind != 0, Gaps: flags&heldGaps != 0,
			Bytes: from[:kept:kept], Length: int(length),
			Prefix: machine.Prefix{Bytes: flags >> heldPrefix, BigEndian: flags&heldBig != 0},
		}
		from = from[kept:]
		do(d)
	}
	if cap(r.bytes) <= heldReaderMost {
		s.spare = r
	}
}

func heldVarint(from *[]byte) int64 {
	v := heldUvarint(from)
	return int64(v>>1) ^ -int64(v&1)
}

func heldUvarint(from *[]byte) uint64 {
	if b := *from; b[0] < 0x80 { // as most are
		*from = b[1:]
		return uint64(b[0])
	}
	v, n := binary.Uvarint(*from)
	*from = (*from)[n:]
	return v
}

// clear drops the datagrams.
func (s *heldStore) clear(h *heldDatagrams) {
	for n := h.first; n != 0; {
		next := s.block(n).next
		s.give(n)
		n = next
	}
	*h = heldDatagrams{}
}
