package unit

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// summation makes the aggregates of one capture.
type summation struct {
	run  *run
	sums *Aggregates
	last map[Key]int // the flow that a rule was counted for last
}

func (r *run) summation() *summation {
	return &summation{run: r, sums: r.result.Aggregates, last: map[Key]int{}}
}

// keyOf returns the key of a flow's protocol and dialect.
func (r *run) keyOf(f *analyze.Flow) Key {
	k := Key{Partition: r.partition}
	if f.Protocol != nil {
		k.Protocol, k.Dialect = f.Protocol.Name, f.Config().Dialect
	}
	return k
}

// add adds a flow with its findings.
func (x *summation) add(f *analyze.Flow) {
	k := x.run.keyOf(f)
	all := x.sums.at(k)
	all.Captures = 1
	all.Flows++
	all.Packets, all.Bytes = plus(all.Packets, packetsOf(f)), plus(all.Bytes, bytesOf(f))
	all.Example = all.Example.least(x.example(f.FirstRef))
	for side := range machine.Side(2) {
		n, ok := f.Network(side)
		if ok && n.RTT >= 0 {
			all.RTT.addDuration(n.RTT)
		}
		if ok && n.Share >= 0 {
			all.Loss.addShare(n.Share)
		}
	}
	for _, found := range f.Findings() {
		k.Rule, k.Severity = found.Rule.ID, found.Rule.Severity.String()
		x.finding(k, f, found)
	}
}

func (x *summation) finding(k Key, f *analyze.Flow, found *analyze.Finding) {
	a := x.sums.at(k)
	a.Captures = 1
	if x.last[k] != f.ID {
		x.last[k] = f.ID
		a.Flows++
		a.Packets, a.Bytes = plus(a.Packets, packetsOf(f)), plus(a.Bytes, bytesOf(f))
	}
	a.Findings++
	a.Occurrences = plus(a.Occurrences, found.Count)
	if found.Certainty == machine.Certain {
		a.Certain = plus(a.Certain, found.Count)
	}
	a.Example = a.Example.least(x.example(found.Refs[0]))
}

func (x *summation) example(ref machine.Ref) Example { return Example{x.run.fileOf(ref), ref.Frame()} }

func packetsOf(f *analyze.Flow) uint64 { return plus(f.Packets[machine.A], f.Packets[machine.B]) }

func bytesOf(f *analyze.Flow) uint64 { return plus(f.Bytes[machine.A], f.Bytes[machine.B]) }

// delays sums up the delays of messages in a group of flows.
type delays struct {
	run  *run
	sums Aggregates
	flow *analyze.Flow // of the last message
	of   *Aggregate    // of that flow
}

func (r *run) delays() *delays { return &delays{run: r} }

// take is an analyze.Sink.
func (d *delays) take(r *analyze.Record) {
	for i := range r.Messages {
		m := &r.Messages[i]
		_, most, _ := machine.Elapsed(&m.Sent, &m.Arrived)
		if m.Delivered != machine.Yes || most < 0 {
			continue
		}
		if d.flow != r.Flow {
			d.flow, d.of = r.Flow, d.sums.at(d.run.keyOf(r.Flow))
		}
		d.of.Delay.addDuration(most)
	}
}
