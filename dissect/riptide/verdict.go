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
	settledAnyway = 48 // even if nothing distinguished releases
	unsureLead    = 6  // below it another dialect is nearly as good
	apartBits     = 40 // of one side, with no relation to the other
	otherLead     = 9  // by which a side's packets must favour another dialect than the other side's
)

// choice is the hypothesis for each side's packets. Both are usually alike, but each sender is
// classified on its own.
type choice [2]int

// dialect returns a side's dialect.
func (x choice) dialect(s machine.Side) *wire.Dialect { return hypotheses[x[s]].Dialect }

// side returns the evidence in a side's packets under the choice.
func (c *classifier) side(x choice, s machine.Side) *sender { return &c.sides[x[s]][s] }

// total returns the evidence for a hypothesis, both sides together.
func (c *classifier) total(h int) float64 { return c.sides[h][0].bits + c.sides[h][1].bits }

// chosen returns how each side is read, with the evidence for it. It returns false where that is
// not possible.
//
// Nearly always one hypothesis reads both sides, and related packets of the two decide for it.
// There are two exceptions:
//
//   - A side can be another implementation with the same headers, as its own packets show. The
//     notes and source builds of 2023 are an example.
//   - If no hypothesis reads both sides, each side is what its own packets show.
func (c *classifier) chosen() (x choice, bits float64, ok bool) {
	best, bits := c.best(nil)
	if best >= 0 {
		x = choice{best, best}
	}
	switch {
	case best < 0 || !c.claims(bits, c.side(x, machine.A).relations|c.side(x, machine.B).relations):
		if y, more, apart := c.apart(); apart {
			return y, more, true
		}
		return x, bits, best >= 0
	case bits-c.unlike(best) < unsureLead:
		return x, bits, true
	}
	for _, s := range []machine.Side{machine.A, machine.B} {
		own := c.sides[best][s].bits
		for h := range hypotheses {
			// Its header values must be the same. Otherwise the packets related to the other side were
			// misread.
			if c.sides[h][machine.A].dead || c.sides[h][machine.B].dead || !likeness[h][best] {
				continue
			}
			if more := c.sides[h][s].bits - own; more >= otherLead {
				bits += more
				own, x[s] = c.sides[h][s].bits, h
			}
		}
	}
	return x, bits, true
}

// unlike returns the evidence for the best hypothesis with other header values than the given one.
func (c *classifier) unlike(best int) (bits float64) {
	for h := range hypotheses {
		if !c.sides[h][0].dead && !c.sides[h][1].dead && !likeness[h][best] {
			bits = max(bits, c.total(h))
		}
	}
	return bits
}

// likeness holds the result of alike for every two hypotheses.
var likeness = func() (out [hypothesisCount][hypothesisCount]bool) {
	for a := range out {
		for b := range out[a] {
			out[a][b] = alike(hypotheses[a], hypotheses[b])
		}
	}
	return out
}()

// alike reports whether two codecs give the header values the same meaning.
func alike(a, b wire.Codec) bool {
	if a.Dialect.Form != b.Dialect.Form || a.BigEndian != b.BigEndian {
		return false
	}
	for v := range uint8(16) {
		x, known := a.Dialect.TypeOf(v)
		y, too := b.Dialect.TypeOf(v)
		if x != y || known != too {
			return false
		}
	}
	return true
}

// apart chooses a hypothesis for each side by itself, where no dialect relates the two. Each side
// must show heartbeats of its own, on time, and much other evidence.
func (c *classifier) apart() (x choice, bits float64, ok bool) {
	for s := range x {
		x[s] = -1
		most := float64(apartBits)
		for h := range hypotheses {
			if w := &c.sides[h][s]; !w.dead && w.bits >= most && w.relations&relBeats != 0 {
				x[s], most = h, w.bits
			}
		}
		if x[s] < 0 {
			return x, 0, false
		}
		bits += most
	}
	return x, bits, true
}

