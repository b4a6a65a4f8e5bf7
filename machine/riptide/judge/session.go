package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// judgedSession is how a side runs the connection.
type judgedSession struct {
	connects  int
	connectAt machine.Instant
	endRef    machine.Ref // the frame of its last Connect, or of the Disconnect of either side

	overran judgedArrival // the message at which an id that never came fell out of its window; at is 0 for none
	own     ownBeats
	heard   heardBeats
	welcome welcomed
	far     farBeats
}

// ownBeats are the heartbeats that a side sends.
//
//	ping, at and ref are those of the last one, and set once pinged is
//	low and top are set while measured is
type ownBeats struct {
	pinged   bool
	waiting  bool // the answer to the last one has not passed
	measured bool // it has passed, and the next one may tell its RTT
	ping     uint8
	at       machine.Instant
	ref      machine.Ref
	answered machine.Instant // when the answer to the last one passed; valid while measured is set
	heard    bool            // an answer to any has passed
	unread   bool            // Pytide: the answer before was read late, and counts as that to the last one
	low, top int             // bounds of the RTT that the next one may tell, in ms
	told     int             // the RTT that the last one told, in ms; -1 for none
	soonest  machine.Instant // the soonest time at which it can have sent its last Connect or heartbeat; 0 for unknown
}

// heardBeats are what a side heard of its peer. at and ref are those of the last sign of life;
// 0 for none.
type heardBeats struct {
	at       machine.Instant
	ref      machine.Ref
	asked    []askedPing // pings that wait for an answer, askedMost at most
	answered bool        // an answer is in the capture, so all pings before it are
	pinged   bool        // a ping has come
	rtt      int         // the RTT that pings gave last, in ms; -1 for none, unheardRTT where that is open
}

// welcomed is the Welcome that gives a client its id. place and ref are set once known is.
type welcomed struct {
	known bool
	place int64 // its place among what passed the tap towards the side
	ref   machine.Ref
}

// askedPing is a ping that waits for its answer.
type askedPing struct {
	id  uint8
	at  machine.Instant
	ref machine.Ref
	may bool // it came before the server knew its client, so it need not be answered
	rtt int  // the RTT that it gives, in ms
	was int  // the RTT that the server had been given before
}

const (
	// beatSlack is how much closer together heartbeats or Connects can pass the tap than they were
	// sent.
	// Source: measured, TestMarginsRiptide
	beatSlack = 60 * time.Millisecond
	// timeoutSlack is how much later than due the library may check for a timeout.
	// Source: measured, TestMarginsRiptide
	timeoutSlack = 500 * time.Millisecond
	// timeoutMost is the longest time after which a silent peer is given up. The library looks
	// once in each heartbeat interval.
	timeoutMost = riptide.Timeout + riptide.HeartbeatInterval + timeoutSlack
	// readMost is how long an answer may wait for the client's frame.
	// Source: measured, TestMarginsRiptide
	readMost = 250 * time.Millisecond
)

// alive checks what depends on time alone: whether the side should have given up its peer, and
// whether something of the side is overdue.
func (s *judged) alive(j *Judge, p *observed) *machine.Divergence {
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
	for i := range c.heard.asked {
		a := &c.heard.asked[i]
		if a.may || s.joined || p.m.Type == wire.Heartbeat {
			continue
		}
		if s.left(p).Sub(a.at) > answerSlack && s.spoke.Sub(a.at) > answerSlack/2 {
			if v := s.unsentBeat(j.config.Senders[s.side].Codec, p, a.id, a.ref, false); v != nil {
				return v
			}
			return s.diverge(p, difference{
				HeartbeatAnswer, machine.RestsOnBoth, "riptide.type", "heartbeat", p.m.Type,
				fmt.Sprintf("the heartbeat with id %d came %.0f ms ago, and each is answered at once", a.id,
					machine.Milliseconds(p.at.Sub(a.at))),
			}, a.ref)
		}
		break
	}
	if c.heard.at == 0 || !c.welcome.known || s.behaviour.NoTimeout || p.m.Type == wire.Connect ||
		s.left(p).Sub(c.heard.at) < timeoutMost {
		return nil
	}
	return s.diverge(p, difference{
		TimedOut, machine.RestsOnBoth, "riptide.type", "nothing", p.m.Type,
		fmt.Sprintf("the last heartbeat came %.1f s ago: the connection is given up after 5 to 6 s",
			s.left(p).Sub(c.heard.at).Seconds()),
	}, c.heard.ref)
}

