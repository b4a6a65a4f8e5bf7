package yojimbo

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/netcode"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Opener decrypts the datagrams of one netcode flow. Machines have no ciphers: the
// package that has the keys provides an Opener.
type Opener interface {
	// Request processes a connection request. An error says why its token stays closed.
	Request(d *machine.Datagram) error
	// Open returns the plaintext of any other datagram, valid until the next call. The
	// error is ErrForged if the flow's key is known and does not open the datagram.
	Open(d *machine.Datagram, pk *wire.Packet) ([]byte, error)
	// Connection identifies the connection whose keys open the flow. It is nil until that is
	// known.
	Connection() any
	Clone() Opener
}

// ErrForged says that the session's key does not open a datagram.
var ErrForged = errors.New("the session key does not open it: altered on the way, or of another session")

// Layers says how to read a decrypted flow. If the game's configuration is unknown,
// Connection is nil and the tracker searches for it. The search uses the messages of
// Known if that is not nil.
type Layers struct {
	Netcode    *wire.Profile
	Reliable   *wire.Profile
	Connection *wire.Yojimbo
	Known      *wire.Yojimbo
	// Found, if it is not nil, shares what one flow's packets showed with later flows.
	// Most flows of a capture are of one game.
	Found *atomic.Pointer[Inference]
}

// Yojimbo tracks a netcode flow that can be decrypted, through its layers:
//
//	netcode    counters, handshake, replays     netcode.Flow
//	reliable   packets, acks, what arrived      tracker.Tracker
//	messages   ids, resends, order, blocks      messages.Lane
//
// A message has arrived when the packet tracker reports that the peer accepted a packet
// with it. It is acked when such a packet is acked: yojimbo sends nothing else about
// messages.
type Yojimbo struct {
	layers   Layers
	opener   Opener
	flow     netcode.Flow
	inner    *tracker.Tracker
	sides    [2]messages.Direction // by sender
	sample   *Sample               // connection packets for inference; nil if the configuration is known
	packet   wire.Packet
	inside   wire.Packet
	entry    wire.ConnectionPacket
	plain    machine.Datagram
	out      machine.Effects // of the packet tracker; the messages follow its events
	forged   uint64
	opened   bool       // a datagram was authenticated
	inferred *Inference // by an earlier run; nil if the configuration is given
	closed   error      // why the flow's datagrams stay closed
}

// NewTracker returns the tracker of a flow whose keys are known, or may become known
// with its connection request.
func NewTracker(l Layers, o Opener, facts machine.Facts) *Yojimbo {
	y := &Yojimbo{layers: l, opener: o, inner: tracker.NewByRules(l.Reliable, gaffer.RulesOf(l.Reliable), facts)}
	if i, ok := facts.Settings.(*Inference); ok && l.Connection == nil {
		y.inferred, y.layers.Connection = i, i.Config
	}
	if y.layers.Connection == nil {
		y.sample = &Sample{}
	}
	for i := range y.sides {
		y.sides[i].From = machine.Side(i)
	}
	y.inner.WantReceipts()
	return y
}

// Observe takes the next datagram.
func (y *Yojimbo) Observe(d *machine.Datagram, out *machine.Effects) {
	pk := &y.packet
	if err := y.layers.Netcode.Parse(d.Bytes, d.Length, pk); err != nil {
		if !errors.Is(err, base.ErrSnapped) {
			out.At(d.At, d.Ref).Report(gaffer.MalformedPacket, d.From, machine.Certain, 0, float64(d.Length))
		}
		return
	}
	if pk.NetcodeType == wire.NetcodeRequestType {
		if y.flow.Observe(d, pk, 0, out) == netcode.NewConnection {
			out.NewSession = true
			return
		}
		if err := y.opener.Request(d); err != nil {
			y.closed = err
			if c := &y.flow.Sides[d.From]; c.Types[wire.NetcodeRequestType] == 1 {
				out.At(d.At, d.Ref).Report(tokenClosed, d.From, machine.Certain, 0, 1)
			}
		} else {
			y.closed = nil
			y.sides[0].Fresh, y.sides[1].Fresh = true, true
		}
		return
	}
	plain, err := y.opener.Open(d, pk)
	if errors.Is(err, ErrForged) {
		y.forged++
		out.At(d.At, d.Ref).Report(netcodeForged, d.From, machine.Certain, 0, float64(pk.NetcodeSequence))
		return
	}
	y.opened = y.opened || err == nil
	ended := y.flow.Ended
	fate := y.flow.Observe(d, pk, netcode.MACOf(d), out)
	if !ended && y.flow.Ended && y.flow.Server(d.From) {
		y.kicked(d, out)
	}
	if err != nil {
		y.closed = err
		if fate == netcode.Fresh && pk.NetcodeType == wire.NetcodePayload {
			out.Events = append(out.Events, machine.Event{
				Kind: machine.EventSent, Side: d.From, Certainty: machine.Certain, Sequence: uint32(pk.NetcodeSequence),
				Sequence64: int64(pk.NetcodeSequence),
				At:         d.At, Ref: d.Ref, About: d.Ref, RTT: -1,
			})
		}
		return
	}
	if pk.NetcodeType == wire.NetcodePayload && fate == netcode.Fresh {
		y.payload(d, plain, out)
	}
}

