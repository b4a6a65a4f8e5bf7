package article

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// connectJudge compares the handshake of a flow with the reference's: who sends what, after
// what, with which salts, and how often. For example: a challenge must not pass before a
// request has.
//
//	request     the client, while nothing else of the attempt has left
//	challenge   the server, once a request has passed
//	response    the client, once a challenge has passed, with its salt
//	keep-alive  the server, once a response has passed; the client, once one of
//	            the server's has
//	disconnect  either, and nothing but that after it
//
// What must have passed before holds at every tap. What a side itself sent before, and how
// long ago, holds only at a tap at that side: elsewhere packets overtake each other.
type connectJudge struct {
	profile  *wire.Profile
	sides    [2]connectSide
	attempts [attemptsKept]attempt // the newest, by turns
	turn     int
	some     bool
	begun    machine.Instant
	packet   wire.Packet
}

// connectSide is one side of a flow.
type connectSide struct {
	near     bool
	opinion  machine.Opinion
	role     connectRole
	most     int             // disconnect packets that it may send in a row
	current  *attempt        // of a client: the attempt of its last request
	sentAt   machine.Instant // when its last packet passed
	sent     bool
	kind     wire.HandshakeKind
	heardAt  machine.Instant // when the peer's last packet passed, or the attempt began
	heard    bool
	ref      machine.Ref // the frame of its last packet
	doubt    uint64      // the salt that it had before it changed it
	doubtAs  *machine.Divergence
	doubtful bool
	link     linkDoubt // of a server
}

// linkDoubt is the connection that a server's packets belong to. A server has one connection
// with each address. If its packets go to another salt that no request had and come back,
// the packet in between was wrong.
type linkDoubt struct {
	some, doubtful bool
	client, was    uint64
	as             *machine.Divergence
}

type connectRole uint8

const (
	roleOpen connectRole = iota
	roleClient
	roleServer
)

func (r connectRole) String() string {
	return [...]string{"a client or a server", "a client", "a server"}[r]
}

const (
	// connectEvery is the sample's time between two packets of the handshake.
	// Source: library, the article's sample 006 (networkprotocol, 2016): ConnectionRequestSendRate and its like
	connectEvery = 100 * time.Millisecond
	// connectAlive is the sample's time between two keep-alives of a client.
	// Source: library, the article's sample 006 (networkprotocol, 2016): ConnectionKeepAliveSendRate
	connectAlive = time.Second
	// connectSilence is how long a peer must be silent before a side gives it up.
	// Source: library, the article's sample 006 (networkprotocol, 2016): KeepAliveTimeOut
	connectSilence = 10 * time.Second
	// unreadMostly is how long a side may leave its socket unread while it sends.
	// Source: unmeasured, its tap is supposed, so divergences are likely at most
	unreadMostly = time.Second
	// farewells is how many times the article sends a disconnect.
	// Source: law, the article "Client Server Connection": a disconnect is sent ten times
	farewells = 10
)

func newConnectJudge(p *wire.Profile, facts machine.Facts, behaviours [2]string) *connectJudge {
	j := &connectJudge{profile: p}
	for i := range j.sides {
		s := &j.sides[i]
		s.near, s.most = facts.Vantage.Near(machine.Side(i)), farewells
		if behaviours[i] == judge.BehaviourSample {
			s.most = 1
		}
		s.opinion.Inferred.Tick = facts.Tick[i]
	}
	return j
}

// Observe judges the next datagram.
func (j *connectJudge) Observe(d *machine.Datagram) {
	p := &j.packet
	if j.profile.Parse(d.Bytes, d.Length, p) != nil || p.Kind != wire.KindHandshake {
		return
	}
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	if !j.some {
		j.some, j.begun = true, d.At
	}
	a := j.attempt(p.ClientSalt)
	if s.opinion.Divergence == nil {
		s.opinion.Compared++
		v := j.judge(s, peer, a, d, p)
		switch {
		case v == nil:
		case j.startsLate(a, d, p) && v.RestsOn.Absence():
			// The attempt had begun before the capture.
			if s.opinion.Undecided++; a != nil {
				a.early = true
			}
			v = nil
		case v.RestsOn.Peer() && (peer.opinion.Divergence != nil || peer.near && !s.near):
			s.opinion.Undecided++ // the peer may be the one that was wrong
			v = nil
		}
		s.opinion.Divergence = v
	}
	if a == nil {
		a = j.open(p)
		if p.Handshake == wire.ConnectRequest {
			s.opinion.Inferred.Submitted++
		}
	}
	j.pass(s, peer, a, d, p)
}

