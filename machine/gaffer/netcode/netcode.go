package netcode

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Netcode's own events: the rungs of its handshake and its end. Their sequence
// is netcode's counter; a connection request carries none.
const (
	EventRequest machine.EventKind = machine.EventProtocol + iota
	EventDenied
	EventChallenge
	EventResponse
	EventKeepAlive
	EventDisconnect
)

// NetcodeEventNames gives their words.
var NetcodeEventNames = map[machine.EventKind]string{
	EventRequest: "connection-request", EventDenied: "denied", EventChallenge: "challenge",
	EventResponse: "response", EventKeepAlive: "keep-alive", EventDisconnect: "disconnect",
}

// netcodeEvents gives the event of a type; a payload has none of its own.
var netcodeEvents = [...]machine.EventKind{
	wire.NetcodeRequestType: EventRequest, wire.NetcodeDenied: EventDenied, wire.NetcodeChallenge: EventChallenge,
	wire.NetcodeResponse: EventResponse, wire.NetcodeKeepAlive: EventKeepAlive, wire.NetcodePayload: machine.EventSent,
	wire.NetcodeDisconnect: EventDisconnect,
}

const (
	netcodeReplay     = 256     // entries of the library's replay window
	netcodeGlobal     = 1 << 63 // challenges and refusals are numbered by the server, from here on
	netcodeRungs      = 32      // rungs of the handshake that are kept
	netcodeIntervals  = 63      // between datagrams of a side, of which the middle one is its cadence
	netcodeLateCopy   = time.Second
	netcodeSilence    = 4 * time.Second // a side that says nothing for so long has gone: keep-alives come every 0.1 s
	netcodeHeardLeast = 8               // datagrams of the other side in that time
)

// Flow is what the clear part of netcode's datagrams shows of a flow,
// with or without keys: who is the client, how the handshake went, what each
// side's counter says of losses, and how it ended.
type Flow struct {
	client  machine.Side
	known   bool // client is
	Sides   [2]netcodeSide
	rungs   []rung
	more    int // rungs beyond those kept
	nonce   [wire.TokenNonceLen]byte
	request bool // one was seen; nonce is its token's
	Last    machine.Instant
	Ended   bool // a disconnect was seen
	endedAt machine.Instant
	denied  bool
}

// rung is one step of the handshake: datagrams of one type in a row.
type rung struct {
	kind  uint8
	from  machine.Side
	at    machine.Instant
	ref   machine.Ref
	count int
}

type netcodeSide struct {
	before          machine.PathLoss // of its datagrams, on the way to the tap
	packets, bytes  uint64
	Types           [7]uint64
	met             bool // a datagram with a counter of its own passed
	metAt           machine.Instant
	first, top      uint64 // counters
	distinct        uint64 // counters that passed
	lost, passed    uint64 // missing and distinct of the counters before a restart
	requestsBefore  uint64 // connection requests before the first counter
	copies          uint64
	seen            []netcodeSeen // by counter mod len, grows up to netcodeReplay
	begun, last     machine.Instant
	LastRef         machine.Ref
	intervals       [netcodeIntervals]int64
	counted         int
	least, most     int // UDP payload bytes of payload datagrams
	heardSincePeer  int // datagrams of this side since the other's last one
	payloadBytes    uint64
	firstRequestAt  machine.Instant
	firstRequestRef machine.Ref
}

// netcodeSeen is a counter that passed the tap.
type netcodeSeen struct {
	counter uint64 // plus one; 0: empty
	mac     uint64 // of the authentication tag: two of one counter encrypt two things
	at      machine.Instant
	ref     machine.Ref
}

// fate is what the receiver's replay window makes of a datagram.
type netcodeFate uint8

const (
	Fresh        netcodeFate = iota
	netcodeCopy              // this counter passed before: dropped before decryption
	netcodeOld               // older than the replay window
	netcodeOther             // no payload: nothing for what lies within
	Anew                     // begins another connection; nothing was entered
)

