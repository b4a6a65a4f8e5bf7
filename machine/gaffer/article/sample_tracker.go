package article

import (
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Tracker tracks a flow of slices or of fragments. It counts packets. It also finds
// what the flow's judge needs: where the tap is, and which sides send slices again
// without waiting.
type Tracker struct {
	profile *wire.Profile
	facts   machine.Facts
	packets [2]uint64
	bytes   [2]uint64
	blocks  [2]blockTiming // by the side that sends the blocks
	lives   [2]blockLife   // their newest blocks
	pieces  [2]fragmentTiming
	numbers [2]numbers // of the packets of each side
	mask    uint32     // of sequences
	packet  wire.Packet
}

// Style reports for each side whether it sends slices as the series' sample does. A
// Tracker puts it into machine.Facts.Settings.
type Style [2]bool

// NewTracker returns the tracker of a flow of the series' programs that do not
// acknowledge packets: slices, fragments or the handshake. Facts are what an earlier
// run over the flow learned, or the zero value.
func NewTracker(p *wire.Profile, facts machine.Facts) machine.Tracker {
	if p.Handshake {
		return newConnectionTracker(p, facts)
	}
	return &Tracker{profile: p, facts: facts, mask: p.Space().Mask()}
}

// Observe takes the next datagram.
func (t *Tracker) Observe(d *machine.Datagram, out *machine.Effects) {
	t.packets[d.From]++
	t.bytes[d.From] += uint64(d.Length)
	p := &t.packet
	if t.profile.Parse(d.Bytes, d.Length, p) != nil {
		return
	}
	switch p.Kind {
	case wire.KindSlice:
		b := &t.blocks[d.From]
		if b.slice(d.At, p); b.begun && b.chunk == p.Chunk && len(b.slices) == p.SliceCount {
			t.lives[d.From].slice(d, p, &t.facts, out)
		}
	case wire.KindSliceAck:
		t.blocks[d.From.Other()].ack(d.At, p)
		t.lives[d.From.Other()].ack(d, p)
	case wire.KindRegular, wire.KindFragment:
		t.pieces[d.From].take(d.At, p, t.mask)
		t.numbers[d.From].take(p, t.mask)
	}
}

// Finish reports the blocks that are still under way.
func (t *Tracker) Finish(out *machine.Effects) {
	for i := range t.lives {
		t.lives[i].report(&t.facts, out)
	}
}

// Inspect draws only how much was sent.
func (t *Tracker) Inspect(s machine.Side, v *machine.View) {
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "packets", Value: float64(t.packets[s]), Unit: "packets", Grade: machine.Certain},
		machine.Gauge{Name: "bytes", Value: float64(t.bytes[s]), Unit: "bytes", Grade: machine.Certain})
}

// Summary returns the counts, and what numbers and acks show of the loss. The rest is
// unknown.
func (t *Tracker) Summary(s machine.Side) machine.Summary {
	m := countsOnly(t.packets[s], t.bytes[s])
	m.Bounds = t.lossBounds(s)
	return m
}

// countsOnly returns the summary of a side whose packets are not acknowledged.
func countsOnly(packets, bytes uint64) machine.Summary {
	return machine.Summary{Packets: packets, Bytes: bytes, NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
}

// Learned returns the place of the tap, and the style of both sides.
func (t *Tracker) Learned() machine.Facts {
	f := t.facts
	if f.Settings == nil {
		f.Settings = Style{t.blocks[0].asSample(), t.blocks[1].asSample()}
	}
	if f.Vantage != machine.VantageUnknown {
		return f
	}
	for i := range t.blocks {
		b, sender := &t.blocks[i], machine.Side(i)
		at, reason := machine.VantageUnknown, ""
		switch {
		case b.resent.near(b.named) && b.unnamed.far() && b.turned.prompt():
			at = machine.VantageA + machine.Vantage(sender)
			reason = fmt.Sprintf("likely at %v, though it may have been some way off: acks of %v lack slices that were "+
				"captured "+
				"up to %v before; %v sends none again that one named, and begins a block %v after all of the one before is acked",
				sender, sender.Other(), machine.Rounded(b.unnamed.longest), sender, machine.Rounded(b.turned.least))
		case b.unnamed.near(b.acks) && b.resent.far() && b.answered.prompt():
			at = machine.VantageA + machine.Vantage(sender.Other())
			reason = fmt.Sprintf("likely at %v, though it may have been some way off: slices are captured up to %v after an "+
				"ack "+
				"that names them; acks of %v lack none that was captured before, and one names a slice %v after its capture",
				sender.Other(), machine.Rounded(b.resent.longest), sender.Other(), machine.Rounded(b.answered.least))
		}
		if at != machine.VantageUnknown && f.Vantage != machine.VantageUnknown && at != f.Vantage {
			return t.undecided(f)
		}
		if at != machine.VantageUnknown {
			f.Vantage, f.VantageReason = at, reason
		}
	}
	if f.Vantage == machine.VantageUnknown {
		f.Vantage, f.VantageReason = fragmentVantage(&t.pieces)
	}
	if f.Vantage == machine.VantageUnknown {
		return t.undecided(f)
	}
	for i := range f.Supposed {
		f.Supposed[i] = f.Vantage.Near(machine.Side(i)) // as both reasons say
	}
	return f
}

func (t *Tracker) undecided(f machine.Facts) machine.Facts {
	f.Vantage, f.VantageReason = machine.VantageUnknown, placeUnknown
	return f
}

const placeUnknown = "unknown: the packets do not show which side is nearer"

// Clone returns an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	c := *t
	for i := range c.blocks {
		c.blocks[i].slices = slices.Clone(t.blocks[i].slices)
		c.lives[i].slices = slices.Clone(t.lives[i].slices)
	}
	return &c
}

