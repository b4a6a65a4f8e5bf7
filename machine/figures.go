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

// number packs an integer.
func number[T integer](p *packing, x *T) {
	if p.reads {
		*x = T(p.signed())
		return
	}
	p.bytes = binary.AppendVarint(p.bytes, int64(*x))
}

// signed reads one varint.
func (p *packing) signed() int64 {
	v := uint64(0)
	if len(p.from) > 0 && p.from[0] < 0x80 { // as most are
		v = uint64(p.from[0])
		p.from = p.from[1:]
		return int64(v>>1) ^ -int64(v&1)
	}
	for i := range len(p.from) {
		b := p.from[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			p.from = p.from[i+1:]
			break
		}
	}
	return int64(v>>1) ^ -int64(v&1)
}

// real packs a number with a fraction. The low bits of most are 0, and so come last.
func (p *packing) real(x *float64) {
	v := bits.Reverse64(math.Float64bits(*x))
	number(p, &v)
	*x = math.Float64frombits(bits.Reverse64(v))
}

// truths packs conditions, eight to a byte.
func (p *packing) truths(list ...*bool) {
	for ; len(list) > 0; list = list[min(8, len(list)):] {
		v := uint8(0)
		for i, x := range list[:min(8, len(list))] {
			if *x {
				v |= 1 << i
			}
		}
		number(p, &v)
		for i, x := range list[:min(8, len(list))] {
			*x = v>>i&1 != 0
		}
	}
}

func (m *Summary) pack(p *packing) {
	for _, x := range []*uint64{
		&m.Packets, &m.Bytes, &m.Acked, &m.Received, &m.Duplicates, &m.Stale, &m.Missing, &m.Resends, &m.Messages,
		&m.Repeated, &m.Path.Settled, &m.Path.Lost, &m.Path.Blocks, &m.Path.Lossy, &m.Bounds.Sent, &m.Bounds.Least,
		&m.Bounds.Most,
	} {
		number(p, x)
	}
	p.real(&m.NeverAcked)
	p.real(&m.Loss)
	number(p, &m.LossKnown)
	number(p, &m.RTT)
	number(p, &m.RTTKnown)
	number(p, &m.WireRTT)
	number(p, &m.Path.inBlock)
	number(p, &m.PathKnown)
	number(p, &m.Bounds.Certainty)
	p.truths(&m.Path.lossy, &m.PathBoth)
	m.Trips.pack(p)
}

func (t *Trips) pack(p *packing) {
	if number(p, &t.Count); t.Count == 0 {
		return // they have seen nothing
	}
	number(p, &t.Sum)
	number(p, &t.Least)
	number(p, &t.Most)
	number(p, &t.Changes)
	number(p, &t.last)
	// Of each bucket that is not empty: how many empty ones precede it, and what is in it.
	for i := 0; i < tripBuckets; i++ {
		empty := uint64(0)
		for i+int(empty) < tripBuckets && t.spread[i+int(empty)] == 0 {
			empty++
		}
		number(p, &empty)
		if i += int(empty); i >= tripBuckets {
			return
		}
		n := uint32(t.spread[i])
		number(p, &n)
		t.spread[i] = uint16(n)
	}
}

func (f *Facts) pack(p *packing) {
	number(p, &f.Vantage)
	p.truths(&f.Marked, &f.Opened, &f.Doubtful, &f.Readings.Differ)
	number(p, &f.End)
	number(p, &f.Ending)
	for i := range f.Tick {
		p.truths(&f.Supposed[i], &f.Prompt[i], &f.Scrambled[i], &f.Liar[i], &f.Suspect[i], &f.Refuses[i], &f.Takes[i],
			&f.Client[i])
		number(p, &f.Tick[i])
		number(p, &f.Overtaken[i])
		number(p, &f.Readings.Broken[i][0])
		number(p, &f.Readings.Broken[i][1])
		for _, n := range []*Number{&f.Newest[i], &f.Earlier[i][0], &f.Earlier[i][1]} {
			p.truths(&n.Known, &n.AtLeast)
			number(p, &n.Value)
		}
	}
}
