package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// judgedSession is how a side leads the connection.
type judgedSession struct {
	connects  int
	connectAt machine.Instant

	ping     uint8 // of the last heartbeat
	pinged   bool
	pingAt   machine.Instant
	pingRef  machine.Ref
	waiting  bool // its answer has not passed
	low, top int  // the RTT that the next heartbeat may tell, ms
	measured bool
	beatAt   machine.Instant // the soonest time at which it can have sent its last Connect or heartbeat; 0 unknown

	asked    []askedPing // pings that wait for an answer
	answered bool        // one that is in the capture: all that came before it are
	heardAt  machine.Instant
	heardRef machine.Ref
	welcomed bool  // the id is known
	welcome  int64 // the place of the Welcome among what passed the tap towards the side
	told     int   // the RTT that the side gave last, ms
	heardAny bool  // a ping has come
	heardRTT int   // the RTT that pings gave last, ms; -1 for none, unheardRTT where that is open
	clientID uint16
	idRef    machine.Ref
	endRef   machine.Ref
	far      farBeats
}

type askedPing struct {
	id  uint8
	at  machine.Instant
	ref machine.Ref
	may bool // it came before the server knew that its client is connected: it need not be answered
	rtt int  // the RTT that it gives, ms
	was int  // the RTT that the server had been given before
}

const (
	// beatSlack is by how much heartbeats and Connects can show closer together
	// than they are.
	beatSlack = 60 * time.Millisecond
	// timeoutMost is when a silent peer is given up at the latest: the library
	// looks once each heartbeat interval.
	timeoutMost = riptide.Timeout + riptide.HeartbeatInterval + 500*time.Millisecond
	// readMost is how long an answer may wait for the client's frame.
	readMost = 250
)

// alive checks what hangs on time only: that the side has not given up its peer,
// and that nothing of it is overdue.
func (s *judged) alive(j *Judge, p *sight) *machine.Divergence {
	if !s.near {
		return nil
	}
	if v := s.unanswered(j, p); v != nil {
		return v
	}
	if v := s.overdue(p); v != nil {
		return v
	}
	c := &s.session
	for i := range c.asked {
		a := &c.asked[i]
		if a.may || s.joined || p.m.Type == wire.Heartbeat {
			continue
		}
		if s.left(p).Sub(a.at) > answerSlack && s.spoke.Sub(a.at) > answerSlack/2 {
			if v := s.unsentBeat(j.config.Senders[s.side].Codec, p, a.id, a.ref, false); v != nil {
				return v
			}
			return s.diverge(p, "heartbeat-answer", "riptide.type", "heartbeat", p.m.Type, fmt.Sprintf("the heartbeat with id %d came %.0f ms ago, and each is answered at once", a.id, machine.Milliseconds(p.at.Sub(a.at))), a.ref)
		}
		break
	}
	if c.heardAt == 0 || !c.welcomed || s.behaviour.NoTimeout || p.m.Type == wire.Connect || s.left(p).Sub(c.heardAt) < timeoutMost {
		return nil
	}
	return s.diverge(p, "timeout", "riptide.type", "nothing", p.m.Type, fmt.Sprintf("the last heartbeat came %.1f s ago: the connection is given up after 5 to 6 s", s.left(p).Sub(c.heardAt).Seconds()), c.heardRef)
}

// heard takes a Welcome that reaches s: it counts as a sign of life.
func (s *judged) heard(p *sight) {
	if p.m.Type == wire.Welcome {
		c := &s.session
		c.heardAt, c.heardRef = p.at, p.ref
		if !c.welcomed {
			c.welcomed, c.clientID, c.idRef, c.welcome = true, p.m.ClientID, p.ref, s.places
		}
	}
}

// welcomes takes a Welcome that s sends, in a dialect in which the connection then
// stands.
func (s *judged) welcomes(j *Judge, p *sight) {
	if c := &s.session; p.m.Type == wire.Welcome && j.config.Senders[s.side].Codec.Dialect.WelcomeOneWay && !s.client(j) {
		c.welcomed, c.clientID, c.idRef = true, p.m.ClientID, p.ref
	}
}

// unheardRTT stands for an RTT that was given before the capture.
const unheardRTT = -2

// askedMost bounds the heartbeats that wait for their answer: one is sent a second,
// and a peer that has been silent for six is given up.
const askedMost = 64