// startsLate reports whether what a packet answers may have passed before the capture. It may
// have lain in the socket, or the server had not given its connection up yet.
func (j *connectJudge) startsLate(a *attempt, d *machine.Datagram, p *wire.Packet) bool {
	since := d.At.Sub(j.begun)
	return a != nil && a.early || since < unreadMostly+unreadFor ||
		a == nil && p.Handshake >= wire.ConnectKeepAlive && since < connectSilence+unreadMostly
}

// judge compares a packet with the reference's.
func (j *connectJudge) judge(s, peer *connectSide, a *attempt, d *machine.Datagram,
	p *wire.Packet,
) *machine.Divergence {
	if need := roleOf(p.Handshake); need != roleOpen && s.role != roleOpen && need != s.role {
		return diverges(d, ConnectRole, machine.RestsOnPeer,
			machine.Differ("gaffer.handshake", "what "+s.role.String()+" sends", p.Handshake),
			fmt.Sprintf("this side is %s, and only %s sends a %v", s.role, need, p.Handshake), s.ref)
	}
	if s.near {
		if v := j.own(s, a, d, p); v != nil {
			return v
		}
	}
	return j.answers(s, peer, a, d, p)
}

// own compares a packet of a side at the tap with what the side sent before.
func (j *connectJudge) own(s *connectSide, a *attempt, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	if s.role == roleClient && s.current != nil && p.Handshake != wire.ConnectRequest && p.ClientSalt != s.current.client {
		if s.doubtful && p.ClientSalt == s.doubt {
			return s.doubtAs
		}
		return saltChanged(d, "gaffer.handshake.client_salt", s.current.client, p.ClientSalt,
			"all packets of a client have the salt of its request", s.ref)
	}
	if s.doubtful &&
		(s.role == roleClient && p.ClientSalt == s.doubt || s.role == roleServer && p.Handshake != wire.ConnectDenied &&
			p.ChallengeSalt == s.doubt) {
		return s.doubtAs
	}
	if l := &s.link; s.role == roleServer && p.Handshake != wire.ConnectDenied {
		if l.doubtful && p.ClientSalt == l.was {
			return l.as
		}
		if l.some && p.ClientSalt != l.client && a == nil {
			l.doubtful, l.was = true, l.client
			l.as = saltChanged(d, "gaffer.handshake.client_salt", l.client, p.ClientSalt,
				"the capture has no request with this salt, and later packets have the salt of the earlier ones", s.ref)
		}
		l.some, l.client = true, p.ClientSalt
	}
	if a == nil {
		return nil
	}
	if n := a.left[d.From]; n > 0 && p.Handshake != wire.ConnectDisconnect {
		return diverges(d, ConnectAfterDisconnect, machine.RestsOnOwn,
			machine.Differ("gaffer.handshake", "nothing of this connection", p.Handshake),
			"the side has ended this connection", s.ref)
	} else if n >= s.most && p.Handshake == wire.ConnectDisconnect {
		return diverges(d, ConnectFarewells, machine.RestsOnOwn,
			machine.Differ("gaffer.handshake", fmt.Sprintf("%d disconnect packets at most", s.most), n+1),
			"a side sends this many disconnects, and then no more", s.ref)
	}
	if s.role == roleServer && a.challenged &&
		(p.Handshake == wire.ConnectKeepAlive || p.Handshake == wire.ConnectDisconnect) && p.ChallengeSalt != a.server {
		return saltChanged(d, "gaffer.handshake.challenge_salt", a.server, p.ChallengeSalt,
			"a connection keeps the salt of its challenge", s.ref)
	}
	if s.role == roleClient && a.answered && p.Handshake >= wire.ConnectResponse && p.ChallengeSalt != a.answer {
		return saltChanged(d, "gaffer.handshake.challenge_salt", a.answer, p.ChallengeSalt,
			"a client keeps to the challenge that it has answered", s.ref)
	}
	out := ""
	switch {
	case p.Handshake == wire.ConnectRequest && (a.answered || a.kept):
		out = "the client has answered a challenge of this attempt already"
	case p.Handshake == wire.ConnectResponse && a.kept:
		out = "the client has treated the connection as established before"
	case p.Handshake == wire.ConnectChallenge && a.confirmed && p.ChallengeSalt == a.server:
		out = "the server has treated the connection as established before"
	}
	if out != "" {
		return diverges(d, ConnectOrder, machine.RestsOnOwn,
			machine.Differ("gaffer.handshake", wire.ConnectKeepAlive, p.Handshake), out, s.ref)
	}
	return j.times(s, d, p)
}

