package analyze

import (
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Bounds for the datagrams that are held while the protocol of their flow is
// being determined.
const (
	// Acks come a round trip after the packets that they name. At 200 packets a
	// second each way and 300 ms, the first 120 datagrams contain none.
	holdDatagrams = 512 // after that many the best verdict counts
	holdRounds    = 2   // how often an unexplained flow is tried, each time on later datagrams
	// bytes over all flows; beyond it only the head of a datagram is held, as if
	// cut by a snap length
	holdWhole      = 8 << 20
	holdHead       = 48       // bytes of it: every header of our protocols
	holdUnanswered = 32 << 20 // bytes over all flows without an answer
	holdPreamble   = 96       // from that many datagrams on, the older half may be something else
	holdBytes      = 64 << 20 // bytes over all flows; beyond it the oldest pending flow is decided
	keepFree       = 1 << 12  // pending values kept for later flows, of some 100 bytes
	// Before the last datagram, a verdict counts only if it leads the next best
	// protocol by this many bits. Chance then selects the wrong one in less than
	// 0.1 % of the cases.
	holdLead = 10
)

// pending holds a flow's datagrams until a protocol explains it. The
// classifiers weigh them together, repeatedly, as more come. In the end the
// tracker receives them in order.
type pending struct {
	flow         *Flow
	newer, older *pending
	held         heldDatagrams
	round        uint8
	cut          bool   // only heads are held
	answered     bool   // it is in the list of answered flows
	since        uint64 // how many frames there were when it came into its list
}

// waiting lists flows whose protocol is being determined, by age. An attacker
// can forge any number of flows, but not the answers to them. So flows without
// an answer have a room of their own. A part of it may hold whole datagrams;
// beyond that part, the oldest flows are cut to heads. Beyond the room, the
// oldest flows are decided.
type waiting struct {
	oldest, newest *pending
	bytes          int
	whole          *pending // the oldest that is not cut; only for flows without an answer
	wholeBytes     int      // of it and all newer ones
}

func (w *waiting) add(p *pending) {
	p.older, p.newer = w.newest, nil
	if w.newest != nil {
		w.newest.newer = p
	} else {
		w.oldest = p
	}
	w.newest = p
	w.bytes += p.size()
	if !p.cut {
		w.wholeBytes += p.size()
		if w.whole == nil {
			w.whole = p
		}
	}
}

func (w *waiting) remove(p *pending) {
	if w.whole == p {
		w.whole = p.newer
	}
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		w.newest = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		w.oldest = p.newer
	}
	w.bytes -= p.size()
	if !p.cut {
		w.wholeBytes -= p.size()
	}
	p.newer, p.older = nil, nil
}

// cutOldest cuts the datagrams of the oldest whole flow to heads.
func (w *waiting) cutOldest(store *heldStore) {
	p := w.whole
	w.whole = p.newer
	w.wholeBytes -= p.size()
	w.bytes -= p.size()
	p.cut = true
	var heads heldDatagrams
	store.each(&p.held, func(d *machine.Datagram) {
		d.Bytes = d.Bytes[:min(len(d.Bytes), holdHead)]
		store.add(&heads, d)
	})
	store.clear(&p.held)
	p.held = heads
	w.bytes += p.size()
}

// candidate is a protocol that may explain the flow.
type candidate struct {
	protocol *dissect.Protocol
	dissect.Classifier
	sureFrom int // the fewest datagrams of which it can be sure
}

func newCandidate(p *dissect.Protocol) candidate {
	c := candidate{p, p.Classify(), 0}
	if late, ok := c.Classifier.(dissect.LateClassifier); ok {
		c.sureFrom = late.SureFrom()
	}
	return c
}

// size returns the bytes that p holds.
func (p *pending) size() int { return p.held.kept + heldCost*p.held.count }

func (s *Session) waitingOf(p *pending) *waiting {
	if p.answered {
		return &s.waiting[1]
	}
	return &s.waiting[0]
}

// admit makes f pending.
func (s *Session) admit(f *Flow) {
	p := s.free
	if p == nil {
		p = &pending{}
	} else {
		s.free = p.older
		s.freeCount--
		*p = pending{}
	}
	p.flow, f.pending = f, p
	p.answered = f.Packets[machine.A] > 0 && f.Packets[machine.B] > 0
	p.since = s.n
	s.waitingOf(p).add(p)
}

// hold adds a datagram. At growing counts it asks the classifiers whether a
// protocol explains the flow now. The classifiers keep no state per flow, which
// a capture of many flows could not afford. They are fed all held datagrams
// each time.
func (s *Session) hold(f *Flow, d *machine.Datagram) {
	p := f.pending
	if d.From == machine.B && !p.answered {
		s.waiting[0].remove(p)
		p.answered, p.cut, p.since = true, false, s.n
		s.waiting[1].add(p)
	}
	w := s.waitingOf(p)
	kept := d.Bytes
	if p.cut || p.answered && s.crowded {
		kept = kept[:min(len(kept), holdHead)]
	}
	head := *d
	head.Bytes = kept
	s.held.add(&p.held, &head)
	w.bytes += len(kept) + heldCost
	if !p.cut {
		w.wholeBytes += len(kept) + heldCost
	}
	switch p.held.count {
	case 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384:
		s.decide(f, false)
	case holdDatagrams:
		s.decide(f, true)
	}
	s.shard.withinRooms(s)
	for unanswered := &s.waiting[0]; unanswered.wholeBytes > s.wholeRoom && unanswered.whole != nil; {
		unanswered.cutOldest(&s.held)
	}
	s.fitRoom(&s.waiting[0], s.unansweredRoom)
	s.fitRoom(&s.waiting[1], s.answeredRoom)
	if s.held.sparse() {
		s.packHeld()
	}
}

