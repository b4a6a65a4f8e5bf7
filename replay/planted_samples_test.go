package replay_test

import (
	"math/rand/v2"
	"strings"

	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

func (s *subject) samplesTeller() func(rng *rand.Rand, at int) []change {
	p, ok := s.flow.Config().Profile.(*wire.Profile)
	if !ok || !model.IsSample(p) {
		return nil
	}
	return func(rng *rand.Rand, at int) []change {
		d := &s.list[at]
		var k wire.Packet
		if p.Parse(d.Bytes, d.Length, &k) != nil {
			return nil
		}
		l := &sampleLies{s: s, profile: p, rng: rng, at: at, was: k}
		switch k.Kind {
		case wire.KindRegular, wire.KindFragment:
			l.pieces()
		case wire.KindSlice:
			l.slice()
		case wire.KindSliceAck:
			l.ack()
		case wire.KindHandshake:
			l.handshake()
		}
		return l.list
	}
}

// standsAt returns where the tap of a capture of the series' programs stands, as its
// name says; nil for others. The handshake's few packets do not show it.
func standsAt(name string) *machine.Vantage {
	v := machine.VantageA
	switch {
	case !strings.HasPrefix(name, "article-"):
		return nil
	case strings.Contains(name, ".server."):
		v = machine.VantageB
	}
	return &v
}

// sampleLies are the lies that can be told in one packet of the series' programs.
type sampleLies struct {
	s       *subject
	profile *wire.Profile
	rng     *rand.Rand
	at      int
	was     wire.Packet
	list    []change
}

func (l *sampleLies) add(field string, sure bool, do func(x *wire.Packet)) {
	d, x := &l.s.list[l.at], l.was
	do(&x)
	b := l.profile.Append(nil, &x, d.Bytes[l.was.PayloadOffset:l.was.PayloadOffset+l.was.PayloadLen])
	var back wire.Packet
	if l.profile.Parse(b, len(b), &back) == nil { // else it is no packet at all
		l.list = append(l.list, change{field: field, bytes: b, sure: sure})
	}
}

// before hands over what passed of a side before, newest first, until it is told to stop.
func (l *sampleLies) before(own bool, each func(x *wire.Packet) (stop bool)) {
	for i := l.at - 1; i >= 0; i-- {
		d := &l.s.list[i]
		var x wire.Packet
		if (d.From == l.s.side) == own && l.profile.Parse(d.Bytes, d.Length, &x) == nil && each(&x) {
			return
		}
	}
}

// pieces changes the number of a packet, and what a fragment says of itself.
func (l *sampleLies) pieces() {
	first := true
	l.before(true, func(*wire.Packet) bool { first = false; return true })
	l.add("sequence", !first, func(x *wire.Packet) {
		x.Sequence = uint32(drawn(l.rng, uint64(x.Sequence), 16))
		x.Header.Sequence = x.Sequence
	})
	if l.was.Kind == wire.KindFragment {
		l.add("fragment.id", !first, func(x *wire.Packet) { x.FragmentID = int(drawn(l.rng, uint64(x.FragmentID), 8)) })
		// Of the first one of a packet, what follows shows it.
		l.add("fragment.count", l.was.FragmentID > 0 &&
			!first, func(x *wire.Packet) { x.FragmentCount = int(drawn(l.rng, uint64(x.FragmentCount), 8)) })
	}
}

// slice changes what a slice says of itself.
func (l *sampleLies) slice() {
	newest, some, whole := uint16(0), false, false
	l.before(true, func(x *wire.Packet) bool { newest, some = x.Chunk, x.Kind == wire.KindSlice; return some })
	l.before(false, func(x *wire.Packet) bool {
		whole = whole || x.Kind == wire.KindSliceAck && x.Chunk == newest && named(x) == x.SliceCount
		return whole
	})
	chunk := uint16(drawn(l.rng, uint64(l.was.Chunk), 16))
	l.add("slice.chunk", some && chunk != newest && (chunk != newest+1 || !whole),
		func(x *wire.Packet) { x.Chunk = chunk })
	l.add("slice.count", some &&
		l.was.Chunk == newest, func(x *wire.Packet) { x.SliceCount = int(drawn(l.rng, uint64(x.SliceCount-1), 5)) + 1 })
	l.add("slice.id", false, func(x *wire.Packet) { x.SliceID = int(drawn(l.rng, uint64(x.SliceID), 5)) })
}

// ack changes what an ack says.
func (l *sampleLies) ack() {
	var came, told [wire.MaxSlices / 64]uint64
	newest, first := uint16(0), uint16(0)
	l.before(false, func(x *wire.Packet) bool {
		if x.Kind == wire.KindSlice {
			newest, first = max(newest, x.Chunk), x.Chunk
			if x.Chunk == l.was.Chunk {
				came[x.SliceID/64] |= 1 << (x.SliceID % 64)
			}
		}
		return false
	})
	l.before(true, func(x *wire.Packet) bool {
		for i := range told {
			if x.Kind == wire.KindSliceAck && x.Chunk == l.was.Chunk {
				told[i] |= x.SliceAcked[i]
			}
		}
		return false
	})
	later := l.was.Chunk > first // nothing of the block can have come before the capture
	k := l.rng.IntN(l.was.SliceCount)
	bit := uint64(1) << (k % 64)
	if l.was.SliceCame(k) {
		l.add("slice.acked cleared", later && told[k/64]&bit != 0, func(x *wire.Packet) { x.SliceAcked[k/64] &^= bit })
	} else {
		l.add("slice.acked set", later && came[k/64]&bit == 0, func(x *wire.Packet) { x.SliceAcked[k/64] |= bit })
	}
	chunk := uint16(drawn(l.rng, uint64(l.was.Chunk), 16))
	l.add("ack chunk", later && (chunk > newest || int(chunk) < int(newest)-1), func(x *wire.Packet) { x.Chunk = chunk })
	l.add("ack count", later, func(x *wire.Packet) { x.SliceCount = int(drawn(l.rng, uint64(x.SliceCount-1), 5)) + 1 })
}

// handshake changes the salts, and which packet it is.
func (l *sampleLies) handshake() {
	var before, after, resumed, challenged, settled bool // salts that the packets around it bear
	l.before(true, func(x *wire.Packet) bool {
		before = before || x.ClientSalt == l.was.ClientSalt
		return before
	})
	for i := l.at + 1; i < len(l.s.list); i++ {
		var x wire.Packet
		d := &l.s.list[i]
		after = after || d.From == l.s.side && l.profile.Parse(d.Bytes, d.Length, &x) == nil &&
			x.ClientSalt == l.was.ClientSalt
	}
	l.before(true, func(x *wire.Packet) bool {
		resumed = resumed || x.Handshake != wire.ConnectDenied && x.ClientSalt == l.was.ClientSalt
		return resumed
	})
	l.before(true, func(x *wire.Packet) bool {
		settled = settled || x.Handshake >= wire.ConnectChallenge && x.ChallengeSalt == l.was.ChallengeSalt
		return settled
	})
	l.before(false, func(x *wire.Packet) bool {
		challenged = challenged || x.Handshake == wire.ConnectChallenge && x.ChallengeSalt == l.was.ChallengeSalt
		return challenged
	})
	if l.was.Handshake == wire.ConnectRequest {
		// It may be another attempt, unless the next goes on with the salt of this one.
		l.add("handshake.client_salt of a request", before &&
			after, func(x *wire.Packet) { x.ClientSalt = drawn(l.rng, x.ClientSalt, 63) })
		return
	}
	client := false
	l.before(true, func(x *wire.Packet) bool { client = client || x.Handshake == wire.ConnectRequest; return client })
	// A server that goes on with the salt of before has lied in between.
	l.add("handshake.client_salt", before &&
		(client || after && resumed), func(x *wire.Packet) { x.ClientSalt = drawn(l.rng, x.ClientSalt, 63) })
	sure := settled && l.was.Handshake != wire.ConnectChallenge || l.was.Handshake == wire.ConnectResponse && challenged
	l.add("handshake.challenge_salt", sure, func(x *wire.Packet) { x.ChallengeSalt = drawn(l.rng, x.ChallengeSalt, 63) })
	kind := wire.ConnectChallenge + wire.HandshakeKind(l.rng.IntN(4))
	l.add("handshake", client && kind == wire.ConnectChallenge,
		func(x *wire.Packet) { x.Handshake, x.Type = kind, uint32(kind) })
}

func named(x *wire.Packet) (n int) {
	for i := range x.SliceCount {
		if x.SliceCame(i) {
			n++
		}
	}
	return n
}
