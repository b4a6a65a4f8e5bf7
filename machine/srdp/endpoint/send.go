package endpoint

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// submit takes a call of srdp_send and returns the number of the submission.
func (e *Endpoint) submit(now machine.Instant, r srdp.Request, source wire.Address,
	out *machine.Effects,
) (uint32, error) {
	p := e.options.Profile
	if unknown := p.UnknownFlags(r.Flags); unknown != 0 {
		return 0, fmt.Errorf("submit: flags %#02x: %w: expected none beside %#02x", r.Flags, srdp.ErrNotImplemented,
			p.DontDuplicate|p.Order)
	}
	if most := p.MaxPayload(); len(r.Bytes) > most {
		return 0, fmt.Errorf("submit: %w: %d, expected at most %d in the %v form", srdp.ErrTooLarge, len(r.Bytes),
			most, p.Form)
	}
	to, ok := e.meet(r.To)
	if !ok || p.Form == wire.Proxied && !to.named {
		return 0, fmt.Errorf("submit: %w %d: expected one that was introduced", srdp.ErrUnknownPeer, r.To)
	}
	if r.Flags&p.Order != 0 && to.ordered && !e.options.Fault.ignoresOrder {
		if len(to.waiting) >= e.options.Waiting || e.waiting >= mostWaiting {
			return 0, fmt.Errorf("submit: %w: %d for peer %d behind an ordered one", srdp.ErrFull, len(to.waiting), r.To)
		}
		e.submitted++
		e.waiting++
		r.Bytes = bytes.Clone(r.Bytes)
		to.waiting = append(to.waiting, waiting{r, source, e.submitted})
		return e.submitted, nil
	}
	if e.queue.Len() >= e.options.Outstanding {
		return 0, fmt.Errorf("submit: %w: %d in the sent queue", srdp.ErrFull, e.queue.Len())
	}
	e.submitted++
	e.send(now, r, source, e.submitted, out)
	return e.submitted, nil
}

// send sends the first copy of a packet.
func (e *Endpoint) send(now machine.Instant, r srdp.Request, source wire.Address, submission uint32,
	out *machine.Effects,
) {
	p, to, fault := e.options.Profile, &e.peers[r.To], e.options.Fault
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = e.delayOf(to).Timeout(&e.options.Delays)
	}
	if fault.next != nil {
		e.next64 = fault.next(e.next64)
	}
	// Skip ids that are still in the queue after all ids were used once.
	s := e.queue.Enter(uint16(e.next64&int64(wire.IDs.Mask())), now, timeout)
	for s == nil {
		e.next64++
		s = e.queue.Enter(uint16(e.next64&int64(wire.IDs.Mask())), now, timeout)
	}
	s.ID64, s.Peer, s.Token, s.Repeats, s.Flags, s.Adapts = e.next64, r.To, submission, r.Repeats, r.Flags, r.Timeout <= 0
	e.next64++
	pk := wire.Packet{Command: p.DataCommand, ID: s.ID, Flags: r.Flags, Source: source, Destination: to.address}
	s.Datagram = p.Append(s.Datagram, &pk, r.Bytes)
	if fault.data != nil {
		fault.data(p, s)
	}
	e.limit(s)
	to.ordered = to.ordered || r.Flags&p.Order != 0
	e.counts.Packets++
	out.Send(to.route, machine.SendDatagram, s.Datagram)
	e.reportOf(now, machine.EventSent, s, out)
}

// limit sets the retry time of a packet without an end to Options.Limit at the
// latest.
func (e *Endpoint) limit(s *srdp.Sent) {
	if e.options.Limit <= 0 || s.Repeats > 0 {
		return
	}
	if end := s.FirstAt.Add(e.options.Limit); e.queue.RetryAt(s) > end {
		e.queue.Requeue(s, end)
	}
}

// retry runs when the timer expires. It sends all due packets again, or gives
// them up.
func (e *Endpoint) retry(now machine.Instant, out *machine.Effects) {
	for {
		s := e.queue.Head()
		if s == nil || e.queue.RetryAt(s) > now {
			return
		}
		if s.Exhausted() && e.options.Fault.ignoresRepeats {
			s = e.resendGivenUp(now, s, out)
		} else if s.Exhausted() || s.Repeats == 0 && e.options.Limit > 0 && now >= s.FirstAt.Add(e.options.Limit) {
			e.settle(now, s, srdp.Expired, out)
			continue
		}
		if timeout := e.options.Fault.timeout; timeout != nil && s.Copies == 1 {
			s.Timeout = timeout(s.Timeout)
		}
		e.queue.Resend(s, now)
		if copied := e.options.Fault.copied; copied != nil {
			copied(e.options.Profile, s, uint16(e.next64&int64(wire.IDs.Mask())))
		}
		e.limit(s)
		e.counts.Resends++
		out.Send(e.peers[s.Peer].route, machine.SendDatagram, s.Datagram)
		e.reportOf(now, machine.EventResent, s, out)
	}
}

