// Package analyze splits a capture into flows, follows each one with the
// tracker of its protocol, and produces records and findings:
//
//	capture.Source -> Session.Feed -> flow table -> classifiers (first datagrams)
//	                                           `-> tracker -> events, anomalies
//	                                                   `-> Record -> Sink
//
// It knows no protocol by name. A Session is one run over a capture. Some facts
// show only in the whole capture: where the tap stood, or that an endpoint
// sends false acks. A first run learns them, and a second run starts with them;
// see Survey.
package analyze

import (
	"slices"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Record is one packet of the capture and the effects of its step. All of it is
// valid only during the call of the sink.
type Record struct {
	N      uint64         // position among the packets of all files, from 0
	Frame  *capture.Frame // nil, as Packet is, for a datagram that was held while its flow was pending
	Packet *capture.Packet
	Flow   *Flow // nil for frames without a UDP or TCP payload
	// Datagram is the UDP payload. If Message is set, it is the Index-th message
	// that a TCP segment completed, whose bytes came in Spans. If Batch is set, it
	// is the Index-th datagram of a batch that was captured as one.
	Datagram machine.Datagram
	Message  bool
	Batch    Batch
	Index    int
	Spans    []capture.Span
	More     bool // further messages of the same segment, or datagrams of the batch, follow

	Start  machine.Instant // time of the capture's first frame
	Before machine.Instant // time of the frame before this record's; of the first frame, its own

	// Quoted is what an ICMP error concerns. It is nil for other frames, and for errors about
	// no flow of the capture. Flow is nil then too: the error is no packet of the flow.
	Quoted *Quoted

	// Events and Anomalies were settled at this packet. They may concern earlier
	// packets.
	Events    []machine.Event
	Anomalies []machine.Anomaly
	Messages  []machine.Message // messages whose lives ended here
}

// Sink receives records in order.
type Sink func(*Record)

// Session is one run over a capture. It is not safe for concurrent use.
type Session struct {
	registry   *dissect.Registry
	options    Options
	noEvents   bool // no sink reads the events of records
	thresholds Thresholds
	sink       Sink

	table table
	flows []*Flow
	begun int    // all flows so far
	extra int    // of them, those that the survey does not know
	shard *shard // nil unless the session has a part of the flows only
	sinks []Sink // of groups of flows; nil unless Options.Split is set
	// streams counts the conversations of UDP and of other transports.
	streams [2]int

	lists     [classes]list // of flows, if there are limits
	bounded   bool          // the lists have not changed since they were last held to the limits
	gone      Totals
	reasons   [len(reasonWords)]uint64
	forgotten int // removed flows that are still in flows

	candidates []candidate // one for each protocol of the registry
	trial      []candidate // those that the flow being weighed may belong to

	// Flows whose protocol is being determined: those without an answer, and the
	// others.
	waiting [2]waiting
	held    heldStore
	// Bytes that they may hold: flows without an answer, answered flows, and flows
	// whose datagrams are held whole.
	unansweredRoom, answeredRoom, wholeRoom int
	free                                    *pending
	freeCount                               int

	trackers int // flows that have a tracker now
	scopes   map[scopeKey]*scope
	texts    map[string]string // reasons that flows share

	n          uint64 // packets fed
	extent     extent // of the current chunk so far; only in a session with all flows
	chunk      uint64 // its number
	crowded    bool   // answered flows held more than wholeRoom some chunks ago: see heldTotals
	dropped    uint64 // packets that the capture is known to lack
	counted    bool   // the capture says how many it lacks
	misread    bool   // a flow was read by the wrong profile
	duplicates uint64
	first      machine.Instant
	last       machine.Instant
	at, before machine.Instant // times of the current frame, and of the one before it

	formats []stream.Format // how protocols frame messages in TCP streams
	stream  struct {
		out      stream.Output
		datagram machine.Datagram
		index    int
		spans    []capture.Span
		more     bool
	}

	batch       Batch           // of the current datagram
	segmentSpan [1]capture.Span // of the current datagram of a batch
	dissection  dissect.Dissection
	dissected   uint64 // how often, in search of batches

	host     *hosted // nil if the source has no samples of the host
	relays   relays
	callers  callers
	sent     sentLog
	unquoted unquoted
	quotes   Quotes
	quotedTo uint64 // how many frames there were at the last ICMP error about UDP; 0 for none
	sized    bool   // fates were counted by size
	quoted   Quoted
	poison   poison
	entrants []*Flow              // flows that may be continued from another address, as they came
	hubs     map[endpointKey]*hub // the same by endpoint; nil until a flow is compared
	compared uint64               // flows of hubs that were looked at
	crammed  bool                 // fragments of datagrams were dropped, for lack of room
	late     bool                 // the protocol of a flow was found at the end, when others had ended
	identity machine.Identity     // of the flow that is compared
	own      machine.Identity     // of the flow that it is compared with
	lastFlow *Flow                // the flow of the last frame's datagram
	frame    *capture.Frame       // the current frame
	datagram machine.Datagram     // its datagram
	out      machine.Effects
	figures  machine.Figures   // of the flow that ends
	packing  []byte            // a buffer for them
	noted    []machine.Anomaly // findings of the session itself about the current frame
	record   Record

	heldAfter heldTotals // of this session alone
	peers     []*Session // the sessions of all shards; itself only in a session with all flows

	finishing bool      // the capture has ended
	partings  []parting // of the flows that end with it
}

// NewSession returns a session that has read nothing yet.
func NewSession(o Options) *Session {
	if o.MaxTrackers == 0 {
		o.MaxTrackers = defaultMaxTrackers
	}
	s := &Session{
		registry: o.Registry, options: o, sink: o.Sink, formats: framings(o.Registry), gone: Totals{},
		dropped: o.Survey.captureDropped(), unquoted: o.Survey.unquoted(),
		unansweredRoom: o.Limits.hold(holdUnanswered, 8), answeredRoom: o.Limits.hold(holdBytes, 4),
		wholeRoom: o.Limits.hold(holdWhole, 8),
	}
	if s.thresholds = DefaultThresholds(); o.Thresholds != nil {
		s.thresholds = *o.Thresholds
	}
	s.peers = []*Session{s}
	if o.Split != nil {
		s.divide([]Sink{o.Split()})
	}
	s.noEvents = s.sink == nil || o.NoEvents
	for _, p := range o.Registry.Protocols() {
		s.candidates = append(s.candidates, newCandidate(p))
	}
	return s
}

// Flows returns all flows by number, except those that limits removed. The
// slice grows during the run.
func (s *Session) Flows() []*Flow {
	if s.forgotten > 0 {
		s.compact()
	}
	return s.flows
}

// Flow returns a flow by its number. It returns nil if there is none, or if a
// limit removed it.
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

// Feed processes the next frame, decoded as p.
func (s *Session) Feed(frame *capture.Frame, p *capture.Packet) {
	s.frame, s.lastFlow, s.noted = frame, nil, s.noted[:0]
	if s.n == 0 {
		s.first, s.at = p.At, p.At
	}
	s.before, s.at = s.at, p.At
	if s.shard == nil {
		if s.extent.full() {
			s.nextChunk()
		}
		s.extent.add(frame)
	}
	s.n++
	s.last = max(s.last, p.At)
	if len(s.poison.watches) > 0 && p.At >= s.poison.due {
		s.poison.check(s, p.At)
	}
	if p.Transport != capture.UDP && p.Transport != capture.TCP {
		var quoted *Quoted
		if p.Quote != nil {
			quoted = s.quote(p)
		}
		if s.sink != nil {
			s.record = Record{
				N: s.n - 1, Frame: frame, Packet: p, Datagram: machine.Datagram{At: p.At, Ref: p.Ref}, Quoted: quoted,
				Anomalies: s.noted, Start: s.first, Before: s.before,
			}
			s.sink(&s.record)
		}
		return
	}
	src, dst := keyOf(p.Src), keyOf(p.Dst)
	f, side := s.table.find(p.Transport, &src, &dst)
	if f == nil {
		f = s.begin(p, src, dst)
	}
	// The session's own datagram, because the tracker's interface lets it escape:
	// one on the stack would cost an allocation per packet.
	d := &s.datagram
	d.At, d.Ref, d.From, d.Bytes, d.Length = p.At, p.Ref, side, p.Payload, p.Length
	if p.Duplicate {
		s.duplicates++
		f.Duplicates++
		s.noteDuplicate(f, d)
		s.lastFlow = f
		if s.sink != nil {
			s.out.Reset()
			s.emit(f, d, p)
		}
		if s.options.Limits.any() {
			s.bound(f)
		}
		return
	}
	segments := 1
	if p.Fragments > 1 || p.Length > safePayload && p.Transport == capture.UDP && (f.tracker == nil || !f.mayBatch(d)) {
		s.noteSize(f, d, p.Fragments)
	}
	switch {
	case p.Transport == capture.TCP:
		f = s.segment(f, d, p)
	case f.tracker != nil:
		f, segments = s.step(f, d, p)
	case f.pending != nil && p.Length > 0:
		s.hold(f, d)
	case f.decidedEarly && d.From == machine.B && p.Length > 0:
		f.decidedEarly = false
		s.admit(f)
		s.hold(f, d)
	case s.sink != nil:
		s.out.Reset()
		s.emit(f, d, p)
	}
	if p.Transport == capture.UDP && segments == 1 && s.logsSent() {
		s.stampSent()
		s.sent.note(f, d.From, p)
	}
	f.marks[d.From].note(p)
	f.Packets[d.From] += uint64(segments)
	f.Bytes[d.From] += uint64(d.Length)
	f.Last, f.LastRef = d.At, d.Ref
	s.lastFlow = f
	if s.options.Limits.any() {
		s.bound(f)
		if s.forgotten > compactLeast && s.forgotten > len(s.flows)/2 {
			s.compact()
		}
	}
}

// CaptureDropped sets how many packets the capture is known to lack. A missing
// packet may then be one of them, so its loss in the network is not certain.
func (s *Session) CaptureDropped(n uint64) { s.dropped = max(s.dropped, n) }

// Dropped returns how many packets the capture is known to lack.
func (s *Session) Dropped() uint64 { return s.dropped }

// Counted reports whether the capture says how many packets it lacks. If so, it
// lacks no others.
func (s *Session) Counted() bool { return s.counted }

// LastFlow returns the flow of the last frame's datagram. It returns nil for a
// frame without one.
func (s *Session) LastFlow() *Flow { return s.lastFlow }

// Finish settles what is open when the capture ends.
func (s *Session) Finish() {
	s.finishing = true
	for _, f := range s.flows {
		s.finishStream(f)
	}
	for i := range s.waiting {
		for w := &s.waiting[i]; w.oldest != nil; {
			f := w.oldest.flow
			w.oldest.round = holdRounds
			s.decide(f, true)
			s.late = s.late || f.tracker != nil
			if f.tracker != nil && f.scopes == [2]*scope{} {
				s.end(f) // a capture may have very many pending short flows: keep one tracker at a time
			}
		}
	}
	for _, f := range s.flows {
		s.settleMove(f)
	}
	for _, f := range s.flows {
		s.part(f)
	}
	s.entrants, s.hubs = nil, nil // no flow is compared any more
	for _, f := range s.flows {
		if f.tracker != nil {
			s.end(f)
		}
	}
	s.noteReconnects()
	s.callers, s.held = callers{}, heldStore{}
}

// observe steps f's tracker over d and returns the flow of d. That is a new
// flow if d opens another session.
func (s *Session) observe(f *Flow, d *machine.Datagram, p *capture.Packet) *Flow {
	s.out.Reset()
	if x := f.scopes[d.From]; x != nil {
		d.Place = x.Observe(f.ID, d)
	}
	s.wantEvents(f)
	f.tracker.Observe(d, &s.out)
	if s.out.NewSession {
		f = s.reopen(f, d)
		s.out.Reset()
		s.wantEvents(f)
		f.tracker.Observe(d, &s.out)
	}
	s.countSizes(f)
	s.watchIdle(f, d)
	own := &f.pace[d.From&1]
	own.note(d, s.thresholds.Stall)
	if f.moving != nil {
		s.follow(f, d)
	}
	if f.host != nil && (f.has().attended == nil || d.At >= f.rare.attended.due) {
		s.noteHost(f, d.At, d.Ref)
	}
	if d.At >= own.sampleAt {
		own.sample(d.At, machine.RTT(f.tracker, d.From))
	}
	for i := range s.out.Anomalies {
		a := &s.out.Anomalies[i]
		if s.found(f, a); a.Rule.CaptureLoss {
			f.pace[a.Side&1].lack(a.Ref, a.Figures[0], s.thresholds.Stall)
		}
	}
	if len(s.out.Contents) > 0 {
		s.noteRelayed(f)
	}
	if s.sink != nil {
		s.emit(f, d, p)
	}
	return f
}

// emit passes d and the effects of the last step to the sink.
func (s *Session) emit(f *Flow, d *machine.Datagram, p *capture.Packet) {
	if len(s.noted) > 0 {
		s.out.Anomalies = append(s.out.Anomalies, s.noted...)
		s.noted = s.noted[:0]
	}
	r := &s.record // every field in place: a literal would be built elsewhere and copied
	r.N, r.Frame, r.Packet, r.Flow, r.Quoted = s.n-1, nil, p, f, nil
	if p != nil {
		r.Frame = s.frame
	}
	r.Datagram, r.Message, r.Batch = *d, d == &s.stream.datagram, s.batch
	r.Index, r.Spans, r.More = s.stream.index, s.stream.spans, s.stream.more
	r.Start, r.Before = s.first, s.before
	r.Events, r.Anomalies, r.Messages = s.out.Events, s.out.Anomalies, s.out.Messages
	s.sink(r)
}

// intern returns one copy of equal texts. Short flows share their reasons, and
// there can be very many short flows.
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
