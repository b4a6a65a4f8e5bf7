package stream

import (
	"math"
	mathbits "math/bits"

	"github.com/ackscope/ackscope/machine"
)

// Format is one way in which a protocol cuts a stream into messages: each
// message follows its length. The length does not count itself.
type Format struct {
	Name      string
	Prefix    int  // its size in bytes: 2 or 4
	BigEndian bool // high byte first
	Max       int  // longest message that is accepted
	Usual     int  // longest message that the protocol writes by default

	// Weigh returns the evidence, in bits, that a message of length bytes belongs
	// to the protocol. b is the part of it that is present. The result is negative
	// if the message cannot belong to the protocol.
	Weigh func(b []byte, length int) float64
}

// length reads the prefix. ok is false if b is too short for it.
func (f *Format) length(b []byte) (n int, ok bool) {
	if len(b) < f.Prefix {
		return 0, false
	}
	if f.Prefix == 2 {
		v := uint16(b[0]) | uint16(b[1])<<8
		if f.BigEndian {
			v = v<<8 | v>>8
		}
		return int(v), true
	}
	v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	if f.BigEndian {
		v = mathbits.ReverseBytes32(v)
	}
	return int(v), true
}

// Required evidence, in bits against chance.
const (
	startBits  = 20 // at the start of a stream, where only the format is unknown
	leadBits   = 8  // more than any other format
	enoughBits = 64 // enough at the start, whatever the other formats have
	gapBits    = 10 // for a message that ends where a gap does

	// unreadableBits is the evidence against the format from a message that the
	// protocol cannot read. One such message is accepted at the start of a stream.
	unreadableBits = 24
)

const (
	// maxUnreadable is how many messages in a row that the protocol cannot read
	// make the framing doubtful.
	maxUnreadable = 3
	// everyByte is a length of unframed bytes. Below it a search is repeated with
	// each segment. Above it a search is repeated when a quarter more has come, so
	// that the total cost stays linear.
	everyByte = 512
)

// framer is the state of cutting one direction into messages.
type framer struct {
	format     int8 // index of the format; -1 while unknown
	synced     bool // the rest begins at a prefix
	proven     bool // it has been synced
	foreign    bool // no format fits: the bytes are ignored from now on
	first      bool // the next message is the first since the framing was found
	skip       int  // bytes still to come of a message that a gap has damaged
	unreadable int
	searched   int    // length of the bytes of the last search
	probation  int    // messages until a framing that was found in the middle is trusted
	lockedAt   uint64 // where it was found
}

// sink receives a message: its bytes are buf[from:to].
type sink func(from, to, length int, grade machine.Certainty)

// scan cuts the ordered bytes as far as possible. final says that no more will
// come.
func (h *half) scan(formats []Format, lim *Limits, final bool, emit sink) {
	for !h.framer.foreign {
		end, broken := len(h.buf), false
		if len(h.breaks) > 0 {
			end, broken = int(h.breaks[0].pos-h.base), true
		}
		h.cut(formats, lim, end, final || broken, emit)
		if !broken {
			return
		}
		h.cross(formats, end, emit)
	}
}

// cut cuts buf[done:end].
func (h *half) cut(formats []Format, lim *Limits, end int, final bool, emit sink) {
	f := &h.framer
	for !f.foreign {
		if n := min(f.skip, end-h.done); n > 0 {
			f.skip -= n
			h.done += n
		}
		if h.done == end {
			return
		}
		if !f.synced && !h.find(h.buf[h.done:end], formats, lim, final) {
			return
		}
		format := &formats[f.format]
		n, ok := format.length(h.buf[h.done:end])
		if !ok {
			return
		}
		if n == 0 { // the library's reader skips it too
			h.done += format.Prefix
			continue
		}
		if n > format.Max || f.unreadable >= maxUnreadable {
			h.lose()
			h.unframed(1)
			continue
		}
		body := h.done + format.Prefix
		if body+n > end {
			return
		}
		h.emit(format, body, body+n, n, emit)
		h.done = body + n
	}
}

