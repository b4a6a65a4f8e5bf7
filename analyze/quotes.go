package analyze

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Quoted is what an ICMP error concerns: a flow, and the datagram that it quotes.
type Quoted struct {
	Flow      *Flow
	Side      machine.Side      // that sent the datagram
	Ref       machine.Ref       // its frame; zero if no captured datagram fits the quote
	At        machine.Instant   // when it passed the tap
	Peer      bool              // the address that the datagram was sent to speaks; otherwise a router on the way
	Certainty machine.Certainty // that the error concerns the flow: possible without a datagram
}

// flowErrors is what ICMP errors said of a flow.
type flowErrors struct {
	died    [2]machine.Ref // the first error of a router: a captured datagram never reached the side
	refused [2]refusal     // what the side's own host refused
	sizes   *sizes         // nil unless an error named an MTU

	undelivered [2]Undelivered // by the side that sent the datagrams
}

// watched returns the counts of fates by size, or nil.
func (f *Flow) watched() *sizes {
	if f.has().errors == nil {
		return nil
	}
	return f.has().errors.sizes
}

// Quotes counts the ICMP errors of a capture that quote UDP datagrams. Errors that the tap
// captured twice count once.
type Quotes struct {
	Errors  uint64
	Unknown uint64 // of them, those whose datagram is of no flow of the capture
}

// Quotes returns how many ICMP errors quote UDP datagrams so far.
func (s *Session) Quotes() Quotes { return s.quotes }

// quote ties an ICMP error to the flow and the datagram that it quotes. It returns nil if
// there is no such flow.
func (s *Session) quote(p *capture.Packet) *Quoted {
	q := p.Quote
	if q.Protocol != capture.UDP || p.Duplicate {
		return nil
	}
	s.quotes.Errors++
	s.quotedTo = s.n
	src, dst := keyOf(q.Src), keyOf(q.Dst)
	f, side := s.table.find(capture.UDP, &src, &dst)
	if f == nil {
		s.quotes.Unknown++
		return nil
	}
	x := &s.quoted
	*x = Quoted{Flow: f, Side: side, Peer: p.Src.Addr() == q.Dst.Addr(), Certainty: machine.Possible}
	if sent, sure := s.sent.find(f, side, q); sure != machine.Unknown {
		x.Ref, x.At, x.Certainty = sent.ref, sent.at, sure
	}
	if f.has().errors == nil {
		f.gets().errors = &flowErrors{}
	}
	f.has().errors.undelivered[side].note(x, q.Reason)
	a := machine.Anomaly{Side: side, Certainty: x.Certainty, At: p.At, Ref: p.Ref, About: x.Ref}
	switch {
	case q.Reason == capture.ReasonSize:
		a.Rule, a.Figures = icmpMTU, [3]float64{float64(q.Size), float64(q.MTU)}
		s.watchSizes(f, side, q)
	case q.Reason == capture.ReasonHops, q.Reason == capture.ReasonReassembly:
		a.Rule, a.Figures = icmpExpired, [3]float64{float64(q.Reason)}
	case x.Peer:
		a.Rule, a.Side, a.Figures = icmpClosed, side.Other(), [3]float64{float64(q.Reason)}
		s.poison.watch(s, src, x, &a)
		s.noteRefusal(f, &a)
	default:
		a.Rule, a.Figures = icmpUnreachable, [3]float64{float64(q.Reason)}
		s.poison.watch(s, src, x, &a)
	}
	if !x.Peer && x.Certainty == machine.Certain && f.has().errors.died[side.Other()] == 0 {
		f.has().errors.died[side.Other()] = p.Ref
	}
	s.note(f, &a)
	return x
}

// moveTap takes the tap away from a side that a captured datagram never reached, as a router
// said. The tap then stood before that router.
func (f *Flow) moveTap(facts *machine.Facts) {
	if f.has().errors == nil {
		return
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		if f.has().errors.died[side] == 0 || !facts.Vantage.Near(side) {
			continue
		}
		was := facts.Vantage
		facts.Vantage = machine.VantageBetween
		if was == machine.VantageBoth {
			facts.Vantage = machine.VantageA + machine.Vantage(side.Other())
		}
		facts.Supposed[side] = false
		facts.VantageReason = fmt.Sprintf("not at %v: a router said that it could not pass on a captured datagram (frame %d)",
			side, f.has().errors.died[side].Frame())
	}
}

// refusedFor is how long a peer sends after the first error until icmp-refused is reported. The
// last datagrams of any connection may meet a closed socket.
// Source: definition, icmp-refused: Linux sends at most one ICMP error a second
const refusedFor = time.Second

// refusal is what the host of a side refused, and its first error.
type refusal struct {
	errors uint64
	first  machine.Anomaly
	told   bool // icmp-refused was reported
}

