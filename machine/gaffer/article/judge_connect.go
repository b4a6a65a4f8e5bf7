package article

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// connectJudge holds the handshake of a flow against the reference's: who may send
// what, after what, under which salts and how often.
//
//	request     the client, while nothing else of the attempt has left
//	challenge   the server, once a request has passed
//	response    the client, once a challenge has passed, with its salt
//	keep-alive  the server, once a response has passed; the client, once one of
//	            the server's has
//	disconnect  either, and nothing but that after it
//
// What must have passed is held at every tap. What a side itself sent before, and
// how long ago, only where the tap stands at it: elsewhere packets overtake each
// other.
type connectJudge struct {
	profile  *wire.Profile
	sides    [2]connectSide
	attempts [attemptsKept]attempt // the newest, by turns
	turn     int
	some     bool
	begun    machine.Instant
	packet   wire.Packet
}

// connectSide is one side.
type connectSide struct {
	near     bool
	opinion  machine.Opinion
	role     connectRole
	most     int             // disconnect packets in a row
	current  *attempt        // of a client: that of its last request
	sentAt   machine.Instant // its last packet
	sent     bool
	kind     wire.HandshakeKind
	heardAt  machine.Instant // the peer's last packet, or the beginning of the attempt
	heard    bool
	ref      machine.Ref // its last packet
	doubt    uint64      // the salt that it had before it changed
	doubtAs  *machine.Divergence
	doubtful bool
	link     linkDoubt // of a server
}

// linkDoubt is whose connection a server's packets are of. A server has one with
// each address: if its packets go from one to another that was never asked for and
// back, the one between was wrong.
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

// attempt is one connection, or the attempt at one.
type attempt struct {
	client     uint64 // its salt
	live       bool
	early      bool // it had begun before the capture, for all that is known
	asked      bool // a request passed
	server     uint64
	challenged bool // a challenge passed, with that salt
	before     uint64
	twice      bool // another challenge passed before, with the salt before
	answer     uint64
	answered   bool // a response passed, with that salt
	confirmed  bool // a keep-alive of the server passed
	kept       bool // one of the client
	left       [2]int
}