// Observe takes the next datagram, of which pk is the clear part.
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
	kind := netcodeEvents[pk.NetcodeType]
	own := pk.NetcodeSequence < netcodeGlobal
	fate := netcodeOther
	if own {
		fate = n.number(s, d, pk, mac, out)
	}
	switch pk.NetcodeType {
	case wire.NetcodeDenied:
		if !n.denied {
			out.Report(netcodeDenied, d.From, machine.Certain, d.At, d.Ref, n.Sides[n.client].firstRequestRef, machine.Milliseconds(d.At.Sub(n.Sides[n.client].firstRequestAt)))
		}
		n.denied = true
	case wire.NetcodeDisconnect:
		if !n.Ended {
			n.Ended, n.endedAt = true, d.At
		}
	}
	if kind != machine.EventSent && fate != netcodeCopy {
		n.climb(pk.NetcodeType, d)
		out.Events = append(out.Events, machine.Event{
			Kind: kind, Side: d.From, Certainty: machine.Certain, Sequence: uint32(pk.NetcodeSequence), Sequence64: int64(pk.NetcodeSequence &^ netcodeGlobal),
			At: d.At, Ref: d.Ref, About: d.Ref, RTT: -1,
		})
		if fate == Fresh {
			fate = netcodeOther
		}
	}
	return fate
}

// connect takes a connection request.
func (n *Flow) connect(d *machine.Datagram, out *machine.Effects) netcodeFate {
	var nonce [wire.TokenNonceLen]byte
	q, err := wire.ParseNetcodeRequest(d.Bytes)
	if err == nil {
		copy(nonce[:], q.Nonce)
	}
	numbered := n.Sides[0].met || n.Sides[1].met
	if err == nil && n.request && nonce != n.nonce || !n.request && numbered {
		// Another token, or a request behind a connection whose own was not captured.
		return Anew
	}
	// A client asks no more once it was answered.
	if c := &n.Sides[d.From]; n.request && c.met && d.At.Sub(c.metAt) > netcodeLateCopy {
		out.Report(netcodeTokenReuse, d.From, machine.Certain, d.At, d.Ref, c.firstRequestRef, machine.Milliseconds(d.At.Sub(c.metAt)))
		for i := range n.Sides {
			n.Sides[i].restart()
		}
		n.Ended, n.denied = false, false
	}
	if err == nil {
		n.nonce, n.request = nonce, true
	}
	n.client, n.known = d.From, true
	s := n.enter(d, nil)
	if s.Types[wire.NetcodeRequestType]++; s.Types[wire.NetcodeRequestType] == 1 {
		s.firstRequestAt, s.firstRequestRef = d.At, d.Ref
	}
	if !s.met {
		s.requestsBefore++
	}
	n.climb(wire.NetcodeRequestType, d)
	out.Events = append(out.Events, machine.Event{Kind: EventRequest, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref, About: d.Ref, RTT: -1})
	return netcodeOther
}

// enter counts a datagram.
func (n *Flow) enter(d *machine.Datagram, pk *wire.Packet) *netcodeSide {
	s, peer := &n.Sides[d.From], &n.Sides[d.From.Other()]
	if s.packets == 0 {
		s.begun = d.At
	} else {
		s.intervals[s.counted%netcodeIntervals] = int64(d.At - s.last)
		s.counted++
	}
	s.packets++
	s.bytes += uint64(d.Length)
	s.last, s.LastRef, n.Last = d.At, d.Ref, d.At
	s.heardSincePeer++
	peer.heardSincePeer = 0
	if pk != nil {
		s.Types[pk.NetcodeType]++
		if pk.NetcodeType == wire.NetcodePayload {
			if s.payloadBytes == 0 || d.Length < s.least {
				s.least = d.Length
			}
			s.most = max(s.most, d.Length)
			s.payloadBytes += uint64(d.Length)
		}
	}
	return s
}

// number takes a datagram's counter.
func (n *Flow) number(s *netcodeSide, d *machine.Datagram, pk *wire.Packet, mac uint64, out *machine.Effects) netcodeFate {
	c := pk.NetcodeSequence
	if !s.met {
		s.met, s.metAt, s.first, s.top = true, d.At, c, c
	}
	if e := s.find(c); e != nil {
		if e.mac != mac && mac != 0 && e.mac != 0 {
			out.Report(netcodeNonceReuse, d.From, machine.Certain, d.At, d.Ref, e.ref, float64(c))
			return Fresh
		}
		s.copies++
		late := d.At.Sub(e.at)
		rule := netcodeDuplicate
		if late > netcodeLateCopy {
			rule = netcodeReplayed
		}
		out.Report(rule, d.From, machine.Certain, d.At, d.Ref, e.ref, machine.Milliseconds(late))
		return netcodeCopy
	}
	if c+netcodeReplay <= s.top {
		out.Report(netcodeTooOld, d.From, machine.Certain, d.At, d.Ref, 0, float64(s.top-c))
		return netcodeOld
	}
	if c > s.top && s.distinct > 0 {
		s.before.JudgeLost(c - s.top - 1)
	} else if c < s.top && c > s.first {
		s.before.Found()
	}
	s.before.Judge(false)
	s.top = max(s.top, c)
	s.first = min(s.first, c)
	s.distinct++
	s.put(netcodeSeen{c + 1, mac, d.At, d.Ref})
	return Fresh
}

