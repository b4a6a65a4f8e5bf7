package riptide

import (
	"fmt"
	"math"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// What a verdict needs.
const (
	claimBits     = 16 // with a relation between the two sides, or several Connects on time
	settledBits   = 80
	settledLead   = 16 // over the next dialect
	settledAfter  = 12 // datagrams
	settledAnyway = 48 // though nothing has told releases apart
	unsureLead    = 6  // below it another dialect is nearly as good
)

// total gives the evidence for a hypothesis, both sides together.
func (c *classifier) total(h int) float64 {
	sum := 0.0
	for side := range c.sides[h] {
		sum += c.sides[h][side].bits
	}
	return sum
}

// Verdict tells what the flow is taken for.
func (c *classifier) Verdict() dissect.Verdict {
	n := c.packets[0] + c.packets[1]
	if n == 0 {
		return dissect.Verdict{Reason: "no datagram yet"}
	}
	best, bestBits := c.best(nil)
	if best < 0 {
		return dissect.Verdict{Bits: 0, Reason: "not Riptide: " + c.unreadable(), Settled: n >= 4}
	}
	a, b := &c.sides[best][0], &c.sides[best][1]
	related := a.relations | b.relations
	if !c.claims(bestBits, related) {
		return dissect.Verdict{Bits: max(bestBits, 0), Reason: fmt.Sprintf(
			"not Riptide: %d of %d datagrams read as %s, but they do not relate to each other as its acks, heartbeats and handshakes do",
			a.fits+b.fits, n, hypotheses[best].Dialect.Name)}
	}
	s := c.settings(best)
	v := dissect.Verdict{Config: config(s), Bits: bestBits, Confidence: 1 - math.Exp2(-(bestBits-claimBits+6)/6)}
	v.Reason = c.reason(best, s)
	next, nextBits := c.best(hypotheses[best].Dialect)
	lead := bestBits - max(nextBits, 0)
	if next >= 0 && lead < unsureLead {
		v.Confidence = min(v.Confidence, 0.5)
		v.Reason += "; nothing seen so far tells it from " + hypotheses[next].Dialect.Name
	}
	v.Settled = c.settled(best, bestBits, lead)
	return v
}

// claims reports whether the evidence carries a verdict.
func (c *classifier) claims(bits float64, related relation) bool {
	return bits >= claimBits && (related&relCross != 0 || related&relConnects != 0 || c.oneWay(related))
}

// settled reports whether further datagrams would hardly change the verdict.
func (c *classifier) settled(best int, bits, lead float64) bool {
	n := c.packets[0] + c.packets[1]
	return n >= settledAfter && bits >= settledBits && lead >= settledLead &&
		(n >= settledAnyway || c.sides[best][0].told(best) && c.sides[best][1].told(best))
}

// Sure reports whether the dialect is found and settled.
func (c *classifier) Sure() bool {
	best, bits := c.best(nil)
	if best < 0 || !c.claims(bits, c.sides[best][0].relations|c.sides[best][1].relations) {
		return false
	}
	_, next := c.best(hypotheses[best].Dialect)
	return c.settled(best, bits, bits-max(next, 0))
}

// best gives the hypothesis with the most evidence, of another dialect than
// but; -1 where none reads both sides.
func (c *classifier) best(but *wire.Dialect) (best int, bits float64) {
	best, bits = -1, math.Inf(-1)
	for h := range hypotheses {
		if c.sides[h][0].dead || c.sides[h][1].dead || hypotheses[h].Dialect == but {
			continue
		}
		if sum := c.total(h); sum > bits {
			best, bits = h, sum
		}
	}
	return best, bits
}

// told reports whether what a side sent has told builds of its dialect apart.
func (s *sender) told(h int) bool {
	all := wire.BuildsOf(hypotheses[h].Dialect)
	return s.builds != all || all.Single()
}

// oneWay reports whether a flow of which only one direction was captured shows
// relations enough.
func (c *classifier) oneWay(r relation) bool {
	return (c.packets[0] == 0 || c.packets[1] == 0) && r&relBeats != 0 && r&(relSequence|relNotify) != 0
}

func (c *classifier) settings(h int) *Settings {
	s := &Settings{}
	for side := range s.Senders {
		s.Senders[side] = Sender{Codec: hypotheses[h], Builds: c.sides[h][side].builds}
		s.Senders[side].Codec.NotifyHeader = c.sides[h][side].headerBits > 2*worthNotify
	}
	s.bodies = c.user.bodiesOf(s)
	return s
}

func (c *classifier) unreadable() string {
	fits := uint32(0)
	name := ""
	for h := range hypotheses {
		if n := c.sides[h][0].fits + c.sides[h][1].fits; n >= fits {
			fits, name = n, hypotheses[h].Dialect.Name
		}
	}
	if fits == 0 {
		return "no datagram reads in any of its dialects"
	}
	return fmt.Sprintf("no dialect reads both sides' datagrams; %s most, %d of them", name, fits)
}

// reason puts the evidence into words.
func (c *classifier) reason(h int, s *Settings) string {
	a, b := &c.sides[h][0], &c.sides[h][1]
	var said []string
	both := a.relations | b.relations
	if both&relHandshake != 0 {
		switch {
		case a.welcomed && b.welcomed:
			said = append(said, "Welcome answered by Welcome")
		case a.rejects+b.rejects > 0:
			said = append(said, "Connect answered by Reject")
		default:
			said = append(said, "Connect answered")
		}
	}
	if n := a.acks + b.acks; n > 0 {
		said = append(said, fmt.Sprintf("%d acks name reliable messages of the other side", n))
	}
	if n := a.beats + b.beats; n > 0 {
		said = append(said, fmt.Sprintf("%d heartbeats a second apart", n))
	}
	if both&relNotifyAck != 0 {
		said = append(said, "notify headers name each other")
	}
	if both&relConnects != 0 {
		said = append(said, fmt.Sprintf("%d Connects a second apart", a.connects+b.connects))
	}
	read := fmt.Sprintf("%d of %d datagrams read as %s", a.fits+b.fits, c.packets[0]+c.packets[1], hypotheses[h].Dialect.Name)
	return read + versions(c, s) + ": " + strings.Join(said, ", ")
}

// versions names the builds that each side can be.
func versions(c *classifier, s *Settings) string {
	var out []string
	for side, n := range c.packets {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s is %s", machine.Side(side), s.Version(machine.Side(side))))
		}
	}
	return " (" + strings.Join(out, ", ") + ")"
}
