package machine

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Figures are what remains of a tracker when its flow has ended.
type Figures struct {
	Sides [2]Summary
	Facts Facts
}

// PackedFigures are Figures in little memory: some 150 bytes for a short flow, instead of 900. A
// capture can have very many flows that have ended.
type PackedFigures struct {
	packed   string // varints: Figures.Facts, then both sides
	reason   string // Facts.VantageReason, which many flows share
	settings any    // Facts.Settings
}

// Pack returns f in little memory. It uses scratch as a buffer, which calls can share.
func (f *Figures) Pack(scratch *[]byte) PackedFigures {
	p := packing{bytes: (*scratch)[:0]}
	f.Facts.pack(&p)
	for i := range f.Sides {
		f.Sides[i].pack(&p)
	}
	*scratch = p.bytes
	return PackedFigures{string(p.bytes), f.Facts.VantageReason, f.Facts.Settings}
}

// Unpack fills in the figures.
func (p *PackedFigures) Unpack(f *Figures) {
	from := packing{from: p.packed, reads: true}
	*f = Figures{}
	f.Facts.pack(&from)
	f.Facts.VantageReason, f.Facts.Settings = p.reason, p.settings
	for i := range f.Sides {
		f.Sides[i].pack(&from)
	}
}

// Facts returns Figures.Facts.
func (p *PackedFigures) Facts() (f Facts) {
	f.pack(&packing{from: p.packed, reads: true})
	f.VantageReason, f.Settings = p.reason, p.settings
	return f
}

// Summary returns Figures.Sides of a side.
func (p *PackedFigures) Summary(s Side) (m Summary) {
	from := packing{from: p.packed, reads: true}
	var skipped Facts
	skipped.pack(&from)
	for range s + 1 {
		m = Summary{}
		m.pack(&from)
	}
	return m
}

// packing writes fields one after the other, or reads them in the same order. So one list of
// fields serves both ways.
type packing struct {
	bytes []byte // written
	from  string // to be read
	reads bool
}

type integer interface {
	~int | ~int64 | ~uint8 | ~uint32 | ~uint64
}

// numbers packs integers, eight at a time. A byte says which of them are not 0, and only these
// follow: most figures of a short flow are 0. Numbers that are read into are 0 before.
func numbers[T integer](p *packing, list ...*T) {
	for ; len(list) > 0; list = list[min(8, len(list)):] {
		some := list[:min(8, len(list))]
		if p.reads {
			for mask := p.octet(); mask != 0; mask &= mask - 1 {
				*some[bits.TrailingZeros8(mask)] = T(p.signed())
			}
			continue
		}
		mask := len(p.bytes)
		p.bytes = append(p.bytes, 0)
		for i, x := range some {
			if *x != 0 {
				p.bytes[mask] |= 1 << i
				p.bytes = binary.AppendVarint(p.bytes, int64(*x))
			}
		}
	}
}

// octet reads one byte. Behind the end there are zeros.
func (p *packing) octet() uint8 {
	if len(p.from) == 0 {
		return 0
	}
	b := p.from[0]
	p.from = p.from[1:]
	return b
}

// signed reads one varint.
func (p *packing) signed() int64 {
	v := uint64(p.octet())
	if v >= 0x80 { // few are
		v &= 0x7f
		for shift := 7; ; shift += 7 {
			b := p.octet()
			v |= uint64(b&0x7f) << shift
			if b < 0x80 {
				break
			}
		}
	}
	return int64(v>>1) ^ -int64(v&1)
}

// reals packs numbers with a fraction. The low bits of most are 0, and so come last.
func (p *packing) reals(x, y *float64) {
	v, w := bits.Reverse64(math.Float64bits(*x)), bits.Reverse64(math.Float64bits(*y))
	numbers(p, &v, &w)
	*x, *y = math.Float64frombits(bits.Reverse64(v)), math.Float64frombits(bits.Reverse64(w))
}

// truths packs conditions, eight to a byte.
func (p *packing) truths(list ...*bool) {
	for ; len(list) > 0; list = list[min(8, len(list)):] {
		some := list[:min(8, len(list))]
		if p.reads {
			for v := p.octet(); v != 0; v &= v - 1 {
				*some[bits.TrailingZeros8(v)] = true
			}
			continue
		}
		v := uint8(0)
		for i, x := range some {
			if *x {
				v |= 1 << i
			}
		}
		p.bytes = append(p.bytes, v)
	}
}

func (m *Summary) pack(p *packing) {
	numbers(p,
		&m.Packets, &m.Bytes, &m.Acked, &m.Received, &m.Path.Settled, &m.Path.Blocks, &m.Bounds.Sent, &m.Bounds.Most,
		&m.Bounds.Least, &m.Path.Lost, &m.Path.Lossy, &m.Missing, &m.Messages, &m.Repeated, &m.Resends, &m.Duplicates,
		&m.Stale,
	)
	p.reals(&m.NeverAcked, &m.Loss)
	numbers(p, &m.LossKnown, &m.RTTKnown, &m.PathKnown, &m.Bounds.Certainty)
	numbers(p, &m.RTT, &m.WireRTT)
	numbers(p, &m.Path.inBlock)
	p.truths(&m.Path.lossy, &m.PathBoth)
	m.Trips.pack(p)
}

func (t *Trips) pack(p *packing) {
	if numbers(p, &t.Count); t.Count == 0 {
		return // they have seen nothing
	}
	numbers(p, &t.Sum, &t.Least, &t.Most, &t.Changes, &t.last)
	// Of each bucket that is not empty: how many empty ones precede it, and what is in it.
	for i := 0; ; i++ {
		if p.reads {
			if i += int(p.octet()); i >= tripBuckets {
				return
			}
			t.spread[i] = uint16(p.signed())
			continue
		}
		first := i
		for i < tripBuckets && t.spread[i] == 0 {
			i++
		}
		if p.bytes = append(p.bytes, uint8(i-first)); i == tripBuckets {
			return
		}
		p.bytes = binary.AppendVarint(p.bytes, int64(t.spread[i]))
	}
}

func (f *Facts) pack(p *packing) {
	p.truths(
		&f.Marked, &f.Opened, &f.Doubtful, &f.Readings.Differ, &f.Supposed[0], &f.Supposed[1], &f.Prompt[0], &f.Prompt[1],
		&f.Scrambled[0], &f.Scrambled[1], &f.Liar[0], &f.Liar[1], &f.Suspect[0], &f.Suspect[1], &f.Refuses[0], &f.Refuses[1],
		&f.Takes[0], &f.Takes[1], &f.Client[0], &f.Client[1],
	)
	numbers(p, &f.Vantage)
	numbers(p, &f.Ending)
	numbers(p, &f.End)
	numbers(p, &f.Tick[0], &f.Tick[1])
	numbers(p, &f.Overtaken[0], &f.Overtaken[1])
	b := &f.Readings.Broken
	numbers(p, &b[0][0], &b[0][1], &b[1][0], &b[1][1])
	for i := range f.Newest {
		x, y, z := &f.Newest[i], &f.Earlier[i][0], &f.Earlier[i][1]
		p.truths(&x.Known, &x.AtLeast, &y.Known, &y.AtLeast, &z.Known, &z.AtLeast)
		numbers(p, &x.Value, &y.Value, &z.Value)
	}
}