// times judges when a packet of a side at the tap leaves.
func (j *connectJudge) times(s *connectSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	least := time.Duration(0)
	switch {
	case !s.sent || p.Handshake != s.kind || p.Handshake == wire.ConnectDenied || p.Handshake == wire.ConnectDisconnect:
	case p.Handshake == wire.ConnectKeepAlive && s.role == roleClient:
		least = connectAlive
	default:
		least = connectEvery
	}
	if wait := d.At.Sub(s.sentAt); least > 0 && wait < least-max(clockSlack, least/10) &&
		(s.current == nil || s.current.client == p.ClientSalt) {
		return diverges(d, ConnectEarly, machine.RestsOnOwn,
			machine.Differ("gaffer.handshake", fmt.Sprintf("at least %.0f ms after the last copy", machine.Milliseconds(least)),
				fmt.Sprintf("after %.0f ms", machine.Milliseconds(wait))),
			fmt.Sprintf("the next %v comes too soon", p.Handshake), s.ref)
	}
	if p.Handshake != wire.ConnectDisconnect && p.Handshake != wire.ConnectDenied && s.heard &&
		d.At.Sub(s.heardAt) > connectSilence+unreadMostly {
		return diverges(d, ConnectTimeout, machine.RestsOnBoth,
			machine.Differ("gaffer.handshake", "nothing: the connection is given up", p.Handshake),
			fmt.Sprintf("the other side was silent for %.1f s, and after %.0f s it is given up", d.At.Sub(s.heardAt).Seconds(),
				connectSilence.Seconds()), s.ref)
	}
	return nil
}

// answers compares a packet with what must have passed before it.
func (j *connectJudge) answers(s, peer *connectSide, a *attempt, d *machine.Datagram,
	p *wire.Packet,
) *machine.Divergence {
	if p.Handshake == wire.ConnectRequest {
		return nil
	}
	if a == nil {
		was := j.newest()
		if was == nil {
			return nil
		}
		return saltDiffers(d, ConnectSalt, machine.RestsOnBoth, "gaffer.handshake.client_salt", was.client, p.ClientSalt,
			"the capture has no request with this salt", s.ref)
	}
	missing := ""
	client := s.role == roleClient || s.role == roleOpen && peer.role == roleServer || p.Handshake == wire.ConnectResponse
	switch p.Handshake {
	case wire.ConnectDenied, wire.ConnectChallenge:
		if !a.asked {
			missing = "request"
		}
	case wire.ConnectResponse:
		if !a.challenged {
			missing = "challenge"
		} else if s.near && p.ChallengeSalt != a.server && !(a.twice && p.ChallengeSalt == a.before) {
			return saltDiffers(d, ConnectSaltChanged, machine.RestsOnPeer, "gaffer.handshake.challenge_salt", a.server,
				p.ChallengeSalt, "a response has the salt of the challenge", s.ref)
		}
	case wire.ConnectKeepAlive:
		if client && !a.confirmed {
			missing = "keep-alive of the server"
		} else if !client && !a.answered {
			missing = "response"
		}
	case wire.ConnectDisconnect:
		if !a.challenged {
			missing = "challenge"
		}
	}
	if missing == "" {
		return nil
	}
	v := diverges(d, ConnectUnasked, machine.RestsOnBoth,
		machine.Differ("gaffer.handshake", "nothing that follows a "+missing, p.Handshake),
		fmt.Sprintf("a %v comes only after a %s, and the capture has none before", p.Handshake, missing), s.ref)
	v.Reference, v.Captured = a.draw(), p.Handshake.String()
	return v
}