// kicked processes a server's first disconnect. The server lives on for its other clients,
// and the game disconnects one while it runs its frame. It has read its socket by then, but
// no header of its own will say so.
func (y *Yojimbo) kicked(d *machine.Datagram, out *machine.Effects) {
	y.reset()
	y.inner.ReadAll(d.From, &y.out)
	y.pass(d.At, out)
}

// payload processes what netcode carried: a packet of reliable.
func (y *Yojimbo) payload(d *machine.Datagram, plain []byte, out *machine.Effects) {
	y.plain = machine.Datagram{At: d.At, Ref: d.Ref, From: d.From, Bytes: plain, Length: len(plain)}
	y.reset()
	y.inner.Observe(&y.plain, &y.out)
	if y.out.NewSession {
		out.NewSession = true
		return
	}
	y.pass(d.At, out)
	if err := y.layers.Reliable.Parse(plain, len(plain), &y.inside); err != nil {
		return // the packet tracker reported it
	}
	s := &y.sides[d.From]
	s.Count(&y.inside)
	payload, whole := s.Assembler.Add(&y.inside, plain[y.inside.PayloadOffset:])
	if !whole {
		return
	}
	k := y.inner.Carrier(d, &y.inside)
	k.Sequence64, k.Payload = s.Unwrap(y.inside.Sequence), payload
	if y.sample != nil {
		y.sample.Add(d.From, k.Sequence64, payload)
		return
	}
	err := y.layers.Connection.Parse(payload, &y.entry)
	if err != nil && !errors.Is(err, wire.ErrOpaque) {
		y.malformed(d, len(payload), out)
		return
	}
	s.Carry(y.layers.Connection, &k, &y.entry, y.flow.Sides[d.From].Missing() == 0, out)
}

// malformed processes a connection packet that the configuration does not read. If that was
// inferred, it may be the one that is wrong.
func (y *Yojimbo) malformed(d *machine.Datagram, length int, out *machine.Effects) {
	sure := machine.Certain
	if y.inferred != nil {
		sure = machine.Likely
		y.sides[d.From].Doubt()
	}
	out.At(d.At, d.Ref).Report(messages.MalformedConnection, d.From, sure, 0, float64(length))
}

// reset empties what the packet tracker reported.
func (y *Yojimbo) reset() {
	y.out.Reset()
	y.inner.Receipts()
}

// pass passes on what the packet tracker knows by now, and applies it to the messages.
func (y *Yojimbo) pass(now machine.Instant, out *machine.Effects) {
	out.Anomalies = append(out.Anomalies, y.out.Anomalies...)
	receipts := y.inner.Receipts()
	for i := range y.out.Events {
		if !out.NoEvents {
			out.Events = append(out.Events, y.out.Events[i])
		}
		e := &y.out.Events[i]
		if e.Kind != machine.EventReceived {
			y.settle(e, now, out)
			continue
		}
		if y.sample == nil {
			y.sides[e.Side.Other()].Received(e, receipts[0], now, out)
		}
		receipts = receipts[1:]
	}
	for i := range y.sides {
		y.sides[i].Settle(now, out)
	}
}

// settle applies an event of the packet tracker to the messages.
func (y *Yojimbo) settle(e *machine.Event, now machine.Instant, out *machine.Effects) {
	if y.sample != nil {
		return
	}
	switch e.Kind {
	case machine.EventAcked:
		y.sides[e.Side].Acked(e, now, out)
	case machine.EventLost:
		y.sides[e.Side].Lost(e, y.near(e.Side.Other()))
	default:
	}
}

