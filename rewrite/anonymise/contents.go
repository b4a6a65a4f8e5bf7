package anonymise

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"unicode/utf8"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// contents replaces what applications said.
type contents struct {
	key   [32]byte
	names *names
	d     dissect.Dissection
	specs map[*dissect.Protocol]map[*dissect.FieldSpec]bool // the protocol's own fields
	flow  *analyze.Flow
	parts map[int]dissect.Pieces // by flow; nil for flows without split packets
	from  *machine.Datagram      // the current datagram
	quick bool                   // keep numbers: the result will not be written
	again dissect.Dissection
	now   []Content // of the current datagram
	total map[string]*Content
	bits  []byte // scratch: one for each bit of a datagram that a field covers
}

func (c *contents) init(key [32]byte, n *names) {
	c.key, c.names = key, n
	c.specs, c.total = map[*dissect.Protocol]map[*dissect.FieldSpec]bool{}, map[string]*Content{}
	c.parts = map[int]dissect.Pieces{}
}

// unknown is the field name for bytes that no protocol reads.
const unknown = "payload of unknown protocols"

// foreign is the field name for datagrams that a flow's protocol did not send.
const foreign = "foreign datagrams"

// edited returns the new bytes of a datagram, or of a message in a stream. The
// error is dissect.ErrEncrypted.
func (c *contents) edited(f *analyze.Flow, dg *machine.Datagram) ([]byte, error) {
	c.now, c.flow, c.from = c.now[:0], f, dg
	p := f.Protocol
	if p == nil || p.Dissect == nil {
		c.note(unknown, len(dg.Bytes)*8)
		return c.scrambled(dg.Bytes), nil
	}
	ctx := dissect.Context{Config: f.Config(), From: dg.From}
	if p.Edit != nil {
		ctx.Pieces = c.parts[f.ID]
		return p.Edit(ctx, dg, &c.d, c.change)
	}
	b := slices.Clone(dg.Bytes)
	c.d.Reset()
	p.Dissect(ctx, dg, &c.d)
	c.change(b, &c.d, func([]byte) {})
	return b, nil
}

// learn processes a datagram of the first reading, for packets that are sent in
// several datagrams.
func (c *contents) learn(f *analyze.Flow, dg *machine.Datagram) {
	p := f.Protocol
	if p == nil || p.NewPieces == nil {
		return
	}
	parts, ok := c.parts[f.ID]
	if !ok {
		parts = p.NewPieces(f.Config())
		c.parts[f.ID] = parts
	}
	if parts != nil {
		c.now, c.flow, c.from = c.now[:0], f, dg
		parts.Learn(dissect.Context{Config: f.Config(), From: dg.From}, dg, c.change)
	}
}

// change replaces in b what the fields show of the application, and the bytes
// that no field shows.
func (c *contents) change(b []byte, d *dissect.Dissection, seal func([]byte)) {
	own := c.own(c.flow.Protocol)
	c.bits = append(c.bits[:0], make([]byte, len(b)*8)...)
	for i := range d.Fields {
		f := &d.Fields[i]
		if f.Bits == 0 || f.Depth == 0 {
			continue
		}
		from, to := min(int(f.Bit), len(c.bits)), min(int(f.Bit+f.Bits), len(c.bits))
		for j := from; j < to; j++ {
			c.bits[j] = 1
		}
	}
	for i := range d.Fields {
		f := &d.Fields[i]
		if f.Bits == 0 || int(f.Bit) >= len(b)*8 {
			continue
		}
		content := f.Spec.Content
		if !own[f.Spec] && (f.Spec.Kind == dissect.KindText || f.Spec.Kind == dissect.KindBytes) {
			content = dissect.ContentData // a field of a user's schema
		}
		switch content {
		case dissect.ContentData:
			c.data(b, f)
			c.note(f.Spec.Name, int(f.Bits))
		case dissect.ContentAddr:
			if at := int(f.Bit / 8); at+int(f.Bits/8) <= len(b) {
				value := b[at : at+int(f.Bits/8)]
				c.names.addr(value, value)
			}
		case dissect.ContentFiller:
			from, to := int(f.Bit+7)/8, int(f.Bit+f.Bits)/8
			clear(b[min(from, len(b)):min(to, len(b))])
		case dissect.ContentPort:
			if at := int(f.Bit / 8); at+2 <= len(b) {
				c.port(b[at:at+2], uint16(f.Uint))
			}
		}
	}
	if seal != nil && !c.quick {
		c.numbers(b, d, own, seal)
	}
	for i := 0; i < len(c.bits); i++ {
		if c.bits[i] == 0 {
			end := i + 1
			for end < len(c.bits) && c.bits[end] == 0 {
				end++
			}
			if end-i >= 8 { // fewer bits are padding between fields
				c.scramble(b, i, end-i, false)
				c.note("bytes that no field shows", end-i)
			}
			i = end
		}
	}
}

