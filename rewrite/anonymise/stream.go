package anonymise

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// way is one direction of a TCP connection.
type way struct{ from, to netip.AddrPort }

// stream holds the new bytes of one direction: the replaced messages, by their
// position in the stream. So a retransmitted segment is rewritten to the same
// bytes.
type stream struct {
	first    machine.Ref // the segment that opened it
	begin    uint32      // its sequence number
	newest   int64       // unwrapped
	segments []segment
	chunks   []chunk
	sorted   bool
}

// segment is the position of a frame's payload in the stream.
type segment struct {
	ref    machine.Ref
	offset int // of the payload in the frame
	at     int64
}

// chunk is a part of a message.
type chunk struct {
	at      int64
	bytes   []byte
	message int               // length of the message that begins here; 0 for its later parts
	framing []dissect.Framing // the framings in which the flow's protocol writes such lengths
}

// prefix returns the length before the chunk, in the framing f.
func prefix(f *dissect.Framing, length int) []byte {
	var b [longestPrefix]byte
	switch {
	case f.Prefix == 2 && f.BigEndian:
		binary.BigEndian.PutUint16(b[:], uint16(length))
	case f.Prefix == 2:
		binary.LittleEndian.PutUint16(b[:], uint16(length))
	case f.BigEndian:
		binary.BigEndian.PutUint32(b[:], uint32(length))
	default:
		binary.LittleEndian.PutUint32(b[:], uint32(length))
	}
	return b[:f.Prefix]
}

// length returns the length at the start of b, in the framing f. It returns -1
// if b is too short.
func length(f *dissect.Framing, b []byte) int {
	switch {
	case len(b) < f.Prefix:
		return -1
	case f.Prefix == 2 && f.BigEndian:
		return int(binary.BigEndian.Uint16(b))
	case f.Prefix == 2:
		return int(binary.LittleEndian.Uint16(b))
	case f.BigEndian:
		return int(binary.BigEndian.Uint32(b))
	}
	return int(binary.LittleEndian.Uint32(b))
}

// before keeps the length before the chunk. out is the output for the segment
// raw, which begins at position at. Bytes are kept only if they are the length
// of the message.
func (c *chunk) before(out, raw []byte, at int64) {
	if c.message == 0 {
		return
	}
	for i := range c.framing {
		want := prefix(&c.framing[i], c.message)
		from := c.at - int64(len(want)) - at // in the segment
		begin, end := max(from, 0), min(c.at-at, int64(len(raw)))
		if begin < end && bytes.Equal(raw[begin:end], want[begin-from:end-from]) {
			copy(out[begin:end], raw[begin:end])
		}
	}
}

// behind keeps a length after the chunk of a message that was not captured
// completely. A length greater than the protocol usually writes counts as
// contents.
func (c *chunk) behind(out, raw []byte, at int64) {
	from := c.at + int64(len(c.bytes)) - at
	if from < 0 || from >= int64(len(raw)) {
		return
	}
	for i := range c.framing {
		f := &c.framing[i]
		if n := length(f, raw[from:]); n > 0 && n <= f.Usual {
			copy(out[from:from+int64(f.Prefix)], raw[from:])
		}
	}
}

const (
	longestPrefix = 4       // bytes of a length before a message, which are not content
	maxStreamed   = 1 << 30 // bytes of messages that are stored
	flagSYN       = 1 << 1
)

// segment processes a record of a TCP flow.
func (a *anonymiser) segment(r *analyze.Record) {
	defer a.fit()
	w := way{r.Flow.Addr(r.Datagram.From), r.Flow.Addr(r.Datagram.From.Other())}
	if p := r.Packet; p != nil {
		list := a.streams[w]
		if n := len(list); n == 0 || p.TCPFlags&flagSYN != 0 && list[n-1].begin != p.TCPSeq {
			list = append(list, &stream{first: p.Ref, begin: p.TCPSeq})
			a.streams[w] = list
			a.held += 2*int(unsafe.Sizeof(w)) + int(unsafe.Sizeof(stream{}))
		}
		s := list[len(list)-1]
		if len(p.Spans) > 0 && (len(s.segments) == 0 || s.segments[len(s.segments)-1].ref != p.Ref) {
			s.segments = append(s.segments, segment{p.Ref, p.Spans[0].Offset, s.place(p.TCPSeq)})
			a.held += int(unsafe.Sizeof(segment{}))
		}
	}
	if !r.Message || a.err != nil {
		return
	}
	b, err := a.fields.edited(r.Flow, &r.Datagram)
	if err != nil {
		b = a.fields.scrambled(r.Datagram.Bytes)
	}
	a.fields.count(r.Flow, err != nil)
	for nth, span := range r.Spans {
		n := min(span.Length, len(b))
		s := a.streamAt(w, span.Ref)
		if s == nil || n == 0 {
			continue
		}
		i := sort.Search(len(s.segments), func(i int) bool { return s.segments[i].ref >= span.Ref })
		if i < len(s.segments) && s.segments[i].ref == span.Ref {
			c := chunk{at: s.segments[i].at + int64(span.Offset-s.segments[i].offset), bytes: b[:n:n]}
			if r.Flow.Protocol != nil {
				c.framing = r.Flow.Protocol.Framings
			}
			if nth == 0 {
				c.message = r.Datagram.Length
			}
			s.chunks = append(s.chunks, c)
			s.sorted = false
			a.held += n + int(unsafe.Sizeof(c))
		}
		if a.streamed += n; a.streamed > maxStreamed {
			a.err = fmt.Errorf("the TCP streams hold more than %d bytes of messages: anonymise the capture in parts",
				maxStreamed)
		}
		b = b[n:]
	}
}

// streamAt returns the stream of a frame, or nil.
func (a *anonymiser) streamAt(w way, ref machine.Ref) *stream {
	list := a.streams[w]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].first <= ref {
			return list[i]
		}
	}
	return nil
}

// place unwraps a sequence number to the position nearest to the newest one.
func (s *stream) place(sequence uint32) int64 {
	at := s.newest + int64(int32(sequence-s.begin-uint32(s.newest)))
	s.newest = max(s.newest, at)
	return at
}

// rewritten returns the new payload of a segment.
func (a *anonymiser) rewritten(r *analyze.Record) []byte {
	p := r.Packet
	out := a.fields.scrambled(p.Payload)
	s := a.streamAt(way{p.Src, p.Dst}, p.Ref)
	if s == nil || len(out) == 0 {
		return out
	}
	if !s.sorted {
		slices.SortStableFunc(s.chunks, func(x, y chunk) int { return cmp.Compare(x.at, y.at) })
		s.sorted = true
	}
	i := sort.Search(len(s.segments), func(i int) bool { return s.segments[i].ref >= p.Ref })
	if i == len(s.segments) || s.segments[i].ref != p.Ref {
		return out
	}
	at := s.segments[i].at
	end := at + int64(len(out))
	first := sort.Search(len(s.chunks),
		func(i int) bool { return s.chunks[i].at+int64(len(s.chunks[i].bytes))+longestPrefix > at })
	list := s.chunks[first:]
	for i, c := range list { // lengths first, because chunks may cover bytes that look like one
		if c.at-longestPrefix >= end {
			list = list[:i]
			break
		}
		c.before(out, p.Payload, at)
		c.behind(out, p.Payload, at)
	}
	for _, c := range list {
		if from := max(at, c.at); from < min(end, c.at+int64(len(c.bytes))) {
			copy(out[from-at:], c.bytes[from-c.at:])
		}
	}
	return out
}