// restart forgets the counters: they begin again.
func (s *netcodeSide) restart() {
	s.lost = s.Missing()
	s.passed += s.distinct
	s.met, s.seen, s.requestsBefore, s.distinct = false, nil, 0, 0
}

func (s *netcodeSide) find(c uint64) *netcodeSeen {
	if len(s.seen) == 0 {
		return nil
	}
	if e := &s.seen[c%uint64(len(s.seen))]; e.counter == c+1 {
		return e
	}
	return nil
}

// put enters a counter; the ring grows until it spans the replay window.
func (s *netcodeSide) put(e netcodeSeen) {
	if n := len(s.seen); n < netcodeReplay && s.top-s.first >= uint64(n) {
		old := s.seen
		for n = max(n, 8); n < netcodeReplay && s.top-s.first >= uint64(n); n *= 2 {
		}
		s.seen = make([]netcodeSeen, n)
		for _, o := range old {
			if o.counter != 0 {
				s.keep(o)
			}
		}
	}
	s.keep(e)
}

// keep leaves the newer of two counters in a slot.
func (s *netcodeSide) keep(e netcodeSeen) {
	if slot := &s.seen[(e.counter-1)%uint64(len(s.seen))]; slot.counter < e.counter {
		*slot = e
	}
}

// Missing gives how many of the side's datagrams never passed the tap.
func (s *netcodeSide) Missing() uint64 {
	if !s.met {
		return s.lost
	}
	first, passed := s.first, s.distinct
	if s.requestsBefore > 0 {
		// Requests take the counters from 0 on.
		first, passed = 0, passed+s.requestsBefore
	}
	span := s.top - first + 1
	return s.lost + span - min(span, passed)
}

func (n *Flow) climb(kind uint8, d *machine.Datagram) {
	if k := len(n.rungs); k > 0 && n.rungs[k-1].kind == kind && n.rungs[k-1].from == d.From {
		n.rungs[k-1].count++
		return
	}
	if kind == wire.NetcodeKeepAlive && len(n.rungs) >= 8 {
		return // not those of later silences
	}
	if len(n.rungs) == netcodeRungs {
		n.more++
		return
	}
	n.rungs = append(n.rungs, rung{kind, d.From, d.At, d.Ref, 1})
}

// cadence gives the middle of a side's last intervals; 0 where there are too few.
func (s *netcodeSide) cadence() time.Duration {
	k := min(s.counted, netcodeIntervals)
	if k < 8 {
		return 0
	}
	v := make([]int64, k)
	copy(v, s.intervals[:k])
	slices.Sort(v)
	return time.Duration(v[k/2])
}

// Finish tells how the flow ended.
func (n *Flow) Finish(out *machine.Effects) {
	if !n.known {
		return
	}
	c, s := &n.Sides[n.client], &n.Sides[n.client.Other()]
	if requests := c.Types[wire.NetcodeRequestType]; requests > 1 && s.packets == 0 && !c.met && c.passed == 0 {
		out.Report(netcodeNoAnswer, n.client, machine.Certain, c.last, c.LastRef, c.firstRequestRef, float64(requests), c.last.Sub(c.firstRequestAt).Seconds())
	}
	for i := range n.Sides {
		gone, other := &n.Sides[i], &n.Sides[i^1]
		if !n.Ended && gone.met && other.last.Sub(gone.last) >= netcodeSilence && other.heardSincePeer >= netcodeHeardLeast {
			out.Report(netcodeTimeout, machine.Side(i), machine.Likely, other.last, other.LastRef, gone.LastRef, other.last.Sub(gone.last).Seconds())
		}
		if m := gone.Missing(); m > 0 {
			out.Report(netcodeLoss, machine.Side(i), machine.Certain, gone.last, gone.LastRef, 0, float64(m), 100*float64(m)/float64(m+gone.distinct+gone.passed))
		}
	}
}

// Clone gives an independent copy.
func (n *Flow) Clone() Flow {
	c := *n
	c.rungs = slices.Clone(n.rungs)
	for i := range c.Sides {
		c.Sides[i].seen = slices.Clone(n.Sides[i].seen)
	}
	return c
}

// Size gives the bytes of memory that it takes, about.
func (n *Flow) Size() int {
	return 1800 + (len(n.Sides[0].seen)+len(n.Sides[1].seen))*32 + len(n.rungs)*40
}
