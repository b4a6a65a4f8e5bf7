package messages

import (
	"math"
	"time"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// fitBackoff finds the back-off that agrees with the repeats. It finds none if the waits
// hardly can grow.
func fitBackoff(repeats []repeat, jitter time.Duration, spread float64) (f ResendForm, ok bool) {
	var by [backoffLevels + 1][]weighed
	for i := range repeats {
		if r := &repeats[i]; r.nth <= backoffLevels {
			by[r.nth] = append(by[r.nth], r.allows(jitter))
		}
	}
	waits := make([]span, len(by))
	top, grows, before := 0, false, math.Inf(1)
	for n := range by {
		if len(by[n]) < 2 {
			continue // one repeat may be at odds with the rest
		}
		at, share, _ := densest(by[n], spread)
		if share < resendShare {
			continue
		}
		waits[n] = span{max(at.from, 1), at.to}
		grows = grows || waits[n].from > before
		before = min(before, at.to)
		top = n
	}
	if waits[1].to == 0 {
		return f, false
	}
	bounded, g, ok := 0, span{math.Inf(1), 0}, false
	for n := top + 1; n >= 2; n-- { // the first send whose wait is the longest one
		h, fits := growth(waits, n)
		switch {
		case !fits || ok && n == 2: // with the longest wait next to the first one, any growth fits
			continue
		case !ok:
			bounded, ok = n, true
		}
		g = span{min(g.from, h.from), max(g.to, h.to)}
	}
	if !ok || !grows && (top < 2 || g.to < backoffShows) {
		return f, false
	}
	f.grows = grows
	f.TimesLeast, f.TimesMost = g.from, g.to
	f.Least, f.Most = time.Duration(waits[1].from), time.Duration(waits[1].to)
	f.Resend = wire.Resend{Policy: wire.ResendBackoff, Times: roundGrowth(g)}
	first, ok := firstWait(waits, bounded, f.Resend.Times)
	if !ok {
		h, _ := growth(waits, bounded)
		f.Resend.Times = math.Round(1e6*math.Sqrt(h.from*h.to)) / 1e6
		first, _ = firstWait(waits, bounded, f.Resend.Times)
	}
	f.Resend.After = roundTime(span{first.from + float64(jitter), first.to - float64(jitter)}, first)
	if last, _ := longest(waits, bounded); bounded <= top {
		f.Resend.Most = max(f.Resend.After,
			roundTime(span{last.from + float64(jitter), last.to - float64(jitter)}, last))
	}
	f.waits = waits
	agree, of := 0., 0.
	for n := range by {
		w := float64(f.Resend.Wait(n, 0))
		for _, r := range by[n] {
			f.Of++
			if of += r.weight; r.from <= w && w <= r.to {
				f.Agree++
				agree += r.weight
			}
		}
	}
	f.share = agree / of
	return f, f.share >= resendShare
}

// growth returns the growth factors with which a back-off has the given waits. From send
// number bounded on, its wait is the longest one.
func growth(waits []span, bounded int) (g span, ok bool) {
	if _, possible := longest(waits, bounded); !possible {
		return g, false
	}
	step := math.Pow(wire.ResendTimesMost/backoffGrows, 1./backoffSteps)
	for i, factor := 0, backoffGrows; i < backoffSteps; i, factor = i+1, factor*step {
		if _, fits := firstWait(waits, bounded, factor); !fits {
			continue
		}
		if !ok {
			g.from, ok = factor/step, true
		}
		g.to = factor * step
	}
	return g, ok
}

// firstWait returns the first waits with which a back-off of a growth factor has the
// given waits.
func firstWait(waits []span, bounded int, factor float64) (first span, ok bool) {
	first = span{1, math.MaxInt64 / 2}
	for n := 1; n < min(bounded, len(waits)); n++ {
		if w := waits[n]; w.to > 0 {
			power := math.Pow(factor, float64(n-1))
			first = span{max(first.from, w.from/power), min(first.to, w.to/power)}
		}
	}
	if last, bound := longest(waits, bounded); bound && last.from > 1 {
		// Without the bound, the wait would be longer. The wait before is not.
		first.from = max(first.from, last.from/math.Pow(factor, float64(bounded-1)))
		first.to = min(first.to, last.to/math.Pow(factor, float64(bounded-2)))
	}
	return first, first.from <= first.to
}

// longest returns what the longest wait of a back-off can be that send number bounded is
// the first to have.
func longest(waits []span, bounded int) (last span, ok bool) {
	last = span{1, math.MaxInt64 / 2}
	for n := bounded; n < len(waits); n++ {
		if w := waits[n]; w.to > 0 {
			last = span{max(last.from, w.from), min(last.to, w.to)}
		}
	}
	return last, last.from <= last.to
}
