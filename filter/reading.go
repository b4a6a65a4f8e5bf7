package filter

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Reading converts analyze records to filter records, one at a time, and
// dissects packets on demand. It is reused for every packet.
type Reading struct {
	Start    machine.Instant // of the capture's first frame
	Previous machine.Instant // of the previous frame
	FileName func(file int) string
	// Join says that packets sent in several datagrams are reassembled. The fields
	// of the whole packet then follow those of the datagram that completes it.
	Join bool

	Hindsight *Hindsight // what later packets show; nil for nothing

	Record Record
	Flow   *analyze.Flow
	Whole  *machine.Datagram  // the packet that this datagram completes; nil if there is none
	Inside dissect.Dissection // of Whole
	Own    int                // how many fields of the dissection belong to the datagram itself

	dissection dissect.Dissection
	assemblies map[*analyze.Flow]dissect.Assembly
	decode     func(*Record) *dissect.Dissection
}

// Take fills the record from r and returns it.
func (l *Reading) Take(r *analyze.Record) *Record {
	if l.decode == nil {
		l.decode = l.dissect
	}
	x := &l.Record
	x.Reset()
	x.Frame, x.Packet, x.Datagram = r.Frame, r.Packet, r.Datagram
	x.Start, x.Previous = l.Start, l.Previous
	x.Events, x.Anomalies, x.Messages, x.Quoted = r.Events, r.Anomalies, r.Messages, Quoted{}
	x.Batched, x.Nth = r.Batch.Count, r.Index
	if q := r.Quoted; q != nil {
		x.Quoted = Quoted{q.Flow.ID, q.Ref, q.Certainty}
	}
	if x.Hindsight = nil; l.Hindsight != nil {
		l.Hindsight.fill(x)
	}
	x.Flow, x.Session, x.Was, x.Protocol, x.Dialect, x.Knowledge, x.Decode = 0, 0, 0, nil, "", nil, nil
	if l.FileName != nil {
		x.File = l.FileName(r.Datagram.Ref.File())
	}
	l.Flow, l.Whole = r.Flow, nil
	if p := r.Packet; p != nil {
		x.Src, x.Dst, x.Transport = p.Src, p.Dst, p.Transport
	}
	f := r.Flow
	if f == nil {
		return x
	}
	if r.Packet == nil {
		x.Previous = r.Datagram.At
		x.Src, x.Dst, x.Transport = f.Addr(r.Datagram.From), f.Addr(r.Datagram.From.Other()), f.Transport
	}
	x.Flow, x.Session, x.Was, x.Stream, x.Knowledge = f.ID, f.Session, f.Before(), f.Stream, f
	if f.Protocol != nil {
		x.Protocol, x.Dialect = f.Protocol, f.Config().Dialect
	}
	// A TCP segment is not a message: the messages that it completes have records
	// of their own.
	if x.Transport != capture.TCP || r.Message {
		x.Decode = l.decode
	}
	if l.Join {
		l.join()
	}
	return x
}

// maxAssemblies bounds the flows whose split packets are reassembled.
const maxAssemblies = 1024

// join passes the datagram to its flow's assembly, if the protocol splits
// packets.
func (l *Reading) join() {
	r := &l.Record
	if r.Decode == nil || r.Protocol == nil || r.Protocol.NewAssembly == nil || r.Packet != nil && r.Packet.Duplicate {
		return
	}
	a, ok := l.assemblies[l.Flow]
	if !ok {
		if l.assemblies == nil || len(l.assemblies) == maxAssemblies {
			l.assemblies = map[*analyze.Flow]dissect.Assembly{}
		}
		a = r.Protocol.NewAssembly(l.Flow.Config())
		l.assemblies[l.Flow] = a
	}
	if a != nil {
		l.Whole = a.Add(&r.Datagram)
	}
}

// dissect dissects the packet for the filter and the output. If this datagram
// completes a packet, the fields of that packet follow its own.
func (l *Reading) dissect(r *Record) *dissect.Dissection {
	l.dissection.Reset()
	r.Protocol.Dissect(l.Context(), &r.Datagram, &l.dissection)
	l.Own = len(l.dissection.Fields)
	if l.Whole != nil {
		l.Inside.Reset()
		r.Protocol.Dissect(l.Context(), l.Whole, &l.Inside)
		l.dissection.Fields = append(l.dissection.Fields, l.Inside.Fields...)
	}
	return &l.dissection
}

// Context returns the context for the dissector of the packet.
func (l *Reading) Context() dissect.Context {
	return dissect.Context{Config: l.Flow.Config(), From: l.Record.Datagram.From}
}