// acknowledged takes an acknowledgement that was read.
func (e *Endpoint) acknowledged(now machine.Instant, from machine.Peer, id uint16, out *machine.Effects) {
	s := e.queue.Find(id)
	if s == nil || s.Peer != from || e.options.Fault.ignoresAcks {
		e.counts.AckedAgain++
		if e.departed.Take(from, id) {
			e.delayOf(&e.peers[from]).AckedAgain(now, &e.options.Delays)
		}
		e.report(now, machine.Event{
			Kind: srdp.EventAckedAgain, Sequence: uint32(id),
			Sequence64: wire.IDs.Unwrap(uint32(id), e.next64-1), Peer: from,
		}, out)
		return
	}
	d := e.delayOf(&e.peers[from])
	if e.options.Fault.samples {
		d.Longest = max(d.Longest, s.Sample(now).FromFirst)
	}
	d.Acked(s, now)
	e.settle(now, s, srdp.Acknowledged, out)
}

// settle removes a packet from the queue. If an ordered packet waited for it,
// settle sends that one.
func (e *Endpoint) settle(now machine.Instant, s *srdp.Sent, how srdp.Outcome, out *machine.Effects) {
	done := srdp.Settlement{Submission: s.Token, Peer: s.Peer, ID64: s.ID64, Outcome: how, Copies: s.Copies}
	ordered := s.Flags&e.options.Profile.Order != 0
	if how == srdp.Acknowledged {
		done.Sample = s.Sample(now)
		e.counts.Acked++
		event := e.event(machine.EventAcked, s)
		if !done.Sample.Ambiguous {
			event.RTT = int64(done.Sample.FromLast)
		}
		e.report(now, event, out)
	} else {
		e.counts.GaveUp++
		e.reportOf(now, srdp.EventGaveUp, s, out)
	}
	e.settled = append(e.settled, done)
	e.departed.Note(s, how == srdp.Acknowledged)
	e.queue.Remove(s)
	if ordered {
		e.sendNextOrdered(now, &e.peers[done.Peer], out)
	}
}

// sendNextOrdered sends the ordered packet that waits for the one in flight.
func (e *Endpoint) sendNextOrdered(now machine.Instant, to *peer, out *machine.Effects) {
	to.ordered = false
	if len(to.waiting) > 0 {
		w := to.waiting[0]
		to.waiting = slices.Delete(to.waiting, 0, 1)
		e.waiting--
		e.send(now, w.request, w.source, w.submission, out)
	}
}

// resendGivenUp is a fault: it treats a packet as given up, and still lets it
// be sent again.
func (e *Endpoint) resendGivenUp(now machine.Instant, s *srdp.Sent, out *machine.Effects) *srdp.Sent {
	if id := s.ID; s.Copies == uint32(s.Repeats) && s.Flags&e.options.Profile.Order != 0 {
		e.sendNextOrdered(now, &e.peers[s.Peer], out)
		return e.queue.Find(id)
	}
	return s
}

// CanSubmit reports whether there is room for a submission to a peer with these
// flags.
func (e *Endpoint) CanSubmit(to machine.Peer, flags uint8) bool {
	if flags&e.options.Profile.Order != 0 && int(to) < len(e.peers) && e.peers[to].ordered {
		return len(e.peers[to].waiting) < e.options.Waiting && e.waiting < mostWaiting
	}
	return e.queue.Len() < e.options.Outstanding
}

// cancel gives up all submissions for which which returns true. It starts with
// those that wait: each packet that leaves the queue would send another one.
func (e *Endpoint) cancel(now machine.Instant, which func(submission uint32, to machine.Peer) bool,
	out *machine.Effects,
) {
	for i := range e.peers {
		x := &e.peers[i]
		x.waiting = slices.DeleteFunc(x.waiting, func(w waiting) bool {
			gone := which(w.submission, machine.Peer(i))
			if gone {
				e.waiting--
				e.settled = append(e.settled,
					srdp.Settlement{Submission: w.submission, Peer: machine.Peer(i), ID64: -1, Outcome: srdp.Cancelled})
			}
			return gone
		})
	}
	var ids []uint16
	e.queue.InOrder(func(s *srdp.Sent) bool {
		if which(s.Token, s.Peer) {
			ids = append(ids, s.ID)
		}
		return true
	})
	for _, id := range ids {
		e.settle(now, e.queue.Find(id), srdp.Cancelled, out)
	}
}

// forget gives up what was submitted to a peer, and forgets what was received
// from it.
func (e *Endpoint) forget(now machine.Instant, p machine.Peer, out *machine.Effects) {
	if int(p) >= len(e.peers) {
		return
	}
	e.cancel(now, func(_ uint32, to machine.Peer) bool { return to == p }, out)
	x := &e.peers[p]
	x.received, x.waiting, x.met, x.newest64 = srdp.Received{}, nil, false, 0
	if x.named && !x.fixed {
		delete(e.names, x.address)
		x.named, x.address = false, wire.Address{}
		e.free = append(e.free, p)
	}
}

// event returns an event about a packet that was sent.
func (e *Endpoint) event(kind machine.EventKind, s *srdp.Sent) machine.Event {
	return machine.Event{Kind: kind, Sequence: uint32(s.ID), Sequence64: s.ID64, Peer: s.Peer, Channel: s.Flags}
}

func (e *Endpoint) reportOf(now machine.Instant, kind machine.EventKind, s *srdp.Sent, out *machine.Effects) {
	e.report(now, e.event(kind, s), out)
}

func (e *Endpoint) report(now machine.Instant, event machine.Event, out *machine.Effects) {
	event.Side, event.Certainty, event.At = e.options.Side, machine.Certain, now
	if event.RTT == 0 {
		event.RTT = -1
	}
	out.Events = append(out.Events, event)
}
