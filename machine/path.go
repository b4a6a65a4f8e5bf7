package machine

// PathLoss counts what of a side's packets was lost on the way to its peer, in
// the order in which that is settled. What no evidence speaks of is not judged:
// unknown is neither lost nor arrived. The zero value has judged nothing.
type PathLoss struct {
	Settled uint64 // packets whose fate on the path is settled
	Lost    uint64 // of them
	Blocks  uint64 // of PathBlock judged packets; the last one may be short
	Lossy   uint64 // of them, those in which something was lost

	inBlock uint8
	lossy   bool // the block that is being filled counts as lossy
}

// PathBlock is how many judged packets make a block. Loss is steady where most
// blocks have some. At 3 % steady loss, a block of 64 packets has some with a
// chance of 1 - 0.97^64 = 86 %.
const PathBlock = 64

// Settle takes the fate of one packet.
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

// SettleLost takes n packets in a row that were lost.
func (p *PathLoss) SettleLost(n uint64) {
	for ; n > 0 && (p.inBlock > 0 || n < PathBlock); n-- {
		p.Settle(true)
	}
	// Whole blocks: a jump of millions of numbers costs no more than one of ten.
	p.Settled, p.Lost, p.Blocks, p.Lossy = p.Settled+n, p.Lost+n, p.Blocks+n/PathBlock, p.Lossy+n/PathBlock
	for n %= PathBlock; n > 0; n-- {
		p.Settled, p.Lost = p.Settled-1, p.Lost-1
		p.Settle(true)
	}
}

// Found takes back that a packet was lost: it came late.
func (p *PathLoss) Found() {
	if p.Lost > 0 {
		p.Lost--
	}
}

// Forget takes back that a packet was judged lost: of the capture's loss the path
// knows nothing.
func (p *PathLoss) Forget() {
	if p.Lost > 0 {
		p.Lost--
		p.Settled--
	}
}

// Share returns the share of the judged packets that were lost, 0..1; -1 where
// nothing was judged.
func (p *PathLoss) Share() float64 {
	if p.Settled == 0 {
		return -1
	}
	return float64(p.Lost) / float64(p.Settled)
}

// After returns the loss of a path of two parts: p is the part before the tap, and
// beyond judges what passed it.
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
