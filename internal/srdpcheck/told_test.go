package srdpcheck

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// told is what Ackscope says of a capture.
type told struct {
	session   *analyze.Session
	timeline  *analyze.Timeline
	events    []event
	messages  []flowMessage
	anomalies []flowAnomaly
	replayed  *replay.File
	frames    map[*analyze.Flow][]shown
}

// shown is a frame.
type shown struct {
	ref machine.Ref
	at  machine.Instant
}

// event is an event with its flow.
type event struct {
	flow *analyze.Flow
	machine.Event
}

func (e *event) of() netip.AddrPort   { return e.flow.Addr(e.Side) }
func (e *event) peer() netip.AddrPort { return e.flow.Addr(e.Side.Other()) }

type flowMessage struct {
	flow *analyze.Flow
	machine.Message
}

type flowAnomaly struct {
	flow *analyze.Flow
	machine.Anomaly
}

// tell analyzes a capture as the program does, with all protocols known. as
// says what some flows are; ackscope finds out about the others.
func tell(t *testing.T, name string, content []byte, as ...analyze.DecodeAs) *told {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.pcapng")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *capture.Input {
		in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close() })
		return in
	}
	in := open()
	x := &told{timeline: analyze.NewTimeline(in), frames: map[*analyze.Flow][]shown{}}
	o := analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol), DecodeAs: as,
	}
	learned, err := analyze.Learn(in, o)
	if err != nil {
		t.Fatal(err)
	}
	second := o
	second.Survey, second.Sink = learned.Survey(), x.record
	second.Fed = x.timeline.Note
	if x.session, err = analyze.Run(in, second); err != nil {
		t.Fatal(err)
	}
	x.timeline.Attach(x.session)
	if x.replayed, err = replay.Run(name, open(), replay.Options{Analysis: o}); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *told) record(r *analyze.Record) {
	x.timeline.Record(r)
	if r.Flow == nil {
		return
	}
	if r.Frame != nil {
		x.frames[r.Flow] = append(x.frames[r.Flow], shown{r.Frame.Ref, r.Frame.At})
	}
	for i := range r.Events {
		x.events = append(x.events, event{r.Flow, r.Events[i]})
	}
	for i := range r.Messages {
		x.messages = append(x.messages, flowMessage{r.Flow, r.Messages[i]})
	}
	for i := range r.Anomalies {
		x.anomalies = append(x.anomalies, flowAnomaly{r.Flow, r.Anomalies[i]})
	}
}
