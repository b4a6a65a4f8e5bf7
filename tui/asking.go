package tui

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/store"
)

// What a display filter means in the views that list no packets:
//
//	flows     the flow's figures at the end; of a filter that asks for packets,
//	          events or messages too, whether one of its packets passes
//	messages  the message and its flow; what is asked of packets, of the one that
//	          carried it first
//	findings  the finding and its flow; what is asked of packets, of any that it names
//
// A filter that makes no sense of a view's things leaves them all, and the view says so.
const (
	ofFrames   = filter.OfMoment | filter.OfAddress | filter.OfPacket
	ofMessages = ofFrames | filter.OfFlow | filter.OfMessage
	ofFindings = ofFrames | filter.OfFlow | filter.OfFinding
	ofFlows    = filter.OfFlow | filter.OfFinding | filter.OfAddress
)

// asks gives what a filter can be asked about in the present view.
func (m *Model) asks() filter.Scope {
	switch m.view {
	case viewMessages:
		return ofMessages
	case viewFindings:
		return ofFindings
	}
	return ^filter.Scope(0)
}

// refusal says why the filter in force is not asked in a view; nil where it is.
func (m *Model) refusal(within filter.Scope, what string) error {
	if f := m.packet.filter; f != nil {
		return f.Refuse(within, "is not asked about "+what+": all are shown")
	}
	return nil
}

// about gives a record of a flow with a frame of it, where the filter asks for one
// and it can be read.
func (m *Model) about(f *analyze.Flow, ref machine.Ref, from machine.Side) *filter.Record {
	if m.packet.filter.Scope()&ofFrames != 0 {
		if n, ok := m.store.Find(ref); ok {
			if m.asking == nil {
				m.asking = m.store.NewReader()
			}
			m.asking.Previous = m.store.TimeAt(n - 1)
			if r, err := m.asking.Read(n); err == nil {
				return r
			}
		}
	}
	return filter.FlowRecords(f, m.store.FileName(ref.File()))[from]
}

// messagePasses asks the filter about a message.
func (m *Model) messagePasses(f *analyze.Flow, x *store.Life) bool {
	r := m.about(f, x.Frames[0], x.From)
	r.Events, r.Anomalies, r.Messages = nil, nil, []machine.Message{x.Message}
	return m.packet.filter.Match(r)
}

// findingPasses asks the filter about a finding.
func (m *Model) findingPasses(x *analyze.Finding) bool {
	alone := filter.FindingRecord(x, m.store.FileName(x.Flow.FirstRef.File()))
	if m.packet.filter.Scope()&ofFrames == 0 {
		return m.packet.filter.Match(alone)
	}
	for _, ref := range x.Refs {
		r := m.about(x.Flow, ref, x.Side)
		r.Events, r.Messages, r.Anomalies = nil, nil, alone.Anomalies
		if m.packet.filter.Match(r) {
			return true
		}
	}
	return false
}
