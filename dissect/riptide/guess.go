package riptide

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Guesser proposes typings for messages that no schema describes. A typing is a sequence of texts,
// counted arrays, varints and stretches of fixed width. It consumes every payload of a message id
// exactly.
//
// Payloads carry no types, so these are guesses, and output must say so. For example, an array of
// 32-bit elements may hold floats or ints. A stretch of fixed width may be anything.
type Guesser struct {
	groups map[guessKey]*guessGroup
}

// guessKey identifies the messages that share typings.
type guessKey struct {
	dialect *wire.Dialect
	big     bool
	notify  bool // Notify messages have no id
	id      uint16
}

// Bounds of what is kept.
const (
	guessGroups   = 1024     // message ids
	guessSamples  = 48       // payloads of an id that the search keeps
	guessFew      = 12       // payloads among them that it tries first
	guessBytes    = 64 << 10 // of them
	guessTypings  = 64       // typings of an id that are kept
	guessBeam     = 24       // unfinished typings that the search goes on with
	guessParts    = 8        // stretches of variable width in a typing
	guessMaxFixed = 512      // bits of a stretch of fixed width before one
)

type guessGroup struct {
	samples []guessSample
	bytes   int
	count   int // payloads in all
	bits    int // of every payload, while they are the same; else -1
	typings []Typing
	done    bool // the search is over; later payloads remove the typings that do not fit them
}

type guessSample struct {
	data   []byte
	reader wire.Reader
}

// Guess is the guess for one message id.
type Guess struct {
	Dialect   string
	Notify    bool
	MessageID uint16
	Payloads  int // seen
	// FixedBits is the width of every payload, padding included, if it is the same in all. Then
	// nothing else is guessed. Otherwise it is -1.
	FixedBits int
	// Typings fit every payload, the likeliest first. There are none if no sequence of the known parts
	// explains the payloads.
	Typings []Typing
}

// Add records a message that codec parsed from b. It keeps a copy of some.
func (g *Guesser) Add(codec wire.Codec, m *wire.Message, b []byte) {
	if !m.Type.User() || len(b)*8 < m.BodyBit+m.BodyBits {
		return
	}
	k := guessKey{codec.Dialect, codec.BigEndian, m.Type == wire.Notify, m.MessageID}
	group := g.groups[k]
	if group == nil {
		if len(g.groups) >= guessGroups {
			return
		}
		if g.groups == nil {
			g.groups = map[guessKey]*guessGroup{}
		}
		group = &guessGroup{bits: m.BodyBits}
		g.groups[k] = group
	}
	group.count++
	if m.BodyBits != group.bits {
		group.bits = -1
	}
	if !group.done && len(group.samples) < guessSamples && group.bytes < guessBytes {
		if group.has(b, m.BodyBit) {
			return
		}
		data := bytes.Clone(b)
		group.samples = append(group.samples, guessSample{data, codec.Values(data, m)})
		group.bytes += len(data)
		return
	}
	group.search()
	r := codec.Values(b, m)
	group.typings = slices.DeleteFunc(group.typings, func(t Typing) bool { return !t.Fits(r) })
}

// Observe records a datagram of a flow that c reads. It ignores all but user messages.
func (g *Guesser) Observe(c *dissect.Config, d *machine.Datagram) {
	codec := settingsOf(c).Senders[d.From].Codec
	var m wire.Message
	if codec.Fits(d.Bytes, d.Length, &m) {
		g.Add(codec, &m, d.Bytes)
	}
}

// has reports whether a payload is among the samples already. Payloads repeat when messages are
// resent or their values are small.
func (g *guessGroup) has(b []byte, bodyBit int) bool {
	from := (bodyBit + 7) / 8
	return slices.ContainsFunc(g.samples, func(s guessSample) bool {
		at := (s.reader.Pos() + 7) / 8
		return at == from && len(s.data) == len(b) && bytes.Equal(s.data[from:], b[from:])
	})
}

