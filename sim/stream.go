package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// ConnectStream lays a link on which streams travel, as over TCP: bytes arrive
// in order and whole, cut into segments; what a path loses comes later. A
// stream stands once one side asks for it (machine.OpenStream) and the request
// has come and gone; either side closes it (machine.CloseStream), after which
// what the other still sends is lost.
func (w *World) ConnectStream(a, b *Host, toB, toA Path) *Link {
	l := w.link(a, b)
	ab, ba := w.stream(a, b, l.PeerOfB, toB), w.stream(b, a, l.PeerOfA, toA)
	ab.back, ba.back = ba, ab
	l.ab, l.ba = ab, ba
	a.peers = append(a.peers, ab)
	b.peers = append(b.peers, ba)
	return l
}

func (w *World) stream(from, to *Host, peer machine.Peer, p Path) *stream {
	return &stream{world: w, path: p, to: to, from: peer, rng: w.Rand("stream " + from.Name + " to " + to.Name)}
}

// stream is one direction of a stream link at work.
type stream struct {
	world *World
	path  Path
	to    *Host
	from  machine.Peer
	back  *stream
	taps  []tapping
	rng   *rand.Rand

	open   bool // the sender may send
	offset uint64
	ready  machine.Instant // when all sent so far has arrived
	bad    bool
}

func (s *stream) tap(t tapping) { s.taps = append(s.taps, t) }

// send carries bytes, or the wish to open or close.
func (s *stream) send(kind machine.TransmitKind, b []byte) {
	switch kind {
	case machine.OpenStream:
		if s.open || s.back.open {
			return
		}
		s.offset, s.back.offset = 0, 0
		s.carry(machine.OpenStream, nil, func() {
			s.back.open = true
			s.to.arrive(machine.Open{Peer: s.from})
			s.back.carry(machine.OpenStream, nil, func() {
				s.open = true
				s.back.to.arrive(machine.Open{Peer: s.back.from})
			})
		})
	case machine.CloseStream:
		if !s.open {
			return
		}
		s.open = false
		s.carry(machine.CloseStream, nil, func() {
			s.back.open = false
			s.to.arrive(machine.Close{Peer: s.from})
		})
	case machine.SendBytes:
		if !s.open {
			return
		}
		b = append([]byte(nil), b...)
		size := s.path.Segment
		if size <= 0 {
			size = 1460
		}
		for len(b) > 0 {
			piece := b[:min(size, len(b))]
			b = b[len(piece):]
			s.carry(machine.SendBytes, piece, func() { s.to.arrive(machine.Bytes{From: s.from, Bytes: piece}) })
			s.offset += uint64(len(piece))
		}
	}
}

// carry brings one segment over, however often it must be sent, and calls done
// once it and all before it are there.
func (s *stream) carry(kind machine.TransmitKind, b []byte, done func()) {
	resend := s.path.Resend
	if resend <= 0 {
		resend = 200 * time.Millisecond
	}
	// A path that loses everything for good would never let go of the segment;
	// TCP gives up after some fifteen attempts, and so does this.
	start := s.world.now
	for range 15 {
		travel := s.path.Delay
		if s.path.Jitter > 0 {
			travel += time.Duration(s.rng.Int64N(int64(s.path.Jitter) + 1))
		}
		reach, lost := s.lose(start)
		for i := range s.taps {
			if t := &s.taps[i]; t.at <= reach {
				t.show(s.world, start.Add(share(travel, t.at)), kind, s.offset, b)
			}
		}
		if !lost {
			s.ready = max(s.ready, start.Add(travel))
			s.world.at(s.ready, done)
			return
		}
		start, resend = start.Add(resend), 2*resend
	}
}

func (s *stream) lose(at machine.Instant) (reach float64, lost bool) {
	lost = s.path.lose(s.rng, &s.bad, at)
	if lost {
		return s.rng.Float64(), true
	}
	return 1, false
}
