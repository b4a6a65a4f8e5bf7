package analyze

import (
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// When a silence is a stall.
const (
	// pauseRatio is how many usual gaps a pause lasts at least. A frame that takes twice as
	// long, or a few lost packets at a tap behind the loss, are no pause.
	pauseRatio = 8
	// pauseAfter is how soon the side must send again after a pause, as a part of it. A side
	// that only sends more rarely from now on has not stalled.
	pauseAfter = 4
	// gapsPerPause is how many gaps a side must have for each one about as long as its pause.
	// A side that sends 20 packets at once, once a second, does not stall each second.
	gapsPerPause = 50
	// paceLeast is the least number of packets that show how a side usually sends. It is below 256, so
	// that their gaps fit bytes.
	paceLeast = 64
	// paceSmoothed is over how many gaps the usual gap is smoothed.
	paceSmoothed = 16
)

// The distribution of gaps: the first bucket has those below 8.4 ms, each further one those
// of twice the length. The last one has those from 8.6 s on.
const (
	gapBuckets  = 12
	gapUnitBits = 23 // a unit of 2^23 ns is 8.4 ms
)

// pace is how one side of a flow sends: its gaps, and its bytes in each second. Its size is
// bounded. The zero value has seen nothing. Most flows of a capture with very many are short: what
// a side with few packets has no use for is apart.
type pace struct {
	packets  uint64
	last     machine.Instant
	usual    time.Duration     // the usual gap, smoothed
	early    [gapBuckets]uint8 // the gaps of the first paceLeast packets
	long     *longPace         // nil until there are more, or a long gap, or a round trip
	sampleAt machine.Instant   // when the trend takes its next sample

	second    int64 // of the capture's clock
	bytes     uint64
	secondRef machine.Ref
	peak      uint64 // bytes in the busiest second
	peakRef   machine.Ref
}

// longPace is the part of a pace that only a side with many packets or with pauses has.
type longPace struct {
	pause    time.Duration // the last gap, if it was long; not yet followed by prompt packets
	pauseRef machine.Ref   // the packet that ended it
	lacks    bool          // see silence
	trend    *trend        // of the round trips of the side's packets; nil until one is known

	gaps    [gapBuckets]uint32  // those beyond pace.early
	longest silence             // the longest pause, of those that the capture does not lack
	pauses  uint32              // those that reached the limit
	kept    [keptPauses]silence // the longest pauses, in no order
}

// silence is a time without packets, and the packet that ended it.
type silence struct {
	took  time.Duration
	at    machine.Instant
	ref   machine.Ref
	lacks bool // the side sent packets in that time, and the capture lacks them
}

// note counts a datagram of the side. Pauses from limit on are counted.
func (p *pace) note(d *machine.Datagram, limit time.Duration) {
	if second := int64(d.At) / int64(time.Second); second != p.second || p.packets == 0 {
		p.second, p.bytes, p.secondRef = second, 0, d.Ref
	}
	if p.bytes += uint64(max(0, d.Length)); p.bytes > p.peak {
		p.peak, p.peakRef = p.bytes, p.secondRef
	}
	if p.packets++; p.packets == 1 {
		p.last = d.At
		return
	}
	gap, before := max(0, d.At.Sub(p.last)), p.last // clocks step
	p.last = max(p.last, d.At)
	if p.packets <= paceLeast {
		p.early[gapBucket(gap)]++
	} else {
		p.more().gaps[gapBucket(gap)]++
	}
	if l := p.long; l != nil {
		if l.pause > 0 && gap <= l.pause/pauseAfter {
			l.paused(&silence{l.pause, before, l.pauseRef, l.lacks}, limit)
		}
		l.pause, l.lacks = 0, false
	}
	if p.packets == 2 {
		p.usual = gap
	}
	if usual := max(p.usual, time.Millisecond); gap/pauseRatio >= usual {
		l := p.more()
		l.pause, l.pauseRef = gap, d.Ref
		p.usual = usual + usual/2 // it follows, if the side now sends more rarely
	} else {
		p.usual += (gap - p.usual) / paceSmoothed
	}
}

func (p *pace) more() *longPace {
	if p.long == nil {
		p.long = new(longPace)
	}
	return p.long
}

// paused counts a pause.
func (l *longPace) paused(x *silence, limit time.Duration) {
	if l.keep(x); x.lacks {
		return
	}
	if x.took >= limit {
		l.pauses++
	}
	if x.took > l.longest.took {
		l.longest = *x
	}
}

// lackShare is the part of a pause, one in so many, in which the side usually sends what the capture
// lacks of it. It then did not pause. The usual gap is the one after the pause, which made it half as
// long again.
// Source: definition, stalled: in a pause a side sends less than half of what is usual
const lackShare = 3

// lack notes that the capture lacks so many packets of the side before a frame.
func (p *pace) lack(ref machine.Ref, packets float64, limit time.Duration) {
	l := p.long
	lacks := func(took time.Duration) bool { return lackShare*packets*float64(p.usual) >= float64(took) }
	if l == nil {
		return
	}
	if l.pauseRef == ref && lacks(l.pause) {
		l.lacks = true
	}
	for i := range l.kept {
		if x := &l.kept[i]; x.ref == ref && !x.lacks && lacks(x.took) {
			if x.lacks = true; x.took >= limit {
				l.pauses--
			}
		}
	}
	if l.longest.ref != ref || !lacks(l.longest.took) {
		return
	}
	l.longest = silence{}
	for _, x := range l.kept {
		if !x.lacks && x.took > l.longest.took {
			l.longest = x
		}
	}
}

func gapBucket(gap time.Duration) int {
	return min(gapBuckets-1, bits.Len64(uint64(gap)>>gapUnitBits))
}

// stall returns the longest pause of a side that usually sends, and the frame that ended it.
// It is 0 if there was none, and negative if the side has sent too few packets, or pauses as
// a habit.
func (p *pace) stall() (time.Duration, machine.Ref) {
	if p.packets < paceLeast {
		return -1, 0
	}
	l := p.long
	if l == nil || l.longest.took == 0 {
		return 0, 0
	}
	alike := uint64(0) // at least a quarter as long
	for i := max(0, gapBucket(l.longest.took)-1); i < gapBuckets; i++ {
		alike += uint64(l.gaps[i]) + uint64(p.early[i])
	}
	if alike*gapsPerPause > p.packets {
		return -1, 0
	}
	return l.longest.took, l.longest.ref
}