// numbers replaces the numbers that a user's schema reads. Each replacement
// must leave the structure of the packet unchanged. Numbers without such a
// replacement, such as counts, stay.
func (c *contents) numbers(b []byte, d *dissect.Dissection, own map[*dissect.FieldSpec]bool, seal func([]byte)) {
	ctx := dissect.Context{Config: c.flow.Config(), From: c.from.From}
	changed := *c.from
	changed.Bytes = b
	alike := func() bool {
		seal(b)
		c.again.Reset()
		c.flow.Protocol.Dissect(ctx, &changed, &c.again)
		return slices.EqualFunc(c.again.Fields,
			d.Fields, func(x, y dissect.Field) bool { return x.Spec == y.Spec && x.Bit == y.Bit && x.Bits == y.Bits }) &&
			(c.again.Problem == nil) == (d.Problem == nil)
	}
	var was []byte
	for i := range d.Fields {
		f := &d.Fields[i]
		switch f.Spec.Kind {
		case dissect.KindUint, dissect.KindInt, dissect.KindFloat, dissect.KindBool:
		default:
			continue
		}
		from, to := int(f.Bit/8), int(f.Bit+f.Bits+7)/8
		if own[f.Spec] || f.Bits == 0 || to > len(b) {
			continue
		}
		was = append(was[:0], b[from:to]...)
		const tries = 6
		for n := range tries {
			c.scramble(b, int(f.Bit), int(f.Bits), false)
			if alike() {
				c.note(f.Spec.Name, int(f.Bits))
				break
			}
			if n == tries-1 {
				copy(b[from:to], was)
			}
		}
	}
}

// port replaces a port, in its own byte order.
func (c *contents) port(b []byte, value uint16) {
	if binary.BigEndian.Uint16(b) == value {
		binary.BigEndian.PutUint16(b, c.names.port(value))
	} else {
		binary.LittleEndian.PutUint16(b, c.names.port(value))
	}
}

// data replaces a field: a text with a text of the same form, and other values
// with random bits.
func (c *contents) data(b []byte, f *dissect.Field) {
	from, n := int(f.Bit), int(f.Bits)
	if text := len(f.Bytes) * 8; f.Spec.Kind == dissect.KindText && text <= n {
		from, n = from+n-text, text // after its length
		c.scramble(b, from, n, true)
		return
	}
	c.scramble(b, from, min(n, len(b)*8-from), false)
}

// scrambled returns replacement bytes of the same length.
func (c *contents) scrambled(b []byte) []byte {
	out := slices.Clone(b)
	c.scramble(out, 0, len(out)*8, false)
	return out
}

