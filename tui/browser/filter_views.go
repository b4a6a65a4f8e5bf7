package browser

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/store"
)

// A display filter names fields of packets. The views that list no packets
// apply it so:
//
//	flows     to the flow's final figures; a filter that names fields of packets,
//	          events or messages too passes if one of the flow's packets passes
//	messages  to the message and its flow; fields of packets are those of the
//	          packet that carried the message first
//	findings  to the finding and its flow; fields of packets may be those of any
//	          packet that the finding names
//
// Where a filter does not fit a view, the view shows everything and says so.
const (
	ofFrames = filter.OfMoment | filter.OfAddress | filter.OfPacket
	ofFlows  = filter.OfFlow | filter.OfFinding | filter.OfAddress
)

// viewScopes lists what a filter may name in the views of messages and
// findings.
var viewScopes = map[View]filter.Scope{
	Messages: ofFrames | filter.OfFlow | filter.OfMessage,
	Findings: ofFrames | filter.OfFlow | filter.OfFinding,
}

// Refusal returns why a view ignores the filter, or nil if it applies the
// filter.
func (br *Browser) Refusal(v View) error {
	within, ok := viewScopes[v]
	if !ok || br.Filter == nil {
		return nil
	}
	return br.Filter.Refuse(within, "is not asked about "+v.String()+": all are shown")
}

// about returns a record of a flow for the filter. It includes the frame where
// the filter names fields of frames and the frame can be read.
func (br *Browser) about(f *analyze.Flow, ref machine.Ref, from machine.Side) *filter.Record {
	if br.Filter.Scope()&ofFrames != 0 {
		if n, ok := br.Store.Find(ref); ok {
			if br.filterReader == nil {
				br.filterReader = br.Store.NewReader()
			}
			br.filterReader.Previous, br.filterReader.Hindsight = br.Store.TimeAt(n-1), nil
			if job := br.FilterJob; job != nil {
				br.filterReader.Hindsight = job.Hindsight()
			}
			if r, err := br.filterReader.Read(n); err == nil {
				return r
			}
		}
	}
	return filter.FlowRecords(f, br.Store.FileName(ref.File()))[from]
}

// MessagePasses reports whether a message passes the filter.
func (br *Browser) MessagePasses(f *analyze.Flow, x *store.Life) bool {
	r := br.about(f, x.Frames[0], x.From)
	r.Events, r.Anomalies, r.Messages = nil, nil, []machine.Message{x.Message}
	return br.Filter.Match(r)
}

// FindingPasses reports whether a finding passes the filter.
func (br *Browser) FindingPasses(x *analyze.Finding) bool {
	alone := filter.FindingRecord(x, br.Store.FileName(x.Flow.FirstRef.File()))
	if br.Filter.Scope()&ofFrames == 0 {
		return br.Filter.Match(alone)
	}
	for _, ref := range x.Refs {
		r := br.about(x.Flow, ref, x.Side)
		r.Events, r.Messages, r.Anomalies = nil, nil, alone.Anomalies
		if br.Filter.Match(r) {
			return true
		}
	}
	return false
}

// FlowPasses reports whether a flow passes the filter. The filter sees the
// flow's final figures, its addresses in both orders, and the rules that found
// something. A filter that names more passes if one of the flow's packets
// passes.
func (br *Browser) FlowPasses(flow *analyze.Flow) bool {
	f := br.Filter
	if s := br.FilterJob; f.Scope()&^ofFlows != 0 && s != nil {
		return s.FlowPassed(flow.ID)
	}
	for _, r := range filter.FlowRecords(flow, br.Store.FileName(flow.FirstRef.File())) {
		if f.Match(r) {
			return true
		}
	}
	return false
}
