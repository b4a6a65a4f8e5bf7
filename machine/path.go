package machine

import "math"

// PathLoss counts how many of a side's packets were lost on the way to its
// peer. It counts a packet once evidence settles whether it arrived. A packet
// without evidence counts neither as lost nor as arrived. The zero value is
// empty.
type PathLoss struct {
	Settled uint64 // packets whose fate on the path is settled
	Lost    uint64 // of the settled packets
	Blocks  uint64 // of PathBlock settled packets each; the last one may be short
	Lossy   uint64 // of the blocks: those in which a packet was lost

	inBlock uint8
	lossy   bool // the block that is being filled already counts as lossy
}

// PathBlock is how many settled packets make a block. Loss is steady where most
// blocks have some. At 3 % steady loss, a block of 64 packets has some with a
// chance of 1 - 0.97^64 = 86 %.
// Source: definition, steady-loss: a loss is steady where most blocks of 64 packets have some
const PathBlock = 64

// Settle counts one packet whose fate is known.
func (p *PathLoss) Settle(lost bool) {
	if p.inBlock == 0 {
		p.Blocks++
		p.inBlock, p.lossy = PathBlock, false
	}
	p.inBlock--
	p.Settled++
	if !lost {
		return
	}
	p.Lost++
	if !p.lossy {
		p.lossy = true
		p.Lossy++
	}
}

// SettleLost counts n lost packets in a row.
func (p *PathLoss) SettleLost(n uint64) {
	for ; n > 0 && (p.inBlock > 0 || n < PathBlock); n-- {
		p.Settle(true)
	}
	// Count whole blocks at once: a gap of millions of numbers costs as much as
	// one of ten.
	p.Settled, p.Lost, p.Blocks, p.Lossy = p.Settled+n, p.Lost+n, p.Blocks+n/PathBlock, p.Lossy+n/PathBlock
	for n %= PathBlock; n > 0; n-- {
		p.Settled, p.Lost = p.Settled-1, p.Lost-1
		p.Settle(true)
	}
}

// Found undoes one loss: the packet came late.
func (p *PathLoss) Found() {
	if p.Lost > 0 {
		p.Lost--
	}
}

// Forget removes one packet that was counted as lost: the capture lost it, so
// it shows nothing about the path.
func (p *PathLoss) Forget() {
	if p.Lost > 0 {
		p.Lost--
		p.Settled--
	}
}

// ForgetMany removes packets that were counted as lost in a row, as Forget does.
func (p *PathLoss) ForgetMany(n uint64) {
	n = min(n, p.Lost, p.Settled)
	p.Lost, p.Settled = p.Lost-n, p.Settled-n
	whole := min(n/PathBlock, p.Lossy)
	p.Blocks, p.Lossy = p.Blocks-min(whole, p.Blocks), p.Lossy-whole
}

// atMostZ is the quantile of the normal distribution for AtMost: one in 30,000 lies above.
// Source: definition, steady-loss: a loss lies below its upper bound in all but one of 30,000 cases
const atMostZ = 4

// AtMost returns the share above which the loss of like packets hardly lies, 0..1: the upper end of
// Wilson's interval. It returns 1 when no packet is settled.
// Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
// Journal of the American Statistical Association 22, 1927.
func (p *PathLoss) AtMost() float64 {
	if p.Settled == 0 {
		return 1
	}
	const z2 = atMostZ * atMostZ
	n, share := float64(p.Settled), p.Share()
	return (share + z2/(2*n) + atMostZ*math.Sqrt((share*(1-share)+z2/(4*n))/n)) / (1 + z2/n)
}

// Share returns the share of the settled packets that were lost, 0..1. It
// returns -1 when no packet is settled.
func (p *PathLoss) Share() float64 {
	if p.Settled == 0 {
		return -1
	}
	return float64(p.Lost) / float64(p.Settled)
}

// After returns the loss of a path of two parts: p before the tap, and beyond
// after it. Of the packets that passed the tap, beyond counts the lost ones.
func (p PathLoss) After(beyond PathLoss) PathLoss {
	if p.Settled == 0 {
		return beyond
	}
	if beyond.Settled > 0 {
		passed := p.Settled - min(p.Lost, p.Settled)
		p.Lost += uint64(float64(passed) * beyond.Share())
	}
	p.Lossy = max(p.Lossy, min(p.Blocks, beyond.Lossy))
	return p
}

// LossBounds bounds the loss of one direction: of Sent packets, at least Least and at most
// Most were lost on the way to the peer. Packets that the capture lacks, but whose numbers
// it shows, count as sent. The zero value knows nothing.
//
//   - Least ≤ Most ≤ Sent
//   - Least = Most where the tap stands at the receiver
type LossBounds struct {
	Sent, Least, Most uint64
	Certainty         Certainty // that the loss lies within the bounds
}

// Known reports whether the bounds say anything.
func (b *LossBounds) Known() bool { return b.Certainty != Unknown && b.Sent > 0 }

// Share returns the bounds as shares of Sent, 0..1. They are negative if they are unknown.
func (b *LossBounds) Share() (least, most float64) {
	if !b.Known() {
		return -1, -1
	}
	return float64(b.Least) / float64(b.Sent), float64(b.Most) / float64(b.Sent)
}