// pass records a packet that passed the tap.
func (j *connectJudge) pass(s, peer *connectSide, a *attempt, d *machine.Datagram, p *wire.Packet) {
	if role := roleOf(p.Handshake); s.role == roleOpen && peer.role == roleOpen && role != roleOpen {
		s.role, peer.role = role, roleClient+roleServer-role
	}
	switch p.Handshake {
	case wire.ConnectRequest:
		if s.current != nil && s.current != a {
			s.suspect(s.current.client,
				saltChanged(d, "gaffer.handshake.client_salt", s.current.client, p.ClientSalt,
					"the packets after it have the salt of those before it", s.ref))
		}
		if s.current != a {
			s.heardAt, s.heard = d.At, true
		}
		s.current, a.asked = a, true
	case wire.ConnectChallenge:
		if a.challenged && a.server != p.ChallengeSalt {
			a.before, a.twice = a.server, true
			s.suspect(a.server,
				saltChanged(d, "gaffer.handshake.challenge_salt", a.server, p.ChallengeSalt,
					"the packets after it have the salt of those before it", s.ref))
		}
		a.server, a.challenged = p.ChallengeSalt, true
	case wire.ConnectResponse:
		a.answer, a.answered = p.ChallengeSalt, true
	case wire.ConnectKeepAlive:
		if s.role == roleServer {
			a.confirmed = true
		} else if s.role == roleClient {
			a.kept = true
		}
	case wire.ConnectDisconnect:
		a.left[d.From]++
	case wire.ConnectDenied:
	}
	s.sentAt, s.sent, s.kind, s.ref = d.At, true, p.Handshake, d.Ref
	peer.heardAt, peer.heard = d.At, true
}

// suspect records that a side changed a salt. It may have begun anew, or the packet is wrong.
// If the old salt comes again, the packet was wrong.
func (s *connectSide) suspect(was uint64, v *machine.Divergence) {
	s.doubt, s.doubtAs, s.doubtful = was, v, true
}

// roleOf returns the role that sends packets of a kind; roleOpen where both do.
func roleOf(k wire.HandshakeKind) connectRole {
	switch k {
	case wire.ConnectRequest, wire.ConnectResponse:
		return roleClient
	case wire.ConnectDenied, wire.ConnectChallenge:
		return roleServer
	case wire.ConnectKeepAlive, wire.ConnectDisconnect:
	}
	return roleOpen
}

// saltDiffers returns the divergence of a packet that has another salt than it should.
func saltDiffers(
	d *machine.Datagram, rule *machine.Rule, rests machine.RestsOn, field string, want, got uint64, because string,
	frames ...machine.Ref,
) *machine.Divergence {
	m := machine.Differ(field, machine.Hex(want, 16), machine.Hex(got, 16))
	return diverges(d, rule, rests, m, because, frames...)
}

// saltChanged returns the divergence of a packet whose salt is not that of the side's own
// packets before it.
func saltChanged(
	d *machine.Datagram, field string, want, got uint64, because string, frames ...machine.Ref,
) *machine.Divergence {
	return saltDiffers(d, ConnectSaltChanged, machine.RestsOnOwn, field, want, got, because, frames...)
}

// Finish ends the flow: what is still open counts as undecided.
func (j *connectJudge) Finish() {
	for i := range j.sides {
		s := &j.sides[i]
		o := &s.opinion
		switch {
		case !s.near:
			o.Undecided = o.Compared
			o.Why = machine.NotCapturedHere
		case o.Undecided > 0:
			o.Why = "packets from before the capture"
		}
	}
}

// Opinion returns what is found of a side.
func (j *connectJudge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }
