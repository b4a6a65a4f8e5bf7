package anonymise

import (
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// membership distinguishes the datagrams that a flow's protocol sent from
// foreign ones on the same addresses. A foreign datagram also parses as a
// packet: its first bytes as counters. But those bytes are contents, and must
// not stay as a header does.
//
// A datagram belongs to the flow if each of its counters is near those of
// earlier datagrams, or near 0, where counters start. A sender may also jump to
// other numbers. Then several datagrams in a row count up from there.
type membership struct {
	open    int // readings that wait for the rest of their row, over all flows
	flows   map[*analyze.Flow]*[2]sideCounters
	foreign map[machine.Ref]bool
}

// size returns the approximate size in bytes. Its maps are half empty after
// growth.
func (l *membership) size() int {
	const flow = int(unsafe.Sizeof([2]sideCounters{})) + 2*2*int(unsafe.Sizeof(uintptr(0)))
	const one = 2 * int(unsafe.Sizeof(machine.Ref(0))+unsafe.Sizeof(true))
	return len(l.flows)*flow + len(l.foreign)*one + 2*l.open*int(unsafe.Sizeof(reading{}))
}

// sideCounters is the state of one side's counters.
type sideCounters struct {
	sent, heard counts // its own counters, and the counters of its peer that it named
	begun       bool   // a datagram of it was accepted
	open        []reading
}

// counts are the newest values of the counters of one kind. A protocol may have
// several counters. The one that was used last comes first.
type counts struct {
	tops [3]uint16
	n    int
}

// reading is the counters of a datagram.
type reading struct {
	ref       machine.Ref
	main      uint16 // the counter that distinguishes datagrams
	counted   bool   // main is set
	malformed bool
	sent      [4]uint16
	heard     [4]uint16
	either    [2]uint16
	nSent     int
	nHeard    int
	nEither   int
	short     [2]uint16 // of heard, with fewer bits: they name packets of the peer, and carry no contents
	nShort    int
}

const (
	// counterSpan is how far apart two values of a counter may be. In a foreign
	// datagram, two counters are both near by chance once in 16,384 times. If a
	// flow loses more packets in a row, the rule of rows accepts it again.
	counterSpan = 256
	// rowStep and rowLength define a row: rowLength datagrams, each at most
	// rowStep above the one before.
	rowStep   = 64
	rowLength = 3
	maxOpen   = 64 // datagrams of a side that wait for the rest of their row
	// counterBits is the smallest width of a counter that is examined. A single
	// byte is too short to count as content.
	counterBits = 16
)

func (l *membership) init() {
	l.flows, l.foreign = map[*analyze.Flow]*[2]sideCounters{}, map[machine.Ref]bool{}
}

// take processes the next datagram of a flow, dissected as d.
func (l *membership) take(f *analyze.Flow, dg *machine.Datagram, d *dissect.Dissection) {
	if f.Protocol == nil || len(dg.Bytes) == 0 {
		return
	}
	sides := l.flows[f]
	if sides == nil {
		sides = new([2]sideCounters)
		for i := range sides {
			sides[i].sent.note(0)
			sides[i].heard.note(0)
		}
		l.flows[f] = sides
	}
	own, peer := &sides[dg.From&1], &sides[dg.From&1^1]
	r := read(dg, d)
	switch {
	case !r.counted:
		if r.malformed {
			l.foreign[r.ref] = true
		}
	case r.follows(own, peer):
		own.accept(&r)
	default:
		l.foreign[r.ref] = true
		l.row(own, peer, &r)
	}
}

// read returns the counters of a datagram.
func read(dg *machine.Datagram, d *dissect.Dissection) reading {
	r := reading{ref: dg.Ref, malformed: d.Problem != nil}
	put := func(list []uint16, n *int, v uint64) {
		if *n < len(list) {
			list[*n] = uint16(v)
			*n++
		}
		if !r.counted {
			r.main, r.counted = uint16(v), true
		}
	}
	for pass := range 2 { // first pass: the counters of the sender, because they distinguish datagrams
		for i := range d.Fields {
			f := &d.Fields[i]
			if f.Bits < counterBits {
				if pass == 1 && f.Bits > 0 && f.Spec.Content == dissect.ContentAck && r.nShort < len(r.short) {
					r.short[r.nShort] = uint16(f.Uint)
					r.nShort++
				}
				continue
			}
			switch f.Spec.Content {
			case dissect.ContentSequence:
				if pass == 0 {
					put(r.sent[:], &r.nSent, f.Uint)
				}
			case dissect.ContentNumber:
				if pass == 0 {
					put(r.either[:], &r.nEither, f.Uint)
				}
			case dissect.ContentAck:
				if pass == 1 {
					put(r.heard[:], &r.nHeard, f.Uint)
				}
			}
		}
	}
	return r
}

// follows reports whether every counter of a datagram of own is near known
// ones.
func (r *reading) follows(own, peer *sideCounters) bool {
	for _, v := range r.sent[:r.nSent] {
		if !own.sent.has(v) && !peer.heard.has(v) {
			return false
		}
	}
	for _, v := range r.either[:r.nEither] {
		if !own.sent.has(v) && !peer.sent.has(v) {
			return false
		}
	}
	return r.answers(own, peer)
}

// answers does what follows does, for the counters that name packets of the
// peer.
func (r *reading) answers(own, peer *sideCounters) bool {
	for _, v := range r.heard[:r.nHeard] {
		if !peer.sent.has(v) && !own.heard.has(v) {
			return false
		}
	}
	return true
}

// accept records that a datagram belongs to the flow.
func (a *sideCounters) accept(r *reading) {
	a.begun = true
	for _, v := range r.sent[:r.nSent] {
		a.sent.note(v)
	}
	for _, v := range r.either[:r.nEither] {
		a.sent.note(v)
	}
	for _, v := range r.heard[:r.nHeard] {
		a.heard.note(v)
	}
	for _, v := range r.short[:r.nShort] {
		a.heard.note(v)
	}
}

// row checks whether r completes a row of datagrams that count up from other
// numbers.
func (l *membership) row(own, peer *sideCounters, r *reading) {
	length, at := 1, r.main
	for i := len(own.open) - 1; i >= 0; i-- {
		o := &own.open[i]
		if step := at - o.main; step > 0 && step <= rowStep && alike(o, r) {
			length, at = length+1, o.main
		}
	}
	// The peer must have sent what the datagram names.
	named := !peer.begun || r.answers(own, peer) || slices.ContainsFunc(peer.open, r.names)
	if length < rowLength || !named {
		if len(own.open) < maxOpen {
			l.open++
		}
		own.open = machine.KeepNewest(own.open, *r, maxOpen)
		return
	}
	delete(l.foreign, r.ref)
	own.accept(r)
	l.admit(own, peer)
	l.admit(peer, own)
}

// admit accepts the waiting datagrams that are near the counters now.
func (l *membership) admit(own, peer *sideCounters) {
	kept := own.open[:0]
	for i := range own.open {
		if o := &own.open[i]; o.follows(own, peer) {
			own.accept(o)
			delete(l.foreign, o.ref)
		} else {
			kept = append(kept, *o)
		}
	}
	l.open -= len(own.open) - len(kept)
	own.open = kept
}

// names reports whether the packets that a datagram names are near the counters
// of o, a datagram of the peer.
func (r *reading) names(o reading) bool {
	for _, v := range r.heard[:r.nHeard] {
		if v-o.main+counterSpan >= 2*counterSpan {
			return false
		}
	}
	return true
}

// alike reports whether two datagrams have the same counters, near each other.
func alike(a, b *reading) bool {
	if a.nSent != b.nSent || a.nHeard != b.nHeard || a.nEither != b.nEither {
		return false
	}
	for _, lists := range [...][2][]uint16{
		{a.sent[:a.nSent], b.sent[:]},
		{a.heard[:a.nHeard], b.heard[:]},
		{a.either[:a.nEither], b.either[:]},
	} {
		for i, v := range lists[0] {
			if v-lists[1][i]+counterSpan >= 2*counterSpan {
				return false
			}
		}
	}
	return true
}

// has reports whether v is near a counter.
func (c *counts) has(v uint16) bool {
	for _, top := range c.tops[:c.n] {
		if v-top+counterSpan < 2*counterSpan {
			return true
		}
	}
	return false
}

// note records v as the newest value of a counter.
func (c *counts) note(v uint16) {
	i := 0
	for i < c.n && v-c.tops[i]+counterSpan >= 2*counterSpan {
		i++
	}
	if i == c.n {
		if c.n < len(c.tops) {
			c.n++
		}
		i = c.n - 1
	} else if int16(v-c.tops[i]) < 0 {
		v = c.tops[i] // an older value
	}
	copy(c.tops[1:i+1], c.tops[:i])
	c.tops[0] = v
}