// goesOn looks for a side at the tap that goes on although an id that never came fell out of its window. The library
// then ends the connection.
func (s *judged) goesOn(p *observed) *machine.Divergence {
	over := &s.session.overran
	if over.at == 0 || !s.near || p.m.Type == wire.Connect || s.left(p).Sub(over.at) < endedSlack {
		return nil
	}
	return s.diverge(p, difference{
		AfterTheEnd, machine.RestsOnBoth, "riptide.type", "nothing", p.m.Type.String(),
		fmt.Sprintf("at message %d the window of %d ids was too short for one that never came: the connection had ended",
			over.sequence, s.behaviour.WindowMost),
	}, over.ref)
}

// heard records a Welcome that reaches s: it counts as a sign of life.
func (s *judged) heard(p *observed) {
	if p.m.Type == wire.Welcome {
		c := &s.session
		c.heard.at, c.heard.ref = p.at, p.ref
		if !c.welcome.known {
			c.welcome = welcomed{true, s.places, p.ref}
		}
	}
}

// welcomes records a Welcome that s sends, in a dialect in which the connection stands with
// it.
func (s *judged) welcomes(j *Judge, p *observed) {
	if c := &s.session; p.m.Type == wire.Welcome && j.config.Senders[s.side].Codec.Dialect.WelcomeOneWay && !s.client(j) {
		c.welcome.known, c.welcome.ref = true, p.ref
	}
}

// unheardRTT stands for an RTT that was given before the capture.
// Source: name, an RTT that is not known
const unheardRTT = -2

// askedMost is how many heartbeats can wait for their answer. One is sent each second. A peer that
// has been silent for six seconds is given up.
// Source: bound, the heartbeats that wait
const askedMost = 64

// hears records what reaches s and concerns the connection.
func (s *judged) hears(j *Judge, p *observed) {
	c := &s.session
	switch p.m.Type {
	case wire.Connect:
		c.heard.at, c.heard.ref = p.at, p.ref
	case wire.Disconnect:
		c.endRef = p.ref
	case wire.Heartbeat:
		c.heard.at, c.heard.ref = p.at, p.ref
		s.sends.joins(j)
		if p.is == riptide.BeatPing {
			if !c.heard.pinged {
				c.heard.pinged, c.heard.rtt = true, -1
				if !j.connection.begun {
					c.heard.rtt = unheardRTT
				}
			}
			rtt := int(p.m.RTT)
			asked := askedPing{p.m.Ping, p.at, p.ref, !c.welcome.known, rtt, c.heard.rtt}
			c.heard.asked = machine.KeepNewest(c.heard.asked, asked, askedMost)
			if rtt >= 0 {
				c.heard.rtt = rtt
			}
			if rtt >= 0 && !s.client(j) {
				s.sends.sampled(p.at, rtt, rtt)
			}
			return
		}
		// A stream that was joined in its middle may be read late. Then older answers come behind this ping.
		if p.is == riptide.BeatAnswer && c.own.waiting && p.m.Ping == c.own.ping && p.at >= c.own.at {
			c.own.waiting, c.own.measured, c.own.answered = false, true, p.at
			c.own.heard = true
			c.own.low = int(p.at.Sub(c.own.at)/time.Millisecond) - 1
			c.own.top = c.own.low + int(readMost.Milliseconds())
			if s.stream {
				c.own.top = int(p.at.Sub(c.own.soonest)/time.Millisecond) + int(readMost.Milliseconds())
			}
			s.sends.sampled(p.at, c.own.low, c.own.low+60)
		}
	}
}

func (s *judged) client(j *Judge) bool { return j.connection.roles && j.connection.client == s.side }

