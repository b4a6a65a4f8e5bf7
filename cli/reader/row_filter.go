package reader

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// RowFilter applies a display filter to events, messages or findings. ackscope
// learns of these when their frames are long gone. If the filter names fields
// of packets, RowFilter reads the frame again.
type RowFilter struct {
	app    *app.App
	filter *filter.Filter
	events bool // the listing is of events: it reads no messages
	From   *Recording
	record filter.Record
	Err    error // the error of reading a frame again

	source   *Reader // the reader of frames; nil unless the filter names packets
	reading  filter.Reading
	timeline *analyze.Timeline                 // nil if the filter names no packets
	times    []machine.Instant                 // times of the timeline's entries
	shown    map[machine.Ref][]machine.Anomaly // findings by the frame that shows them; nil if the filter names none
}

// NewRowFilter compiles -Y for a listing. what names the listed things in errors.
// within is what the filter may name. Study or Begin starts each recording.
func NewRowFilter(a *app.App, text, what string, within filter.Scope) (*RowFilter, error) {
	f, err := Compile(a, text)
	if err != nil {
		return nil, err
	}
	if err := f.Refuse(within, "is not asked about "+what+": see ackscope "+what+" --help"); err != nil {
		return nil, fmt.Errorf("-Y: %w", err)
	}
	return &RowFilter{app: a, filter: f, events: within&filter.OfEvent != 0}, nil
}

// Scopes of the filters of listings. Frames of files can be read again; those
// of live traffic (OfLive) cannot.
const (
	OfEvents   = filter.OfMoment | filter.OfAddress | filter.OfPacket | filter.OfFlow | filter.OfEvent | filter.OfFinding
	OfMessages = filter.OfMoment | filter.OfAddress | filter.OfPacket | filter.OfFlow | filter.OfMessage | filter.OfFinding
	OfFindings = filter.OfMoment | filter.OfAddress | filter.OfPacket | filter.OfFlow | filter.OfFinding
	OfLive     = ^filter.OfPacket
)

// All reports whether everything passes.
func (k *RowFilter) All() bool { return k.filter.String() == "" }

// Study analyses a recording like reader.Study, and collects what the filter
// needs. With findings set, the findings of a frame are known before its events
// and messages are listed.
func (k *RowFilter) Study(from *Recording, findings bool, sink analyze.Sink) (*analyze.Session, *Reader, error) {
	k.Begin(from)
	scope := k.filter.Scope()
	frames, hindsight := scope&(filter.OfPacket|filter.OfAddress) != 0, findings && scope&filter.OfFinding != 0
	fates := k.filter.Needs() & filter.NeedFate
	if !frames && !hindsight {
		return StudyLess(k.app, from, sink, func(o *analyze.Options, _ *analyze.Session) {
			o.Detached, o.NoMessages, o.NoRelays = !k.filter.Needs().Live(), k.events, k.events
		})
	}
	o, err := k.app.Options()
	if err != nil {
		return nil, nil, err
	}
	keep, passes := capture.KeepPipes, 2
	if frames {
		keep = capture.KeepAll
	}
	if hindsight {
		passes++
	}
	if fates != 0 {
		passes++
	}
	src, err := Open(k.app, from, Options{Keep: keep, Passes: passes})
	if err != nil {
		return nil, nil, err
	}
	defer src.Done()
	first, err := analyze.Learn(src, o)
	if err != nil {
		return nil, src, err
	}
	o.Survey = first.Survey()
	if hindsight {
		if err := errors.Join(k.gather(src, o), k.Err); err != nil {
			return nil, src, err
		}
	}
	if fates != 0 {
		if k.reading.Hindsight, err = Hindsight(k.app, src, o, fates); err != nil {
			return nil, src, err
		}
	}
	o.Sink = sink
	if frames {
		k.source = src
		k.timeline = analyze.NewTimeline(src.In)
		o.Fed = k.enter
		o.Gone = func(f *analyze.Flow, why analyze.Reason) {
			k.app.LetGo(f, why)
			k.timeline.Forget(f)
		}
		o.Sink = func(r *analyze.Record) {
			if r.Frame != nil {
				k.enter(r.Frame, r.Packet, r.Flow)
			}
			if sink != nil {
				sink(r)
			}
		}
	}
	s := analyze.NewSession(o)
	if frames {
		k.timeline.Attach(s)
	}
	err = s.Drive(src, capture.NewDecoder(o.Decode))
	s.Finish()
	k.reading.Start = src.Start
	return s, src, err
}

// Begin forgets the previous recording.
func (k *RowFilter) Begin(from *Recording) {
	*k = RowFilter{app: k.app, filter: k.filter, events: k.events, From: from}
}