// Size returns the approximate size of a clone, in bytes.
func (t *Tracker) Size() int {
	return 2048 + 80*(len(t.blocks[0].slices)+len(t.blocks[1].slices))
}

// blockTiming is how the slices of one side and the acks of the other follow each other
// at the tap.
type blockTiming struct {
	begun    bool
	chunk    uint16
	jumpedTo uint16 // number of the last slice that was more than a block ahead
	slices   []slicePass

	copies, early int // slices that were sent again; of these, those sooner than the article allows
	acks          int // acks that named a slice for the first time
	named         int // slices that were named
	// The times resent: how long after an ack named it a slice passed the tap again. Its
	// sender had not read the ack. The times unnamed: how long before an ack a slice
	// passed that the ack does not name, though a later one does. The slice had not
	// arrived.
	resent, unnamed lags
	// The times turned: how soon after the ack of a whole block the next block followed.
	// The times answered: how soon after a slice the first ack followed that names it.
	turned, answered reaction
	whole            machine.Instant // when all of the newest block was acked; 0 if it is not
}

// reaction is the shortest of a side's times in blockTiming.turned or answered. The side
// cannot be farther from the tap.
type reaction struct {
	least time.Duration
	some  bool
}

func (r *reaction) add(d time.Duration) {
	if !r.some || d < r.least {
		r.least, r.some = d, true
	}
}

func (r *reaction) prompt() bool { return r.some && r.least <= promptly }

// slicePass is what passed the tap of a slice of the newest block.
type slicePass struct {
	first, at machine.Instant // when the first and the last copy passed
	named     machine.Instant // first ack that names it
	skipped   time.Duration   // age of the last copy at the last ack that did not name it
	came      bool
}

// lags counts the times of blockTiming.resent or unnamed.
type lags struct {
	long, very int // longer than lagShort, and lagLong
	longest    time.Duration
}

const (
	// lagShort is the longest time that a machine needs between reading and sending.
	// Source: unmeasured, the vantage that rests on it is likely at most
	lagShort = 2 * time.Millisecond
	// lagLong is the delay above which a side seems to be away from the tap. A network
	// path adds less only where it ends.
	// Source: measured, TestMarginsGaffer
	lagLong = 5 * time.Millisecond
	// lagsTell is how many delays above lagLong show that the tap is not at the side.
	// Source: measured, TestMarginsGaffer
	lagsTell = 3

	// promptly is the longest reaction of a side that counts as being at the tap.
	// Source: measured, TestMarginsGaffer
	promptly = 4 * time.Millisecond

	// lagsAcks is how many chances of a long delay there must be. Only then do few long
	// delays show that the side is at the tap.
	// Source: measured, TestMarginsGaffer
	lagsAcks = 8
)

func (l *lags) add(d time.Duration) {
	if d > lagShort {
		l.long++
	}
	if d > lagLong {
		l.very++
	}
	l.longest = max(l.longest, d)
}

// far reports whether so many delays are long that the tap is not at the side.
func (l *lags) far() bool { return l.very >= lagsTell }

// near reports whether hardly any of the given number of chances showed a long delay.
func (l *lags) near(chances int) bool { return chances >= lagsAcks && l.long <= 1+chances/100 }

func (b *blockTiming) slice(at machine.Instant, p *wire.Packet) {
	switch ahead := int16(p.Chunk - b.chunk); {
	case b.begun && ahead > 1 && b.jumpedTo != p.Chunk:
		b.jumpedTo = p.Chunk // the number may be wrong
		return
	case !b.begun || ahead > 0:
		if b.begun && b.whole != 0 {
			b.turned.add(at.Sub(b.whole))
		}
		b.whole = 0
		b.begun, b.chunk = true, p.Chunk
		if cap(b.slices) < p.SliceCount {
			b.slices = make([]slicePass, p.SliceCount)
		}
		b.slices = b.slices[:p.SliceCount]
		clear(b.slices)
	case ahead < 0 || len(b.slices) != p.SliceCount:
		return
	}
	e := &b.slices[p.SliceID]
	if e.came {
		b.copies++
		if at.Sub(e.at) < messages.ResendLeast-clockSlack {
			b.early++
		}
		if e.named != 0 {
			b.resent.add(at.Sub(e.named))
		}
	}
	if !e.came {
		e.first = at
	}
	e.at, e.came, e.skipped = at, true, 0
}

func (b *blockTiming) ack(at machine.Instant, p *wire.Packet) {
	if !b.begun || p.Chunk != b.chunk || p.SliceCount != len(b.slices) {
		return
	}
	fresh, newest, named := false, machine.Instant(0), 0
	for k := range b.slices {
		e := &b.slices[k]
		if p.SliceCame(k) {
			named++
		}
		switch {
		case !e.came || e.named != 0:
		case p.SliceCame(k):
			e.named, fresh = at, true
			newest = max(newest, e.first)
			b.named++
			if e.skipped > 0 {
				b.unnamed.add(e.skipped)
			}
		default:
			e.skipped = at.Sub(e.at)
		}
	}
	if fresh {
		b.acks++
		b.answered.add(at.Sub(newest))
	}
	if named == len(b.slices) && b.whole == 0 {
		b.whole = at
	}
}

// asSample reports whether slices are sent again as the sample does. Duplicates by the
// network look the same, but are far fewer.
func (b *blockTiming) asSample() bool { return b.early >= 8 && 4*b.early >= b.copies }
