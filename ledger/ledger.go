// Package ledger counts what the bytes on the wire were used for, by flow, side
// and type of message. It divides each frame into these parts:
//
//	frame = link | IP | UDP or TCP | header | acks | sent again | goodput
//
// It counts bits, since protocols pack them. Every bit of every frame is in
// exactly one cell of one row: the rows add up to the frames' lengths on the
// wire.
//
// The ledger reads the records of package analyze. A protocol says what a
// datagram's bits are for (dissect.Protocol.Account).
package ledger

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Flow is the ledger of one flow.
type Flow struct {
	Flow  *analyze.Flow
	Sides [2]Side
}

// Ledger collects costs. A session passes it records by Take, as its sink.
type Ledger struct {
	// Spent, if set, is called with the cost of each datagram or segment.
	Spent func(f *analyze.Flow, from machine.Side, at machine.Instant, c *Cost)
	// Room is the approximate limit in bytes for rows and remembered messages;
	// 0 means no limit. Beyond it, a side's new types share one row.
	Room int

	flows     []*Flow
	byFlow    map[*analyze.Flow]*Flow
	recent    [recentFlows]*Flow    // of byFlow, by their numbers
	rows      [recentRows]recentRow // of all sides
	sides     uint32                // how many have rows
	other     Side                  // frames of no flow
	gone      Side                  // of flows that were forgotten
	forgotten int
	dead      int // of forgotten: those that are still in flows
	used      int // approximate bytes of rows and keys
	most      int // the most that it was before some were released
	last      machine.Ref
	joined    uint64  // fragments of the datagram, without the last one
	pieces    *pieces // nil until there is one
	fields    dissect.Dissection
	bill      dissect.Bill
}

// Flows returns the costs of all flows, by flow number.
func (l *Ledger) Flows() []*Flow {
	l.compact()
	slices.SortFunc(l.flows, func(a, b *Flow) int { return cmp.Compare(a.Flow.ID, b.Flow.ID) })
	return l.flows
}

// Other returns the cost of the frames that belong to no flow.
func (l *Ledger) Other() *Side {
	if l.pieces != nil {
		for _, c := range l.pieces.costs {
			r := l.row(&l.other, "(IP fragments of no whole datagram)")
			r.Count++
			r.Add(&c)
			l.other.Frames++
		}
		clear(l.pieces.costs)
	}
	return &l.other
}

// Total returns the sum of everything: 8 times the bytes on the wire.
func (l *Ledger) Total() Cost {
	sum := l.Other().Total()
	gone := l.gone.Total()
	sum.Add(&gone)
	for _, f := range l.flows {
		for i := range f.Sides {
			c := f.Sides[i].Total()
			sum.Add(&c)
		}
	}
	return sum
}

func (l *Ledger) flow(f *analyze.Flow) *Flow {
	recent := &l.recent[f.ID%recentFlows]
	if *recent != nil && (*recent).Flow == f {
		return *recent
	}
	x := l.byFlow[f]
	if x == nil {
		if l.byFlow == nil {
			l.byFlow = map[*analyze.Flow]*Flow{}
		}
		x = &Flow{Flow: f}
		l.byFlow[f] = x
		l.flows = append(l.flows, x)
	}
	*recent = x
	return x
}

// below divides a frame into the headers below its payload and the payload.
// Both are in bits, as far as the headers can be read.
func below(f *capture.Frame, p *capture.Packet) (c Cost, payload uint64) {
	total, ip, transport := uint64(f.Length), uint64(0), uint64(0)
	for i := range p.Layers {
		switch l := &p.Layers[i]; l.Kind {
		case capture.LayerIPv4, capture.LayerIPv6, capture.LayerIPv6Extension:
			ip += uint64(l.Length)
		case capture.LayerUDP, capture.LayerTCP:
			transport = uint64(l.Length)
		default:
		}
	}
	ip = min(ip, total)
	transport = min(transport, total-ip)
	if p.Transport == capture.UDP || p.Transport == capture.TCP {
		payload = min(uint64(p.Length), total-ip-transport)
	}
	return Cost{Link: 8 * (total - ip - transport - payload), IP: 8 * ip, Transport: 8 * transport}, 8 * payload
}

// Take charges the session's next record.
func (l *Ledger) Take(r *analyze.Record) {
	var c Cost
	payload := uint64(max(r.Datagram.Length, len(r.Datagram.Bytes))) * 8
	fresh := r.Frame != nil && r.Frame.Ref != l.last
	if fresh {
		l.last = r.Frame.Ref
		c, payload = l.frame(r)
	}
	if r.Batch.Count > 0 {
		payload = uint64(r.Datagram.Length) * 8 // the headers are the frame's, and were charged to its first datagram
	}
	if r.Flow == nil {
		return
	}
	x := l.flow(r.Flow)
	s := &x.Sides[r.Datagram.From]
	if fresh {
		s.Frames += 1 + l.joined
	}
	switch {
	case r.Packet != nil && r.Packet.Duplicate:
		row := l.row(s, Copies)
		row.Count++
		c.Goodput = payload
		row.Add(&c)
		return // the tap captured it twice: it was on the wire once
	case r.Packet != nil && r.Packet.Transport == capture.TCP || r.Message:
		l.segment(s, r, c, payload, fresh)
		return
	case !fresh && r.Batch.Count == 0:
		return // a fact settled at the end of the flow, or bytes whose frame was not seen
	case payload == 0 || r.Flow.Protocol == nil || r.Flow.Protocol.Account == nil:
		kind := Unexplained
		if payload == 0 {
			kind = Empty
		}
		row := l.row(s, kind)
		row.Count++
		c.Goodput = payload
		row.Add(&c)
	default:
		c = l.charge(s, r, c, payload)
	}
	l.spend(r, c)
}

