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
	Transport capture.Transport
	scopes    [2]*scope       // of both sides; nil without a tracker, and for protocols without scopes
	tracker   machine.Tracker // nil while pending, unexplained or ended
	pending   *pending
	Last      machine.Instant
	LastRef   machine.Ref
	Packets   [2]uint64 // datagrams (TCP: segments) per side
	Bytes     [2]uint64 // payload bytes on the wire per side
	marks     [2]marks
	pace      *[2]pace // how both sides send; nil if the flow never had a tracker
	findings  findingList
	sent      uint64      // place of the newest datagram in Session.sent, from 1; 0 for none
	batches   *batches    // nil unless it had long datagrams
	errors    *flowErrors // what ICMP errors said; nil if there was none
	idle      *idle       // nil unless both sides were silent for long
	moving    *moving     // nil once it is decided whether the flow continues another one
	host      *hosted     // nil if the source has no samples of the host
	attended  *attended   // nil until it was compared with them

	ID      int // from 1, by first appearance
	Session int // nth session on this pair of addresses, from 1
	// nth conversation of its transport, from 0, as Wireshark counts. All sessions
	// of one connection share it.
	Stream     int
	A, B       netip.AddrPort // A sent the first packet
	First      machine.Instant
	FirstRef   machine.Ref
	Interface  int    // index of its first frame's interface within the file
	Duplicates uint64 // datagrams captured twice: counted, but ignored by the state

	Was  *Was  // the flow whose connection it continues from another address; nil if none is known
	next *Flow // the flow that continues this one; nil if none is known

	// Protocol is nil if no protocol explains the flow. Verdict.Reason says why.
	Protocol *dissect.Protocol
	Verdict  dissect.Verdict

	earlier      [2]machine.Earlier // of the sessions before it
	unframed     [2]uint64          // bytes of a side's stream that belong to no message, as reported so far
	conn         *stream.Conn       // of a TCP flow: orders its segments and cuts them into messages
	ended        *ended             // the results of a finished tracker
	place        place              // place in the lists of flows that limits may remove
	gone         bool               // a limit removed it
	decidedEarly bool               // it was decided early, because room was short and it had no answer yet
}

// ended is what remains of a tracker when its flow ends or is evicted.
type ended struct {
	fresh  *machine.Figures // while the flow ends, and its rules ask for them; then nil
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

func (k endpointKey) less(o endpointKey) bool {
	if k.hi != o.hi {
		return k.hi < o.hi
	}
	if k.lo != o.lo {
		return k.lo < o.lo
	}
	return k.port < o.port
}

// flowKey is a pair of endpoints in a fixed order, so that both directions have
// one key.
type flowKey struct {
	low, high endpointKey
	transport capture.Transport
}

func makeFlowKey(t capture.Transport, x, y endpointKey) flowKey {
	if y.less(x) {
		x, y = y, x
	}
	return flowKey{x, y, t}
}

// key returns the pair of f's endpoints.
func (f *Flow) key() flowKey { return makeFlowKey(f.Transport, f.origin, f.answer) }

// joins reports whether f runs from x to y. The comparison is written out,
// because the compiler's own one is a call.
func (f *Flow) joins(x, y *endpointKey) bool {
	return f.origin.lo == x.lo && f.answer.lo == y.lo && f.origin.port == x.port && f.answer.port == y.port &&
		f.origin.hi == x.hi && f.answer.hi == y.hi
}

// mix spreads an endpoint over the high bits of a word, for the cache in front
// of the map. It need not resist attacks: a miss only costs a look-up in the
// map.
func (k *endpointKey) mix() uint64 {
	return k.lo*0x9E3779B97F4A7C15 + uint64(k.port)*0xC2B2AE3D27D4EB4F + k.hi*0xD6E8FEB86659FD93
}

// table finds the flow of a packet. It has a direct-mapped cache in front of
// the map. The packets of a capture come in runs of one flow, or of a few flows
// in turn.
type table struct {
	flows map[flowKey]*Flow
	cache [1 << cacheBits]*Flow
}

const cacheBits = 9

// slot returns the cache slot for the flow between two endpoints, in either
// order.
func (t *table) slot(x, y *endpointKey) **Flow {
	h := x.mix() + y.mix()
	return &t.cache[(h^h>>32)*0x9E3779B97F4A7C15>>(64-cacheBits)]
}

// find returns the flow of a packet from src to dst and the side that sent it.
// The flow is nil if there is none.
func (t *table) find(transport capture.Transport, src, dst *endpointKey) (*Flow, machine.Side) {
	slot := t.slot(src, dst)
	f := *slot
	if f != nil && f.Transport == transport {
		if f.joins(src, dst) {
			return f, machine.A
		}
		if f.joins(dst, src) {
			return f, machine.B
		}
	}
	if f = t.flows[makeFlowKey(transport, *src, *dst)]; f == nil {
		return nil, machine.A
	}
	*slot = f
	if *src != f.origin {
		return f, machine.B
	}
	return f, machine.A
}

// remove removes a flow that no later packet can belong to.
func (t *table) remove(f *Flow) {
	if k := f.key(); t.flows[k] == f {
		delete(t.flows, k)
	}
	if slot := t.slot(&f.origin, &f.answer); *slot == f {
		*slot = nil
	}
}

func (t *table) put(f *Flow) {
	if t.flows == nil {
		t.flows = make(map[flowKey]*Flow)
	}
	t.flows[f.key()] = f
	*t.slot(&f.origin, &f.answer) = f
}

// Inspect fills a view of what a side knows now. It returns false if the flow has no tracker: it
// is pending, has ended, or no protocol explains it.
func (f *Flow) Inspect(s machine.Side, v *machine.View) bool {
	if f.tracker != nil {
		f.tracker.Inspect(s, v)
	}
	return f.tracker != nil
}
