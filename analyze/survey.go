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
}

// captureDropped returns how many packets the capture is known to lack.
func (v *Survey) captureDropped() uint64 {
	if v == nil {
		return 0
	}
	return v.dropped
}

type surveyed struct {
	a, b      netip.AddrPort
	transport capture.Transport
	protocol  *dissect.Protocol
	verdict   dissect.Verdict
	facts     machine.Facts
	first     machine.Ref // its first frame
	stream    int
	session   int   // nth on its addresses
	continued bool  // by another session
	next      int32 // place of that session, from 1; 0 if there is none
	was       *Was  // the flow that it continues from another address
	moveKnown bool  // was is decided
}

// Survey returns what this run learned. Call it after Finish.
func (s *Session) Survey() *Survey {
	flows := s.Flows()
	v := &Survey{flows: make([]surveyed, len(flows)), dropped: s.dropped, streams: s.streams}
	if len(flows) < s.begun {
		v.begun = make(map[machine.Ref]int, len(flows))
	}
	for i, f := range flows {
		if v.begun != nil {
			v.begun[f.FirstRef] = i
		}
		v.flows[i] = surveyed{
			f.A, f.B, f.Transport, f.Protocol, f.Verdict, f.Facts(), f.FirstRef, f.Stream, f.Session, false, 0,
			f.Was.copied(), f.Was != nil || !s.late,
		}
		if k := &v.flows[i]; s.misread {
			if better, _ := s.reviewed(f, &k.facts); better != nil {
				k.verdict.Config, k.facts = better, machine.Facts{}
				k.facts.End = s.last
				continue
			}
		}
		if s.misread {
			v.flows[i].was, v.flows[i].moveKnown = nil, false
		}
		if m, ok := f.marked(); ok && s.options.Vantage == nil && f.Protocol != nil && f.A.Addr() != f.B.Addr() {
			m.weigh(&v.flows[i].facts)
		}
		if s.options.Vantage == nil {
			f.moveTap(&v.flows[i].facts)
		}
		v.flows[i].facts.End = s.last
	}
	for i, f := range flows {
		if f.Session > 1 {
			v.continueBefore(i)
		}
	}
	v.shareVantage()
	v.order()
	v.shards = s.separable()
	return v
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

// shareVantage copies the vantage of a flow to the other flows of its host whose
// own packets do not show one. A tap stands in one place.
func (v *Survey) shareVantage() {
	near := map[netip.Addr]machine.Facts{}
	for _, f := range v.flows {
		if f.facts.Marked && (f.facts.Supposed[machine.A] || f.facts.Supposed[machine.B]) {
			continue // each flow has marks of its own
		}
		switch f.facts.Vantage {
		case machine.VantageA:
			near[f.a.Addr()] = f.facts
		case machine.VantageB:
			near[f.b.Addr()] = f.facts
		}
	}
	for i := range v.flows {
		f := &v.flows[i]
		if f.protocol == nil || f.facts.Vantage != machine.VantageUnknown || f.a.Addr() == f.b.Addr() {
			continue
		}
		_, a := near[f.a.Addr()]
		_, b := near[f.b.Addr()]
		switch {
		case a && !b:
			f.facts.Vantage, f.facts.VantageReason = machine.VantageA, "too few packets to tell; other flows were captured at "+
				f.a.Addr().String()
		case b && !a:
			f.facts.Vantage, f.facts.VantageReason = machine.VantageB, "too few packets to tell; other flows were captured at "+
				f.b.Addr().String()
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
