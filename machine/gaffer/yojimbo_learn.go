package gaffer

import (
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// learned is the bodies of messages as far as packets teach them: fixed widths,
// and counted bytes behind a fixed part. It knows no fields.
type learned struct{ forms []form }

// form is how the body of one type is laid out.
type form struct {
	kind  formKind
	fixed int // bits: the whole body, or what stands before the count
	count int // bits of the count of bytes
	least int // count of bytes that 0 stands for: 0 or 1
}

type formKind uint8

const (
	formUnknown formKind = iota
	formFixed
	formCounted // [fixed][count][align][bytes]: a string, or a block
)

// Skip moves r over a body.
func (l *learned) Skip(kind uint32, r *bits.Reader) error {
	if int64(kind) >= int64(len(l.forms)) {
		return wire.ErrOpaque
	}
	switch f := &l.forms[kind]; f.kind {
	case formFixed:
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

func skipBits(r *bits.Reader, n int) error {
	for ; n > 0; n -= 64 {
		if _, ok := r.Bits(min(n, 64)); !ok {
			return errLearnedShort
		}
	}
	return nil
}

// single is a message that is alone in its packet.
type single struct {
	payload []byte
	pos     int // of its type
}

// Bounds of learning.
const (
	learnLeast  = 4    // messages of a type, to learn its body
	learnTypes  = 256  // types at most
	longestBody = 2048 // bits of a body of fixed width
	countedHead = 64   // bits that may stand before a count
)

// withBodies tries every width of the type that the schema's types fit, and for
// unreliable channels every width of count and block size.
func (t *trial) withBodies(known *knownBodies) *Inference {
	i := &Inference{}
	best := -1
	try := func() {
		for kinds := max(known.kinds, 1); kinds <= 1<<mostKinds; kinds = 1<<bits.Required(0, uint64(kinds-1)) + 1 {
			y, err := t.config(kinds, known.bodies, known.blocks)
			if err != nil {
				continue
			}
			var got Inference
			if t.score(y, &got); got.Read-got.Wrong > best || best < 0 {
				best, *i = got.Read-got.Wrong, got
				i.TypesLeast, i.TypesMost = typeRange(y.MessageTypes, known.kinds)
			}
		}
	}
	try()
	for c := range t.messages {
		g := &t.messages[c]
		if g.kind != wire.UnreliableUnordered || g.seen == 0 {
			continue
		}
		right := *g
		for count := 0; count <= mostCount; count++ {
			for block := 0; block <= 18; block++ {
				g.count, g.blockBits = count, block
				was := best
				if try(); best > was {
					right = *g
				}
				if len(known.blocks) == 0 {
					break
				}
			}
		}
		*g = right
	}
	if best < 0 {
		return nil
	}
	t.describe(i)
	return i
}

// typeRange gives how many types there may be: all that take the same bits,
// and at least those that were seen or that a schema has.
func typeRange(kinds, least int) (low, high int) {
	w := bits.Required(0, uint64(kinds-1))
	low = 1
	if w > 0 {
		low = 1<<(w-1) + 1
	}
	return max(low, least), 1 << w
}

// withoutBodies learns bodies for each width of the type, and keeps the width
// under which most packets read whole.
func (t *trial) withoutBodies() *Inference {
	var best, second *Inference
	for w := 0; w <= mostKinds; w++ {
		i := t.learn(w)
		switch {
		case i == nil:
		case best == nil || i.merit() > best.merit():
			best, second = i, best
		case second == nil || i.merit() > second.merit():
			second = i
		}
	}
	if best == nil {
		return nil
	}
	// Packets of one message read by many widths; only those of several tell them
	// apart. Where they do not, the width stays open.
	if l, ok := best.Config.Bodies.(*learned); !ok || best.Read-t.empty() < inferLeast || l.known() == 0 || second != nil && second.Read*50 >= best.Read*49 {
		if i := t.opaque(); i != nil && (second == nil || second.Read*50 >= best.Read*49 || best.Read-t.empty() < inferLeast) {
			best = i
		}
	}
	t.describe(best)
	return best
}

// empty counts the packets that carry nothing: they read by any configuration.
func (t *trial) empty() (n int) {
	for i := range t.packets {
		if len(t.packets[i].payload) <= 1 {
			n++
		}
	}
	return n
}

// opaque is the configuration with the messages' types and bodies left open.
func (t *trial) opaque() *Inference {
	y, err := t.config(1, nil, nil)
	if err != nil {
		return nil
	}
	i := &Inference{}
	t.score(y, i)
	return i
}

// learn learns the bodies for one width of the type.
func (t *trial) learn(w int) *Inference {
	l := &learned{forms: make([]form, min(1<<w, learnTypes))}
	singles := make([][]single, len(l.forms))
	for c := range t.messages {
		t.singles(c, w, singles)
	}
	seen := 0
	for kind := range singles {
		if len(singles[kind]) > 0 {
			seen = kind + 1
		}
		if len(singles[kind]) >= learnLeast {
			l.forms[kind] = learnForm(singles[kind], w)
		}
	}
	least, most := typeRange(1<<w, seen)
	y, err := t.config(least, l, nil)
	if err != nil {
		return nil
	}
	i := &Inference{TypesLeast: least, TypesMost: most}
	t.score(y, i)
	t.refine(y, l, singles, w, i)
	t.counts(l, w, i)
	return i
}

// singles collects the messages of a channel that are alone in their packets, by type.
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
			by[kind] = append(by[kind], single{payload, at})
		}
	}
}

// learnForm finds the layout that all messages of a type agree with.
func learnForm(all []single, w int) form {
	if least, most, ok := fixedWidth(all, w); ok && least <= most {
		return form{kind: formFixed, fixed: least}
	}
	for fixed := 0; fixed <= countedHead; fixed++ {
		for count := 4; count <= 20; count++ {
			for least := 0; least <= 1; least++ {
				f := form{formCounted, fixed, count, least}
				if f.fits(all, w) {
					return f
				}
			}
		}
	}
	return form{}
}

// fixedWidth gives the widths that a body of fixed width could have: up to the
// end of every packet less its padding, and what is padding must be zero.
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

// refine moves fixed widths within what single messages allow, to where most
// packets read.
func (t *trial) refine(y *wire.Yojimbo, l *learned, singles [][]single, w int, i *Inference) {
	for kind := range l.forms {
		f := &l.forms[kind]
		if f.kind != formFixed {
			continue
		}
		least, most, _ := fixedWidth(singles[kind], w)
		right := f.fixed
		for n := least; n <= min(most, least+7); n++ {
			f.fixed = n
			var got Inference
			if t.score(y, &got); got.Read-4*got.Wrong > i.Read-4*i.Wrong {
				right = n
				i.Read, i.Opaque, i.Wrong = got.Read, got.Opaque, got.Wrong
			}
		}
		f.fixed = right
	}
	t.score(y, i)
}

// counts finds the width of the message count of channels whose ids do not show
// it.
func (t *trial) counts(l *learned, w int, i *Inference) {
	for c := range t.messages {
		g := &t.messages[c]
		if g.kind != wire.UnreliableUnordered || g.seen == 0 {
			continue
		}
		right := g.count
		for count := 0; count <= mostCount; count++ {
			g.count = count
			y, err := t.config(i.Config.MessageTypes, l, nil)
			if err != nil {
				continue
			}
			var got Inference
			if t.score(y, &got); got.merit() > i.merit() {
				right = count
				got.TypesLeast, got.TypesMost = i.TypesLeast, i.TypesMost
				*i = got
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
