// Package analyze turns a capture into flows, records and findings: it keys
// datagrams by conversation, finds out each one's protocol, drives its tracker,
// and hands every packet with what it brought about to whoever asks.
//
// Ring 3 of the house: it knows no protocol by name.
//
//	capture.Source -> Session.Feed -> flow table -> classifiers (first datagrams)
//	                                           `-> tracker -> events, anomalies
//	                                                   `-> Record -> Sink
//
// A Session is one run over a capture. What only the whole capture teaches
// (where the tap stood, that an endpoint lies) is learned by a first run and
// given to a second one: see Survey.
package analyze

import (
	"slices"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Record is one packet of the capture and what the step over it brought about.
// Everything in it is valid during the sink's call only.
type Record struct {
	N      uint64         // running number over all files, from 0
	Frame  *capture.Frame // nil, as Packet is, for a datagram that was held while its flow was worked out
	Packet *capture.Packet
	Flow   *Flow // nil for frames that carry no UDP or TCP payload
	// Datagram is the UDP payload; or, where Message is set, the Index-th message
	// that a TCP segment completed, whose bytes came in Spans.
	Datagram machine.Datagram
	Message  bool
	Index    int
	Spans    []capture.Span
	More     bool // further messages of the same segment follow

	// Events and Anomalies were settled at this packet; they may be about earlier ones.
	Events    []machine.Event
	Anomalies []machine.Anomaly
	Messages  []machine.Message // whose lives ended here
}

// Sink takes records in order.
type Sink func(*Record)

// Options set up a session.
type Options struct {
	Registry *dissect.Registry
	DecodeAs []DecodeAs       // the user's overrides: the first that matches decides
	Vantage  *machine.Vantage // the user's word on where the tap stood; nil to infer it
	Survey   *Survey          // what an earlier run over the same capture learned; nil for none
	Sink     Sink             // nil where only flows and findings are wanted
	Decode   capture.DecodeOptions
	// NoEvents spares the sink the events: for one that looks at datagrams only.
	NoEvents bool
	// Untracked gives flows no tracker where the survey knows them to be one session
	// only: for a sink that wants datagrams, by flow, and nothing of what they mean.
	Untracked bool
	// MaxTrackers bounds the flows that are followed at one time; beyond it the
	// one that was idle longest ends and keeps its summary. 0: 262,144.
	MaxTrackers int
	Limits      Limits
	// Fed is told of each frame of Drive when its records were told, with the flow that
	// its datagram went to; nil for none. The sink has the frame of a datagram only
	// where none was held: in a second run, of the flows that the survey knows.
	Fed func(*capture.Frame, *capture.Packet, *Flow)
	// Gone is told of each flow that is let go for the sake of the limits, when its
	// figures are final.
	Gone func(*Flow, Reason)
	// Found is told of each occurrence of a rule, with the finding that it now is part of.
	Found func(*Finding)
}

const defaultMaxTrackers = 1 << 18

// Session is one run over a capture. It is not safe for concurrent use.
type Session struct {
	registry *dissect.Registry
	options  Options
	sink     Sink

	table table
	flows []*Flow
	begun int // flows ever
	// streams counts the conversations that there were, of UDP and of all else.
	streams [2]int

	lists     [classes]list // of flows, where limits are asked for
	gone      Totals
	reasons   [len(reasonWords)]uint64
	forgotten int // flows that were let go and stand in flows still

	candidates []candidate // one for each protocol of the registry
	trial      []candidate // those that the flow being weighed may be of

	// Flows whose protocol is being worked out: those that nobody answers, and the others.
	waiting [2]waiting
	// Bytes that they may hold: datagrams of the first, of the others, and all that
	// is held whole.
	aloneRoom, answeredRoom, wholeRoom int
	free                               *pending
	freeCount                          int

	trackers int // flows that are followed now
	scopes   map[scopeKey]*scope
	texts    map[string]string // reasons that flows share

	n          uint64 // packets fed
	dropped    uint64 // packets that the capture is known to lack
	counted    bool   // it says how many it lacks
	duplicates uint64
	first      machine.Instant
	last       machine.Instant

	formats []stream.Format // how protocols stand in TCP streams
	stream  struct {
		out      stream.Output
		datagram machine.Datagram
		index    int
		spans    []capture.Span
		more     bool
	}

	relays   relays
	landed   *Flow            // where the last frame's datagram went
	frame    *capture.Frame   // the one being fed
	datagram machine.Datagram // what it carries
	out      machine.Effects
	noted    []machine.Anomaly // found of the present frame by the session itself
	record   Record
}

// NewSession prepares a run.
func NewSession(o Options) *Session {
	if o.MaxTrackers == 0 {
		o.MaxTrackers = defaultMaxTrackers
	}
	s := &Session{
		registry: o.Registry, options: o, sink: o.Sink, formats: framings(o.Registry), gone: Totals{},
		dropped:   o.Survey.captureDropped(),
		aloneRoom: o.Limits.hold(holdAlone, 8), answeredRoom: o.Limits.hold(holdBytes, 4),
		wholeRoom: o.Limits.hold(holdWhole, 8),
	}
	s.out.NoEvents = o.Sink == nil || o.NoEvents
	for _, p := range o.Registry.Protocols() {
		s.candidates = append(s.candidates, candidate{p, p.Classify()})
	}
	return s
}

// Flows returns all flows by number, but for those that limits let go; the slice
// grows with the run.
func (s *Session) Flows() []*Flow {
	if s.forgotten > 0 {
		s.compact()
	}
	return s.flows
}

// Flow returns a flow by its number; nil for one that there is not, or that limits
// let go.
func (s *Session) Flow(id int) *Flow {
	flows := s.Flows()
	if id >= 1 && id <= len(flows) && flows[id-1].ID == id {
		return flows[id-1]
	}
	if i, ok := slices.BinarySearchFunc(flows, id, func(f *Flow, id int) int { return f.ID - id }); ok {
		return flows[i]
	}
	return nil
}

// Packets returns how many frames were fed.
func (s *Session) Packets() uint64 { return s.n }

// Duplicates returns how many datagrams the tap captured twice.
func (s *Session) Duplicates() uint64 { return s.duplicates }

// Span returns the times of the first and the last frame.
func (s *Session) Span() (first, last machine.Instant) { return s.first, s.last }

// Feed takes the next frame, decoded as p.
func (s *Session) Feed(frame *capture.Frame, p *capture.Packet) {
	s.frame, s.landed, s.noted = frame, nil, s.noted[:0]
	if s.n == 0 {
		s.first = p.At
	}
	s.n++
	s.last = max(s.last, p.At)
	if p.Transport != capture.UDP && p.Transport != capture.TCP {
		if s.sink != nil {
			s.record = Record{N: s.n - 1, Frame: frame, Packet: p, Datagram: machine.Datagram{At: p.At, Ref: p.Ref}}
			s.sink(&s.record)
		}
		return
	}
	src, dst := keyOf(p.Src), keyOf(p.Dst)
	f, side := s.table.find(p.Transport, &src, &dst)
	if f == nil {
		f = s.begin(p, src, dst)
	}
	// The session's own, since the tracker's interface lets it escape: one on the
	// stack would cost an allocation a packet.
	d := &s.datagram
	d.At, d.Ref, d.From, d.Bytes, d.Length = p.At, p.Ref, side, p.Payload, p.Length
	if p.Duplicate {
		s.duplicates++
		f.Duplicates++
		s.noteDuplicate(f, d)
		s.landed = f
		if s.sink != nil {
			s.out.Reset()
			s.tell(f, d, p)
		}
		if s.options.Limits.any() {
			s.bound(f)
		}
		return
	}
	if p.Fragments > 1 || p.Length > safePayload && p.Transport == capture.UDP {
		s.noteSize(f, d, p.Fragments)
	}
	switch {
	case p.Transport == capture.TCP:
		f = s.segment(f, d, p)
	case f.tracker != nil:
		f = s.observe(f, d, p)
	case f.pending != nil && p.Length > 0:
		s.hold(f, d)
	case f.hasty && d.From == machine.B && p.Length > 0:
		f.hasty = false
		s.admit(f)
		s.hold(f, d)
	case s.sink != nil:
		s.out.Reset()
		s.tell(f, d, p)
	}
	f.Packets[d.From]++
	f.Bytes[d.From] += uint64(d.Length)
	f.Last, f.LastRef = d.At, d.Ref
	s.landed = f
	if s.options.Limits.any() {
		s.bound(f)
		if s.forgotten > compactLeast && s.forgotten > len(s.flows)/2 {
			s.compact()
		}
	}
}

// CaptureDropped tells the session how many packets the capture is known to lack:
// what is not there was then not lost by the network for certain.
func (s *Session) CaptureDropped(n uint64) { s.dropped = max(s.dropped, n) }

// Dropped returns how many packets the capture is known to lack.
func (s *Session) Dropped() uint64 { return s.dropped }

// Counted reports whether the capture says how many packets it lacks: it then
// lacks no others.
func (s *Session) Counted() bool { return s.counted }

// Landed returns the flow that the last frame's datagram was put to; nil for a
// frame that carried none.
func (s *Session) Landed() *Flow { return s.landed }

// Finish settles what is open when the capture ends.
func (s *Session) Finish() {
	for _, f := range s.flows {
		s.finishStream(f)
	}
	for i := range s.waiting {
		for w := &s.waiting[i]; w.oldest != nil; {
			f := w.oldest.flow
			w.oldest.round = holdRounds
			s.decide(f, true)
			if f.tracker != nil && f.scopes == [2]*scope{} {
				s.end(f) // very many flows can be so short that they all wait: one tracker at a time
			}
		}
	}
	for _, f := range s.flows {
		if f.tracker != nil {
			s.end(f)
		}
	}
}

// observe steps f's tracker over d and gives the flow that d belongs to, which
// is a new one where d opens another session.
func (s *Session) observe(f *Flow, d *machine.Datagram, p *capture.Packet) *Flow {
	s.out.Reset()
	if x := f.scopes[d.From]; x != nil {
		d.Place = x.Observe(f.ID, d)
	}
	f.tracker.Observe(d, &s.out)
	if s.out.NewSession {
		f = s.reopen(f, d)
		s.out.Reset()
		f.tracker.Observe(d, &s.out)
	}
	for i := range s.out.Anomalies {
		s.found(f, &s.out.Anomalies[i])
	}
	if len(s.out.Contents) > 0 {
		s.relays.note(f, s.out.Contents)
	}
	if s.sink != nil {
		s.tell(f, d, p)
	}
	return f
}

// tell hands d with the effects of the last step to the sink.
func (s *Session) tell(f *Flow, d *machine.Datagram, p *capture.Packet) {
	if len(s.noted) > 0 {
		s.out.Anomalies = append(s.out.Anomalies, s.noted...)
		s.noted = s.noted[:0]
	}
	s.record = Record{
		N: s.n - 1, Packet: p, Flow: f, Datagram: *d, Message: d == &s.stream.datagram, Index: s.stream.index,
		Spans: s.stream.spans, More: s.stream.more,
		Events: s.out.Events, Anomalies: s.out.Anomalies, Messages: s.out.Messages,
	}
	if p != nil {
		s.record.Frame = s.frame
	}
	s.sink(&s.record)
}

// intern returns one copy of equal texts: the reasons of short flows read alike,
// and there can be very many short flows.
func (s *Session) intern(text string) string {
	if t, ok := s.texts[text]; ok {
		return t
	}
	if len(s.texts) < maxInterned {
		if s.texts == nil {
			s.texts = map[string]string{}
		}
		s.texts[text] = text
	}
	return text
}