// speaks judges a message of s that concerns the connection.
func (s *judged) speaks(j *Judge, p *observed) *machine.Divergence {
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

func (s *judged) connects(j *Judge, p *observed) *machine.Divergence {
	c := &s.session
	if !s.client(j) || !s.near {
		return nil
	}
	answered := s.sends.met // a client's first reliable message is its own Welcome
	if j.config.Senders[s.side].Codec.Dialect.WelcomeOneWay {
		answered = c.welcome.known && s.readTo >= c.welcome.place
	}
	if answered && j.connection.sure && j.connection.asked {
		return s.diverge(p, difference{
			ConnectAgain, machine.RestsOnOwn, "riptide.type", "no Connect", "Connect",
			"the side is connected: it has answered the Welcome",
		}, s.spokeRef)
	}
	defer func() { c.connectAt, c.endRef = p.at, p.ref }()
	c.connects++
	early := s.steps(p)
	if c.connects > riptide.ConnectAttempts {
		return s.diverge(p, difference{
			ConnectAttempts, machine.RestsOnOwn, "riptide.type", fmt.Sprintf("at most %d Connects", riptide.ConnectAttempts),
			fmt.Sprintf("Connect %d", c.connects),
			"a client that has no answer gives up",
		}, c.endRef)
	}
	if gap := p.at.Sub(c.connectAt); c.connects > 1 && early {
		return s.diverge(p, difference{
			ConnectEarly, machine.RestsOnOwn, "riptide.type", "1000 ms after the last Connect",
			fmt.Sprintf("%.0f ms", machine.Milliseconds(gap)),
			"Connect is repeated once a heartbeat interval",
		}, c.endRef)
	}
	return nil
}

// beats judges a client's heartbeat.
func (s *judged) beats(j *Judge, p *observed) *machine.Divergence {
	c, m := &s.session, p.m
	defer func() {
		c.own.ping, c.own.pinged, c.own.at, c.own.ref, c.own.waiting = m.Ping, true, p.at, p.ref, true
		c.own.told = int(m.RTT)
	}()
	if !s.ordered {
		s.opinion.Undecided++
		return s.beatRepeats(p)
	}
	pytide := s.behaviour.Port
	if pytide && m.Ping != 1 {
		return s.diverge(p, difference{
			HeartbeatID, machine.RestsOnOwn, "riptide.ping", 1, m.Ping,
			"every heartbeat of this port has id 1",
		}, c.own.ref)
	}
	if pytide && !c.own.pinged && j.connection.asked && m.RTT != 0 {
		return s.diverge(p, difference{
			WrongRTT, machine.RestsOnBoth, "riptide.rtt", 0, m.RTT,
			"this port's RTT is 0 until the first answer",
		}, c.welcome.ref)
	}
	if !c.own.pinged && !pytide && j.connection.asked && m.Ping != 0 {
		return s.diverge(p, difference{
			HeartbeatID, machine.RestsOnAbsence, "riptide.ping", 0, m.Ping,
			"the ping's id of a connection's first heartbeat",
		}, c.welcome.ref)
	}
	if c.own.pinged && !pytide && m.Ping != c.own.ping+1 {
		if v := s.unsentBeat(j.config.Senders[s.side].Codec, p, c.own.ping+1, c.own.ref, true); s.near &&
			m.Ping == c.own.ping+2 && v != nil {
			return v
		}
		return s.diverge(p, difference{
			HeartbeatID, stepsTo(int(int8(m.Ping - (c.own.ping + 1)))), "riptide.ping", c.own.ping + 1, m.Ping,
			"the ping's id steps by one",
		}, c.own.ref)
	}
	if !s.near {
		return nil
	}
	if gap, early := p.at.Sub(c.own.at), s.steps(p); c.own.pinged && early {
		return s.diverge(p, difference{
			HeartbeatEarly, machine.RestsOnOwn, "riptide.ping", "1000 ms after the last heartbeat",
			fmt.Sprintf("%.0f ms", machine.Milliseconds(gap)),
			"a heartbeat is sent once a heartbeat interval",
		}, c.own.ref)
	}
	if pytide {
		c.own.top = int(p.at.Sub(c.own.at) / time.Millisecond) // each copy of the answer counts
	}
	// The library sends its heartbeat before it reads the socket, and TCP may have held the heartbeat back. So the
	// newest answer need not have been read.
	unread := c.own.measured && s.left(p).Sub(c.own.answered) < readMost
	rtt := int(m.RTT)
	// Every heartbeat of Pytide has the same id. So an answer that it reads late counts from the next heartbeat on, as
	// an RTT of one frame.
	repeats := rtt == c.own.told || c.own.unread && rtt >= 0 && rtt <= int(readMost.Milliseconds())
	defer func() { c.own.unread = pytide && unread }()
	switch {
	case !c.own.pinged:
	case unread && repeats:
	case c.own.measured && (rtt < c.own.low || rtt > c.own.top):
		return s.diverge(p, difference{
			WrongRTT, machine.RestsOnBoth, "riptide.rtt", fmt.Sprintf("%d to %d", c.own.low, c.own.top), rtt,
			"the RTT is from the last ping to its answer",
		}, c.own.ref, c.heard.ref)
	case !c.own.measured && !repeats && !c.own.heard &&
		(!j.connection.begun || s.stream && j.sides[s.side.Other()].opened == 0):
		s.opinion.Undecided++ // the first answers of a stream that was joined may not have been found
	case !c.own.measured && !repeats:
		return s.diverge(p, difference{
			WrongRTT, machine.RestsOnBoth, "riptide.rtt", c.own.told, rtt,
			"no answer has come since the last heartbeat",
		}, c.own.ref)
	}
	c.own.measured = false
	return nil
}

// steps records a Connect or a heartbeat of s, and reports whether it comes before its time.
// Over TCP one that was held back may pass shortly before the next. So there each is compared
// with the soonest time at which it can have been sent.
func (s *judged) steps(p *observed) (early bool) {
	c := &s.session
	last := max(c.connectAt, c.own.at)
	if !s.stream {
		return p.at.Sub(last) < riptide.HeartbeatInterval-beatSlack
	}
	switch {
	case c.own.soonest != 0:
		c.own.soonest = max(c.own.soonest.Add(riptide.HeartbeatInterval), s.since)
	case c.connects == 1:
		c.own.soonest = p.at // nothing was sent before that could hold it back
	default:
		c.own.soonest = s.since
	}
	if c.own.soonest == 0 {
		return false
	}
	s.since = max(s.since, c.own.soonest.Add(-beatSlack))
	return p.at < c.own.soonest.Add(-beatSlack)
}

// pongs judges a server's answer to a heartbeat.
func (s *judged) pongs(j *Judge, p *observed) *machine.Divergence {
	c := &s.session
	if !s.ordered {
		s.opinion.Undecided++
		return nil
	}
	for i, a := range c.heard.asked {
		if a.id == p.m.Ping && a.at <= p.at { // of a stream that is found late, older answers come behind it
			s.sends.rtt.fresh.at = 0 // the server knows what it told
			if lost := &c.heard.asked[0]; i > 0 && s.near && !lost.may && !s.joined {
				if v := s.unsentBeat(j.config.Senders[s.side].Codec, p, lost.id, lost.ref, false); v != nil {
					return v
				}
			}
			c.heard.asked = append(c.heard.asked[:0], c.heard.asked[i+1:]...)
			c.heard.answered, s.since = true, max(s.since, a.at)
			return s.echoes(p, &a)
		}
	}
	if s.joined && !c.heard.answered || !c.welcome.known && len(c.heard.asked) == 0 && !c.heard.answered {
		s.opinion.Undecided++
		return nil
	}
	expected := "none"
	if len(c.heard.asked) > 0 {
		expected = fmt.Sprint(c.heard.asked[0].id)
	}
	return s.diverge(p, difference{
		HeartbeatAnswer, machine.RestsOnBoth, "riptide.ping", expected, p.m.Ping,
		"a server answers each heartbeat once, with its id",
	}, c.heard.ref)
}

// echoes judges the RTT of an answer, in a dialect whose answers have one. The document does
// not say whose RTT it is. A server measures none. So it is -1 for none yet, or an RTT that
// the client has told: before this ping, or by it.
func (s *judged) echoes(p *observed, a *askedPing) *machine.Divergence {
	rtt := int(p.m.RTT)
	if !p.m.HasRTT || rtt == -1 || rtt == a.rtt || rtt == a.was || a.was == unheardRTT {
		return nil
	}
	return s.diverge(p, difference{
		WrongRTT, machine.RestsOnBoth, "riptide.rtt", a.was, rtt,
		"a server measures no RTT: an answer repeats one that its client has sent",
	}, a.ref)
}