// Finish reports what is still open.
func (y *Yojimbo) Finish(out *machine.Effects) {
	if i := y.inferred; i != nil && y.packets() {
		out.At(y.flow.Last, y.flow.Sides[machine.A].LastRef).Report(configurationInferred, machine.A, machine.Likely, 0,
			float64(len(i.Channels)), float64(i.TypesMost), 100*float64(i.Read)/float64(i.Packets))
	}
	y.reset()
	if y.flow.Ended {
		y.inner.Disconnect(&y.out)
	}
	y.inner.Finish(&y.out)
	y.pass(y.flow.Last, out)
	for i := range y.sides {
		y.sides[i].Finish(out)
	}
	y.flow.Finish(out)
}

// near reports whether the tap is known to be at a side.
func (y *Yojimbo) near(x machine.Side) bool { return y.inner.Sides != nil && y.inner.Sides[x].Near }

// packets reports whether any packet of reliable was seen.
func (y *Yojimbo) packets() bool {
	return y.inner.Holds() || y.inner.Sides != nil && (y.inner.Sides[0].Met || y.inner.Sides[1].Met)
}

// Summary returns the figures of the packets. If nothing could be decrypted, it returns
// netcode's.
func (y *Yojimbo) Summary(x machine.Side) machine.Summary {
	if !y.packets() {
		return y.flow.SummaryAt(x, y.inner.Learned().Vantage)
	}
	sum := y.inner.Summary(x)
	y.sides[x].Figures(&sum)
	return sum
}

// RTT returns the RTT of the packet tracker's Summary.
func (y *Yojimbo) RTT(x machine.Side) time.Duration {
	if !y.packets() {
		return -1
	}
	return y.inner.RTT(x)
}

// Loss returns the loss of the packet tracker's Summary.
func (y *Yojimbo) Loss(x machine.Side) float64 {
	if !y.packets() {
		return -1
	}
	return y.inner.Loss(x)
}

// Sent returns the count of packets of Summary.
func (y *Yojimbo) Sent(x machine.Side) uint64 {
	if !y.packets() {
		return y.flow.Summary(x).Packets
	}
	return y.inner.Sent(x)
}

// Learned returns what a second run over the same flow can start with. That includes
// the configuration if it had to be found.
func (y *Yojimbo) Learned() machine.Facts {
	f := y.inner.Learned()
	y.flow.Roles(&f)
	switch {
	case y.sample != nil:
		if i := y.infer(); i != nil {
			f.Settings = i
		}
	case y.inferred != nil:
		f.Settings = y.inferred
	}
	return f
}

func (y *Yojimbo) infer() *Inference {
	found := y.layers.Found
	if found != nil {
		if other := found.Load(); other != nil {
			if i := y.sample.InferLike(other); i != nil {
				return i
			}
		}
	}
	var i *Inference
	if y.layers.Known != nil {
		i = y.sample.InferWith(y.layers.Known)
	} else {
		i = y.sample.Infer()
	}
	if found != nil && i != nil && i.Read == i.Packets {
		found.CompareAndSwap(nil, i)
	}
	return i
}

// Clone returns an independent copy.
func (y *Yojimbo) Clone() machine.Tracker {
	c := *y
	c.opener, c.flow = y.opener.Clone(), y.flow.Clone()
	inner, ok := y.inner.Clone().(*tracker.Tracker)
	if ok {
		c.inner = inner
	}
	c.entry, c.out = wire.ConnectionPacket{}, machine.Effects{}
	if y.sample != nil {
		c.sample = y.sample.clone()
	}
	for i := range c.sides {
		c.sides[i] = y.sides[i].Clone()
	}
	return &c
}

// Size returns the approximate size of a clone, in bytes.
func (y *Yojimbo) Size() int {
	n := y.inner.Size() + y.flow.Size()
	for i := range y.sides {
		n += y.sides[i].Size()
	}
	if y.sample != nil {
		n += y.sample.bytes
	}
	return n
}

// Identity fills in what the flow shows of its connection.
func (y *Yojimbo) Identity(x *machine.Identity) {
	y.inner.Identity(x)
	x.Counters[1] = x.Counters[0]
	x.Began = [2]bool{} // by netcode's handshake alone: reliable may begin later
	y.flow.Identity(x)
	if session := y.opener.Connection(); session != nil {
		x.Key, x.KeyName, x.Opened = session, "session keys", y.opened
	}
}

// Closed says why the flow's datagrams could not be decrypted. It is nil if they were.
func (y *Yojimbo) Closed() error { return y.closed }
