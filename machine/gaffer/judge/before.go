package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// before says which packets of a side may have passed the tap before the first one that the
// judge saw. There are two kinds:
//
//   - The capture begins in the middle. For example, its first packet of the side is 256, and
//     257 had overtaken it. The peer acks 257, and 257 never passes in the capture.
//   - A restart divides the flow. For example, the side began again at 0, and its peer goes on
//     to ack 296: the newest packet of the session before.
type before struct {
	depth   int             // how far a packet can overtake others
	starts  bool            // the side's very first packet passed: it has sent no other in this session
	young   bool            // the side counts from 0 in this session, and has not wrapped
	earlier tracker.Earlier // the session before
}

func newBefore(facts *machine.Facts, x machine.Side) before {
	b := before{depth: min(facts.Overtaken[x], passedSpan)}
	if !facts.Vantage.Near(x) {
		b.depth = max(b.depth, tracker.OvertakenLeast)
	}
	return b
}

// begin takes the side's first packet that passes. The side has just begun where it says that it
// received nothing. So has one whose packet 0 names packets of its peer from 0 on, and no older
// ones, where the peer has just begun.
func (b *before) begin(r *gaffer.Rules, peer *before, p *wire.Packet) {
	if !p.HasHeader || p.Sequence >= tracker.StartWithin {
		return
	}
	c := r.Claims(p.Header.Ack, p.Header.AckBits)
	b.young = c.Nothing(r) || p.Sequence == 0 && peer.young && !peer.earlier.Known() && c.Newest < tracker.StartWithin &&
		c.Named>>(c.Newest+1) == 0
	b.starts = b.young && p.Sequence == 0
}

// mayHavePassed reports whether a packet of the side may have passed the tap before the capture
// began.
func (s *Judged) mayHavePassed(sequence uint32) bool {
	if s.before.starts || s.neverSent(sequence) || s.Sent.span >= passedSpan {
		return false // the first one of the capture is long past: after a wrap, its number is ahead
	}
	return !s.Sent.met || s.Rules.Distance(sequence, s.Sent.began) <= s.before.depth
}

// neverSent reports whether a packet is older than packet 0, with which the side began. For
// example, it is packet 65535, and the side has sent 0 to 40.
func (s *Judged) neverSent(sequence uint32) bool {
	return s.before.young && s.Sent.span < passedSpan && s.Rules.Distance(sequence, 0) < 0
}

// goesOn takes the first claims of the peer, in its packet of that number. They may name a packet
// that the side did not send. Then the peer goes on from a session before the capture, and the
// side restarted.
func (s *Judged) goesOn(number uint32, c gaffer.Claims) {
	if number < tracker.StartWithin {
		return
	}
	if !s.before.young {
		if s.Sent.met && s.Sent.began < tracker.RestartMost && s.Rules.Distance(c.Newest, s.Sent.top) > s.before.depth {
			s.before.earlier.Found(c.Newest, s.Sent.began) // the capture begins behind the restart
		}
		return
	}
	if s.neverSent(c.Newest) || s.Rules.Distance(c.Newest, s.Sent.top) > 0 {
		s.before.earlier.Found(c.Newest, s.Sent.began)
	}
}

// goesOnBefore takes the side's first packet behind headers of the peer. They may name packets
// far ahead of it. Then the capture begins behind a restart of the side.
func (s *Judged) goesOnBefore(sequence uint32, peer *Judged) {
	if peer.Sent.top >= tracker.StartWithin && s.Rules.Distance(peer.said.Newest, sequence) > s.before.depth {
		s.before.earlier.Found(peer.said.Newest, sequence)
	}
}

// assumes reports whether OvertakenLeast decides that a packet of the side cannot have passed
// before the capture. That holds near the first packet of the capture.
func (s *Judged) assumes(sequence uint32) bool {
	ahead := s.Rules.Distance(sequence, s.Sent.began)
	return s.Sent.met && !s.before.starts && ahead > 0 && ahead < s.Rules.AckBits
}
