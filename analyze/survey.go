package analyze

import (
	"net/netip"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Survey is what one run over a capture learned: the protocol of each flow,
// where the tap stood, and which endpoints send false acks. The next run over
// the same capture starts with it, and so grades every fact correctly from the
// first packet on.
type Survey struct {
	flows   []surveyed          // by number
	begun   map[machine.Ref]int // first frame to index in flows, if limits removed flows; otherwise nil
	dropped uint64
	streams [2]int  // conversations of UDP, and of other transports
	byFirst []int32 // places in flows, by first frame and session; nil if flows has that order itself
	shards  bool    // the flows do not concern each other beyond their host pairs
	// scopeless is shards for a run without trackers: all flows that have scopes are the only session on
	// their addresses.
	scopeless bool
	frames    uint64 // of the capture
	quoted    uint64 // of them, those up to the last ICMP error about UDP
}

// captureDropped returns how many packets the capture is known to lack.
func (v *Survey) captureDropped() uint64 {
	if v == nil {
		return 0
	}
	return v.dropped
}

type surveyed struct {
	a, b        netip.AddrPort
	transport   capture.Transport
	protocol    *dissect.Protocol
	verdict     dissect.Verdict // with a configuration of its own that has the facts; it never changes
	first       machine.Ref     // its first frame
	stream      int
	session     int   // nth on its addresses
	continued   bool  // by another session
	next        int32 // place of that session, from 1; 0 if there is none
	was         *Was  // the flow that it continues from another address
	moveKnown   bool  // was is decided
	captureLoss int   // how often a finding says for certain that the capture lacks a packet of it
}

// Survey returns what this run learned. Call it after Finish.
func (s *Session) Survey() *Survey {
	v := s.learned()
	v.complete()
	v.separate(s)
	return v
}

// complete adds what the flows say of each other.
func (v *Survey) complete() {
	for i := range v.flows {
		if v.flows[i].session > 1 {
			v.continueBefore(i)
		}
	}
	v.shareVantage()
	v.order()
}

// learned returns what this run learned of each flow.
func (s *Session) learned() *Survey {
	flows := s.Flows()
	v := &Survey{
		flows: make([]surveyed, len(flows)), dropped: s.dropped, streams: s.streams,
		frames: s.n, quoted: s.quotedTo,
	}
	if len(flows) < s.begun {
		v.begun = make(map[machine.Ref]int, len(flows))
	}
	explained := 0
	for _, f := range flows {
		if f.Protocol != nil {
			explained++
		}
	}
	configs := make([]dissect.Config, 0, explained) // in one piece: there may be very many
	for i, f := range flows {
		if v.begun != nil {
			v.begun[f.FirstRef] = i
		}
		k := &v.flows[i]
		*k = surveyed{
			a: f.A, b: f.B, transport: f.Transport, protocol: f.Protocol, verdict: f.Verdict,
			first: f.FirstRef, stream: f.Stream, session: f.Session,
			was: f.Was.copied(), moveKnown: f.Was != nil || !s.late,
		}
		if f.Protocol != nil {
			configs = append(configs, *f.Verdict.Config)
			k.verdict.Config = &configs[len(configs)-1]
		}
		for _, x := range f.findings.all() {
			if x.Rule.CaptureLoss && x.Certainty == machine.Certain {
				k.captureLoss += int(x.Count)
			}
		}
		s.learn(f, k)
	}
	return v
}

// learn fills in the configuration with which the next run decodes a flow, and what that run need
// not ask again.
func (s *Session) learn(f *Flow, k *surveyed) {
	config := k.verdict.Config
	if config != nil {
		config.Stream, config.OneHost = f.Transport == capture.TCP, f.A.Addr() == f.B.Addr()
		config.Ends = [2]netip.AddrPort{f.A, f.B}
		config.Facts = f.Facts()
		defer func() { config.Facts.End = s.last }()
	}
	if s.misread {
		if config != nil {
			if better, _ := s.reviewed(f, &config.Facts); better != nil {
				config.Dialect, config.Profile, config.Ports = better.Dialect, better.Profile, better.Ports
				config.Facts = machine.Facts{}
				return
			}
		}
		k.was, k.moveKnown = nil, false
	}
	if config == nil || s.options.Vantage != nil {
		return
	}
	if m, ok := f.marked(); ok && !config.OneHost {
		m.weigh(&config.Facts)
	}
	f.moveTap(&config.Facts)
}

// continueBefore records that flow i continues an earlier one on its addresses.
func (v *Survey) continueBefore(i int) {
	k := &v.flows[i]
	for e := i - 1; e >= 0; e-- {
		if o := &v.flows[e]; o.a == k.a && o.b == k.b && o.transport == k.transport && o.session == k.session-1 {
			o.continued, o.next = true, int32(i)+1
			return
		}
	}
}

// onlySession reports whether f is known to be the only session on its
// addresses.
func (v *Survey) onlySession(f *Flow) bool {
	k := v.flow(f)
	return k != nil && k.session == 1 && !k.continued
}

// CaptureLoss returns how often the run found, for certain, that the capture lacks a packet of f.
func (v *Survey) CaptureLoss(f *Flow) int {
	if k := v.flow(f); k != nil && k.first == f.FirstRef {
		return k.captureLoss
	}
	return 0
}

// shareVantage copies the vantage of a flow to the other flows of its host whose
// own packets do not show one. A tap stands in one place.
func (v *Survey) shareVantage() {
	near := map[netip.Addr]string{} // why another flow of the host is taken to be near
	note := func(host netip.Addr) {
		if near[host] == "" {
			near[host] = "too few packets to tell; other flows were captured at " + host.String()
		}
	}
	for i := range v.flows {
		f := &v.flows[i]
		if f.protocol == nil {
			continue
		}
		facts := &f.verdict.Config.Facts
		if facts.Marked && (facts.Supposed[machine.A] || facts.Supposed[machine.B]) {
			continue // each flow has marks of its own
		}
		switch facts.Vantage {
		case machine.VantageA:
			note(f.a.Addr())
		case machine.VantageB:
			note(f.b.Addr())
		}
	}
	for i := range v.flows {
		f := &v.flows[i]
		if f.protocol == nil || f.a.Addr() == f.b.Addr() {
			continue
		}
		facts := &f.verdict.Config.Facts
		if facts.Vantage != machine.VantageUnknown {
			continue
		}
		switch a, b := near[f.a.Addr()], near[f.b.Addr()]; {
		case a != "" && b == "":
			facts.Vantage, facts.VantageReason = machine.VantageA, a
		case b != "" && a == "":
			facts.Vantage, facts.VantageReason = machine.VantageB, b
		}
	}
}

// flow returns what the survey knows of f, or nil. Flows are numbered by
// appearance, so the second run meets them in the same order. If the two runs
// split sessions differently, a flow may not fit; the survey then does not
// guess.
func (v *Survey) flow(f *Flow) *surveyed {
	if v == nil {
		return nil
	}
	i := f.ID - 1
	if v.begun != nil {
		// The two runs remove flows at different times, so numbers can differ. The
		// first frame of a flow is the same.
		var ok bool
		if i, ok = v.begun[f.FirstRef]; !ok || v.flows[i].session != f.Session {
			return nil
		}
	}
	if i >= len(v.flows) {
		return nil
	}
	k := &v.flows[i]
	if k.a != f.A || k.b != f.B || k.transport != f.Transport {
		return nil
	}
	return k
}
