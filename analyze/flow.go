package analyze

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Flow is one conversation between two endpoints: a pair of addresses. If the
// protocol shows that a new connection began on the pair, each connection is a
// flow of its own, called a session.
type Flow struct {
	// The fields that every packet uses come first, so that they share cache
	// lines.
	origin    endpointKey // A's
	answer    endpointKey // B's
	marks     [2]marks
	Transport capture.Transport
	gone      bool // a limit removed it
	defers    bool // its tracker has not processed all of its datagrams: see machine.Deferrer
	// decidedEarly says that it was decided early, because room was short and it had no answer yet.
	decidedEarly bool
	scopes       [2]*scope       // of both sides; nil without a tracker, and for protocols without scopes
	tracker      machine.Tracker // nil while pending, unexplained or ended
	pending      *pending
	Last         machine.Instant
	LastRef      machine.Ref
	Packets      [2]uint64    // datagrams (TCP: segments) per side
	Bytes        [2]uint64    // payload bytes on the wire per side
	pace         *[2]pace     // how both sides send; nil if the flow never had a tracker
	sent         uint64       // place of the newest datagram in Session.sent, from 1; 0 for none
	rare         *rare        // what few flows have; nil if it has nothing of it
	moving       *moving      // nil once it is decided whether the flow continues another one
	host         *hosted      // nil if the source has no samples of the host
	conn         *stream.Conn // of a TCP flow: orders its segments and cuts them into messages
	place        place        // place in the lists of flows that limits may remove

	born    uint64 // how many frames there were when it began
	entered uint64 // how many there were when it came into Session.entrants
	shard   uint8  // of its host pair, if several goroutines analyse
	// enteredBoth says that it is a candidate of both endpoints: see enterHubs.
	enteredBoth bool
	ID          int // from 1, by first appearance
	Session     int // nth session on this pair of addresses, from 1
	// nth conversation of its transport, from 0, as Wireshark counts. All sessions
	// of one connection share it.
	Stream     int
	A, B       netip.AddrPort // A sent the first packet
	First      machine.Instant
	FirstRef   machine.Ref
	Interface  int    // index of its first frame's interface within the file
	Duplicates uint64 // datagrams captured twice: counted, but ignored by the state

	Was *Was // the flow whose connection it continues from another address; nil if none is known

	// Protocol is nil if no protocol explains the flow. Verdict.Reason says why.
	Protocol *dissect.Protocol
	Verdict  dissect.Verdict

	findings *findingList // nil if there is none
	ended    *ended       // the results of a finished tracker
}

// rare is what few flows have. It is apart, because a capture can have very many flows.
type rare struct {
	batches  *batches           // nil unless it had long datagrams
	errors   *flowErrors        // what ICMP errors said; nil if there was none
	idle     *idle              // nil unless both sides were silent for long
	attended *attended          // nil until it was compared with the samples of the host
	next     *Flow              // the flow that continues this one; nil if none is known
	earlier  [2]machine.Earlier // of the sessions before it
	unframed [2]uint64          // bytes of a side's stream that belong to no message, as reported so far
}

// nothingRare is what a flow has of it that has nothing. It never changes.
var nothingRare rare

// has returns what a flow has of it, for reading.
func (f *Flow) has() *rare {
	if f.rare == nil {
		return &nothingRare
	}
	return f.rare
}

// gets is has for writing.
func (f *Flow) gets() *rare {
	if f.rare == nil {
		f.rare = &rare{}
	}
	return f.rare
}

// ended is what remains of a tracker when its flow ends or is evicted.
type ended struct {
	fresh  *machine.Figures // while the flow ends, or its figures are unpacked; otherwise nil
	packed machine.PackedFigures
}

func (e *ended) summary(s machine.Side) machine.Summary {
	if e.fresh != nil {
		return e.fresh.Sides[s]
	}
	return e.packed.Summary(s)
}

func (e *ended) facts() machine.Facts {
	if e.fresh != nil {
		return e.fresh.Facts
	}
	return e.packed.Facts()
}

// Unpacked calls do while the figures of a flow that has ended lie unpacked in room. It spares
// callers that ask for many of them, such as a row of a table.
func (f *Flow) Unpacked(room *machine.Figures, do func()) {
	if f.ended != nil && f.ended.fresh == nil {
		f.ended.packed.Unpack(room)
		f.ended.fresh = room
		defer func() { f.ended.fresh = nil }()
	}
	do()
}