// noteRefusal counts an error of a side's own host, and reports those that come after a second
// of refusals.
func (s *Session) noteRefusal(f *Flow, a *machine.Anomaly) {
	r := &f.has().errors.refused[a.Side]
	if r.errors++; r.errors == 1 {
		r.first = *a
	}
	if took := a.At.Sub(r.first.At); took >= refusedFor {
		x := *a
		x.Rule, x.Figures = icmpRefused, [3]float64{took.Seconds(), float64(r.errors), a.Figures[0]}
		r.told = true
		s.note(f, &x)
	}
}

// noteRefused reports refusals after which the peer of a flow that ends went on, though no
// further error came.
func (s *Session) noteRefused(f *Flow) {
	if f.has().errors == nil || f.pace == nil {
		return
	}
	for i := range f.has().errors.refused {
		r := &f.has().errors.refused[i]
		took := f.pace[1-i].last.Sub(r.first.At)
		if r.errors == 0 || r.told || took < refusedFor {
			continue
		}
		x := r.first
		x.Rule, x.Figures = icmpRefused, [3]float64{took.Seconds(), float64(r.errors), r.first.Figures[0]}
		s.note(f, &x)
	}
}

// Undelivered is what ICMP errors say of a side's datagrams that were not delivered.
type Undelivered struct {
	Errors    uint64
	Reason    capture.Reason    // of the surest error
	Refused   bool              // the peer's own host said so, and no router on the way
	Certainty machine.Certainty // that it concerns the flow
}

// Undelivered returns what ICMP errors say of the datagrams of a side. It returns false if there
// was no such error.
func (f *Flow) Undelivered(side machine.Side) (Undelivered, bool) {
	if f.has().errors == nil {
		return Undelivered{}, false
	}
	u := f.has().errors.undelivered[side]
	return u, u.Errors > 0
}

// note counts an error.
func (u *Undelivered) note(x *Quoted, reason capture.Reason) {
	if u.Errors++; x.Certainty > u.Certainty {
		u.Reason, u.Refused, u.Certainty = reason, x.Peer, x.Certainty
	}
}

// sizes counts what became of datagrams of one side, by size, from the first ICMP error on
// that said a packet was too big.
type sizes struct {
	side  machine.Side
	limit int // the largest payload that the named MTU carries
	fate  [2]sizeFate
}

// sizeFate counts datagrams up to the limit, or those above it.
type sizeFate struct{ acked, lost uint64 }

// watchSizes begins to count the fates of a side's datagrams by size, or takes a smaller MTU.
func (s *Session) watchSizes(f *Flow, side machine.Side, q *capture.Quote) {
	if q.MTU == 0 || q.Length < 0 {
		return
	}
	limit := q.MTU - (q.Size - q.Length) // the IP and UDP headers stay as they are
	if limit <= 0 || limit >= q.Length {
		return // it would have fitted: the error contradicts itself
	}
	switch z := f.has().errors.sizes; {
	case z == nil:
		s.sized = true
		f.has().errors.sizes = &sizes{side: side, limit: limit}
	case z.side == side && limit < z.limit:
		*z = sizes{side: side, limit: limit}
	}
}

// wantEvents has the next step of f yield its events and messages, if they are read.
func (s *Session) wantEvents(f *Flow) {
	s.out.NoEvents = s.noEvents && f.watched() == nil
	s.out.NoMessages, s.out.NoContents = s.noEvents || s.options.NoMessages, s.options.NoRelays
}

// countSizes counts the fates that the last step of f told, by size.
func (s *Session) countSizes(f *Flow) {
	z := f.watched()
	if z == nil {
		return
	}
	z.note(&s.sent, f, s.out.Events)
	if s.noEvents {
		s.out.Events = s.out.Events[:0]
	}
}

// note counts the fates that events tell.
func (z *sizes) note(l *sentLog, f *Flow, events []machine.Event) {
	for i := range events {
		e := &events[i]
		if e.Side != z.side || e.About == 0 || e.Kind != machine.EventAcked && e.Kind != machine.EventLost {
			continue
		}
		length, from, ok := l.length(f, e.About)
		if !ok || from != z.side {
			continue
		}
		fate := &z.fate[0]
		if length > z.limit {
			fate = &z.fate[1]
		}
		if e.Kind == machine.EventAcked {
			fate.acked++
		} else {
			fate.lost++
		}
	}
}

// share returns the share that was lost, in percent.
func (x *sizeFate) share() float64 { return 100 * float64(x.lost) / float64(max(1, x.acked+x.lost)) }

// noteSizes reports that a flow's large datagrams died and its small ones did not.
func (s *Session) noteSizes(f *Flow) {
	z := f.watched()
	if z == nil {
		return
	}
	small, large := &z.fate[0], &z.fate[1]
	if large.lost < steadyEvents || small.acked < steadyEvents ||
		wilson(large.share()/100, float64(large.acked+large.lost)) <= small.share()/100 {
		return
	}
	s.note(f, &machine.Anomaly{
		Rule: largeLost, Side: z.side, Certainty: machine.Likely, At: f.Last, Ref: f.LastRef,
		Figures: [3]float64{large.share(), small.share(), float64(z.limit)},
	})
}