// emit grades a message and passes it on.
func (h *half) emit(format *Format, from, to, length int, emit sink) {
	f := &h.framer
	grade := machine.Certain
	if format.Weigh(h.buf[from:to], length) < 0 {
		f.unreadable++
		grade = machine.Possible
	} else {
		f.unreadable = 0
	}
	if f.first {
		f.first = false
		grade = min(grade, machine.Likely)
	}
	if f.probation > 0 {
		f.probation--
	}
	h.counts.Messages++
	emit(from, to, length, grade)
}

// cross moves past the gap at buf[at]. A message that began before the gap,
// with its prefix present, is emitted with its remaining bytes. If the gap ends
// within that message, the framing continues after it.
func (h *half) cross(formats []Format, at int, emit sink) {
	f := &h.framer
	missing := h.breaks[0].missing
	h.breaks = h.breaks[:copy(h.breaks, h.breaks[1:])]
	known := missing > 0
	if f.skip > 0 && known && missing <= uint64(f.skip) {
		f.skip -= int(missing)
		return
	}
	f.skip = 0
	stay := false
	if f.synced && h.done < at {
		format := &formats[f.format]
		if n, ok := format.length(h.buf[h.done:at]); ok {
			body := h.done + format.Prefix
			if body < at {
				h.emit(format, body, at, n, emit)
				h.counts.Damaged++
				h.done = at
			}
			if rest := body + n - at; known && missing <= uint64(rest) {
				h.done, f.skip, stay = at, rest-int(missing), true
			}
		}
	}
	h.unframed(at - h.done)
	if !stay {
		f.synced, f.searched = false, 0
		h.fresh = false
	}
}

// unframed skips n bytes that belong to no known message.
func (h *half) unframed(n int) {
	h.counts.Unframed += uint64(n)
	h.done += n
}

// choose selects a format at the known start of a stream.
func (f *framer) choose(b []byte, formats []Format, lim *Limits, missing uint64, final bool) bool {
	best, bestBits, second, open := int8(-1), math.Inf(-1), math.Inf(-1), false
	for i := range formats {
		if f.format >= 0 && f.format != int8(i) {
			continue
		}
		bits, messages, ok := chain(b, &formats[i], formats[i].Max, 1, missing)
		open = open || ok
		switch {
		case !ok || messages == 0 || bits < 0:
		case bits > bestBits:
			best, bestBits, second = int8(i), bits, bestBits
		case bits > second:
			second = bits
		}
	}
	f.foreign = !open || len(b) > lim.Search && bestBits < startBits
	sure := bestBits >= startBits && bestBits-second >= leadBits || bestBits >= enoughBits || final
	if f.foreign || best < 0 || !sure {
		return false
	}
	f.format, f.synced, f.proven = best, true, true
	return true
}

// chain follows prefixes from the start of b. It returns the evidence that
// messages begin there, the number of complete messages, and whether nothing
// contradicts it. Up to unreadable of them may make no sense if their length is
// usual. A gap after b has taken missing bytes; 0 means no gap. A message that
// ends exactly where the gap does counts as complete, and adds extra evidence.
func chain(b []byte, f *Format, longest, unreadable int, missing uint64) (bits float64, messages int, ok bool) {
	usual := float64(8*f.Prefix - mathbits.Len(uint(f.Usual))) // evidence of a usual length, against any length
	for bits < enoughBits {
		n, whole := f.length(b)
		if !whole {
			break
		}
		if n == 0 || n > longest {
			return 0, 0, false
		}
		if n <= f.Usual {
			bits += usual
		}
		body := b[f.Prefix:]
		if len(body) > n {
			body = body[:n]
		}
		if len(body) > 0 {
			worth := f.Weigh(body, n)
			if worth < 0 {
				if unreadable--; unreadable < 0 || n > f.Usual {
					return 0, 0, false
				}
				bits -= unreadableBits
			} else if len(body) == n {
				bits += worth
			}
		}
		if len(body) < n {
			if uint64(n-len(body)) == missing {
				bits += gapBits
				messages++
			}
			break
		}
		messages++
		b = b[f.Prefix+n:]
	}
	return bits, messages, true
}
