package srdpcheck

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// talked returns a sentence for each promise of the protocol that the run
// broke, by what the applications sent and got, and by the logs.
func (o *outcome) talked(s *scenario) (faults []string) {
	complain := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	p := s.profile()
	for _, from := range o.ends {
		if from.talk.broken > 0 {
			complain("%v got %d messages that are not as they were sent", from.addr, from.talk.broken)
		}
		for _, x := range from.log {
			if x.Kind == srdppeer.Malformed || x.Kind == srdppeer.Foreign {
				complain("%v: %v from %v at %v, expected packets of the protocol only", from.addr, x.Kind, x.Peer, x.At)
			}
		}
		for _, to := range o.ends {
			got, last := map[uint32]int{}, map[uint32]int{}
			var order []uint32
			for i, m := range to.talk.got {
				if m.peer != from.addr {
					continue
				}
				// A list of received ids is bounded: a copy may come after its id has left it.
				if got[m.serial] == 0 || i-last[m.serial] < srdp.DefaultRules().Recent {
					got[m.serial]++
				}
				if _, known := last[m.serial]; !known {
					order = append(order, m.serial)
				}
				last[m.serial] = i
			}
			faults = append(faults, kept(&p, from, to.addr, got, order)...)
		}
	}
	return faults
}

// kept checks the messages of one end to another. got counts the deliveries,
// and order has the messages by their first delivery.
func kept(p *wire.Profile, from *end, to netip.AddrPort, got map[uint32]int, order []uint32) (faults []string) {
	sent := map[uint32]*message{}
	for i := range from.talk.sent {
		if m := &from.talk.sent[i]; m.peer == to {
			sent[m.serial] = m
		}
	}
	count := func(what string, bad func(n uint32, m *message) bool) {
		var list []uint32
		for n, m := range sent {
			if bad(n, m) {
				list = append(list, n)
			}
		}
		if slices.Sort(list); len(list) > 0 {
			faults = append(faults, fmt.Sprintf("%v to %v: %d of %d messages %s, such as %d", from.addr, to, len(list),
				len(sent), what, list[0]))
		}
	}
	for n := range got {
		if sent[n] == nil {
			faults = append(faults, fmt.Sprintf("%v got message %d of %v, which was not sent to it", to, n, from.addr))
		}
	}
	count("to send until acknowledged did not arrive", func(n uint32, m *message) bool {
		return m.service.Repeats == 0 && got[n] == 0
	})
	count("with SRDP_DONTDUPLICATE arrived twice", func(n uint32, m *message) bool {
		return m.service.Flags&p.DontDuplicate != 0 && got[n] > 1
	})
	// The document's method keeps order as long as nothing is given up.
	whole := !slices.ContainsFunc(from.talk.sent, func(m message) bool { return m.service.Repeats > 0 })
	order = slices.DeleteFunc(order, func(n uint32) bool { return sent[n] == nil || sent[n].service.Flags&p.Order == 0 })
	if whole && !slices.IsSorted(order) {
		faults = append(faults, fmt.Sprintf("%v to %v: messages with SRDP_ORDER arrived out of order", from.addr, to))
	}
	return faults
}
