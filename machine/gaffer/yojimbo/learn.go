package yojimbo

import (
	"math"
	"slices"

	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// learned is the bodies of messages, as far as packets show them: fixed widths, and
// counted bytes after a fixed part. It has no fields.
type learned struct{ forms []form }

// form is how the body of one type is laid out.
type form struct {
	kind  formKind
	fixed int // bits of the whole body, or of the part before the count
	count int // bits of the count of bytes
	least int // number of bytes that a count of 0 means: 0 or 1
}

type formKind uint8

const (
	formUnknown formKind = iota
	formFixed
	formCounted // [fixed][count][align][bytes]: a string
	formBlock   // [fixed], and in unreliable channels [count][align][bytes] after it: a block
)

// Skip moves r over a body.
func (l *learned) Skip(kind uint32, r *bits.Reader) error {
	if int64(kind) >= int64(len(l.forms)) {
		return wire.ErrOpaque
	}
	switch f := &l.forms[kind]; f.kind {
	case formFixed, formBlock:
		return skipBits(r, f.fixed)
	case formCounted:
		if err := skipBits(r, f.fixed); err != nil {
			return err
		}
		n, ok := r.Bits(f.count)
		if !ok || !r.Align() {
			return errLearnedShort
		}
		if _, ok := r.Bytes(int(n) + f.least); !ok {
			return errLearnedShort
		}
		return nil
	}
	return wire.ErrOpaque
}

// Counted describes how a body with counted bytes begins, such as a text: head bits,
// then the count in count bits. The bytes start at the next byte. ok is false if the
// type has no such body.
func (l *learned) Counted(kind uint32) (head, count int, ok bool) {
	if int64(kind) >= int64(len(l.forms)) || l.forms[kind].kind != formCounted {
		return 0, 0, false
	}
	return l.forms[kind].fixed, l.forms[kind].count, true
}

func skipBits(r *bits.Reader, n int) error {
	for ; n > 0; n -= 64 {
		if _, ok := r.Bits(min(n, 64)); !ok {
			return errLearnedShort
		}
	}
	return nil
}

// single is a message that is the only one in its packet.
type single struct {
	payload    []byte
	pos        int // of its type
	unreliable bool
}

// Bounds of learning.
const (
	// learnLeast is how many messages of a type it takes to learn their body. Three have taught a
	// wrong body.
	// Source: measured, TestMarginsYojimbo
	learnLeast = 6
	// learnTypes is how many message types are learned at most.
	// Source: bound, the message types that are learned
	learnTypes = 256
	// longestBody is the longest body of fixed width that is tried, in bits.
	// Source: bound, the bits of a body that are tried
	longestBody = 2048
	// standardCount is the width of max_messages_per_packet by the library's default, in
	// bits.
	// Source: library, yojimbo 1.9.1: ChannelConfig maxMessagesPerPacket is 256
	standardCount = 8
	// mostBlock is the largest width of a block's size that is tried, in bits.
	// Source: bound, the bits of a block's size that are tried
	mostBlock = 18
	// mostForms is how many layouts of a message type are compared at most.
	// Source: bound, the layouts that are compared
	mostForms = 16
	// countedHead is how many bits may stand before a count in a body.
	// Source: bound, the bits before a count that are tried
	countedHead = 64
)

// learn learns the bodies for one width of the type.
func (t *trial) learn(w int) *Inference {
	t.standard()
	l := &learned{forms: make([]form, min(1<<w, learnTypes))}
	singles := make([][]single, len(l.forms))
	for c := range t.messages {
		t.singles(c, w, singles)
	}
	forms := make([][]form, len(l.forms))
	seen := 0
	for kind := range singles {
		if len(singles[kind]) > 0 {
			seen = kind + 1
		}
		if len(singles[kind]) < learnLeast {
			continue
		}
		unreliable := !slices.ContainsFunc(singles[kind], func(s single) bool { return !s.unreliable })
		if forms[kind] = formsOf(singles[kind], w, unreliable); len(forms[kind]) > 0 {
			l.forms[kind] = forms[kind][0]
		}
	}
	i := &Inference{}
	i.TypesLeast, i.TypesMost = typeRange(1<<w, seen)
	if !t.try(l, i.TypesLeast, i) {
		return nil
	}
	t.refine(l, forms, i)
	t.counts(l, i)
	t.refine(l, forms, i)
	return i
}

// standard assumes that unreliable channels have the library's default settings.
func (t *trial) standard() {
	for c := range t.messages {
		if g := &t.messages[c]; g.kind == wire.UnreliableUnordered {
			g.count, g.blockBits = standardCount, 0
		}
	}
}

// singles collects by type the messages of a channel that are the only ones in their
// packets.
func (t *trial) singles(c, w int, by [][]single) {
	g := &t.messages[c]
	var r bits.Reader
	for _, h := range t.heads[c] {
		if h.block || !h.alone {
			continue
		}
		payload := t.packets[h.packet].payload
		r.Reset(payload, h.pos)
		has, _ := r.Bits(1)
		n, ok := r.Bits(g.count)
		if has == 0 || !ok || n != 0 {
			continue
		}
		if g.kind == wire.ReliableOrdered {
			r.Bits(16)
		}
		at := r.Pos()
		if kind, ok := r.Bits(w); ok && int(kind) < len(by) {
			by[kind] = append(by[kind], single{payload, at, g.kind == wire.UnreliableUnordered})
		}
	}
}

// formsOf returns the layouts that all messages of a type fit, the simplest first.
// unreliable reports whether all came through unreliable channels. Only there a message
// carries its block.
func formsOf(all []single, w int, unreliable bool) (out []form) {
	if least, most, ok := fixedWidth(all, w); ok {
		for n := least; n <= min(most, least+7); n++ {
			out = append(out, form{kind: formFixed, fixed: n})
		}
		return out
	}
	for fixed := 0; fixed <= countedHead; fixed++ {
		for count := 4; count <= 20; count++ {
			for least := 0; least <= 1; least++ {
				if f := (form{formCounted, fixed, count, least}); f.fits(all, w) {
					if least == 1 && unreliable {
						out = append(out, form{formBlock, fixed, count, least})
					}
					if out = append(out, f); len(out) >= mostForms {
						return out
					}
				}
			}
		}
	}
	return out
}

// fixedWidth returns the widths that a body of fixed width could have. The body ends
// where the packet's padding begins, in every packet. Padding must be zero.
func fixedWidth(all []single, w int) (least, most int, ok bool) {
	most = longestBody
	for _, s := range all {
		left := len(s.payload)*8 - s.pos - w
		if left < 0 {
			return 0, 0, false
		}
		zeros := 0
		for zeros < 7 && zeros < left && s.payload[(len(s.payload)*8-1-zeros)/8]>>((len(s.payload)*8-1-zeros)%8)&1 == 0 {
			zeros++
		}
		least, most = max(least, left-zeros), min(most, left)
	}
	return least, most, least <= most
}

// fits reports whether every message ends where its packet does.
func (f form) fits(all []single, w int) bool {
	l := learned{forms: []form{f}}
	var r bits.Reader
	for _, s := range all {
		r.Reset(s.payload, s.pos+w)
		if l.Skip(0, &r) != nil || r.Left() > 7 || !r.Align() {
			return false
		}
	}
	return true
}

// try scores what is learned. It keeps the result in i if that is better than before.
func (t *trial) try(l *learned, kinds int, i *Inference) bool {
	if t.tries++; t.tries > mostTries {
		return false
	}
	var blocks []uint32
	size := 0
	for kind, f := range l.forms {
		if f.kind == formBlock && kind < kinds {
			blocks = append(blocks, uint32(kind))
			size = max(size, f.count)
		}
	}
	for c := range t.messages {
		if g := &t.messages[c]; g.kind == wire.UnreliableUnordered {
			g.blockBits = size
		}
	}
	y, err := t.config(kinds, &learned{forms: slices.Clone(l.forms)}, blocks)
	if err != nil {
		return false
	}
	got := Inference{TypesLeast: i.TypesLeast, TypesMost: i.TypesMost}
	t.score(y, &got, i.bar())
	if i.Config != nil && got.merit() <= i.merit() {
		return false
	}
	*i = got
	return true
}

// refine chooses for each type, among the layouts that its single messages fit, the one
// with which most packets read.
func (t *trial) refine(l *learned, forms [][]form, i *Inference) {
	for kind := range l.forms {
		right := l.forms[kind]
		for _, f := range forms[kind] {
			if l.forms[kind] = f; f != right && t.try(l, i.TypesLeast, i) {
				right = f
			}
		}
		l.forms[kind] = right
	}
}

// counts finds the width of the message count of channels whose ids do not show it.
func (t *trial) counts(l *learned, i *Inference) {
	for c := range t.messages {
		g := &t.messages[c]
		if g.kind != wire.UnreliableUnordered || g.seen == 0 {
			continue
		}
		right := g.count
		for count := 0; count <= mostCount; count++ {
			if g.count = count; count != right && t.try(l, i.TypesLeast, i) {
				right = count
			}
		}
		g.count = right
	}
}

// known counts the types whose bodies are known.
func (l *learned) known() (n int) {
	for _, f := range l.forms {
		if f.kind != formUnknown {
			n++
		}
	}
	return n
}

// bar returns the merit that another configuration must exceed.
func (i *Inference) bar() int {
	if i.Config == nil {
		return math.MinInt
	}
	return i.merit()
}
