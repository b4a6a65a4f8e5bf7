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
	return d.Length > batchLeast || f.batches != nil && f.batches.size[d.From] > 0 && d.Length >= 2*batchHeader
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
		if p != nil {
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
	if f.batches == nil {
		f.batches = &batches{}
	}
	b := f.batches
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
	for size := min(batchLeast, d.Length/2); size >= max(batchHeader, (d.Length+batchMost-1)/batchMost); size-- {
		if s.confirms(f, d, size, least) {
			b.size[d.From], b.failed = size, 0
			return size
		}
	}
	b.skip = 1<<min(b.failed, batchPatience) - 1
	b.failed = min(b.failed, batchPatience) + 1
	return 0
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
	s.dissection.Reset()
	f.Protocol.Dissect(dissect.Context{Config: f.Config(), From: d.From}, d, &s.dissection)
	if s.dissection.Problem != nil || s.dissection.Snapped {
		return 0, 0, false
	}
	for i := range s.dissection.Fields {
		x := &s.dissection.Fields[i]
		if x.Spec.Content == dissect.ContentSequence && x.Spec.Kind == dissect.KindUint && x.Bits > 0 {
			// A sequence that is written in fewer bytes than it has still counts up.
			return x.Uint, max(int(min(x.Bits, 63)), bits.Len64(x.Uint)%64), true
		}
	}
	return 0, 0, false
}
