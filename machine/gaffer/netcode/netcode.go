package netcode

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// netcodeEvents maps a datagram type to its event. A payload has no event of its own.
var netcodeEvents = [...]machine.EventKind{
	wire.NetcodeRequestType: gaffer.EventRequest, wire.NetcodeDenied: gaffer.EventDenied,
	wire.NetcodeChallenge: gaffer.EventChallenge, wire.NetcodeResponse: gaffer.EventResponse,
	wire.NetcodeKeepAlive: gaffer.EventKeepAlive, wire.NetcodePayload: machine.EventSent,
	wire.NetcodeDisconnect: gaffer.EventDisconnect,
}

const (
	// netcodeReplay is how many entries the library's replay window has.
	// Source: library, netcode 1.4.3: NETCODE_REPLAY_PROTECTION_BUFFER_SIZE
	netcodeReplay = 256
	// netcodeGlobal is the first number that the server gives to challenges and refusals.
	// The packets of a connection have lower numbers.
	// Source: library, netcode 1.4.3: challenge and denied packets are numbered from 1<<63
	netcodeGlobal = 1 << 63
	// netcodeStepsMost is how many steps of a handshake are kept.
	// Source: bound, the steps of a handshake that are kept
	netcodeStepsMost = 32
	// netcodeIntervals is how many intervals between a side's last datagrams are kept.
	// Their median is the side's cadence.
	// Source: bound, the intervals of which the middle one is taken
	netcodeIntervals = 63
	// netcodeLateCopy is how late a copy must come to count as replayed. An earlier one
	// counts as a duplicate. A request so long after the client's first numbered packet
	// uses its token again.
	// Source: measured, TestMarginsGaffer
	netcodeLateCopy = time.Second
	// netcodeSilence is how long a side must be silent to count as gone. Its keep-alives
	// come every 0.1 s.
	// Source: definition, netcode-timeout: a side has gone after four seconds of silence
	netcodeSilence = 4 * time.Second
	// netcodeHeardLeast is how many datagrams the other side must send during the silence.
	// Source: definition, netcode-timeout: a side has gone when the other side sent eight datagrams meanwhile
	netcodeHeardLeast = 8
)

// Flow is what the clear part of netcode's datagrams shows about a flow, with or
// without keys. It shows the client, the handshake, the end, and the losses by each
// side's counter.
type Flow struct {
	client  machine.Side
	known   bool // client is known
	Sides   [2]netcodeSide
	steps   []step
	more    int // steps beyond those kept
	nonce   [wire.TokenNonceLen]byte
	request bool // a connection request was seen; nonce is its token's
	Last    machine.Instant
	Ended   bool // a disconnect was seen
	endedAt machine.Instant
	denied  bool
	token   token
}

// step is one step of the handshake: consecutive datagrams of one type.
type step struct {
	kind  uint8
	from  machine.Side
	at    machine.Instant
	ref   machine.Ref
	count int
}

// netcodeSide is what is known of one side.
type netcodeSide struct {
	packets, bytes uint64
	Types          [7]uint64 // datagrams by type
	begun, last    machine.Instant
	LastRef        machine.Ref
	heardSincePeer int // datagrams of this side since the other side's last one
	counters       counters
	payloads       payloads
	pace           pace
	request        struct { // its first connection request
		at  machine.Instant
		ref machine.Ref
	}
}

// counters are the numbers that a side gave its datagrams. Once the first is seen,
// first ≤ top and distinct ≤ top-first+1.
type counters struct {
	first, top     uint64
	distinct       uint64 // counters that passed the tap
	lost, passed   uint64 // missing and distinct of the counters before a restart
	requestsBefore uint64 // connection requests before the first counter
	copies         uint64
	before         machine.PathLoss // loss of its datagrams on the way to the tap
	seen           []netcodeSeen    // by counter mod len, grows up to netcodeReplay
	met            bool             // a datagram with a counter of its own passed the tap
	metAt          machine.Instant
}

// payloads are the sizes of a side's payload datagrams, in bytes of UDP payload:
// least ≤ most.
type payloads struct {
	least, most int
	bytes       uint64
}

func (p *payloads) take(length int) {
	if p.bytes == 0 || length < p.least {
		p.least = length
	}
	p.most = max(p.most, length)
	p.bytes += uint64(length)
}

// pace is the times between a side's datagrams. The last ones are kept.
type pace struct {
	intervals [netcodeIntervals]int64 // ns; number n at n mod len
	counted   int
}

func (p *pace) take(interval machine.Instant) {
	p.intervals[p.counted%netcodeIntervals] = int64(interval)
	p.counted++
}

// netcodeSeen is a counter that passed the tap.
type netcodeSeen struct {
	counter uint64 // counter plus one; 0: empty
	mac     uint64 // a part of the authentication tag: two tags of one counter mean two contents
	at      machine.Instant
	ref     machine.Ref
}

