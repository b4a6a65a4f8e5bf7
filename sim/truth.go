package sim

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// Truth is what the endpoints of a run really did, by their own word: what a
// capture of the run can be held against.
type Truth struct {
	Facts []Fact
}

// Fact is one event of one endpoint, with what the truth files tell beside it.
type Fact struct {
	At    machine.Instant
	Host  *Host
	Event machine.Event

	Bytes     int    // of the payload, on sent and received; -1 elsewhere
	Datagrams int    // on sent: how many it took
	Head      []byte // on sent: the first bytes of the first one, at most 32
	Length    int    // on sent: bytes of the first one
}

const headBytes = 32

// Truth gives a log of what the endpoints do that fills as the world runs. An
// endpoint's deliveries are told as events of the kind delivered where its
// protocol does not tell them itself.
func (w *World) Truth() *Truth {
	t := &Truth{}
	w.Watch(t.watch)
	return t
}

func (t *Truth) watch(s *Step) { t.Facts = s.Facts(t.Facts) }

// Facts appends what the step's events tell.
func (s *Step) Facts(to []Fact) []Fact {
	for _, e := range s.Out.Events {
		f := Fact{At: s.At, Host: s.Host, Event: e, Bytes: -1}
		switch e.Kind {
		case machine.EventSent:
			if in, ok := s.In.(machine.Submit); ok {
				f.Bytes = len(in.Payload)
			}
			f.Datagrams = len(s.Out.Transmit)
			if f.Datagrams > 0 {
				head := s.Out.Transmit[0].Bytes
				f.Head, f.Length = bytes.Clone(head[:min(len(head), headBytes)]), len(head)
			}
		case machine.EventReceived:
			for _, d := range s.Out.Deliver {
				if d.ID == uint64(e.Sequence) && d.Channel == 0 {
					f.Bytes = len(d.Payload)
				}
			}
		}
		to = append(to, f)
	}
	return to
}

// Of gives the facts of one host and kind, in order.
func (t *Truth) Of(h *Host, kind machine.EventKind) (out []Fact) {
	for _, f := range t.Facts {
		if f.Host == h && f.Event.Kind == kind {
			out = append(out, f)
		}
	}
	return out
}

// TruthFile says how a truth is written down.
type TruthFile struct {
	Epoch    machine.Instant                    // what the start of the run is called, in nanoseconds since the Unix epoch
	Scenario map[string]any                     // the first line: addresses and parameters
	Name     func(h *Host) string               // the endpoint's name: "client", "server"
	Describe func(f *Fact, line map[string]any) // adds what only the protocol knows; may be nil
	Opening  func(h *Host) []map[string]any     // lines of a host before all others; may be nil
	Final    func(h *Host, line map[string]any) // adds figures to the host's last line; may be nil
	Word     func(k machine.EventKind) string   // the protocol's own kinds; may be nil
}

// Write writes the truth as JSON Lines in the terms of the truth files that
// stand beside the recorded captures: one object a line, by rising t (seconds).
func (t *Truth) Write(to io.Writer, hosts []*Host, form TruthFile) error {
	buffered := bufio.NewWriter(to)
	lines := json.NewEncoder(printable.JSONWriter(buffered))
	seconds := func(at machine.Instant) float64 {
		return math.Round(float64(at+form.Epoch)/1e3) / 1e6
	}
	scenario := map[string]any{"t": seconds(0), "endpoint": "harness", "event": "scenario"}
	for k, v := range form.Scenario {
		scenario[k] = v
	}
	if err := lines.Encode(scenario); err != nil {
		return err
	}
	for _, h := range hosts {
		if form.Opening == nil {
			break
		}
		for _, line := range form.Opening(h) {
			line["t"], line["endpoint"], line["conn"] = seconds(0), form.Name(h), 0
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
	}
	last := machine.Instant(0)
	for i := range t.Facts {
		f := &t.Facts[i]
		last = max(last, f.At)
		if err := lines.Encode(f.Line(seconds(f.At), &form)); err != nil {
			return err
		}
	}
	for _, h := range hosts {
		line := map[string]any{"t": seconds(last), "endpoint": form.Name(h), "conn": 0, "event": "final"}
		if form.Final != nil {
			form.Final(h, line)
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Line gives the fact's line of a truth file; t is its time in seconds.
func (f *Fact) Line(t float64, form *TruthFile) map[string]any {
	word := f.Event.Kind.String()
	if f.Event.Kind >= machine.EventProtocol && form.Word != nil {
		word = form.Word(f.Event.Kind)
	}
	line := map[string]any{"t": t, "endpoint": form.Name(f.Host), "conn": 0, "event": word, "seq": f.Event.Sequence}
	if f.Bytes >= 0 {
		line["bytes"] = f.Bytes
	}
	switch f.Event.Kind {
	case machine.EventSent:
		line["datagrams"], line["hex"] = f.Datagrams, hex.EncodeToString(f.Head)
	case machine.EventAcked:
		if f.Event.RTT >= 0 {
			line["rtt_ms"] = math.Round(float64(f.Event.RTT)/1e3) / 1e3
		}
	}
	if form.Describe != nil {
		form.Describe(f, line)
	}
	return line
}