const (
	// Source: bound, the connection attempts that are remembered
	attemptsKept = 4
	// connectEvery is the sample's time between two packets of the handshake,
	// connectAlive that between two keep-alives of a client, connectSilence that
	// after which a side gives up.
	// Source: library, the article's sample 006 (networkprotocol, 2016): ConnectionRequestSendRate and its like
	connectEvery = 100 * time.Millisecond
	// Source: library, the article's sample 006 (networkprotocol, 2016): ConnectionKeepAliveSendRate
	connectAlive = time.Second
	// Source: library, the article's sample 006 (networkprotocol, 2016): KeepAliveTimeOut
	connectSilence = 10 * time.Second
	// unreadMostly is how long a socket may lie unread while its owner sends.
	// Source: measured, TestMarginsGaffer
	unreadMostly = time.Second
	// farewells: of the article
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

// Observe takes the next datagram.
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
		case j.young(a, d, p) && judge.RestsOnAbsence(v):
			// The attempt had begun before the capture.
			if s.opinion.Undecided++; a != nil {
				a.early = true
			}
			v = nil
		case restsOnPeer(v) && (peer.opinion.Divergence != nil || peer.near && !s.near):
			s.opinion.Undecided++ // it may be the peer that was wrong
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

// young reports whether what a packet answers may have passed before the capture:
// it lay in the socket, or is of a connection that the server had not given up yet.
func (j *connectJudge) young(a *attempt, d *machine.Datagram, p *wire.Packet) bool {
	since := d.At.Sub(j.begun)
	return a != nil && a.early || since < unreadMostly+unreadFor ||
		a == nil && p.Handshake >= wire.ConnectKeepAlive && since < connectSilence+unreadMostly
}

// attempt returns the one of a client's salt, nil for none.
func (j *connectJudge) attempt(salt uint64) *attempt {
	for i := range j.attempts {
		if a := &j.attempts[i]; a.live && a.client == salt {
			return a
		}
	}
	return nil
}

// newest returns the attempt that was met last, nil for none.
func (j *connectJudge) newest() *attempt {
	if a := &j.attempts[(j.turn+attemptsKept-1)%attemptsKept]; a.live {
		return a
	}
	return nil
}

func (j *connectJudge) open(p *wire.Packet) *attempt {
	a := &j.attempts[j.turn]
	j.turn = (j.turn + 1) % attemptsKept
	for i := range j.sides {
		if j.sides[i].current == a {
			j.sides[i].current = nil
		}
	}
	*a = attempt{client: p.ClientSalt, live: true, early: p.Handshake != wire.ConnectRequest}
	return a
}

// judge holds a packet against the reference's.
func (j *connectJudge) judge(s, peer *connectSide, a *attempt, d *machine.Datagram,
	p *wire.Packet) *machine.Divergence {
	if need := roleOf(p.Handshake); need != roleOpen && s.role != roleOpen && need != s.role {
		return diverges(d, "connect-role", machine.Differ("gaffer.handshake", "what "+s.role.String()+" sends", p.Handshake),
			fmt.Sprintf("this side is %s, and only %s sends a %v", s.role, need, p.Handshake), s.ref)
	}
	if s.near {
		if v := j.own(s, a, d, p); v != nil {
			return v
		}
	}
	return j.answers(s, peer, a, d, p)
}

// own holds a packet of a side at the tap against what it sent before.
func (j *connectJudge) own(s *connectSide, a *attempt, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	if s.role == roleClient && s.current != nil && p.Handshake != wire.ConnectRequest && p.ClientSalt != s.current.client {
		if s.doubtful && p.ClientSalt == s.doubt {
			return s.doubtAs
		}
		return saltChanged(d, "gaffer.handshake.client_salt", s.current.client, p.ClientSalt,
			"all packets of a client bear the salt of its request", s.ref)
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
				"no request with this salt passed the tap, and the packets after it bear that of those before it", s.ref)
		}
		l.some, l.client = true, p.ClientSalt
	}
	if a == nil {
		return nil
	}
	if n := a.left[d.From]; n > 0 && p.Handshake != wire.ConnectDisconnect {
		return diverges(d, "connect-after-disconnect",
			machine.Differ("gaffer.handshake", "nothing of this connection", p.Handshake),
			"the side has ended this connection", s.ref)
	} else if n >= s.most && p.Handshake == wire.ConnectDisconnect {
		return diverges(d, "connect-farewells",
			machine.Differ("gaffer.handshake", fmt.Sprintf("%d disconnect packets at most", s.most), n+1),
			"a side says so often that it leaves, and then no more", s.ref)
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
		out = "the client has held the connection to stand already"
	case p.Handshake == wire.ConnectChallenge && a.confirmed && p.ChallengeSalt == a.server:
		out = "the server has held the connection to stand already"
	}
	if out != "" {
		return diverges(d, "connect-order", machine.Differ("gaffer.handshake", wire.ConnectKeepAlive, p.Handshake), out,
			s.ref)
	}
	return j.times(s, d, p)
}

// times holds when a packet of a side at the tap leaves.
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
		return diverges(d, "connect-early",
			machine.Differ("gaffer.handshake", fmt.Sprintf("after %.0f ms at the soonest", machine.Milliseconds(least)),
				fmt.Sprintf("after %.0f ms", machine.Milliseconds(wait))),
			fmt.Sprintf("the next %v comes too soon", p.Handshake), s.ref)
	}
	if p.Handshake != wire.ConnectDisconnect && p.Handshake != wire.ConnectDenied && s.heard &&
		d.At.Sub(s.heardAt) > connectSilence+unreadMostly {
		return diverges(d, "connect-timeout",
			machine.Differ("gaffer.handshake", "nothing: the connection is given up", p.Handshake),
			fmt.Sprintf("the other side was silent for %.1f s, and after %.0f s it is given up", d.At.Sub(s.heardAt).Seconds(),
				connectSilence.Seconds()), s.ref)
	}
	return nil
}

