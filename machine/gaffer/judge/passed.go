package judge

import "github.com/ackscope/ackscope/machine/gaffer"

// passed records which packets of a side passed the tap, of the newest passedSpan numbers.
type passed struct {
	met   bool
	top   uint32
	first uint32 // the oldest one that passed
	began uint32 // the one that passed first
	span  int    // how many numbers are kept
	// overtaken is how far behind the newest number a packet passed at most, for the first time.
	overtaken int
	any       []uint64 // by sequence modulo their bits; grows with use, up to passedSpan
	cut       []uint64 // of these, the packets that came in fragments
}

// passedSpan is how many of a side's newest packet numbers the judge remembers as
// passed or not.
// Source: bound, the packets of which it is known whether they passed
const passedSpan = 2048

// Pass records a packet of the side that passed the tap. It reports whether the packet is newer
// than all before.
func (p *passed) Pass(r *gaffer.Rules, sequence uint32, fragment bool) (newest bool) {
	ahead := 1
	if p.met {
		ahead = r.Distance(sequence, p.top)
	} else {
		p.met, p.first, p.began, p.top = true, sequence, sequence, sequence-1
	}
	if ahead > 0 {
		p.span = min(p.span+ahead, passedSpan)
		p.fit()
		if ahead >= 64*len(p.any) {
			clear(p.any)
			clear(p.cut)
		} else {
			for q := p.top + 1; ; q++ {
				i, bit := p.place(q)
				p.any[i] &^= bit
				p.cut[i] &^= bit
				if q&r.Mask() == sequence {
					break
				}
			}
		}
		p.top = sequence
	} else if -ahead >= p.span {
		if -ahead >= passedSpan {
			return false
		}
		p.span, p.first = 1-ahead, sequence
		p.fit()
	}
	i, bit := p.place(sequence)
	if p.any[i]&bit == 0 {
		p.overtaken = max(p.overtaken, -ahead)
	}
	p.any[i] |= bit
	if fragment {
		p.cut[i] |= bit
	}
	return ahead > 0
}

// fit makes room for the span.
func (p *passed) fit() {
	if p.span <= 64*len(p.any) {
		return
	}
	old := *p
	n := max(1, 2*len(old.any))
	for 64*n < p.span {
		n *= 2
	}
	p.any, p.cut = make([]uint64, n), make([]uint64, n)
	for k := range uint32(64 * len(old.any)) {
		q := old.top - k
		from, bit := old.place(q)
		to, bit2 := p.place(q)
		if old.any[from]&bit != 0 {
			p.any[to] |= bit2
		}
		if old.cut[from]&bit != 0 {
			p.cut[to] |= bit2
		}
	}
}

func (p *passed) place(q uint32) (word int, bit uint64) {
	return int(q/64) & (len(p.any) - 1), 1 << (q % 64)
}

// passage says how a packet passed the tap.
type passage uint8

const (
	passedNone   passage = iota // it did not pass
	passedBefore                // it is older than the capture, or than what is kept
	passedAhead                 // it is newer than all that passed
	passedWhole
	passedFragments
)

func (p *passed) passage(r *gaffer.Rules, sequence uint32) passage {
	if !p.met {
		return passedAhead
	}
	ahead := r.Distance(sequence, p.top)
	switch {
	case ahead > 0:
		return passedAhead
	case -ahead >= p.span:
		return passedBefore
	}
	i, bit := p.place(sequence)
	switch {
	case p.any[i]&bit == 0:
		return passedNone
	case p.cut[i]&bit != 0:
		return passedFragments
	}
	return passedWhole
}