// Guesses returns the guesses so far, by message id, Notify last.
func (g *Guesser) Guesses() (out []Guess) {
	for k, group := range g.groups {
		guess := Guess{
			Dialect: k.dialect.Name, Notify: k.notify, MessageID: k.id, Payloads: group.count,
			FixedBits: group.bits,
		}
		if group.bits < 0 {
			group.search()
			guess.Typings = slices.Clone(group.typings)
		}
		out = append(out, guess)
	}
	slices.SortFunc(out, func(a, b Guess) int {
		return cmp.Or(cmp.Compare(a.Dialect, b.Dialect), cmp.Compare(boolInt(a.Notify), boolInt(b.Notify)),
			cmp.Compare(a.MessageID, b.MessageID))
	})
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The cost of a part in a typing's score, in bits: an unlikelier part needs more evidence.
var partCost = map[Part]float64{
	{Kind: PartText}:             8,
	{Kind: PartTexts}:            9,
	{Kind: PartArray, Bits: 8}:   10,
	{Kind: PartArray, Bits: 32}:  10.5,
	{Kind: PartArray, Bits: 16}:  10.5,
	{Kind: PartArray, Bits: 64}:  11,
	{Kind: PartArray, Bits: 96}:  12,
	{Kind: PartArray, Bits: 128}: 12,
	{Kind: PartBools}:            11,
	{Kind: PartVarint}:           14,
}

// countedParts lists the parts after a length, in a fixed order.
var countedParts = []Part{
	{Kind: PartText},
	{Kind: PartTexts},
	{Kind: PartArray, Bits: 8},
	{Kind: PartArray, Bits: 32},
	{Kind: PartArray, Bits: 16},
	{Kind: PartArray, Bits: 64},
	{Kind: PartArray, Bits: 96},
	{Kind: PartArray, Bits: 128},
	{Kind: PartBools},
}

// unfinished is a typing that consumes the front of every sample.
type unfinished struct {
	Typing
	at []int // position of each sample after it, in bits
}

// search finds the typings of the samples. It tries a few samples of many lengths first, which is
// usually enough. What it finds must fit all samples.
func (g *guessGroup) search() {
	if g.done {
		return
	}
	g.done = true
	all := g.samples
	slices.SortStableFunc(all, func(a, b guessSample) int { return cmp.Compare(len(a.data), len(b.data)) })
	for _, n := range []int{guessFew, len(all)} {
		few := all
		if n < len(all) {
			few = make([]guessSample, n)
			for i := range few {
				few[i] = all[i*(len(all)-1)/(n-1)]
			}
		}
		s := newSearch(few)
		s.run()
		g.typings = slices.DeleteFunc(s.typings, func(t Typing) bool {
			return slices.ContainsFunc(all, func(k guessSample) bool { return !t.Fits(k.reader) })
		})
		if len(g.typings) > 0 || len(few) == len(all) {
			break
		}
	}
	slices.SortStableFunc(g.typings, func(a, b Typing) int { return cmp.Compare(b.Score, a.Score) })
	if len(g.typings) > guessTypings {
		g.typings = g.typings[:guessTypings]
	}
}

// guessSearch is one search for typings that consume every sample exactly.
type guessSearch struct {
	readers []wire.Reader
	start   []int
	step    int // positions are multiples of it, from the start on
	typings []Typing

	counts []int // of the current attempt, by sample
	behind []int // position after the length
	ends   []int
}

func newSearch(samples []guessSample) *guessSearch {
	s := &guessSearch{step: 8}
	for _, k := range samples {
		s.readers = append(s.readers, k.reader)
		s.start = append(s.start, k.reader.Pos())
		if k.reader.Packed() {
			s.step = 1
		}
	}
	s.counts, s.behind, s.ends = make([]int, len(samples)), make([]int, len(samples)), make([]int, len(samples))
	return s
}

// run searches from the front. Each step adds a stretch of fixed width and a part of variable
// width, and keeps the best few typings.
func (s *guessSearch) run() {
	beam := []unfinished{{at: s.start}}
	for range guessParts {
		var next []unfinished
		for i := range beam {
			next = s.extend(&beam[i], next)
		}
		if beam = next; len(beam) == 0 {
			return
		}
	}
}

// extend appends to next the typings that extend u, and to s.typings those that end here.
func (s *guessSearch) extend(u *unfinished, next []unfinished) []unfinished {
	ended := len(u.Parts) == 0
	for n := 0; n <= guessMaxFixed; n += s.step {
		for i := range s.readers {
			s.readers[i].Seek(u.at[i])
			if !s.readers[i].Skip(n) {
				return next
			}
		}
		if !ended && s.whole() {
			ended = true // a wider one only takes padding for values
			s.typings = append(s.typings, Typing{Parts: with(u.Parts, n), Score: u.Score - fixedCost(n)})
		}
		if s.varint(u.at, n) {
			next = s.keep(next, u, n, Part{Kind: PartVarint}, 0)
		}
		first, varies, ok := s.lengths(u.at, n)
		if !ok || !varies && first == 0 {
			continue
		}
		for _, p := range countedParts {
			gain, fits := s.fits(p)
			text := p.Kind == PartText || p.Kind == PartTexts
			// A count that never varies proves nothing. The part is then no better than a stretch of fixed
			// width, unless it is a text.
			if fits && (!text || gain >= 0) && (varies || text && gain > partCost[p]) {
				next = s.keep(next, u, n, p, gain)
			}
		}
	}
	return next
}

// keep inserts u, extended by n bits and p, into next. There the best few are kept, the best first.
func (s *guessSearch) keep(next []unfinished, u *unfinished, n int, p Part, gain float64) []unfinished {
	score := u.Score - fixedCost(n) - partCost[p] + gain
	i := len(next)
	for i > 0 && next[i-1].Score < score {
		i--
	}
	if i >= guessBeam {
		return next
	}
	if len(next) == guessBeam {
		next = next[:guessBeam-1]
	}
	return slices.Insert(next, i, unfinished{Typing{append(with(u.Parts, n), p), score}, slices.Clone(s.ends)})
}

// whole reports whether the readers are at the ends of their samples.
func (s *guessSearch) whole() bool {
	for i := range s.readers {
		if !s.readers[i].Whole() {
			return false
		}
	}
	return true
}

// varint reads a varint at the positions. It reports whether the values can be varints of varying
// width.
func (s *guessSearch) varint(at []int, n int) bool {
	varies := false
	for i := range s.readers {
		r := &s.readers[i]
		r.Seek(at[i] + n)
		if _, ok := r.TryVarUint(); !ok {
			return false
		}
		s.ends[i] = r.Pos()
		varies = varies || s.ends[i]-at[i] != s.ends[0]-at[0]
	}
	return varies
}

// lengths reads a length at the positions.
func (s *guessSearch) lengths(at []int, n int) (first int, varies, ok bool) {
	for i := range s.readers {
		r := &s.readers[i]
		r.Seek(at[i] + n)
		count, ok := r.TryLength()
		if !ok || count > maxCount || count > r.Left() {
			return 0, false, false
		}
		s.counts[i], s.behind[i] = count, r.Pos()
		varies = varies || count != s.counts[0]
	}
	return s.counts[0], varies, true
}

// fits skips what follows the lengths that were read.
func (s *guessSearch) fits(p Part) (gain float64, ok bool) {
	for i := range s.readers {
		r := &s.readers[i]
		r.Seek(s.behind[i])
		text, ok := p.skipElements(r, s.counts[i])
		if !ok {
			return 0, false
		}
		gain += text
		s.ends[i] = r.Pos()
	}
	return gain, true
}

// with appends a stretch of fixed width to a copy of parts.
func with(parts []Part, n int) []Part {
	out := append(make([]Part, 0, len(parts)+2), parts...)
	if n > 0 {
		out = append(out, Part{Kind: PartFixed, Bits: n})
	}
	return out
}

// fixedCost is the cost of a stretch of fixed width. One that is no sum of whole bytes and some
// bools is unlikelier.
func fixedCost(n int) float64 {
	switch {
	case n == 0:
		return 0
	case n%8 == 0:
		return 1
	case n%8 <= 2:
		return 2
	}
	return 4
}
