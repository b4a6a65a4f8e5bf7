package analyze

import (
	"math/bits"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// A sender can give its system many datagrams in one call, and the network card cuts them
// apart (UDP_SEGMENT, generic segmentation offload). A receiver's card or system can join
// datagrams likewise (GRO). A capture on such a host sees one long datagram:
//
//	IP UDP │ datagram of size bytes │ datagram of size bytes │ … │ the last, of 1 to size bytes
//
// No field of the capture gives the size. The datagrams of one flow count their sequence
// numbers up, so a cut is confirmed by the protocol's own numbers at each of its places.
//
// Source: Linux, Documentation/networking/segmentation-offloads.rst and net/ipv4/udp_offload.c.
const (
	// batchLeast is the payload from which a datagram may be a batch: more than a frame of
	// Ethernet carries after IPv4 and UDP headers.
	batchLeast = 1500 - 28
	// batchMost is how many datagrams a batch has at most: UDP_MAX_SEGMENTS of Linux 6.9, and
	// 64 before.
	batchMost = 128
	// batchHeader is the smallest datagram of a batch: a header with a sequence.
	batchHeader = 4
	// batchEvidence is how many bits of sequence numbers must agree for a size that is not known
	// of the flow. Of 1,468 sizes, chance then confirms one in fewer than one of 700,000 long
	// datagrams.
	// Source: definition, offload: 30 bits, less 10.5 for the sizes tried
	batchEvidence = 30
	// batchPatience is the binary logarithm of how many long datagrams at most a flow passes
	// unexamined, after many that were no batches.
	batchPatience = 10
	// batchSearch bounds the dissections of one search. An honest long datagram takes two for
	// each size at most. Over the capture, searches may take batchWork dissections for each
	// frame, and batchFloor more.
	batchSearch = 1 << 12
	batchWork   = 64
	batchFloor  = 1 << 16
)

// Batch says that a datagram was captured together with others in one frame. Its zero value
// says that it was not.
type Batch struct {
	Count int // datagrams in the frame
	Size  int // bytes of each but the last
}

// batches is what a flow's batches have shown.
type batches struct {
	size   [2]int // of the side's last one
	failed uint8  // long datagrams in a row that were none
	skip   uint16 // long datagrams to pass unexamined
}

// mayBatch reports whether a datagram is to be examined: it is long, or its side sends batches.
func (f *Flow) mayBatch(d *machine.Datagram) bool {
	if d.Length > batchLeast {
		return true
	}
	b := f.has().batches
	return b != nil && b.size[d.From] > 0 && d.Length >= 2*batchHeader
}

// step observes a datagram of f, or the datagrams that it is a batch of. It returns the flow
// of the last one, and how many there were.
func (s *Session) step(f *Flow, d *machine.Datagram, p *capture.Packet) (next *Flow, count int) {
	if !f.mayBatch(d) {
		return s.observe(f, d, p), 1
	}
	size := s.batchSize(f, d, p)
	if size == 0 {
		if d.Length > safePayload && p != nil && p.Fragments <= 1 {
			s.noteSize(f, d, 0)
		}
		return s.observe(f, d, p), 1
	}
	whole := *d
	count = (d.Length + size - 1) / size
	s.note(f, &machine.Anomaly{
		Rule: offload, Side: d.From, Certainty: machine.Likely, At: d.At, Ref: d.Ref,
		Figures: [3]float64{float64(count), float64(size)},
	})
	s.batch = Batch{Count: count, Size: size}
	for i := range count {
		d.Bytes = whole.Bytes[i*size : min((i+1)*size, len(whole.Bytes))]
		d.Length = len(d.Bytes)
		s.stream.index, s.stream.more, s.stream.spans = i, i+1 < count, nil
		if p != nil && len(p.Spans) == 1 {
			span := p.Spans[0]
			span.Offset, span.Length = span.Offset+i*size, d.Length
			s.segmentSpan[0] = span
			s.stream.spans = s.segmentSpan[:]
		}
		if d.Length > safePayload && p != nil {
			s.noteSize(f, d, 0)
		}
		f = s.observe(f, d, p)
		if p != nil && s.logsSent() {
			s.stampSent()
			s.sent.noteSegment(f, d, p, i)
		}
	}
	s.batch = Batch{}
	s.stream.index, s.stream.more, s.stream.spans = 0, false, nil
	d.Bytes, d.Length = whole.Bytes, whole.Length
	return f, count
}

// batchSize returns the size of the datagrams that d is a batch of. It returns 0 where the
// protocol's numbers confirm none: then d is one datagram, as far as the capture shows.
func (s *Session) batchSize(f *Flow, d *machine.Datagram, p *capture.Packet) int {
	if f.Transport != capture.UDP || f.Protocol == nil || f.Protocol.Dissect == nil ||
		f.scopes != [2]*scope{} || len(d.Bytes) != d.Length || p != nil && (p.Fragments > 1 || len(p.Spans) != 1) {
		return 0
	}
	if f.has().batches == nil {
		f.gets().batches = &batches{}
	}
	b := f.rare.batches
	if known := b.size[d.From]; known > 0 && d.Length > known && s.confirms(f, d, known, 1) {
		return known
	}
	least := batchEvidence
	if b.size[d.From] > 0 {
		// The side sends batches. If this is no datagram, it is one of another size.
		if _, _, ok := s.sequenceOf(f, d); !ok {
			least = 1
		}
	}
	if d.Length <= batchLeast && least > 1 {
		return 0
	}
	if b.skip > 0 {
		b.skip--
		return 0
	}
	most := s.dissected + batchSearch
	s.shard.within(int(s.dissected), batchFloor+batchWork*int(s.n))
	if most > batchFloor+batchWork*s.n {
		return 0
	}
	smallest := max(batchHeader, (d.Length+batchMost-1)/batchMost)
	first := s.placeOf(f, d)
	for size := min(batchLeast, d.Length/2); size >= smallest && s.dissected < most; size-- {
		if first.mayRepeat(d.Bytes, size) && s.confirms(f, d, size, least) {
			b.size[d.From], b.failed = size, 0
			return size
		}
	}
	b.skip = 1<<min(b.failed, batchPatience) - 1
	b.failed = min(b.failed, batchPatience) + 1
	return 0
}

// numberPlace is where a datagram holds its sequence number, in whole bytes. Its width is 0 if the
// bytes do not show the number, as in encrypted datagrams.
type numberPlace struct {
	at, width int // bytes
	big       bool
	value     uint64
}

// placeOf returns the place of the number of d's first datagram.
func (s *Session) placeOf(f *Flow, d *machine.Datagram) (x numberPlace) {
	s.dissect(f, d)
	for i := range s.dissection.Fields {
		n := &s.dissection.Fields[i]
		if !sequential(n) {
			continue
		}
		if n.Bit%8 != 0 || n.Bits%8 != 0 || n.Bits > 64 {
			return numberPlace{}
		}
		for _, big := range []bool{false, true} {
			x = numberPlace{int(n.Bit / 8), int(n.Bits / 8), big, n.Uint}
			if v, ok := x.read(d.Bytes, 0); ok && v == n.Uint {
				return x
			}
		}
		return numberPlace{}
	}
	return numberPlace{}
}

// read reads the number of the datagram that begins at a byte of b.
func (x *numberPlace) read(b []byte, from int) (v uint64, ok bool) {
	from += x.at
	if from+x.width > len(b) {
		return 0, false
	}
	for i, c := range b[from : from+x.width] {
		if x.big {
			v = v<<8 | uint64(c)
		} else {
			v |= uint64(c) << (8 * i)
		}
	}
	return v, true
}

// mayRepeat reports whether a second datagram may begin at a byte of b: it has the same number
// there, or the next one.
func (x *numberPlace) mayRepeat(b []byte, from int) bool {
	if x.width == 0 {
		return true
	}
	v, ok := x.read(b, from)
	return ok && (v == x.value || v == (x.value+1)&(1<<(8*x.width)-1))
}

// confirms reports whether datagrams of a size count up their sequence numbers, with at least
// so many bits of evidence. The pieces of one packet share its number, so a number may also
// repeat. That is no evidence, since a payload of zeros repeats too.
func (s *Session) confirms(f *Flow, d *machine.Datagram, size int, least int) bool {
	evidence := 0
	var before uint64
	for at := 0; at < d.Length; at += size {
		x := *d
		x.Bytes = d.Bytes[at:min(at+size, d.Length)]
		x.Length = len(x.Bytes)
		n, width, ok := s.sequenceOf(f, &x)
		switch mask := uint64(1)<<width - 1; {
		case !ok:
			return false
		case at == 0:
		case n != before && n != (before+1)&mask:
			return false
		case n != before:
			evidence += width - 1
		}
		before = n
	}
	return evidence >= least
}

// sequenceOf returns the sequence number of a datagram, and how many bits wide it is. It
// returns false for one that is malformed, and for one without a number.
func (s *Session) sequenceOf(f *Flow, d *machine.Datagram) (n uint64, width int, ok bool) {
	if s.dissect(f, d); s.dissection.Problem != nil || s.dissection.Snapped {
		return 0, 0, false
	}
	for i := range s.dissection.Fields {
		x := &s.dissection.Fields[i]
		if sequential(x) {
			// A sequence that is written in fewer bytes than it has still counts up.
			return x.Uint, max(int(min(x.Bits, 63)), bits.Len64(x.Uint)%64), true
		}
	}
	return 0, 0, false
}

// dissect dissects a datagram of f into s.dissection.
func (s *Session) dissect(f *Flow, d *machine.Datagram) {
	s.dissected++
	s.dissection.Reset()
	f.Protocol.Dissect(dissect.Context{Config: f.Config(), From: d.From}, d, &s.dissection)
}

// sequential reports whether a field is a number that counts its sender's packets.
func sequential(x *dissect.Field) bool {
	return x.Spec.Content == dissect.ContentSequence && x.Spec.Kind == dissect.KindUint && x.Bits > 0
}
