package riptide

import (
	"hash/maphash"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// onTime reports whether the time between two events of a 1 s timer fits n periods. The library's
// timer runs once per tick, so it is late and never early.
func onTime(from, to machine.Instant, n int) bool {
	gap, period := to.Sub(from), time.Duration(n)*time.Second
	return gap > period-80*time.Millisecond && gap < period+period/8+150*time.Millisecond
}

func (c *weigher) connect(dialect *wire.Dialect, s, peer *sender, d *machine.Datagram) {
	echo := peer.connects > 0 && len(d.Bytes) == 1
	if echo && s.connects == 0 {
		if s.echoes++; s.echoes == 1 {
			s.bits += worthConnectEcho
			s.relations |= relHandshake
		} else {
			s.bits += worthHasty // the client stops asking
		}
		return
	}
	sum := maphash.Bytes(c.seed, d.Bytes)
	switch {
	case s.connects == 0:
		s.bits += worthConnect
		if len(d.Bytes) == 1 {
			s.bits += worthBareConnect - worthConnect
		}
		if leadingText(dialect.Form, d.Bytes) {
			s.bits += worthConnectText
		}
	case sum == s.connectHash && onTime(s.connectAt, d.At, 1):
		s.counter(worthConnectAgain, 0)
		if s.connects >= 2 {
			s.relations |= relConnects
		}
	case sum == s.connectHash:
		if d.At.Sub(s.connectAt) > 100*time.Millisecond {
			s.bits += worthHasty
			s.connectAt = d.At
		}
		return // another copy
	default:
		s.bits += worthOdd
	}
	s.connects = min(s.connects+1, 100)
	s.connectHash, s.connectAt = sum, d.At
}

// leadingText reports whether the data of a Connect begins with a printable text after its length.
func leadingText(form wire.Form, b []byte) bool {
	at := func(i int) byte {
		if form == wire.BitPacked {
			v := b[i] >> 4
			if i+1 < len(b) {
				v |= b[i+1] << 4
			}
			return v
		}
		return b[i]
	}
	first, n := 1, len(b)-1
	if form == wire.BitPacked {
		first = 0
	}
	if n < 3 {
		return false
	}
	length := int(at(first))
	if length < 2 || length >= n {
		return false
	}
	for i := range length {
		if c := at(first + 1 + i); c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (s *sender) reject(dialect *wire.Dialect, peer *sender, m *wire.Message, at machine.Instant) {
	switch {
	case peer.connects == 0 || m.Oddities != 0:
	case s.rejects == 0:
		s.bits += worthReject
		s.relations |= relHandshake
		if peer.connects > 1 && dialect.RejectReason(m.Reason) == "Pending" {
			s.bits += worthPending
		}
	case at.Sub(s.rejectAt) < 20*time.Millisecond && dialect == wire.Notes:
		s.counter(worthNotNotes, 0) // the notes send it once
	case at.Sub(s.rejectAt) < 20*time.Millisecond:
		s.counter(worthRejectCopy, 0)
		s.narrow(func(b *wire.Build) bool { return b.RejectCopies > 1 })
	}
	s.rejects, s.rejectAt = min(s.rejects+1, 100), at
}

// beat weighs a heartbeat with an RTT. A client sends it; by the notes either side does.
func (s *sender) beat(m *wire.Message, at machine.Instant) {
	if m.RTT < -1 || m.RTT > 10_000 {
		s.bits += worthOddBeat
	}
	delta := int(m.Ping - s.ping)
	switch {
	case !s.pinged:
		if m.Ping == 0 && m.RTT == -1 {
			s.bits += worthFirstBeat
			s.narrow(func(b *wire.Build) bool { return !b.PingStays })
		}
	case delta == 0 && onTime(s.pingAt, at, 1):
		s.counter(worthSameBeat, relBeats)
		s.beats++
		if s.samePings = min(s.samePings+1, 100); s.samePings >= 2 && m.Ping == 1 {
			s.narrow(func(b *wire.Build) bool { return b.PingStays })
		}
	case delta == 0:
		return // another copy, or a gap
	case delta < 30 && onTime(s.pingAt, at, delta):
		s.counter(worthBeat, relBeats)
		s.beats++
		s.narrow(func(b *wire.Build) bool { return !b.PingStays })
	case delta > 250:
		return // overtaken
	default:
		s.bits += worthOddBeat
	}
	s.pinged, s.ping, s.pingAt = true, m.Ping, at
	s.sentPing = s.sent
}

// unansweredMany is a number of copies of reliable messages that are hardly all lost.
const unansweredMany = 8

// echo weighs an answer to a heartbeat. It has no RTT, except in the notes.
func (s *sender) echo(dialect *wire.Dialect, peer *sender, m *wire.Message) {
	if dialect.RTTBothWays {
		s.counter(worthNotNotes, 0)
	}
	back := peer.ping - m.Ping
	if back == 0 && peer.pinged && peer.sentPing >= unansweredMany && s.answers < unansweredMany/2 {
		// The client's packets arrive, and only its Welcome is acked.
		s.narrow(func(b *wire.Build) bool { return b.OneSequence })
	}
	switch {
	case !peer.pinged:
		return
	case back > 3:
		s.bits += worthOddBeat
	case s.echoed && m.Ping == s.lastEcho:
		s.counter(worthSameEcho, relEchoes)
	default:
		s.bits += worthEcho
		s.relations |= relEchoes
	}
	s.echoed, s.lastEcho = true, m.Ping
}

func (s *sender) disconnect(dialect *wire.Dialect, m *wire.Message) {
	if m.Oddities != 0 {
		return
	}
	if s.relations != 0 {
		s.bits += worthLeave
	}
	if !m.HasReason {
		if dialect.ReasonBothWays {
			s.bits += worthNotNotes // the notes give every Disconnect a reason
		}
		return
	}
	if s.connects > 0 && !dialect.ReasonBothWays {
		s.bits += worthNotNotes // a client gives a reason by the notes only
	}
	if m.Reason == wire.UnpackedStop || m.Reason == stopped {
		s.narrow(func(b *wire.Build) bool { return b.StopReason == m.Reason })
	}
}

const stopped = 5 // disconnect reason ServerStopped
