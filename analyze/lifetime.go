package analyze

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// begin creates the flow of a packet that belongs to no existing flow.
func (s *Session) begin(p *capture.Packet, origin, answer endpointKey) *Flow {
	f := &Flow{
		Session: 1, Transport: p.Transport, A: p.Src, B: p.Dst,
		First: p.At, FirstRef: p.Ref, origin: origin, answer: answer, host: s.host,
	}
	if s.frame != nil {
		f.Interface = s.frame.Interface
	}
	s.number(f, nil, true)
	s.table.put(f)
	s.noteCaller(f)
	if p.Transport == capture.TCP && len(s.formats) > 0 {
		f.conn = stream.New(s.formats, stream.Limits{})
	}
	s.start(f)
	return f
}

// start determines how a new flow is decoded, or makes it pending.
func (s *Session) start(f *Flow) {
	known := s.options.Survey.flow(f)
	switch config, reason := s.override(f); {
	case config != nil:
		f.Protocol, f.Verdict = config.Protocol, dissect.Verdict{Config: config.Config, Confidence: 1, Reason: reason}
		s.track(f)
	case known != nil && known.protocol != nil:
		f.Protocol, f.Verdict = known.protocol, known.verdict
		s.track(f)
	case known != nil:
		f.Verdict = known.verdict
	case f.Transport == capture.TCP && f.conn == nil:
		f.Verdict.Reason = "TCP: none of our protocols is carried over it"
	default:
		s.admit(f)
	}
}

// reopen starts another session on f's addresses, with the same protocol.
func (s *Session) reopen(f *Flow, d *machine.Datagram) *Flow {
	next := s.successor(f, d, false)
	next.scopes, f.scopes = f.scopes, next.scopes
	s.end(f)
	next.Protocol, next.Verdict = f.Protocol, f.Verdict
	if known := s.options.Survey.flow(next); known != nil && known.protocol == f.Protocol {
		next.Verdict = known.verdict
	}
	next.conn, f.conn = f.conn, nil
	facts := f.ended.facts()
	for i, newest := range facts.Newest {
		next.gets().earlier[i] = machine.Earlier{newest, facts.Earlier[i][0]}
	}
	s.track(next)
	s.succeeded(f)
	return next
}

// succeeded removes a flow that another session continues, if limits demand it.
func (s *Session) succeeded(f *Flow) {
	switch l := &s.options.Limits; {
	case l.Room:
		s.relist(f) // it has ended, and takes little memory now
	case l.any():
		s.letGo(f, ReasonSession)
	}
}

// successor creates the flow of the next session on f's addresses, which d
// opens. It is another conversation if it has a connection of its own.
func (s *Session) successor(f *Flow, d *machine.Datagram, connection bool) *Flow {
	next := &Flow{
		Session: f.Session + 1, Transport: f.Transport, A: f.A, B: f.B,
		First: d.At, FirstRef: d.Ref, Interface: f.Interface, origin: f.origin, answer: f.answer,
		host: f.host,
	}
	s.number(next, f, connection)
	s.table.put(next)
	return next
}

// review considers how a flow that has ended was read, in the light of all its packets.
func (s *Session) review(f *Flow) {
	better, phrase := s.reviewed(f, &f.ended.fresh.Facts)
	s.misread = s.misread || better != nil
	if phrase != "" && !strings.HasSuffix(f.Verdict.Reason, phrase) { // an earlier run may have added it
		f.Verdict.Reason = s.intern(f.Verdict.Reason + "; " + phrase)
	}
}

// reviewed returns what the protocol's Review says of a flow, unless the user said how to
// read it.
func (s *Session) reviewed(f *Flow, facts *machine.Facts) (better *dissect.Config, phrase string) {
	if f.Protocol == nil || f.Protocol.Review == nil {
		return nil, ""
	}
	if set, _ := s.override(f); set != nil {
		return nil, ""
	}
	return f.Protocol.Review(f.Verdict.Config, facts)
}

// Misread reports whether a flow was read by a profile that the whole run shows to be
// wrong. The next run with this run's Survey reads it by the right one. What a run learns
// of such a flow counts no more. Call it after Finish.
func (s *Session) Misread() bool { return s.misread }