// Group returns the group of flows that it belongs to: the place of its sink among those that
// Options.Split made.
func (f *Flow) Group() int { return int(f.shard) }

// Config returns how the flow is decoded. It returns nil if no protocol
// explains the flow.
func (f *Flow) Config() *dissect.Config { return f.Verdict.Config }

// Pending reports whether the flow's protocol is still being determined.
func (f *Flow) Pending() bool { return f.pending != nil }

// Addr returns the address of a side.
func (f *Flow) Addr(s machine.Side) netip.AddrPort {
	if s == machine.A {
		return f.A
	}
	return f.B
}

// Summary returns the protocol's figures of a side. It returns false if no
// protocol explains the flow.
func (f *Flow) Summary(s machine.Side) (machine.Summary, bool) {
	switch {
	case f.ended != nil: // while a flow ends, it still has a tracker
		return f.ended.summary(s), true
	case f.tracker != nil:
		return f.tracker.Summary(s), true
	}
	return machine.Summary{}, false
}

// results returns the summaries of both sides, and where the tap stood. It returns false if no
// protocol explains the flow. The summaries are for reading: those of a flow that ends are not copied.
func (f *Flow) results() (sides *[2]machine.Summary, v machine.Vantage, ok bool) {
	if f.ended != nil && f.ended.fresh != nil {
		return &f.ended.fresh.Sides, f.ended.fresh.Facts.Vantage, true
	}
	sides = new([2]machine.Summary)
	for s := range sides {
		if sides[s], ok = f.Summary(machine.Side(s)); !ok {
			return nil, v, false
		}
	}
	return sides, f.Facts().Vantage, true
}

// RTT returns Summary(s).RTT. It is negative if it is not known.
func (f *Flow) RTT(s machine.Side) time.Duration {
	switch {
	case f.tracker != nil:
		return machine.RTT(f.tracker, s)
	case f.ended != nil:
		return f.ended.summary(s).RTT
	}
	return -1
}

// Loss returns Summary(s).Loss. It is negative if it is not known.
func (f *Flow) Loss(s machine.Side) float64 {
	switch {
	case f.tracker != nil:
		return machine.Loss(f.tracker, s)
	case f.ended != nil:
		return f.ended.summary(s).Loss
	}
	return -1
}

// Sent returns Summary(s).Packets. It returns false if no protocol explains the
// flow.
func (f *Flow) Sent(s machine.Side) (uint64, bool) {
	switch {
	case f.tracker != nil:
		return machine.Sent(f.tracker, s), true
	case f.ended != nil:
		return f.ended.summary(s).Packets, true
	}
	return 0, false
}

// Facts returns what has been learned about the flow so far, including its
// vantage.
func (f *Flow) Facts() machine.Facts {
	switch {
	case f.tracker != nil:
		return f.tracker.Learned()
	case f.ended != nil:
		return f.ended.facts()
	}
	return machine.Facts{}
}

// dialectDoubted is the confidence up to which another dialect reads a flow nearly as well.
// Source: definition, a classifier that cannot tell two dialects apart says at most 0.5
const dialectDoubted = 0.5

// Versions returns which implementations side s can be, by what it sent. It returns false if
// no protocol explains the flow.
func (f *Flow) Versions(s machine.Side) (dissect.Versions, bool) {
	if f.Protocol == nil || f.Protocol.Versions == nil || f.Config() == nil {
		return dissect.Versions{}, false
	}
	facts := f.Facts()
	v := f.Protocol.Versions(f.Config(), &facts, s)
	v.Doubt = f.Verdict.Confidence <= dialectDoubted
	return v, true
}

// endpointKey is an address and port, packed so that comparison and hashing are
// cheap.
type endpointKey struct {
	hi, lo uint64
	port   uint16
}

func keyOf(ap netip.AddrPort) endpointKey {
	a := ap.Addr()
	if a.Is4() {
		b := a.As4()
		return endpointKey{lo: uint64(binary.BigEndian.Uint32(b[:])), port: ap.Port()}
	}
	b := a.As16()
	return endpointKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]), ap.Port()}
}

// Inspect fills a view of what a side knows now. It returns false if the flow has no tracker: it
// is pending, has ended, or no protocol explains it.
func (f *Flow) Inspect(s machine.Side, v *machine.View) bool {
	if f.tracker != nil {
		f.tracker.Inspect(s, v)
	}
	return f.tracker != nil
}