// spend tells the cost of a record. It has a copy of its own, since what Spent is given costs memory.
func (l *Ledger) spend(r *analyze.Record, c Cost) {
	if l.Spent == nil {
		return
	}
	cost := c
	l.Spent(r.Flow, r.Datagram.From, r.Datagram.At, &cost)
}

// frame returns the cost of the headers below a frame's payload. It includes
// the fragments of the frame's datagram. It charges a frame that belongs to no
// flow.
func (l *Ledger) frame(r *analyze.Record) (c Cost, payload uint64) {
	c, payload = below(r.Frame, r.Packet)
	l.joined = 0
	if r.Flow != nil {
		if r.Packet.Fragments > 1 {
			c, payload = l.reassembled(r)
		}
		return c, payload
	}
	if fragmented(r.Frame, r.Packet) {
		if l.pieces == nil {
			l.pieces = &pieces{}
		}
		if l.pieces.add(r.Frame.Ref, &c) {
			return Cost{}, 0
		}
	}
	row := l.row(&l.other, "(no UDP or TCP)")
	if r.Packet.Problem != nil {
		row = l.row(&l.other, "(malformed)")
	}
	row.Count++
	row.Add(&c)
	l.other.Frames++
	return Cost{}, 0
}

// fragmented reports whether a frame holds a fragment of an incomplete
// datagram.
func fragmented(f *capture.Frame, p *capture.Packet) bool {
	for i := range p.Layers {
		l := &p.Layers[i]
		switch {
		case l.Kind == capture.LayerIPv4 && l.Offset+8 <= len(f.Data):
			if f.Data[l.Offset+6]&0x3f|f.Data[l.Offset+7] != 0 {
				return true
			}
		case l.Kind == capture.LayerIPv6Extension && l.Offset > 0 && p.Problem == nil && p.Transport == capture.NoTransport:
			return true
		}
	}
	return false
}

// reassembled returns the cost of all frames of a fragmented datagram.
func (l *Ledger) reassembled(r *analyze.Record) (c Cost, payload uint64) {
	total := uint64(r.Frame.Length) * 8
	own, _ := below(r.Frame, r.Packet)
	c.Link, c.IP = own.Link, own.IP
	if l.pieces != nil {
		l.pieces.take(r.Packet.Spans, func(f *Cost) {
			total += f.Total()
			c.IP += f.IP
			l.joined++
		})
	}
	transport := uint64(8)
	if r.Packet.Transport == capture.TCP {
		transport = 20
	}
	c.IP = min(c.IP, total)
	c.Transport = min(8*transport, total-c.IP)
	payload = min(uint64(r.Packet.Length)*8, total-c.IP-c.Transport)
	c.Link = total - c.IP - c.Transport - payload
	return c, payload
}

// segment charges a TCP segment, and the message in a record.
func (l *Ledger) segment(s *Side, r *analyze.Record, c Cost, payload uint64, fresh bool) {
	if fresh {
		row := l.row(s, Segments)
		row.Count++
		row.Add(&c)
		s.stream += payload
		rest := l.row(s, StreamRest)
		rest.Header += payload
	}
	if r.Message && r.Flow.Protocol != nil && r.Flow.Protocol.Account != nil {
		// Move the bits from the stream to the message.
		bits := uint64(max(r.Datagram.Length, len(r.Datagram.Bytes))) * 8
		bits = min(bits, s.stream)
		s.stream -= bits
		l.row(s, StreamRest).Header -= bits
		c2 := l.charge(s, r, Cost{}, bits)
		c.Add(&c2)
	}
	if c.Total() > 0 {
		l.spend(r, c)
	}
}

// charge divides a datagram's payload by its protocol's bill and adds it to the
// rows. Messages share common costs in proportion to their size.
func (l *Ledger) charge(s *Side, r *analyze.Record, c Cost, payload uint64) Cost {
	context := dissect.Context{Config: r.Flow.Config(), From: r.Datagram.From}
	l.fields.Reset()
	l.fields.Places = true
	l.bill.Reset()
	r.Flow.Protocol.Account(context, &r.Datagram, &l.fields, &l.bill)
	c.Header = l.bill.Fit(payload)
	c.Acks = l.bill.Acks
	resent := false
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == machine.EventResent && e.Ref == r.Datagram.Ref && e.Side == r.Datagram.From {
			resent = true
		}
	}
	bodies := uint64(0)
	for i := range l.bill.Bodies {
		bodies += l.bill.Bodies[i].Bits
	}
	if bodies == 0 {
		row := l.row(s, l.bill.Type)
		row.Count++
		row.Add(&c)
		return c
	}
	shared, before := c, uint64(0)
	for i := range l.bill.Bodies {
		b := &l.bill.Bodies[i]
		kind := b.Type
		if kind == "" {
			kind = l.bill.Type
		}
		after := before + b.Bits
		part := shared
		if b.Bits != bodies { // the only body bears all, without a division
			part = Cost{
				Link: share(shared.Link, before, after, bodies), IP: share(shared.IP, before, after, bodies),
				Transport: share(shared.Transport, before, after, bodies),
				Header:    share(shared.Header, before, after, bodies), Acks: share(shared.Acks, before, after, bodies),
			}
		}
		before = after
		row := l.row(s, kind)
		row.Count++
		if again := l.charged(s, b.Key); resent || again {
			row.Copies++
			part.Resent = b.Bits
			c.Resent += b.Bits
		} else {
			part.Goodput = b.Bits
			c.Goodput += b.Bits
		}
		row.Add(&part)
	}
	return c
}

// share returns the part of v for [from, to) of whole. The parts of adjacent
// intervals add up.
func share(v, from, to, whole uint64) uint64 { return v*to/whole - v*from/whole }
