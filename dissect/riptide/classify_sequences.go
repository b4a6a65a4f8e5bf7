package riptide

import (
	"hash/maphash"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

func (s *sender) reliable(m *wire.Message, hash uint64) {
	if m.Type == wire.Reliable {
		s.sent = min(s.sent+1, 1000)
	}
	if !s.sequenced {
		s.sequenced, s.newest, s.oldest, s.hash = true, m.Sequence, m.Sequence, hash
		s.seen.set(0)
		if s.connects > 0 && m.Sequence > startMost {
			s.bits += worthLateStart
		}
		return
	}
	ahead := int16(m.Sequence - s.newest)
	if ahead > -windowSize {
		s.astray = 0
	} else if s.astray++; s.astray == astrayMost {
		// The id taken for the newest was wrong.
		s.newest, s.hash, s.oldest, s.astray = m.Sequence, hash, m.Sequence, 0
		s.seen, s.acked = window{1}, window{}
		return
	}
	switch {
	case ahead == 0:
		if hash != s.hash {
			s.hash = hash
			if s.sameIDs = min(s.sameIDs+1, 100); s.sameIDs >= 2 && m.Sequence == 1 {
				s.narrow(func(b *wire.Build) bool { return b.OneSequence })
			}
		}
	case ahead < 0:
		s.seen.set(-int(ahead))
		if int16(m.Sequence-s.oldest) < 0 && ahead > -windowSize {
			s.oldest = m.Sequence
		}
	default:
		s.seen.shift(int(ahead))
		s.acked.shift(int(ahead))
		s.seen.set(0)
		s.newest, s.hash = m.Sequence, hash
		s.narrow(func(b *wire.Build) bool { return !b.OneSequence })
		if ahead <= 2 {
			s.counter(worthNextSequence, relSequence)
		} else if ahead >= windowSize {
			s.bits += worthJump
		}
	}
}

// startMost is more than the ids that a capture can lack between a Connect and the first message
// behind it.
const startMost = 32

// astrayMost messages in a row far behind the newest id show that this id was wrong.
const astrayMost = 2

// windowSize is how many ids back are remembered. Applications send bursts of a hundred messages
// per tick.
const windowSize = 256

// window is a row of bits behind a newest id.
type window [windowSize / 64]uint64

func (w *window) has(i int) bool { return i >= 0 && i < windowSize && w[i/64]>>(i%64)&1 == 1 }

func (w *window) set(i int) {
	if i >= 0 && i < windowSize {
		w[i/64] |= 1 << (i % 64)
	}
}

// shift moves every bit n places back.
func (w *window) shift(n int) {
	words, rest := n/64, n%64
	for i := len(w) - 1; i >= 0; i-- {
		v := uint64(0)
		if j := i - words; j >= 0 {
			v = w[j] << rest
			if rest > 0 && j > 0 {
				v |= w[j-1] >> (64 - rest)
			}
		}
		w[i] = v
	}
}

func (s *sender) welcome(peer *sender, m *wire.Message) {
	if s.welcomed {
		return
	}
	s.welcomed, s.clientID = true, m.ClientID
	if m.Sequence == 1 || m.Sequence == 2 {
		s.bits += worthFirstWelcome
		s.narrow(func(b *wire.Build) bool { return b.FirstSequence == m.Sequence })
	}
	if peer.welcomed {
		if peer.clientID == m.ClientID {
			s.bits += worthWelcomeBack
			s.relations |= relHandshake
		} else {
			s.bits += worthOdd
		}
	}
}

func (s *sender) ack(dialect *wire.Dialect, peer *sender, m *wire.Message) {
	s.answers = min(s.answers+1, 100)
	if dialect == wire.V21 && !m.Flag {
		always := m.HasCause
		s.narrow(func(b *wire.Build) bool { return (b.Cause == wire.CauseAlways) == always })
	}
	if byCause(dialect) && !m.HasCause && s.answers > 1 && m.Last == s.last && m.AckBits != s.lastBits &&
		m.AckBits&s.lastBits == s.lastBits {
		// The message that set the new bits was not the newest.
		s.counter(worthUnnamed, 0)
	}
	s.last, s.lastBits = m.Last, m.AckBits
	if m.Type == wire.AckExtra {
		s.narrow(func(b *wire.Build) bool { return !b.OneSequence })
	}
	if m.Oddities&wire.NotesCause != 0 {
		s.counter(worthNotNotes, 0)
	}
	if !peer.sequenced {
		return
	}
	back := int(int16(peer.newest - m.Cause))
	switch {
	case int16(m.Cause-peer.oldest) < 0 && back < 1<<12:
		s.bits += worthAckOfBefore
	case !peer.seen.has(back):
		s.bits += worthAckOfNothing
	case !peer.acked.has(back):
		peer.acked.set(back)
		s.bits += worthAck
		s.acks++
		s.relations |= relAcks
	}
}

// notification weighs a Notify with the library's ack header. The notes have a bare message id in
// its place. For them the evidence for the header is kept apart, to decide which form it is.
func (c *weigher) notification(codec wire.Codec, s, peer *sender, d *machine.Datagram) {
	m := &c.m
	s.narrow(func(b *wire.Build) bool { return !b.NoNotify })
	worth := &s.bits
	if codec.Dialect.BareNotify() {
		codec.NotifyHeader = true
		if !codec.Fits(d.Bytes, d.Length, m) || m.Bare {
			s.headerBits -= worthNotify
			return
		}
		worth = &s.headerBits
	}
	before := s.counters
	hash := maphash.Bytes(c.seed, d.Bytes)
	switch ahead := int16(m.Sequence - s.notify); {
	case !s.notified:
		s.notify, s.notifySeen = m.Sequence, 1
	case ahead == 0:
		if hash != s.notifyHash {
			*worth += worthJump // it is sent once
		}
	case ahead > 0:
		if ahead <= 4 {
			s.counters = min(s.counters+worthNotify, boundCounter)
			s.relations |= relNotify
		} else if ahead > 64 {
			*worth += worthJump
		}
		s.notify, s.notifySeen = m.Sequence, s.notifySeen<<ahead|1
	case ahead < -64:
		*worth += worthJump
		if s.notifyAstray++; s.notifyAstray == astrayMost {
			s.notify, s.notifySeen, s.notifyAstray = m.Sequence, 1, 0
		}
	default:
		s.notifySeen |= 1 << -ahead
	}
	s.notified, s.notifyHash = true, hash
	switch back := int16(peer.notify - m.Last); {
	case !peer.notified:
	case back < 0:
		*worth += worthAckOfNothing
	case back < 64 && peer.notifySeen>>back&1 == 1:
		s.counters = min(s.counters+worthNotifyAck, boundCounter)
		s.relations |= relNotifyAck
	}
	*worth += s.counters - before
}
