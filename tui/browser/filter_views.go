package browser

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
	ofFrames = filter.OfMoment | filter.OfAddress | filter.OfPacket
	ofFlows  = filter.OfFlow | filter.OfFinding | filter.OfAddress
)

// viewScopes is what a filter can be asked about in a view that does not list packets or
// flows.
var viewScopes = map[View]filter.Scope{
	Messages: ofFrames | filter.OfFlow | filter.OfMessage,
	Findings: ofFrames | filter.OfFlow | filter.OfFinding,
}

// Refusal says why the filter in force is not asked about the things of a view; nil
// where it is.
func (br *Browser) Refusal(v View) error {
	within, ok := viewScopes[v]
	if !ok || br.Filter == nil {
		return nil
	}
	return br.Filter.Refuse(within, "is not asked about "+v.String()+": all are shown")
}

// about returns a record of a flow with a frame of it, where the filter asks for one
// and it can be read.
func (br *Browser) about(f *analyze.Flow, ref machine.Ref, from machine.Side) *filter.Record {
	if br.Filter.Scope()&ofFrames != 0 {
		if n, ok := br.Store.Find(ref); ok {
			if br.filterReader == nil {
				br.filterReader = br.Store.NewReader()
			}
			br.filterReader.Previous = br.Store.TimeAt(n - 1)
			if r, err := br.filterReader.Read(n); err == nil {
				return r
			}
		}
	}
	return filter.FlowRecords(f, br.Store.FileName(ref.File()))[from]
}

// MessagePasses asks the filter about a message.
func (br *Browser) MessagePasses(f *analyze.Flow, x *store.Life) bool {
	r := br.about(f, x.Frames[0], x.From)
	r.Events, r.Anomalies, r.Messages = nil, nil, []machine.Message{x.Message}
	return br.Filter.Match(r)
}

// FindingPasses asks the filter about a finding.
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

// FlowPasses asks the filter about a flow: its figures at the end, its addresses
// either way round, and whether a rule found something in it; where more is asked,
// whether one of its packets passes.
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