// gather records which frames show which findings, and rewinds the source.
func (k *RowFilter) gather(src *Reader, o analyze.Options) error {
	k.shown = map[machine.Ref][]machine.Anomaly{}
	room, n := k.app.Share(8), 0
	o.Gone = nil
	o.Sink, o.NoEvents = func(r *analyze.Record) {
		if n += len(r.Anomalies); n*anomalyCost > room {
			k.full(src, "findings at frames, which the filter asks for,", room)
			return
		}
		for i := range r.Anomalies {
			x := &r.Anomalies[i]
			k.shown[x.Ref] = append(k.shown[x.Ref], *x)
		}
	}, true
	if _, err := analyze.Run(src, o); err != nil {
		var cut *capture.CutError
		if !errors.As(err, &cut) {
			return err
		}
	}
	return src.Rewind()
}

// anomalyCost is roughly the memory of one finding at a frame, in bytes.
const anomalyCost = 256

// full stops reading because the data that the filter needs does not fit.
func (k *RowFilter) full(src *Reader, what string, room int) {
	src.Stop()
	if k.Err == nil {
		k.Err = &app.RoomError{What: what, Room: room}
	}
}

// enter records where a frame can be read again.
func (k *RowFilter) enter(frame *capture.Frame, p *capture.Packet, f *analyze.Flow) {
	if len(k.times) == 0 {
		k.reading.Start = frame.At
	}
	k.timeline.Note(frame, p, f)
	if n := k.timeline.Filled(); n > len(k.times) {
		k.times = append(k.times, frame.At)
	}
	if room := k.app.Share(4); k.timeline.Size()+8*cap(k.times) > room {
		k.full(k.source, "places of frames, which the filter asks for,", room)
	}
}

// about returns a record for the filter. It has the frame ref if the filter
// names packets, and otherwise only the flow. The instant at is when the frame
// passed the tap. The side from is that of the listed thing.
func (k *RowFilter) about(f *analyze.Flow, ref machine.Ref, at machine.Instant, from machine.Side) *filter.Record {
	if k.timeline != nil {
		if x := k.frame(ref); x != nil {
			return x
		}
	}
	x := &k.record
	x.Reset()
	x.Frame, x.Packet, x.Decode = nil, nil, nil
	x.Datagram = machine.Datagram{At: at, Ref: ref, From: from}
	x.Src, x.Dst, x.Transport = f.Addr(from), f.Addr(from.Other()), f.Transport
	x.Flow, x.Session, x.Was, x.Stream, x.Knowledge = f.ID, f.Session, f.Before(), f.Stream, f
	x.Protocol, x.Dialect = f.Protocol, ""
	if f.Protocol != nil {
		x.Dialect = f.Config().Dialect
	}
	x.Start, x.Previous, x.File = at, at, k.From.Path(ref)
	return x
}

// frame reads a frame again. It returns nil if that is not possible.
func (k *RowFilter) frame(ref machine.Ref) *filter.Record {
	n, ok := k.timeline.Find(ref)
	if !ok || n >= k.timeline.Filled() {
		return nil
	}
	r, err := k.timeline.Read(n)
	if err != nil {
		k.Err = err
		return nil
	}
	k.reading.Previous = r.Datagram.At
	if n > 0 && n-1 < len(k.times) {
		k.reading.Previous = k.times[n-1]
	}
	x := k.reading.Take(r)
	x.File = k.From.Path(ref)
	return x
}

// Event reports whether an event of a record passes.
func (k *RowFilter) Event(r *analyze.Record, i int) bool {
	e := &r.Events[i]
	x := k.about(r.Flow, e.Ref, e.At, e.Side)
	x.Events, x.Messages, x.Anomalies = r.Events[i:i+1], nil, k.by(e.Side, e.Ref)
	return k.filter.Match(x)
}

// Message reports whether a message of a record passes. Fields of packets are
// those of the first packet that carried the message.
func (k *RowFilter) Message(r *analyze.Record, i int) bool {
	m := &r.Messages[i]
	x := k.about(r.Flow, m.Frames[0], m.At, m.From)
	x.Events, x.Messages, x.Anomalies = nil, r.Messages[i:i+1],
		k.by(m.From, m.Frames[:min(m.Attempts, machine.MessageFrames)]...)
	return k.filter.Match(x)
}

// by returns the findings that some frames show about a side.
func (k *RowFilter) by(side machine.Side, frames ...machine.Ref) (out []machine.Anomaly) {
	if k.shown == nil {
		return nil
	}
	for i, ref := range frames {
		if slices.Contains(frames[:i], ref) {
			continue
		}
		for _, x := range k.shown[ref] {
			if x.Side == side {
				out = append(out, x)
			}
		}
	}
	return out
}

// Finding reports whether a finding passes: one of its frames must pass.
func (k *RowFilter) Finding(f *analyze.Flow, x *analyze.Finding) bool {
	record := filter.FindingRecord(x, k.From.Path(x.Refs[0]))
	if k.filter.Scope()&(filter.OfPacket|filter.OfAddress|filter.OfMoment) == 0 {
		return k.filter.Match(record)
	}
	for i, ref := range x.Refs {
		if slices.Contains(x.Refs[:i], ref) {
			continue
		}
		r := k.about(f, ref, x.First, x.Side)
		r.Events, r.Messages, r.Anomalies = nil, nil, record.Anomalies
		if k.filter.Match(r) {
			return true
		}
	}
	return false
}