// Verdict returns how the flow is read, with the reason.
func (c *classifier) Verdict() dissect.Verdict {
	n := c.packets[0] + c.packets[1]
	if n == 0 {
		return dissect.Verdict{Reason: "no datagram yet"}
	}
	best, bestBits, ok := c.chosen()
	if !ok {
		return dissect.Verdict{Bits: 0, Reason: "not Riptide: " + c.unreadable(), Settled: n >= 4}
	}
	a, b := c.side(best, machine.A), c.side(best, machine.B)
	related := a.relations | b.relations
	mixed := best[machine.A] != best[machine.B]
	if !mixed && !c.claims(bestBits, related) {
		return dissect.Verdict{Bits: max(bestBits, 0), Reason: c.unrelated(a.fits+b.fits, n, best.dialect(machine.A).Name)}
	}
	s := c.settings(best)
	v := dissect.Verdict{Config: c.config(s), Bits: bestBits, Confidence: 1 - math.Exp2(-(bestBits-claimBits+6)/6)}
	v.Reason = c.reason(best, s)
	next, nextBits := c.best(best.dialect(machine.A))
	lead := bestBits - max(nextBits, 0)
	if next >= 0 && !mixed && lead < unsureLead {
		v.Confidence = min(v.Confidence, 0.5)
		v.Reason += "; nothing seen so far tells it from " + hypotheses[next].Dialect.Name
	}
	v.Settled = c.settled(best, bestBits, lead)
	return v
}

// unrelated says that packets can be read, and no more. Nearly every flow of another protocol has
// that verdict, and few show it. So very many short flows share a text.
func (c *classifier) unrelated(fits, of uint32, dialect string) string {
	key := unrelatedKey{fits, of, dialect}
	if c.said == nil || len(c.said) >= saidMost {
		c.said = map[unrelatedKey]string{}
	}
	if _, ok := c.said[key]; !ok {
		c.said[key] = fmt.Sprintf("not Riptide: %d of %d datagrams read as %s, but they do not relate to each other as "+
			"its acks, heartbeats and handshakes do", fits, of, dialect)
	}
	return c.said[key]
}

// claims reports whether the evidence is enough for a verdict.
func (c *classifier) claims(bits float64, related relation) bool {
	return bits >= claimBits && (related&relCross != 0 || related&relConnects != 0 || c.oneWay(related))
}

// SureFrom returns the least number of datagrams after which Sure can be true.
func (c *classifier) SureFrom() int { return settledAfter }

// settled reports whether further datagrams would hardly change the verdict.
func (c *classifier) settled(best choice, bits, lead float64) bool {
	n := c.packets[0] + c.packets[1]
	return n >= settledAfter && bits >= settledBits && lead >= settledLead &&
		(n >= settledAnyway ||
			c.side(best, machine.A).narrowed(best[machine.A]) && c.side(best, machine.B).narrowed(best[machine.B]))
}

// Sure reports whether the dialect is found and settled.
func (c *classifier) Sure() bool {
	best, bits, ok := c.chosen()
	if !ok || best[0] == best[1] && !c.claims(bits, c.side(best, machine.A).relations|c.side(best, machine.B).relations) {
		return false
	}
	_, next := c.best(best.dialect(machine.A))
	return c.settled(best, bits, bits-max(next, 0))
}

// best returns the hypothesis with the most evidence, without those of dialect but. It returns -1
// where none reads both sides.
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

// narrowed reports whether what a side sent excludes some builds of its dialect.
func (s *sender) narrowed(h int) bool {
	all := wire.BuildsOf(hypotheses[h].Dialect)
	return s.builds != all || all.Single()
}

// oneWay reports whether a flow with only one captured direction shows enough relations.
func (c *classifier) oneWay(r relation) bool {
	return (c.packets[0] == 0 || c.packets[1] == 0) && r&relBeats != 0 && r&(relSequence|relNotify) != 0
}

// config wraps settings, once for all flows that have the same.
func (c *classifier) config(s *Settings) *dissect.Config {
	known := c.shared[s.Senders]
	if known == nil {
		known = config(s)
		if len(c.shared) < sharedMost {
			c.shared[s.Senders] = known
		}
	}
	return known
}

func (c *classifier) settings(x choice) *Settings {
	s := &Settings{}
	for side := range s.Senders {
		w := c.side(x, machine.Side(side))
		s.Senders[side] = Sender{Codec: hypotheses[x[side]], Builds: w.builds}
		s.Senders[side].Codec.NotifyHeader = w.headerBits > 2*worthNotify
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

// reason describes the evidence.
func (c *classifier) reason(x choice, s *Settings) string {
	a, b := c.side(x, machine.A), c.side(x, machine.B)
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
	name := x.dialect(machine.A).Name
	if x[machine.A] != x[machine.B] {
		name = "a as " + name + ", b as " + x.dialect(machine.B).Name
	}
	read := fmt.Sprintf("%d of %d datagrams read as %s", a.fits+b.fits, c.packets[0]+c.packets[1], name)
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
