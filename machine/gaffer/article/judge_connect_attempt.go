package article

import (
	"fmt"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// attemptsKept is how many connection attempts of a flow the judge keeps.
// Source: bound, the connection attempts that are remembered
const attemptsKept = 4

// attempt is one connection, or one attempt at one.
type attempt struct {
	client     uint64 // the client's salt
	live       bool
	early      bool // it may have begun before the capture
	asked      bool // a request passed
	server     uint64
	challenged bool // a challenge passed, with the salt server
	before     uint64
	twice      bool // another challenge passed before, with the salt before
	answer     uint64
	answered   bool // a response passed, with the salt answer
	confirmed  bool // a keep-alive of the server passed
	kept       bool // a keep-alive of the client passed
	left       [2]int
}

// attempt returns the attempt with a client's salt; nil for none.
func (j *connectJudge) attempt(salt uint64) *attempt {
	for i := range j.attempts {
		if a := &j.attempts[i]; a.live && a.client == salt {
			return a
		}
	}
	return nil
}

// newest returns the attempt that began last; nil for none.
func (j *connectJudge) newest() *attempt {
	if a := &j.attempts[(j.turn+attemptsKept-1)%attemptsKept]; a.live {
		return a
	}
	return nil
}

// open begins an attempt with a packet, in the place of the oldest one that is kept.
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
