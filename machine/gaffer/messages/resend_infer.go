package messages

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const (
	// resendTells is how many repeats must agree with a policy for it to be likely.
	// Source: unmeasured, a divergence that it decides is likely at most
	resendTells = 8
	// laterTells is how many later repeats of messages must be measured to tell whether
	// their waits are as long as the first.
	// Source: unmeasured, a divergence that it decides is likely at most
	laterTells = 4
	// floorTells is how many messages must be measured to tell how long most of them wait.
	// Source: unmeasured, a divergence that it decides is likely at most
	floorTells = 16
	// resendShare is the share of a side's repeats that must agree with a policy. The rest
	// is at odds with it.
	// Source: unmeasured, a divergence that it decides is likely at most
	resendShare = 0.8
	// resendSpread is the share of the best agreement that a value within the bounds of a
	// policy has. Away from the tap some repeats are not what they seem: the first copy of
	// the message was lost before the tap.
	// Source: unmeasured, a divergence that it decides is likely at most
	resendSpread, farSpread = 0.98, 0.9
	// nearRTTSlack and farRTTSlack are the shares by which the rebuilt RTT of a sender may
	// be off, at the tap and away from it.
	// Source: unmeasured, a divergence that it decides is likely at most
	nearRTTSlack, farRTTSlack = 0.01, 0.1
	// backoffLevels is up to which send the waits of a back-off are told apart.
	// Source: bound, the waits of a back-off
	backoffLevels = 16
	// backoffSteps is how many growth factors of a back-off are tried.
	// Source: bound, the growth factors that are tried
	backoffSteps = 600
	// backoffGrows is the least growth factor of a back-off.
	// Source: bound, the growth factors that are tried
	backoffGrows = 1.02
	// backoffShows is the least growth factor that is named where the waits need not grow.
	// Source: unmeasured, it decides only which policies are named
	backoffShows = 1.25
)

// floor finds the wait that most messages exceed, from their first repeats and from those
// that were acked before one. By no policy does a correct sender stay below both figures.
func (e *ResendEvidence) floor(p *ResendInference) {
	var times, factors []float64
	add := func(over, rtt time.Duration) {
		if rtt > 0 {
			times, factors = append(times, float64(over)), append(factors, float64(over)/float64(rtt))
		}
	}
	for i := range e.repeats {
		if r := &e.repeats[i]; r.nth == 1 {
			add(r.over, r.rtt)
		}
	}
	for _, q := range e.quiet {
		add(q.over, q.rtt)
	}
	if len(times) < floorTells || len(e.quiet) == 0 {
		return
	}
	slices.Sort(times)
	slices.Sort(factors)
	at := int((1 - resendShare) * float64(len(times)))
	jitter, off := gaffer.TapJitter, e.rttSlack()
	p.Floor, p.FloorTimes = max(0, time.Duration(times[at])-jitter), factors[at]*(1-off)
}

// grow reports whether most waits of later repeats are longer than a value, which then is
// no policy. Shorter ones do not count: by no policy do waits become shorter.
func grow(spans []weighed, at span) bool {
	later, longer := 0, 0
	for _, s := range spans {
		if s.later {
			if later++; s.from > at.to {
				longer++
			}
		}
	}
	return later >= laterTells && 2*longer > later
}

// infer finds the policies that agree with the repeats.
func (e *ResendEvidence) infer() *ResendInference {
	p := &ResendInference{Repeats: e.total, rtts: e.rtts.clone()}
	var times, factors []weighed
	jitter, off := gaffer.TapJitter, e.rttSlack()
	e.floor(p)
	odd := 0
	repeats := slices.DeleteFunc(slices.Clone(e.repeats), func(r repeat) bool {
		early := r.within+jitter < p.Floor && float64(r.within+jitter) < p.FloorTimes*float64(r.rtt)
		if early {
			odd++ // most messages wait longer
		}
		return early || r.rtt == 0
	})
	if p.Young = len(repeats) < resendTells; p.Young {
		repeats = e.repeats
	}
	later := 0
	for i := range repeats {
		r := &repeats[i]
		p.Levels = max(p.Levels, r.nth)
		if r.nth > 1 {
			later++
		}
		at := r.allows(jitter)
		times = append(times, at)
		if rtt := float64(r.rtt); rtt > 0 {
			factors = append(factors, weighed{
				span{at.from / rtt * (1 - off), at.to / rtt * (1 + off)}, at.weight, at.later,
			})
		}
	}
	if later < laterTells {
		p.Levels = min(p.Levels, 1)
	}
	if f, ok := fitFixed(times, jitter, e.spread()); ok {
		p.Forms = append(p.Forms, f)
	}
	if f, ok := fitRTT(factors, e.spread()); ok {
		p.Forms = append(p.Forms, f)
	}
	if f, ok := fitBackoff(repeats, jitter, e.spread()); ok {
		p.Forms = append(p.Forms, f)
	}
	best := 0.
	for i := range p.Forms {
		p.Forms[i].Of += odd
		best = max(best, p.Forms[i].share)
	}
	rank := func(f *ResendForm) int { // a round value before another, if the repeats do not decide
		switch {
		case f.Resend.Policy == wire.ResendBackoff && !f.grows:
			return 3 // it may be one, and nothing speaks for it
		case f.Resend.Policy == wire.ResendBackoff && f.share == best && p.Forms[0].share < best:
			return -1 // the waits of later repeats grow, and it alone explains that
		case f.share < resendSpread*best:
			return 2
		case !f.round():
			return 1
		}
		return 0
	}
	slices.SortStableFunc(p.Forms, func(a, b ResendForm) int { return rank(&a) - rank(&b) })
	// At the tap the right form agrees best: repeats that are at odds with it are faults.
	if e.near {
		p.Forms = slices.DeleteFunc(p.Forms, func(f ResendForm) bool { return rank(&f) == 2 })
	}
	return p
}

// allows returns the waits that the repeat allows.
func (r *repeat) allows(jitter time.Duration) weighed {
	return weighed{span{float64(r.over - jitter), float64(r.within + jitter)}, 1 / float64(r.nth), r.nth > 1}
}

func fitFixed(times []weighed, jitter time.Duration, spread float64) (f ResendForm, ok bool) {
	at, share, agree := densest(times, spread)
	if share < resendShare || grow(times, at) {
		return f, false
	}
	f = ResendForm{
		Least: time.Duration(max(at.from, 0)), Most: time.Duration(at.to), Agree: agree, Of: len(times), share: share,
	}
	f.Resend.After = roundTime(span{at.from + float64(jitter), at.to - float64(jitter)}, at)
	return f, true
}

func fitRTT(factors []weighed, spread float64) (f ResendForm, ok bool) {
	at, share, agree := densest(factors, spread)
	if share < resendShare || grow(factors, at) || at.to < wire.ResendTimesLeast || at.from > wire.ResendTimesMost {
		return f, false
	}
	f = ResendForm{TimesLeast: max(at.from, 0), TimesMost: at.to, Agree: agree, Of: len(factors), share: share}
	f.Resend = wire.Resend{Policy: wire.ResendRTT, After: wire.ResendUsual, Times: roundTimes(at)}
	return f, true
}