// hears takes what reaches s and concerns the connection.
func (s *judged) hears(j *Judge, p *sight) {
	c := &s.session
	switch p.m.Type {
	case wire.Connect:
		c.heardAt, c.heardRef = p.at, p.ref
	case wire.Disconnect:
		c.endRef = p.ref
	case wire.Heartbeat:
		c.heardAt, c.heardRef = p.at, p.ref
		s.sends.joins(j)
		if p.is == riptide.BeatPing {
			if !c.heardAny {
				c.heardAny, c.heardRTT = true, -1
				if !j.life.begun {
					c.heardRTT = unheardRTT
				}
			}
			rtt := int(p.m.RTT)
			c.asked = machine.KeepNewest(c.asked, askedPing{p.m.Ping, p.at, p.ref, !c.welcomed, rtt, c.heardRTT}, askedMost)
			if rtt >= 0 {
				c.heardRTT = rtt
			}
			if rtt >= 0 && !s.client(j) {
				s.sends.sampled(p.at, rtt, rtt)
			}
			return
		}
		if p.is == riptide.BeatAnswer && c.waiting && p.m.Ping == c.ping {
			c.waiting, c.measured = false, true
			c.low = int(p.at.Sub(c.pingAt)/time.Millisecond) - 1
			c.top = c.low + readMost
			if s.stream {
				c.top = int(p.at.Sub(c.beatAt)/time.Millisecond) + readMost
			}
			s.sends.sampled(p.at, c.low, c.low+60)
		}
	}
}

func (s *judged) client(j *Judge) bool { return j.life.roles && j.life.client == s.side }

// speaks judges a message of s that concerns the connection.
func (s *judged) speaks(j *Judge, p *sight) *machine.Divergence {
	c := &s.session
	switch p.m.Type {
	case wire.Connect:
		return s.connects(j, p)
	case wire.Disconnect:
		c.endRef = p.ref
	case wire.Heartbeat:
		switch p.is {
		case riptide.BeatPing:
			return s.beats(j, p)
		case riptide.BeatAnswer:
			return s.pongs(j, p)
		}
		s.opinion.Undecided++ // whether it asks is open
	}
	return nil
}

func (s *judged) connects(j *Judge, p *sight) *machine.Divergence {
	c := &s.session
	if !s.client(j) || !s.near {
		return nil
	}
	answered := s.sends.met // a client's first reliable message is its own Welcome
	if j.config.Senders[s.side].Codec.Dialect.WelcomeOneWay {
		answered = c.welcomed && s.readTo >= c.welcome
	}
	if answered && j.life.sure && j.life.asked {
		return s.diverge(p, "connect-again", "riptide.type", "no Connect", "Connect", "the connection stands: this side has answered the Welcome", s.spokeRef)
	}
	defer func() { c.connectAt, c.endRef = p.at, p.ref }()
	c.connects++
	early := s.steps(p)
	if c.connects > riptide.ConnectAttempts {
		return s.diverge(p, "connect-attempts", "riptide.type", fmt.Sprintf("at most %d Connects", riptide.ConnectAttempts), fmt.Sprintf("Connect %d", c.connects), "a client that has no answer gives up", c.endRef)
	}
	if gap := p.at.Sub(c.connectAt); c.connects > 1 && early {
		return s.diverge(p, "connect-early", "riptide.type", "1000 ms after the last Connect", fmt.Sprintf("%.0f ms", machine.Milliseconds(gap)), "Connect is repeated once a heartbeat interval", c.endRef)
	}
	return nil
}