// scramble replaces n bits from a bit on. The replacement depends only on their
// value and the key, so that equal contents stay equal.
func (c *contents) scramble(b []byte, from, n int, text bool) {
	n = min(n, len(b)*8-from)
	if n <= 0 {
		return
	}
	value := make([]byte, (n+7)/8)
	for i := range n {
		value[i/8] |= b[(from+i)/8] >> ((from + i) % 8) & 1 << (i % 8)
	}
	mac := hmac.New(sha256.New, c.key[:])
	_ = binary.Write(mac, binary.LittleEndian, uint64(n))
	mac.Write(value)
	chance := rand.NewChaCha8([32]byte(mac.Sum(nil)))
	if text && n%8 == 0 {
		disguise(value, chance)
	} else if head := leadingText(value[:n/8]); head > 0 {
		disguise(value[1:head], chance)
		_, _ = chance.Read(value[head:])
	} else {
		_, _ = chance.Read(value)
	}
	for i := range n {
		at := (from + i) / 8
		bit := byte(1) << ((from + i) % 8)
		b[at] &^= bit
		if value[i/8]>>(i%8)&1 != 0 {
			b[at] |= bit
		}
	}
}

// leadingText returns the end of a text of printable characters at the start of
// b, after a length byte. It returns 0 if b starts with something else. This
// form stays, because some flows are recognised by it.
func leadingText(b []byte) int {
	if len(b) == 0 || b[0] == 0 || int(b[0]) >= len(b) {
		return 0
	}
	end := 1 + int(b[0])
	for _, x := range b[1:end] {
		if x < ' ' || x > '~' {
			return 0
		}
	}
	return end
}

// disguise replaces letters with letters, digits with digits, and punctuation
// with punctuation. It replaces a character beyond ASCII with one of the same
// number of bytes. Spaces stay.
func disguise(b []byte, chance *rand.ChaCha8) {
	draw := func(n uint64) byte { return byte(chance.Uint64() % n) }
	for i := 0; i < len(b); {
		switch x := b[i]; {
		case x >= 'a' && x <= 'z':
			b[i] = 'a' + draw(26)
		case x >= 'A' && x <= 'Z':
			b[i] = 'A' + draw(26)
		case x >= '0' && x <= '9':
			b[i] = '0' + draw(10)
		case x > ' ' && x < utf8.RuneSelf-1:
			b[i] = punctuation[draw(uint64(len(punctuation)))]
		case x >= utf8.RuneSelf:
			_, n := utf8.DecodeRune(b[i:])
			copy(b[i:i+n], []string{"", "?", "é", "字", "🂠"}[n])
			i += n
			continue
		}
		i++
	}
}

const punctuation = "!#$%&()*+,-./:;<=>?@[]^_{|}~"

// own returns the protocol's own fields.
func (c *contents) own(p *dissect.Protocol) map[*dissect.FieldSpec]bool {
	if c.specs[p] == nil {
		c.specs[p] = map[*dissect.FieldSpec]bool{}
		for _, f := range p.Fields {
			c.specs[p][f] = true
		}
	}
	return c.specs[p]
}

// note records that bits of a field of the current datagram were replaced.
func (c *contents) note(field string, bits int) {
	c.now = append(c.now, Content{Field: field, Count: 1, Bits: uint64(bits)})
}

// count adds the replacements of the last datagram to the totals.
func (c *contents) count(f *analyze.Flow, encrypted bool) {
	if encrypted {
		c.now = append(c.now[:0], Content{Field: f.Protocol.Name + " (encrypted)", Count: 1})
	}
	for _, n := range c.now {
		t := c.total[n.Field]
		if t == nil {
			t = &Content{Field: n.Field}
			c.total[n.Field] = t
		}
		t.Count += n.Count
		t.Bits += n.Bits
	}
}

// foreign counts a datagram that the flow's protocol did not send.
func (c *contents) foreign(size int) {
	c.now = append(c.now[:0], Content{Field: foreign, Count: 1, Bits: uint64(size) * 8})
	c.count(nil, false)
}

func (c *contents) list() (list []Content) {
	for _, t := range c.total {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(x, y Content) int { return cmp.Compare(x.Field, y.Field) })
	return list
}