// newTracker creates a tracker for f, with the facts that are known beforehand.
// It also puts these facts into the flow's configuration, for callers that
// dissect its packets.
func (s *Session) newTracker(f *Flow) machine.Tracker {
	config := f.Verdict.Config
	known, vantage := s.options.Survey.flow(f), s.options.Vantage
	stream, oneHost := f.Transport == capture.TCP, f.A.Addr() == f.B.Addr()
	continues := f.has().earlier != [2]machine.Earlier{}
	learned := known != nil && config == known.verdict.Config && vantage == nil && !continues
	if !learned && (known != nil || vantage != nil || stream || oneHost || continues) {
		c := *config // the flow's own copy: many flows share a configuration without additions
		config, f.Verdict.Config = &c, &c
		config.Facts = machine.Facts{Doubtful: config.Facts.Doubtful}
		config.Stream, config.OneHost, config.Ends = stream, oneHost, [2]netip.AddrPort{f.A, f.B}
		if known != nil && known.verdict.Config != nil {
			config.Facts = known.verdict.Config.Facts
		}
		if continues {
			config.Facts.Earlier = f.has().earlier
		}
		if vantage != nil {
			config.Facts.Vantage, config.Facts.VantageReason = *vantage, "set by the user"
		}
	}
	if f.Protocol.NewTracker == nil || s.options.Untracked && s.options.Survey.onlySession(f) {
		return &stateless{facts: config.Facts}
	}
	if f.Protocol.NewDeferred != nil && s.defers() {
		t := f.Protocol.NewDeferred(config)
		f.defers = defers(t)
		return t
	}
	return f.Protocol.NewTracker(config)
}

// defers reports whether nothing reads the effects of a tracker before the end of its flow. That is
// so in the second run over a file, if it has no sink.
func (s *Session) defers() bool {
	return s.sink == nil && s.options.Found == nil && s.options.Survey != nil
}

func defers(t machine.Tracker) bool {
	d, ok := t.(machine.Deferrer)
	return ok && d.Defers()
}

// track creates the tracker of f.
func (s *Session) track(f *Flow) {
	s.shard.within(s.trackers, s.options.MaxTrackers)
	if s.trackers >= s.options.MaxTrackers {
		s.evict()
	}
	f.tracker = s.newTracker(f)
	f.pace = &[2]pace{}
	s.trackers++
	s.shard.requirePortable(f)
	s.enterScopes(f)
	s.watchMove(f)
	if s.options.Limits.any() && !f.gone {
		s.relist(f)
	}
}

// end finishes f's tracker and keeps its results.
func (s *Session) end(f *Flow) {
	s.settleMove(f)
	s.out.Reset()
	s.wantEvents(f)
	if t, ok := f.tracker.(machine.Ender); ok {
		t.EndsAt(s.last)
	}
	f.tracker.Finish(&s.out)
	figures := &s.figures
	for side := range figures.Sides {
		figures.Sides[side] = f.tracker.Summary(machine.Side(side))
	}
	figures.Facts = f.tracker.Learned()
	figures.Facts.VantageReason = s.intern(figures.Facts.VantageReason)
	f.ended = &ended{fresh: figures}
	s.countSizes(f)
	for i := range s.out.Anomalies {
		s.found(f, &s.out.Anomalies[i])
	}
	s.noteDropped(f)
	s.noteLoss(f)
	s.noteSizes(f)
	s.noteRefused(f)
	s.noteIdle(f)
	s.noteSteady(f)
	s.noteGhost(f)
	s.noteHost(f, f.Last, f.LastRef)
	s.noteReconnect(f)
	s.review(f)
	if s.sink != nil && len(s.out.Events)+len(s.out.Anomalies)+len(s.out.Messages) > 0 {
		s.record = Record{
			N: s.n - 1, Flow: f, Datagram: machine.Datagram{At: f.Last, Ref: f.LastRef}, Events: s.out.Events,
			Anomalies: s.out.Anomalies, Messages: s.out.Messages, Start: s.first, Before: s.before,
		}
		s.sink(&s.record)
	}
	f.ended.packed, f.ended.fresh = figures.Pack(&s.packing), nil
	if r, ok := f.tracker.(machine.Releaser); ok {
		r.Release()
	}
	f.tracker = nil
	s.trackers--
	s.leaveScopes(f)
}

// evict ends the flows that were idle longest: one in sixteen of those with a
// tracker. Ending many at once keeps the search for them cheap per flow.
func (s *Session) evict() {
	s.shard.refuse()
	var followed []*Flow
	for _, f := range s.flows {
		if f.tracker != nil {
			followed = append(followed, f)
		}
	}
	slices.SortStableFunc(followed, func(x, y *Flow) int { return cmp.Compare(x.Last, y.Last) })
	for _, f := range followed[:max(1, len(followed)/16)] {
		s.end(f)
		if s.options.Limits.any() {
			s.relist(f)
		}
	}
}

// maxInterned bounds the texts that flows share.
const maxInterned = 4096
