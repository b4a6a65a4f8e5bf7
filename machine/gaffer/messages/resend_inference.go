package messages

import (
	"fmt"
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ResendInferences are those of both sides, as machine.Facts.Settings holds them.
type ResendInferences [2]*ResendInference

// ResendInference is what the repeats of one side show of its resend policy.
type ResendInference struct {
	Repeats uint64 // that were measured
	// Forms are the policies that agree with the repeats, the usual one first.
	Forms []ResendForm
	// Levels is the most sends of a message before a repeat that was measured. Of later
	// waits nothing is known: they may be longer. It is 1 if too few were measured.
	Levels int
	// Young is set if most repeats are from before the side had an RTT. A multiple of the
	// RTT would show only later.
	Young bool

	// Most messages wait longer than Floor before they go out again, and longer than
	// FloorTimes times the RTT. Both are 0 if too few messages were measured.
	Floor      time.Duration
	FloorTimes float64

	rtts rttHistory
}

// ResendForm is one policy that agrees with the repeats of a side.
type ResendForm struct {
	Resend wire.Resend // the roundest value within the bounds
	// Least and Most bound the fixed time, or the first wait of a back-off.
	Least, Most time.Duration
	// TimesLeast and TimesMost bound the multiple of the RTT, or the growth of a back-off.
	TimesLeast, TimesMost float64
	Agree, Of             int // repeats that agree with it, of those that it speaks of
	share                 float64
	grows                 bool // the waits of a back-off do grow
	waits                 []span
}

// Certainty grades the policy that is named, the first of Forms.
func (p *ResendInference) Certainty() machine.Certainty {
	switch {
	case p == nil || len(p.Forms) == 0:
		return machine.Unknown
	case p.Young, p.Forms[0].Agree < resendTells, len(p.Forms) > 1 && p.Forms[1].as(&p.Forms[0]):
		return machine.Possible
	}
	return machine.Likely
}

// as reports whether nothing speaks for form g rather than f: both agree as well with the
// repeats, and both have a round value. For example, 120 ms and 1.5 times an RTT of 80 ms.
func (f *ResendForm) as(g *ResendForm) bool {
	return f.Resend.Policy != wire.ResendBackoff && g.Resend.After != wire.ResendUsual && f.round() && g.round() &&
		f.share >= resendSpread*g.share
}

// round reports whether the value is one that a programmer would choose.
func (f *ResendForm) round() bool {
	if f.Resend.Policy == wire.ResendRTT {
		return math.Mod(f.Resend.Times, 0.25) == 0
	}
	return f.Resend.After%(5*time.Millisecond) == 0
}

// Named returns the first of Forms. It returns the zero value if there is none.
func (p *ResendInference) Named() (r wire.Resend) {
	if p != nil && len(p.Forms) > 0 {
		r = p.Forms[0].Resend
	}
	return r
}

// Bounds says within which times the side's policy is, if one is named: "83.3 to 101.0 ms".
func (f *ResendForm) Bounds() string {
	times := fmt.Sprintf("%.2f to %.2f", f.TimesLeast, f.TimesMost)
	first := fmt.Sprintf("%s to %s ms", milliseconds(f.Least), milliseconds(f.Most))
	switch f.Resend.Policy {
	case wire.ResendRTT:
		return times + " × RTT"
	case wire.ResendBackoff:
		return first + ", then × " + times
	}
	return first
}

// Why says what the form rests on: "124 of 126 repeats agree".
func (f *ResendForm) Why() string { return fmt.Sprintf("%d of %d repeats agree", f.Agree, f.Of) }

// tells reports whether the policies that agree rest on enough repeats to hold a side to
// them.
func (p *ResendInference) tells() bool {
	return !p.Young && len(p.Forms) > 0 && p.Forms[0].Agree >= resendTells
}

// wait returns the bounds of the wait after a message's send number sends, which was at
// from. It is to now that the message waited. most is 0 if it is not known, and ok is
// false if nothing is.
func (p *ResendInference) wait(sends int, from, now machine.Instant) (least, most time.Duration, ok bool) {
	if !p.tells() {
		shortest, _, known := p.rtts.between(from, now)
		least = min(p.Floor, time.Duration(p.FloorTimes*float64(shortest)))
		return least, 0, known && least > 0
	}
	least = math.MaxInt64
	for i := range p.Forms {
		f := &p.Forms[i]
		a, b := f.Least, f.Most
		switch f.Resend.Policy {
		case wire.ResendRTT:
			shortest, longest, known := p.rtts.between(from, now)
			if !known {
				return 0, 0, false
			}
			a, b = time.Duration(f.TimesLeast*float64(shortest)), time.Duration(f.TimesMost*float64(longest))
		case wire.ResendBackoff:
			if sends <= 0 || sends >= len(f.waits) || f.waits[sends].to == 0 {
				sends = 0
			} else {
				a, b = time.Duration(f.waits[sends].from), time.Duration(f.waits[sends].to)
			}
		}
		least, most = min(least, a), max(most, b)
	}
	if sends <= 0 || sends > p.Levels {
		most = 0
	}
	return least, most, true
}