// netcodeFate is what the receiver's replay window does with a datagram.
type netcodeFate uint8

const (
	Fresh         netcodeFate = iota
	netcodeCopy               // this counter passed before: dropped before decryption
	netcodeOld                // older than the replay window
	netcodeOther              // not a payload: nothing for the layers above
	NewConnection             // begins another connection; nothing was entered
)

// Observe processes the next datagram. Its clear part is pk.
func (n *Flow) Observe(d *machine.Datagram, pk *wire.Packet, mac uint64, out *machine.Effects) netcodeFate {
	if pk.NetcodeType == wire.NetcodeRequestType {
		return n.connect(d, out)
	}
	s := n.enter(d, pk)
	if !n.known {
		switch pk.NetcodeType {
		case wire.NetcodeResponse:
			n.client, n.known = d.From, true
		case wire.NetcodeChallenge, wire.NetcodeDenied:
			n.client, n.known = d.From.Other(), true
		}
	}
	n.token.noteAnswer(d, pk.NetcodeType)
	kind := netcodeEvents[pk.NetcodeType]
	own := pk.NetcodeSequence < netcodeGlobal
	fate := netcodeOther
	if own {
		fate = n.number(s, d, pk, mac, out)
	}
	switch pk.NetcodeType {
	case wire.NetcodeDenied:
		if !n.denied {
			out.At(d.At, d.Ref).Report(netcodeDenied, d.From, machine.Certain, n.Sides[n.client].request.ref,
				machine.Milliseconds(d.At.Sub(n.Sides[n.client].request.at)))
		}
		n.denied = true
	case wire.NetcodeDisconnect:
		if !n.Ended {
			n.Ended, n.endedAt = true, d.At
		}
	}
	if kind != machine.EventSent && fate != netcodeCopy {
		n.addStep(pk.NetcodeType, d)
		out.Events = append(out.Events, machine.Event{
			Kind: kind, Side: d.From, Certainty: machine.Certain, Sequence: uint32(pk.NetcodeSequence),
			Sequence64: int64(pk.NetcodeSequence &^ netcodeGlobal),
			At:         d.At, Ref: d.Ref, About: d.Ref, RTT: -1,
		})
		if fate == Fresh {
			fate = netcodeOther
		}
	}
	return fate
}

// Server reports whether a side is known to be the server.
func (n *Flow) Server(x machine.Side) bool { return n.known && n.client != x }

// connect processes a connection request.
func (n *Flow) connect(d *machine.Datagram, out *machine.Effects) netcodeFate {
	var nonce [wire.TokenNonceLen]byte
	q, err := wire.ParseNetcodeRequest(d.Bytes)
	if err == nil {
		copy(nonce[:], q.Nonce)
	}
	numbered := n.Sides[0].counters.met || n.Sides[1].counters.met
	if err == nil && n.request && nonce != n.nonce || !n.request && numbered {
		// Another token, or a request after a connection whose own request was not captured.
		return NewConnection
	}
	// A client that has been answered sends no more requests.
	if c := &n.Sides[d.From]; n.request && c.counters.met && d.At.Sub(c.counters.metAt) > netcodeLateCopy {
		out.At(d.At, d.Ref).Report(netcodeTokenReuse, d.From, machine.Certain, c.request.ref,
			machine.Milliseconds(d.At.Sub(c.counters.metAt)))
		for i := range n.Sides {
			n.Sides[i].counters.restart()
		}
		n.Ended, n.denied = false, false
		n.settleToken(out)
		n.token = token{used: true}
	}
	if err == nil {
		n.nonce, n.request = nonce, true
		n.token.ask(d, q.Expire)
	}
	n.client, n.known = d.From, true
	s := n.enter(d, nil)
	if s.Types[wire.NetcodeRequestType]++; s.Types[wire.NetcodeRequestType] == 1 {
		s.request.at, s.request.ref = d.At, d.Ref
	}
	if !s.counters.met {
		s.counters.requestsBefore++
	}
	n.addStep(wire.NetcodeRequestType, d)
	out.Events = append(out.Events, machine.Event{
		Kind: gaffer.EventRequest, Side: d.From, Certainty: machine.Certain,
		At: d.At, Ref: d.Ref, About: d.Ref, RTT: -1,
	})
	return netcodeOther
}

// enter counts a datagram.
func (n *Flow) enter(d *machine.Datagram, pk *wire.Packet) *netcodeSide {
	s, peer := &n.Sides[d.From], &n.Sides[d.From.Other()]
	if s.packets == 0 {
		s.begun = d.At
	} else {
		s.pace.take(d.At - s.last)
	}
	s.packets++
	s.bytes += uint64(d.Length)
	s.last, s.LastRef, n.Last = d.At, d.Ref, d.At
	s.heardSincePeer++
	peer.heardSincePeer = 0
	if pk != nil {
		s.Types[pk.NetcodeType]++
		if pk.NetcodeType == wire.NetcodePayload {
			s.payloads.take(d.Length)
		}
	}
	return s
}

