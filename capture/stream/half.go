package stream

import (
	"slices"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// TCP flags, as in byte 13 of the header.
const (
	fin = 1 << iota
	syn
	rst
	_
	ack
)

// Limits bound the memory of one direction of a connection. A zero field
// selects the default.
type Limits struct {
	Pieces int // out-of-order segments held until a hole is filled; default 1024
	Bytes  int // bytes of those segments; default 1 MiB
	Search int // bytes held while the framing is not known; default 16 KiB
}

func (l Limits) orDefault() Limits {
	if l.Pieces <= 0 {
		l.Pieces = 1024
	}
	if l.Bytes <= 0 {
		l.Bytes = 1 << 20
	}
	if l.Search <= 0 {
		l.Search = 16 << 10
	}
	return l
}

// Counts are what happened to the segments of one direction.
type Counts struct {
	Segments      uint64 // segments with payload
	Bytes         uint64 // bytes put in order
	Retransmitted uint64 // bytes that were already there
	OutOfOrder    uint64 // segments that came before the bytes in front of them
	Gaps          uint64 // holes that were never filled
	GapBytes      uint64
	Messages      uint64
	Damaged       uint64 // messages that lost bytes to a gap
	Unframed      uint64 // bytes that could not be assigned to a message
}

// mark is the origin of a range of the ordered bytes.
type mark struct {
	pos    uint64 // of its first byte
	frame  machine.Ref
	offset int // within the frame
	at     machine.Instant
	ref    machine.Ref // with at: the frame after which the range could be read
}

// hole is a gap before an ordered byte.
type hole struct {
	pos     uint64 // of that byte
	missing uint64 // number of missing bytes; 0 if unknown
}

// piece is a segment that waits for the bytes in front of it.
type piece struct {
	seq  uint32
	data []byte
	at   machine.Instant
	// spans are the places that data came from.
	spans []capture.Span
}

// half is one direction of a connection.
type half struct {
	newest  mark   // when its last bytes passed; only at and ref are set
	joined  bool   // next is known
	whole   bool   // the stream was seen from its first byte
	fresh   bool   // whole, and the uncut bytes begin at a prefix, because nothing was cut or lost yet
	isn     uint32 // the sequence number of its SYN
	closed  bool   // FIN reached or RST seen
	next    uint32 // sequence number of the next byte in order
	finSeq  uint32
	finSeen bool

	base   uint64 // offset of buf[0] among the ordered bytes, without gaps
	buf    []byte // in order, not yet cut into messages
	done   int    // bytes of it that are cut; dropped when the next segment comes
	marks  []mark // of buf, in order; the first may begin before buf
	breaks []hole // gaps within buf, in order

	pieces  []piece // in order of sequence number
	held    int     // bytes in pieces
	free    []piece // empty pieces, kept for their memory
	overdue int     // segments seen since the receiver acked the bytes after the hole
	stray   int     // segments in a row that lie far behind next
	open    bool    // a hole was left at the end, before the ordered byte at behind
	behind  uint64

	framer framer
	counts Counts
}

const (
	// maxOverdue is how many more segments we wait for after the receiver has
	// acked bytes that the tap has not seen. Captures of several queues swap a few
	// segments.
	maxOverdue = 8
	// farBehind is a distance that no retransmission has, in bytes.
	farBehind = 1 << 24
	// maxStray is how many segments in a row must lie far behind before we
	// assume that the direction has restarted there.
	maxStray = 8
)

// end returns the position after the last ordered byte.
func (h *half) end() uint64 { return h.base + uint64(len(h.buf)) }

// segment processes one segment of this direction.
func (h *half) segment(p *capture.Packet, lim *Limits) {
	seq, data := p.TCPSeq, p.Payload
	if p.TCPFlags&syn != 0 {
		if !h.joined {
			h.joined, h.whole, h.fresh, h.isn, h.next = true, true, true, seq, seq+1
		}
		seq++
	}
	if p.TCPFlags&rst != 0 {
		h.closed = true
		return // the payload of a RST is a diagnosis, not part of the stream
	}
	if !h.joined {
		if p.Length == 0 {
			return
		}
		h.joined, h.next = true, seq
	}
	if p.TCPFlags&fin != 0 {
		h.finSeen, h.finSeq = true, seq+uint32(p.Length)
	}
	if p.Length > 0 {
		h.counts.Segments++
		h.take(seq, data, p, lim)
	}
	if h.framer.foreign {
		h.forget()
	}
	if h.finSeen && int32(h.next-h.finSeq) >= 0 {
		h.closed = true
	}
}

func (h *half) take(seq uint32, data []byte, p *capture.Packet, lim *Limits) {
	ahead := int32(seq - h.next)
	if ahead < -farBehind {
		if h.stray++; h.stray < maxStray {
			return
		}
		h.restart(seq)
		ahead = 0
	}
	h.stray = 0
	switch {
	case ahead > 0:
		h.counts.OutOfOrder++
		h.hold(seq, data, p)
		if len(h.pieces) > lim.Pieces || h.held > lim.Bytes {
			h.skipHole()
		}
		return
	case ahead < 0:
		known := min(int(-ahead), p.Length)
		h.counts.Retransmitted += uint64(known)
		if known >= len(data) {
			return
		}
		data = data[known:]
		h.append(data, p.At, p.Ref, p.Spans, known)
	default:
		h.append(data, p.At, p.Ref, p.Spans, 0)
	}
	h.drain(p.At, p.Ref)
	if missing := int32(seq + uint32(p.Length) - h.next); missing > 0 && len(p.Payload) < p.Length {
		// A snap length cut the segment: the rest of it will not come.
		h.gap(uint64(missing))
		h.drain(p.At, p.Ref)
	}
}

// append adds bytes to the ordered ones. skip is their offset in the payload
// that the spans describe.
func (h *half) append(data []byte, at machine.Instant, ref machine.Ref, spans []capture.Span, skip int) {
	h.newest = mark{at: at, ref: ref}
	h.next += uint32(len(data))
	h.counts.Bytes += uint64(len(data))
	if h.framer.foreign {
		h.base += uint64(len(data))
		return
	}
	pos, left := h.end(), len(data)
	for _, s := range spans {
		if skip >= s.Length {
			skip -= s.Length
			continue
		}
		n := min(s.Length-skip, left)
		if n <= 0 {
			break
		}
		h.marks = append(h.marks, mark{pos: pos, frame: s.Ref, offset: s.Offset + skip, at: at, ref: ref})
		pos += uint64(n)
		left -= n
		skip = 0
	}
	if left > 0 { // the packet named no spans, or too few
		h.marks = append(h.marks, mark{pos: pos, frame: ref, offset: -1, at: at, ref: ref})
	}
	h.buf = append(h.buf, data...)
}

// hold stores a segment that came before the bytes in front of it. If bytes
// come twice, the first copy counts, as in the TCP stacks of receivers.
func (h *half) hold(seq uint32, data []byte, p *capture.Packet) {
	if h.framer.foreign {
		return
	}
	i, _ := slices.BinarySearchFunc(h.pieces, seq, func(q piece, s uint32) int { return int(int32(q.seq - s)) })
	if i < len(h.pieces) && h.pieces[i].seq == seq && len(h.pieces[i].data) >= len(data) {
		h.counts.Retransmitted += uint64(len(data))
		return
	}
	if len(data) == 0 {
		return
	}
	var q piece
	if n := len(h.free); n > 0 {
		q = h.free[n-1]
		h.free = h.free[:n-1]
	}
	q.seq, q.at = seq, p.At
	q.data = append(q.data[:0], data...)
	q.spans = append(q.spans[:0], p.Spans...)
	if len(q.spans) == 0 {
		q.spans = append(q.spans, capture.Span{Ref: p.Ref, Offset: -1, Length: len(data)})
	}
	h.pieces = slices.Insert(h.pieces, i, q)
	h.held += len(data)
}

// drain moves the pieces that need not wait any longer to the ordered bytes.
// The arguments at and ref are those of the frame that filled the hole. If a
// gap ended the wait, both are zero, and the pieces keep their own.
func (h *half) drain(at machine.Instant, ref machine.Ref) {
	n := 0
	for ; n < len(h.pieces); n++ {
		q := &h.pieces[n]
		ahead := int32(q.seq - h.next)
		if ahead > 0 {
			break
		}
		if known := int(-ahead); known < len(q.data) {
			h.counts.Retransmitted += uint64(known)
			if ref != 0 {
				h.append(q.data[known:], at, ref, q.spans, known)
			} else {
				// The receiver cannot read it before the bytes in front of it.
				at, ref := q.at, q.spans[len(q.spans)-1].Ref
				if at < h.newest.at {
					at, ref = h.newest.at, h.newest.ref
				}
				h.append(q.data[known:], at, ref, q.spans, known)
			}
		} else {
			h.counts.Retransmitted += uint64(len(q.data))
		}
		h.held -= len(q.data)
	}
	if n == 0 {
		return
	}
	const spare = 16 // empty pieces that are kept for their memory
	for _, q := range h.pieces[:n] {
		if len(h.free) < spare && cap(q.data) <= 4096 {
			h.free = append(h.free, q)
		}
	}
	h.pieces = slices.Delete(h.pieces, 0, n)
	h.overdue = 0
}

// skipHole declares the bytes before the first held piece missing.
func (h *half) skipHole() {
	if len(h.pieces) == 0 {
		return
	}
	h.gap(uint64(h.pieces[0].seq - h.next))
	h.drain(0, 0)
}

// gap records that the next n bytes will not come.
func (h *half) gap(n uint64) {
	h.counts.Gaps++
	h.counts.GapBytes += n
	h.next += uint32(n)
	if h.framer.foreign {
		return
	}
	if last := len(h.breaks) - 1; last >= 0 && h.breaks[last].pos == h.end() {
		h.breaks[last].missing += n
		return
	}
	h.breaks = append(h.breaks, hole{pos: h.end(), missing: n})
}

// restart moves the direction to a new sequence number.
func (h *half) restart(seq uint32) {
	h.gap(0)
	if last := len(h.breaks) - 1; last >= 0 {
		h.breaks[last].missing = 0 // the number is not known
	}
	h.pieces, h.held, h.next = h.pieces[:0], 0, seq
}

// checkOverdue skips the hole once the receiver's acks have been beyond it for
// maxOverdue segments.
func (h *half) checkOverdue(acked uint32) {
	if len(h.pieces) == 0 || int32(acked-h.pieces[0].seq) < 0 {
		return
	}
	if h.overdue++; h.overdue > maxOverdue {
		h.skipHole()
	}
}

// drop removes the bytes of buf that are cut.
func (h *half) drop() {
	if h.done == 0 {
		return
	}
	n := h.done
	h.done = 0
	h.base += uint64(n)
	rest := copy(h.buf, h.buf[n:])
	h.buf = h.buf[:rest]
	first := 0
	for first+1 < len(h.marks) && h.marks[first+1].pos <= h.base {
		first++
	}
	if rest == 0 {
		first = len(h.marks)
	}
	h.marks = h.marks[:copy(h.marks, h.marks[first:])]
}

// forget removes all bytes, because no framing will cut them.
func (h *half) forget() {
	h.base += uint64(len(h.buf))
	h.buf, h.marks, h.breaks, h.free, h.done = nil, nil, nil, nil, 0
}

// markAt returns the index of the mark of the byte at a position. The byte must
// be in buf.
func (h *half) markAt(pos uint64) int {
	i, ok := slices.BinarySearchFunc(h.marks, pos, func(m mark, p uint64) int {
		switch {
		case m.pos < p:
			return -1
		case m.pos > p:
			return 1
		}
		return 0
	})
	if ok {
		return i
	}
	return i - 1
}

func (h *half) clone() half {
	c := *h
	c.buf = slices.Clone(h.buf)
	c.marks = slices.Clone(h.marks)
	c.breaks = slices.Clone(h.breaks)
	c.free = nil
	c.pieces = slices.Clone(h.pieces)
	for i := range c.pieces {
		c.pieces[i].data = slices.Clone(h.pieces[i].data)
		c.pieces[i].spans = slices.Clone(h.pieces[i].spans)
	}
	return c
}
