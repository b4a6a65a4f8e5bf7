package analyze

import (
	"encoding/binary"
	"slices"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Bounds of what is kept of datagrams for ICMP errors that quote them.
const (
	// sentRing is how many datagrams of all flows are kept: 640 kB. At 16,000 packets a second
	// that is a second. An error comes back within a round trip.
	sentRing = 1 << 14
	// sentLeast is for how many of them there is room at first.
	// Source: bound, 1.3 kB for captures of a few datagrams
	sentLeast = 32
	// sentSteps is how many datagrams of one flow are compared with a quote, the newest first.
	// At 60 packets a second each way, these are the last two seconds.
	sentSteps = 256
	// sentHead is how many bytes of a payload are kept: those with the protocol's numbers.
	sentHead = 8
)

// sentDatagram is what is kept of a datagram.
type sentDatagram struct {
	ref      machine.Ref
	at       machine.Instant
	head     uint64 // the first bytes of the payload
	back     uint32 // how many datagrams of all flows ago the one of the same flow before it passed; 0 for none
	id       uint32 // IP identification; 0 if there is none
	length   uint16 // of the payload
	checksum uint16
	heads    uint8 // bytes in head
	from     machine.Side
}

// sentLog keeps the last datagrams of all flows in a ring. Those of one flow are chained: each
// says how far back the one before it is, and Flow.sent counts from 1 where the newest is.
type sentLog struct {
	ring []sentDatagram
	n    uint64 // datagrams so far
}

// unquoted are the frames whose datagrams no ICMP error quotes, as an earlier run over the capture
// learned. They are those that n frames came before, with from <= n < to. The log leaves them out.
type unquoted struct {
	from, to uint64
	reached  bool
}

// unquoted returns the frames behind the last ICMP error of the capture. The newest sentRing frames are
// not among them: a file can grow between two runs, and errors in the new frames quote those. Where some
// of these frames are TCP, the log then reaches less far back than in a run that logs all.
func (v *Survey) unquoted() (u unquoted) {
	if v != nil && v.quoted+sentRing < v.frames {
		u.from, u.to = v.quoted, v.frames-sentRing
	}
	return u
}

// logsSent reports whether a datagram of the current frame may be looked for: an ICMP error may quote
// it, or fates are counted by size.
func (s *Session) logsSent() bool {
	u := &s.unquoted
	if s.n-1 < u.from || s.n-1 >= u.to || s.sized {
		return true
	}
	if !u.reached {
		u.reached = true
		s.sent.n += sentRing // what was kept before is out of reach, as if all those frames were in the log
	}
	return false
}

// note adds a datagram of f.
func (l *sentLog) note(f *Flow, from machine.Side, p *capture.Packet) {
	at := l.n % sentRing
	if at == uint64(len(l.ring)) {
		if len(l.ring) == cap(l.ring) { // append alone grows by a quarter, and leaves four times as much behind
			l.ring = slices.Grow(l.ring, max(sentLeast, len(l.ring)))
		}
		l.ring = l.ring[:at+1]
	}
	x := &l.ring[at] // filled in place: a copy of a datagram costs as much again
	x.ref, x.at, x.head, x.back = p.Ref, p.At, head(p.Payload), 0
	x.id, x.length, x.checksum = p.IPID, uint16(p.Length), p.Checksum
	x.heads, x.from = uint8(min(len(p.Payload), sentHead)), from
	if back := l.n + 1 - f.sent; f.sent != 0 && back < sentRing {
		x.back = uint32(back)
	}
	l.n++
	f.sent = l.n
}

// noteSegment adds the nth datagram of a batch. The card numbers the packets up, and computes
// their checksums.
func (l *sentLog) noteSegment(f *Flow, d *machine.Datagram, p *capture.Packet, n int) {
	x := capture.Packet{Ref: p.Ref, At: p.At, Payload: d.Bytes, Length: d.Length}
	if p.IPID != 0 {
		x.IPID = uint32(uint16(p.IPID) + uint16(n))
	}
	l.note(f, d.From, &x)
}

// head returns the first bytes of a payload, at most eight.
func head(b []byte) (word uint64) {
	if len(b) >= sentHead {
		return binary.BigEndian.Uint64(b)
	}
	for _, c := range b {
		word = word<<8 | uint64(c)
	}
	return word << (8 * (sentHead - len(b)))
}

// each calls do with the datagrams of f that are kept, the newest first, until do returns
// false. There are sentSteps at most.
func (l *sentLog) each(f *Flow, do func(*sentDatagram) bool) {
	at := f.sent // counts from 1
	for range sentSteps {
		if at == 0 || l.n-at >= sentRing {
			return
		}
		x := &l.ring[(at-1)%sentRing]
		if !do(x) || x.back == 0 {
			return
		}
		at -= uint64(x.back)
	}
}

// find returns the datagram of f that a quote fits best, and how surely it is the one. The
// newest wins. It returns false if none fits.
//
//   - The length of a fitting datagram is that of the quote. So are its IP identification and
//     its first bytes, where the quote has them.
//   - Where one of these or the checksum agrees, the datagram is the one: who did not see it
//     cannot guess that. A checksum that the card was to compute says nothing.
//   - Where only the length agrees, it is likely.
func (l *sentLog) find(f *Flow, from machine.Side, q *capture.Quote) (found sentDatagram, sure machine.Certainty) {
	quoted := min(len(q.Payload), sentHead)
	l.each(f, func(x *sentDatagram) bool {
		n := min(quoted, int(x.heads))
		shift := 8 * (sentHead - n)
		switch {
		case x.from != from || q.Length >= 0 && uint16(q.Length) != x.length, q.IPID != 0 && x.id != 0 && q.IPID != x.id,
			n > 0 && (x.head^head(q.Payload[:quoted]))>>shift != 0:
			return true
		}
		same := q.IPID != 0 && q.IPID == x.id || n >= sentHead/2
		if q.Length >= 0 && q.Checksum != 0 && !same {
			same = q.Checksum == x.checksum
			if !same && !q.Unfilled(x.checksum) && x.checksum != 0 {
				return true
			}
		}
		switch {
		case same:
			found, sure = *x, machine.Certain
			return false
		case q.Length >= 0 && sure == machine.Unknown:
			found, sure = *x, machine.Likely
		}
		return true
	})
	return found, sure
}

// length returns the payload length of a datagram of f that is still kept.
func (l *sentLog) length(f *Flow, ref machine.Ref) (length int, from machine.Side, ok bool) {
	l.each(f, func(x *sentDatagram) bool {
		if x.ref == ref {
			length, from, ok = int(x.length), x.from, true
		}
		return !ok
	})
	return length, from, ok
}