// beats judges a client's heartbeat.
func (s *judged) beats(j *Judge, p *sight) *machine.Divergence {
	c, m := &s.session, p.m
	defer func() {
		c.ping, c.pinged, c.pingAt, c.pingRef, c.waiting = m.Ping, true, p.at, p.ref, true
		c.told = int(m.RTT)
	}()
	if !s.ordered {
		s.opinion.Undecided++
		return s.beatAgain(p)
	}
	pytide := s.behaviour.Port
	if pytide && m.Ping != 1 {
		return s.diverge(p, "heartbeat", "riptide.ping", 1, m.Ping, "every heartbeat of this port has id 1", c.pingRef)
	}
	if pytide && !c.pinged && j.life.asked && m.RTT != 0 {
		return s.diverge(p, "rtt", "riptide.rtt", 0, m.RTT, "this port's RTT is 0 until the first answer", c.idRef)
	}
	if !c.pinged && !pytide && j.life.asked && m.Ping != 0 {
		return s.diverge(p, "heartbeat", "riptide.ping", 0, m.Ping, "the ping's id of a connection's first heartbeat", c.idRef)
	}
	if c.pinged && !pytide && m.Ping != c.ping+1 {
		if v := s.unsentBeat(j.config.Senders[s.side].Codec, p, c.ping+1, c.pingRef, true); s.near && m.Ping == c.ping+2 && v != nil {
			return v
		}
		return s.diverge(p, "heartbeat", "riptide.ping", c.ping+1, m.Ping, "the ping's id steps by one", c.pingRef)
	}
	if !s.near {
		return nil
	}
	if gap, early := p.at.Sub(c.pingAt), s.steps(p); c.pinged && early {
		return s.diverge(p, "heartbeat-early", "riptide.ping", "1000 ms after the last heartbeat", fmt.Sprintf("%.0f ms", machine.Milliseconds(gap)), "a heartbeat is sent once a heartbeat interval", c.pingRef)
	}
	if pytide {
		c.top = int(p.at.Sub(c.pingAt) / time.Millisecond) // each copy of the answer counts
	}
	switch rtt := int(m.RTT); {
	case !c.pinged:
	case c.measured && s.stream && rtt == c.told && s.since.Sub(c.heardAt) < readMost*time.Millisecond:
		// TCP held it back: it was sent before the answer came, which then counts for nothing.
	case c.measured && (rtt < c.low || rtt > c.top):
		return s.diverge(p, "rtt", "riptide.rtt", fmt.Sprintf("%d to %d", c.low, c.top), rtt, "the RTT is from the last ping to its answer", c.pingRef, c.heardRef)
	case !c.measured && rtt != c.told:
		return s.diverge(p, "rtt", "riptide.rtt", c.told, rtt, "no answer has come since the last heartbeat", c.pingRef)
	}
	c.measured = false
	return nil
}

// steps takes a Connect or a heartbeat of s, and reports whether it comes before its
// time. Over TCP one that was held back may be close before the next, so there each
// is held against the soonest time at which it can have been sent.
func (s *judged) steps(p *sight) (early bool) {
	c := &s.session
	last := max(c.connectAt, c.pingAt)
	if !s.stream {
		return p.at.Sub(last) < riptide.HeartbeatInterval-beatSlack
	}
	switch {
	case c.beatAt != 0:
		c.beatAt = max(c.beatAt.Add(riptide.HeartbeatInterval), s.since)
	case c.connects == 1:
		c.beatAt = p.at // nothing was sent before that could hold it back
	default:
		c.beatAt = s.since
	}
	if c.beatAt == 0 {
		return false
	}
	s.since = max(s.since, c.beatAt.Add(-beatSlack))
	return p.at < c.beatAt.Add(-beatSlack)
}

// pongs judges a server's answer to a heartbeat.
func (s *judged) pongs(j *Judge, p *sight) *machine.Divergence {
	c := &s.session
	if !s.ordered {
		s.opinion.Undecided++
		return nil
	}
	for i, a := range c.asked {
		if a.id == p.m.Ping {
			s.sends.fresh.at = 0 // what it told is known
			if lost := &c.asked[0]; i > 0 && s.near && !lost.may && !s.joined {
				if v := s.unsentBeat(j.config.Senders[s.side].Codec, p, lost.id, lost.ref, false); v != nil {
					return v
				}
			}
			c.asked = append(c.asked[:0], c.asked[i+1:]...)
			c.answered, s.since = true, max(s.since, a.at)
			return s.echoes(p, &a)
		}
	}
	if s.joined && !c.answered || !c.welcomed && len(c.asked) == 0 && !c.answered {
		s.opinion.Undecided++
		return nil
	}
	expected := "none"
	if len(c.asked) > 0 {
		expected = fmt.Sprint(c.asked[0].id)
	}
	return s.diverge(p, "heartbeat-answer", "riptide.ping", expected, p.m.Ping, "a server answers each heartbeat once, with its id", c.heardRef)
}

// echoes judges the RTT of an answer, in a dialect whose answers have one. The
// document does not say whose it is. A server measures none, so it is -1 (none yet)
// or what the client has told: before this ping, or by it.
func (s *judged) echoes(p *sight, a *askedPing) *machine.Divergence {
	rtt := int(p.m.RTT)
	if !p.m.HasRTT || rtt == -1 || rtt == a.rtt || rtt == a.was || a.was == unheardRTT {
		return nil
	}
	return s.diverge(p, "rtt", "riptide.rtt", a.was, rtt, "a server measures no RTT: an answer repeats one that its client has told", a.ref)
}
