package filter

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// FlowRecord returns a record of a whole flow, for commands that list flows. It
// has the flow's addresses, its protocol, its final figures, and one anomaly
// for each finding. Fields of single packets do not exist in it.
func FlowRecord(f *analyze.Flow, file string) *Record {
	r := flowOnly(f, file)
	for _, x := range f.Findings() {
		r.Anomalies = append(r.Anomalies, anomalyOf(x))
	}
	return r
}

// FlowRecords returns a flow's records for both directions.
func FlowRecords(f *analyze.Flow, file string) [2]*Record {
	r, back := FlowRecord(f, file), flowOnly(f, file)
	back.Anomalies = r.Anomalies
	back.Src, back.Dst, back.Datagram.From = f.B, f.A, machine.B
	return [2]*Record{r, back}
}

// FindingRecord returns a record of one finding and its flow.
func FindingRecord(x *analyze.Finding, file string) *Record {
	r := flowOnly(x.Flow, file)
	r.Anomalies = []machine.Anomaly{anomalyOf(x)}
	if len(x.Refs) > 0 {
		r.Datagram.Ref = x.Refs[0]
	}
	r.Datagram.At, r.Datagram.From = x.First, x.Side
	return r
}

func flowOnly(f *analyze.Flow, file string) *Record {
	r := &Record{
		Start: f.First, Previous: f.First, File: file, Src: f.A, Dst: f.B, Transport: f.Transport,
		Datagram: machine.Datagram{At: f.First, Ref: f.FirstRef}, Flow: f.ID, Session: f.Session, Was: f.Before(),
		Stream: f.Stream, Knowledge: f,
	}
	if f.Protocol != nil {
		r.Protocol, r.Dialect = f.Protocol, f.Config().Dialect
	}
	return r
}

func anomalyOf(x *analyze.Finding) machine.Anomaly {
	a := machine.Anomaly{Rule: x.Rule, Side: x.Side, Certainty: x.Certainty, At: x.First, Figures: x.Figures}
	if len(x.Refs) > 0 {
		a.Ref, a.About = x.Refs[0], x.Abouts[0]
	}
	return a
}