// number processes a datagram's counter.
func (n *Flow) number(s *netcodeSide, d *machine.Datagram, pk *wire.Packet, mac uint64,
	out *machine.Effects,
) netcodeFate {
	c, number := &s.counters, pk.NetcodeSequence
	if !c.met {
		c.met, c.metAt, c.first, c.top = true, d.At, number, number
	}
	if e := c.find(number); e != nil {
		if e.mac != mac && mac != 0 && e.mac != 0 {
			out.At(d.At, d.Ref).Report(netcodeNonceReuse, d.From, machine.Certain, e.ref, float64(number))
			return Fresh
		}
		c.copies++
		late := d.At.Sub(e.at)
		rule := netcodeDuplicate
		if late > netcodeLateCopy {
			rule = netcodeReplayed
		}
		out.At(d.At, d.Ref).Report(rule, d.From, machine.Certain, e.ref, machine.Milliseconds(late))
		return netcodeCopy
	}
	if number+netcodeReplay <= c.top {
		out.At(d.At, d.Ref).Report(netcodeTooOld, d.From, machine.Certain, 0, float64(c.top-number))
		return netcodeOld
	}
	c.enter(number, netcodeSeen{number + 1, mac, d.At, d.Ref})
	return Fresh
}

// enter records a counter that is new.
func (c *counters) enter(number uint64, e netcodeSeen) {
	if number > c.top && c.distinct > 0 {
		c.before.SettleLost(number - c.top - 1)
	} else if number < c.top && number > c.first {
		c.before.Found()
	}
	c.before.Settle(false)
	c.top = max(c.top, number)
	c.first = min(c.first, number)
	c.distinct++
	c.put(e)
}

// restart forgets the counters: they start over.
func (c *counters) restart() {
	c.lost = c.missing()
	c.passed += c.distinct
	c.met, c.seen, c.requestsBefore, c.distinct = false, nil, 0, 0
}

func (c *counters) find(n uint64) *netcodeSeen {
	if len(c.seen) == 0 {
		return nil
	}
	if e := &c.seen[n%uint64(len(c.seen))]; e.counter == n+1 {
		return e
	}
	return nil
}

// put stores a counter. The ring grows until it spans the replay window.
func (c *counters) put(e netcodeSeen) {
	if n := len(c.seen); n < netcodeReplay && c.top-c.first >= uint64(n) {
		old := c.seen
		for n = max(n, 8); n < netcodeReplay && c.top-c.first >= uint64(n); n *= 2 {
		}
		c.seen = make([]netcodeSeen, n)
		for _, o := range old {
			if o.counter != 0 {
				c.keep(o)
			}
		}
	}
	c.keep(e)
}

// keep stores the newer of two counters in a slot.
func (c *counters) keep(e netcodeSeen) {
	if slot := &c.seen[(e.counter-1)%uint64(len(c.seen))]; slot.counter < e.counter {
		*slot = e
	}
}

// missing returns how many of the counters never passed the tap.
func (c *counters) missing() uint64 {
	if !c.met {
		return c.lost
	}
	first, passed := c.first, c.distinct
	if c.requestsBefore > 0 {
		// Requests use the counters from 0 on.
		first, passed = 0, passed+c.requestsBefore
	}
	span := c.top - first + 1
	return c.lost + span - min(span, passed)
}

// Missing returns how many of the side's datagrams never passed the tap.
func (s *netcodeSide) Missing() uint64 { return s.counters.missing() }

func (n *Flow) addStep(kind uint8, d *machine.Datagram) {
	if k := len(n.steps); k > 0 && n.steps[k-1].kind == kind && n.steps[k-1].from == d.From {
		n.steps[k-1].count++
		return
	}
	if kind == wire.NetcodeKeepAlive && len(n.steps) >= 8 {
		return // keep-alives of later silences are no steps
	}
	if len(n.steps) == netcodeStepsMost {
		n.more++
		return
	}
	n.steps = append(n.steps, step{kind, d.From, d.At, d.Ref, 1})
}

// cadence returns the median of a side's last intervals. It returns 0 if there are too
// few.
func (p *pace) cadence() time.Duration {
	k := min(p.counted, netcodeIntervals)
	if k < 8 {
		return 0
	}
	v := make([]int64, k)
	copy(v, p.intervals[:k])
	slices.Sort(v)
	return time.Duration(v[k/2])
}

// Clone returns an independent copy.
func (n *Flow) Clone() Flow {
	c := *n
	c.steps = slices.Clone(n.steps)
	for i := range c.Sides {
		c.Sides[i].counters.seen = slices.Clone(n.Sides[i].counters.seen)
	}
	return c
}

// Size returns the approximate memory, in bytes.
func (n *Flow) Size() int {
	return 1900 + (len(n.Sides[0].counters.seen)+len(n.Sides[1].counters.seen))*32 + len(n.steps)*40
}