// packHeld moves all held datagrams together. The protocols of very many flows become known in no
// order, and a page goes back only when all of its flows have gone.
func (s *Session) packHeld() {
	keep := s.held.evacuate()
	for i := range s.waiting {
		for p := s.waiting[i].oldest; p != nil; p = p.newer {
			s.held.move(&p.held, keep)
		}
	}
	s.held.truncate(keep)
}

// fitRoom decides the oldest pending flows until the held datagrams fit the
// room. A flow without an answer is examined again when an answer comes.
func (s *Session) fitRoom(w *waiting, room int) {
	for w.bytes > room && w.oldest != nil {
		f := w.oldest.flow
		w.oldest.round = holdRounds
		f.decidedEarly = !w.oldest.answered
		s.decide(f, true)
	}
}

// weigh feeds the datagrams from the nth on to the classifiers that fit the flow. It reports whether
// any of them is sure. Where none is, it does without those that so few cannot make sure, unless last
// asks for all verdicts.
func (s *Session) weigh(p *pending, n int, last bool) (sure bool) {
	s.trial = s.trial[:0]
	prefix := 0
	if conn := p.flow.conn; conn != nil && conn.Format() != nil {
		prefix = conn.Format().Prefix
	}
	count, late := p.held.count-n, false
	for _, c := range s.candidates {
		if speaks(c.protocol, p.flow.Transport) {
			c.Reset()
			if framed, ok := c.Classifier.(dissect.FramedClassifier); ok && prefix > 0 {
				framed.Framed(prefix)
			}
			s.trial = append(s.trial, c)
			late = late || !last && c.sureFrom > count
		}
	}
	feed := func(wanted func(c *candidate) bool) {
		skip := n
		s.held.each(&p.held, func(d *machine.Datagram) {
			if skip--; skip >= 0 {
				return
			}
			for i := range s.trial {
				if c := &s.trial[i]; wanted(c) {
					c.Feed(d)
				}
			}
		})
	}
	feed(func(c *candidate) bool { return last || c.sureFrom <= count })
	for _, c := range s.trial {
		sure = sure || c.Sure()
	}
	if sure && late { // how far it leads counts too
		feed(func(c *candidate) bool { return c.sureFrom > count })
	}
	return sure
}

// decide uses the best verdict, if there is one. last says that this is the
// last attempt.
func (s *Session) decide(f *Flow, last bool) {
	sure := s.weigh(f.pending, 0, last)
	if n := f.pending.held.count; !sure && n >= holdPreamble {
		// Something else may have come first, such as a login or another protocol's
		// handshake.
		if sure = s.weigh(f.pending, n/2, last); !sure && last {
			s.weigh(f.pending, 0, true)
		}
	}
	if !sure && !last {
		return
	}
	var best dissect.Verdict
	var proto *dissect.Protocol
	var next float64 // evidence for the second-best protocol
	var why []string
	for _, c := range s.trial {
		v := c.Verdict()
		switch {
		case v.Config == nil:
			if last && v.Reason != "" {
				why = append(why, v.Reason)
			}
		case proto == nil:
			best, proto = v, c.protocol
		case v.Bits > best.Bits:
			next, best, proto = best.Bits, v, c.protocol
		default:
			next = max(next, v.Bits)
		}
	}
	switch {
	case proto != nil && (last || best.Settled && best.Bits-next >= holdLead):
		s.explain(f, proto, best)
	case last:
		s.giveUp(f, strings.Join(why, "; "))
	}
}

// explain starts the flow's tracker and feeds it the held datagrams.
func (s *Session) explain(f *Flow, proto *dissect.Protocol, v dissect.Verdict) {
	v.Reason = s.intern(v.Reason)
	f.Protocol, f.Verdict = proto, v
	s.track(f)
	p := f.pending
	s.release(p)
	// A held datagram may open another session. The rest then belongs to that
	// flow.
	s.held.each(&p.held, func(d *machine.Datagram) { f, _ = s.step(f, d, nil) })
	s.recycle(p)
}

// giveUp leaves the flow unexplained: for now, or for good after the last
// round.
func (s *Session) giveUp(f *Flow, reason string) {
	p := f.pending
	if reason == "" {
		reason = "no datagram carried a payload"
	}
	f.Verdict = dissect.Verdict{Reason: s.intern(reason)}
	if s.sink != nil {
		s.out.Reset()
		s.held.each(&p.held, func(d *machine.Datagram) { s.emit(f, d, nil) })
	}
	if p.round++; p.round < holdRounds {
		w := s.waitingOf(p)
		w.remove(p)
		s.held.clear(&p.held)
		p.cut, p.since = false, s.n
		w.add(p)
		return
	}
	s.release(p)
	s.recycle(p)
}

// release removes p from the pending flows.
func (s *Session) release(p *pending) {
	p.flow.pending = nil
	s.waitingOf(p).remove(p)
	p.flow = nil
}

// recycle keeps p's memory for the next pending flow.
func (s *Session) recycle(p *pending) {
	s.held.clear(&p.held)
	if s.freeCount < keepFree {
		p.older, s.free = s.free, p
		s.freeCount++
	}
}
