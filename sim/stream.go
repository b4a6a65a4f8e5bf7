package sim

import (
	"github.com/ackscope/ackscope/machine"
)

// ConnectStream connects two hosts by a link for streams, as over TCP. Bytes
// arrive complete and in order, in segments. What a path loses arrives later.
//
// While few segments are in flight, each write travels at once in its own
// segments. Otherwise writes wait and travel together, as without Nagle's
// delay.
//
// A stream is open once one side has asked for it (machine.OpenStream) and the
// request has travelled there and back. Either side closes it
// (machine.CloseStream). What the other side still sends after that is lost.
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
	return &stream{world: w, does: ImpairStream(p, w.seed, from.Name, to.Name), to: to, from: peer}
}

// stream is one direction of a stream link.
type stream struct {
	world *World
	does  *Impairment
	to    *Host
	from  machine.Peer
	back  *stream
	taps  []tapping

	open    bool // the sender may send
	offset  uint64
	unsent  []byte
	flying  int  // segments in flight
	closing bool // it closes once everything is sent
	unheard bool // the receiver has closed: what is sent travels, and is lost
}

// streamWindow is how many segments may be in flight: TCP's usual window after
// a few round trips.
const streamWindow = 64

func (s *stream) tap(t tapping) { s.taps = append(s.taps, t) }

// send carries bytes, or a request to open or close.
func (s *stream) send(kind machine.TransmitKind, b []byte) {
	switch kind {
	case machine.OpenStream:
		if s.open || s.back.open && !s.back.unheard {
			return
		}
		for _, d := range [2]*stream{s, s.back} {
			d.offset, d.unsent, d.flying, d.closing, d.unheard = 0, nil, 0, false, false
		}
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
		s.open, s.closing, s.back.unheard = false, true, true
		s.push()
	case machine.SendBytes:
		if !s.open {
			return
		}
		s.unsent = append(s.unsent, b...)
		s.push()
	}
}

// push sends waiting bytes as far as the window allows.
func (s *stream) push() {
	for len(s.unsent) > 0 && s.flying < streamWindow {
		piece := append([]byte(nil), s.unsent[:min(s.does.Segment(), len(s.unsent))]...)
		s.unsent = s.unsent[len(piece):]
		s.flying++
		s.carry(machine.SendBytes, piece, func() {
			if !s.unheard {
				s.to.arrive(machine.Bytes{From: s.from, Bytes: piece})
			}
			// Its acknowledgement travels back.
			s.world.at(s.world.now.Add(s.back.does.path.Delay), func() {
				s.flying = max(0, s.flying-1)
				s.push()
			})
		})
		s.offset += uint64(len(piece))
	}
	if s.closing && len(s.unsent) == 0 {
		s.closing = false
		s.carry(machine.CloseStream, nil, func() {
			s.to.arrive(machine.Close{Peer: s.from})
		})
	}
}

// carry carries one segment, with as many attempts as it needs. It calls done
// once the segment and all earlier ones have arrived.
func (s *stream) carry(kind machine.TransmitKind, b []byte, done func()) {
	at, arrived := s.does.Carry(s.world.now, func(f Fate) {
		for i := range s.taps {
			if t := &s.taps[i]; t.at <= f.Reach {
				t.show(s.world, f.Leaves.Add(share(f.Travel, t.at)), kind, s.offset, b)
			}
		}
	})
	if arrived {
		s.world.at(at, done)
	}
}