// answers holds a packet against what must have passed before it.
func (j *connectJudge) answers(s, peer *connectSide, a *attempt, d *machine.Datagram,
	p *wire.Packet) *machine.Divergence {
	if p.Handshake == wire.ConnectRequest {
		return nil
	}
	if a == nil {
		was := j.newest()
		if was == nil {
			return nil
		}
		return saltDiffers(d, "gaffer.handshake.client_salt", was.client, p.ClientSalt,
			"no request with this salt passed the tap", s.ref)
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
			return saltChanged(d, "gaffer.handshake.challenge_salt", a.server, p.ChallengeSalt,
				"a response bears the salt of the challenge", s.ref)
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
	v := diverges(d, "connect-unasked", machine.Differ("gaffer.handshake", "nothing that follows a "+missing, p.Handshake),
		fmt.Sprintf("a %v comes only after a %s, and none has passed the tap", p.Handshake, missing), s.ref)
	v.Reference, v.Captured = a.draw(), p.Handshake.String()
	return v
}

// pass takes it that a packet passed the tap.
func (j *connectJudge) pass(s, peer *connectSide, a *attempt, d *machine.Datagram, p *wire.Packet) {
	if role := roleOf(p.Handshake); s.role == roleOpen && peer.role == roleOpen && role != roleOpen {
		s.role, peer.role = role, roleClient+roleServer-role
	}
	switch p.Handshake {
	case wire.ConnectRequest:
		if s.current != nil && s.current != a {
			s.suspect(s.current.client,
				saltChanged(d, "gaffer.handshake.client_salt", s.current.client, p.ClientSalt,
					"the packets after it bear the salt of those before it", s.ref))
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
					"the packets after it bear the salt of those before it", s.ref))
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

// suspect notes that a side changed a salt: it may have begun anew, or that packet
// is wrong. If what it had before comes again, it was.
func (s *connectSide) suspect(was uint64, v *machine.Divergence) {
	s.doubt, s.doubtAs, s.doubtful = was, v, true
}

// roleOf tells who sends such packets.
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

func saltDiffers(d *machine.Datagram, field string, want, got uint64, because string,
	frames ...machine.Ref) *machine.Divergence {
	return diverges(d, "connect-salt", machine.Differ(field, fmt.Sprintf("0x%016x", want), fmt.Sprintf("0x%016x", got)),
		because, frames...)
}

// saltChanged is saltDiffers where the packets that it follows from are captured.
func saltChanged(d *machine.Datagram, field string, want, got uint64, because string,
	frames ...machine.Ref) *machine.Divergence {
	v := saltDiffers(d, field, want, got, because, frames...)
	v.Rule = "connect-salt-changed"
	return v
}

// draw says how far an attempt has come.
func (a *attempt) draw() string {
	word := "nothing passed"
	switch {
	case a.confirmed:
		word = "stands"
	case a.answered:
		word = "answered"
	case a.challenged:
		word = "challenged"
	case a.asked:
		word = "asked for"
	}
	return fmt.Sprintf("connection of client salt 0x%016x: %s", a.client, word)
}

// restsOnPeer reports whether a divergence follows from what the peer sent.
func restsOnPeer(v *machine.Divergence) bool {
	switch v.Rule {
	case "connect-unasked", "connect-salt", "connect-timeout", "connect-role":
		return true
	}
	return false
}

// Finish settles what is open.
func (j *connectJudge) Finish() {
	for i := range j.sides {
		s := &j.sides[i]
		o := &s.opinion
		switch {
		case !s.near:
			o.Undecided = max(o.Undecided, o.Compared)
			o.Why = "the tap is not at this side: what passed it may have been lost or late behind it"
		case o.Undecided > 0:
			o.Why = "packets from before the capture"
		}
	}
}

// Opinion returns what is found of a side.
func (j *connectJudge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }
