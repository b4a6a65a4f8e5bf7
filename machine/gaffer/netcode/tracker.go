package netcode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Netcode tracks a netcode flow without its keys. It uses what travels in the clear:
// types, counters, sizes and times.
type Netcode struct {
	profile *wire.Profile
	flow    Flow
	facts   machine.Facts
	packet  wire.Packet
}

// NewTracker returns the tracker of a flow that cannot be decrypted.
func NewTracker(profile *wire.Profile, facts machine.Facts) machine.Tracker {
	return &Netcode{profile: profile, facts: facts}
}

// Observe takes the next datagram.
func (n *Netcode) Observe(d *machine.Datagram, out *machine.Effects) {
	if err := n.profile.Parse(d.Bytes, d.Length, &n.packet); err != nil {
		if !errors.Is(err, base.ErrSnapped) {
			out.At(d.At, d.Ref).Report(gaffer.MalformedPacket, d.From, machine.Certain, 0, float64(d.Length))
		}
		return
	}
	fate := n.flow.Observe(d, &n.packet, MACOf(d), out)
	switch fate {
	case NewConnection:
		out.NewSession = true
	case Fresh:
		if n.packet.NetcodeType == wire.NetcodePayload {
			out.Events = append(out.Events, machine.Event{
				Kind: machine.EventSent, Side: d.From, Certainty: machine.Certain, Sequence: uint32(n.packet.NetcodeSequence),
				Sequence64: int64(n.packet.NetcodeSequence),
				At:         d.At, Ref: d.Ref, About: d.Ref, RTT: -1,
			})
		}
	case netcodeCopy, netcodeOld, netcodeOther:
	}
}

// MACOf returns a part of the datagram's authentication tag. It returns 0 if the
// capture cut the tag off.
func MACOf(d *machine.Datagram) uint64 {
	if len(d.Bytes) < d.Length || len(d.Bytes) < 16 {
		return 0
	}
	return binary.LittleEndian.Uint64(d.Bytes[len(d.Bytes)-8:])
}

// Finish reports how the connection ended.
func (n *Netcode) Finish(out *machine.Effects) { n.flow.Finish(out) }

// Inspect draws the handshake, and what counts and times show.
func (n *Netcode) Inspect(x machine.Side, v *machine.View) { n.flow.Inspect(x, v) }

// Summary returns what the counters show. Acks are encrypted.
func (n *Netcode) Summary(x machine.Side) machine.Summary {
	return n.flow.SummaryAt(x, n.facts.Vantage)
}

// Learned returns the facts that the tracker was given, and what it shows of the connection.
func (n *Netcode) Learned() machine.Facts {
	f := n.facts
	n.flow.Roles(&f)
	return f
}

// Roles notes which side is the client, if that is known, and how the connection began and ended.
func (n *Flow) Roles(f *machine.Facts) {
	f.Opened, f.Ending = n.request, n.ending()
	for _, x := range []machine.Side{machine.A, machine.B} {
		f.Client[x] = n.Server(x.Other())
	}
}

// Identity fills in what the clear part shows of the connection.
func (n *Netcode) Identity(x *machine.Identity) {
	n.flow.Identity(x)
	if n.flow.request {
		x.Key, x.KeyName = n.flow.nonce, "connect token"
	}
}

// lateMost is how far behind the newest datagram of its sender a datagram still passes.
// Source: definition, rebound: packets overtake each other by a few
const lateMost = 16

// Identity fills in what the clear part shows of the connection, except for its token.
func (n *Flow) Identity(x *machine.Identity) {
	x.Client, x.ClientKnown = n.client, n.known
	x.Counters[0] = machine.Counter{Name: "netcode datagram", Bits: 64, Slack: lateMost}
	for i := range n.Sides {
		s := &n.Sides[i]
		if s.Types[wire.NetcodeRequestType]+s.Types[wire.NetcodeChallenge]+s.Types[wire.NetcodeDenied] > 0 {
			x.Began = [2]bool{true, true}
		}
		if c := &s.counters; c.met {
			x.Counters[0].Sides[i] = machine.Numbers{Met: true, First: c.first, Last: c.top, Span: c.top - c.first}
		}
	}
}

// Clone returns an independent copy.
func (n *Netcode) Clone() machine.Tracker {
	c := *n
	c.flow = n.flow.Clone()
	return &c
}

// Size returns the approximate size of a clone, in bytes.
func (n *Netcode) Size() int { return n.flow.Size() }

// Summary returns the figures of a side.
func (n *Flow) Summary(x machine.Side) machine.Summary {
	s := &n.Sides[x]
	return machine.Summary{
		Packets: s.packets - s.counters.copies, Bytes: s.bytes, Resends: s.counters.copies,
		Missing: n.Sides[x.Other()].Missing(), Path: s.counters.before,
		NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1,
	}
}

// SummaryAt returns the figures of a side, with what they say about loss where the tap is
// known.
func (n *Flow) SummaryAt(x machine.Side, v machine.Vantage) machine.Summary {
	m := n.Summary(x)
	m.PathKnown, m.Bounds = n.path(x, v)
	return m
}

// completeLeast is how many numbers of a side without a gap show that the capture is
// complete. Then gaps of its peer are loss on the way to the tap. A capture that loses
// packets loses those of both sides.
// Source: definition, steady-loss: 64 numbers without a gap show that the capture is complete
const completeLeast = 64

// path grades what the gaps in a side's counters mean. At its peer they are loss. At
// the side itself the capture lacks packets. Elsewhere they may be either. Where the
// tap is unknown, it is likely at a side of which no number is missing while its peer's
// are.
func (n *Flow) path(x machine.Side, v machine.Vantage) (machine.Certainty, machine.LossBounds) {
	s, peer := &n.Sides[x], &n.Sides[x.Other()]
	b := machine.LossBounds{Sent: s.counters.distinct + s.counters.passed + s.Missing()}
	switch complete := peer.Missing() == 0 && peer.counters.distinct >= completeLeast; {
	case v.Near(x):
		b.Most = b.Sent
		return machine.Unknown, b
	case v.Near(x.Other()):
		b.Certainty = machine.Certain
	case v == machine.VantageUnknown && complete && s.Missing() > 0:
		b.Certainty = machine.Likely
	case s.Missing() == 0:
		b.Most = b.Sent
		return machine.Unknown, b // all of it passed the tap: what was lost behind it stays open
	default:
		b.Most = b.Sent
		return machine.Possible, b
	}
	b.Least, b.Most = s.Missing(), s.Missing()
	return b.Certainty, b
}

// Inspect draws a side.
func (n *Flow) Inspect(x machine.Side, v *machine.View) {
	s := &n.Sides[x]
	gauge := func(name string, value float64, unit string) {
		v.Gauges = append(v.Gauges, machine.Gauge{Name: name, Value: value, Unit: unit, Grade: machine.Certain})
	}
	gauge("netcode datagrams", float64(s.packets), "datagrams")
	gauge("netcode bytes", float64(s.bytes), "bytes")
	gauge("netcode packets missing from the capture", float64(s.Missing()), "datagrams")
	if c := s.pace.cadence(); c > 0 {
		gauge("netcode cadence", machine.Milliseconds(c), "ms")
	}
	if d, ok := n.handshakeTime(); ok {
		gauge("netcode handshake", machine.Milliseconds(d), "ms")
	}
	if p := s.Types[wire.NetcodePayload]; p > 0 {
		gauge("netcode payload datagram, least", float64(s.payloads.least), "bytes")
		gauge("netcode payload datagram, mean", float64(s.payloads.bytes)/float64(p), "bytes")
		gauge("netcode payload datagram, most", float64(s.payloads.most), "bytes")
	}
	if x != machine.A || len(n.steps) == 0 {
		return
	}
	t := machine.Table{Name: "netcode handshake", Columns: []string{"after ms", "from", "what", "times", "frame"}}
	for _, r := range n.steps {
		t.Rows = append(t.Rows, []string{
			strconv.FormatFloat(machine.Milliseconds(r.at.Sub(n.steps[0].at)), 'f', 1, 64), r.from.String(),
			wire.NetcodeWord(r.kind),
			strconv.Itoa(r.count), strconv.FormatUint(r.ref.Frame(), 10),
		})
	}
	if n.more > 0 {
		t.Rows = append(t.Rows, []string{"", "", fmt.Sprintf("%d more", n.more), "", ""})
	}
	v.Tables = append(v.Tables, t)
}

// handshakeTime returns how long the handshake took, from the first request to the
// server's first keep-alive. It returns false if the handshake was not seen whole.
func (n *Flow) handshakeTime() (time.Duration, bool) {
	var begun machine.Instant
	started := false
	for _, r := range n.steps {
		switch r.kind {
		case wire.NetcodeRequestType:
			begun, started = r.at, true
		case wire.NetcodeKeepAlive:
			if started && r.from != n.client {
				return r.at.Sub(begun), true
			}
		}
	}
	return 0, false
}
