package netcode

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const (
	// netcodeClockSlack is how long before the first request a token must have expired, in
	// seconds. The clocks of two hosts that follow NTP differ by less.
	// Source: law, RFC 5905, STEPT: NTP steps a clock that is off by more than 0.125 s
	netcodeClockSlack = 1.0
	// netcodeSkewMost is the largest difference between two clocks that is worth a word where
	// the token was valid, in seconds.
	// Source: definition, netcode-no-answer: a clock that is an hour off has a wrong zone, and more is rare
	netcodeSkewMost = 3600.0
)

// token is the connect token of an attempt to connect, as its requests show it. The zero value
// has seen no request that was captured whole.
type token struct {
	known    bool
	expire   uint64 // Unix time in seconds from which on the server ignores it
	first    moment // its first request
	last     moment // its last one
	requests int
	answer   moment // what first shows that the server took it
	answered bool
	used     bool // a connection began with it before this attempt
}

// moment is a datagram.
type moment struct {
	at  machine.Instant
	ref machine.Ref
}

// ask notes a request with the token.
func (t *token) ask(d *machine.Datagram, expire uint64) {
	now := moment{d.At, d.Ref}
	if t.requests == 0 {
		t.known, t.expire, t.first = true, expire, now
	}
	t.last = now
	t.requests++
}

// late returns how long before the first request the token had expired, by the capture's clock.
// It is negative if the token was valid. The unit is seconds. Any 64-bit time is in range.
func (t *token) late() float64 {
	second, rest := int64(t.first.at)/1e9, int64(t.first.at)%1e9
	var whole float64
	if second >= 0 && t.expire <= uint64(second) {
		whole = float64(uint64(second) - t.expire) // exact: near the limit, a fraction of a second decides
	} else {
		whole = -(float64(t.expire) - float64(second))
	}
	return whole + float64(rest)/1e9
}

// expired returns since when the token had expired, in seconds, and how surely that explains a
// silence. The certainty is unknown if it had not.
func (t *token) expired() (late float64, sure machine.Certainty) {
	if !t.known {
		return 0, machine.Unknown
	}
	late = t.late()
	switch {
	case late < 0:
		return late, machine.Unknown
	case t.requests < 2 || late < netcodeClockSlack || t.used:
		return late, machine.Possible
	}
	return late, machine.Likely
}

// settleToken reports what became of an attempt to connect whose token had expired. It returns
// false if the attempt needs another explanation.
func (n *Flow) settleToken(out *machine.Effects) bool {
	t := &n.token
	late, sure := t.expired()
	if sure == machine.Unknown {
		return false
	}
	if t.answered {
		out.At(t.answer.at, t.answer.ref).Report(ClockBehind, n.client.Other(), machine.Likely, t.first.ref, late)
		return false
	}
	out.At(t.last.at, t.last.ref).Report(TokenExpired, n.client, sure, t.first.ref, late, float64(t.requests),
		t.last.at.Sub(t.first.at).Seconds())
	return sure == machine.Likely
}

// noteAnswer notes a datagram that shows that the server took the token: a challenge, or a
// refusal for want of a slot. The client's response shows a challenge that was not captured.
func (t *token) noteAnswer(d *machine.Datagram, kind uint8) {
	if t.answered || kind != wire.NetcodeChallenge && kind != wire.NetcodeDenied && kind != wire.NetcodeResponse {
		return
	}
	t.answered, t.answer = true, moment{d.At, d.Ref}
}

// span formats a time in seconds, in the largest unit of which it has two.
func span(seconds float64) string {
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 2*60:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 2*3600:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 2*86400:
		return fmt.Sprintf("%.0f h", seconds/3600)
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}

// left returns for how many seconds the token was still valid at the first request. It is 0 if
// that is not known, or too long for two clocks to differ by it.
func (t *token) left() float64 {
	if !t.known {
		return 0
	}
	if left := -t.late(); left > 0 && left <= netcodeSkewMost {
		return left
	}
	return 0
}
