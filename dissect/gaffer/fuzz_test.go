package gaffer

import (
	"encoding/hex"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// FuzzDissect takes any bytes apart with every built-in profile, and feeds them to the
// classifier:
//
//   - Nothing may panic.
//   - All fields lie within the datagram.
//   - The leaves of a datagram that is not malformed cover every bit.
func FuzzDissect(f *testing.F) {
	for _, text := range []string{
		"3e64000135fa276e0102030405", "010d0000033c0d00003f0000aabbcc", "010d0002030011223344", "2c0128018ffdfbcf010203",
		"012c0126b5eee7f1010203",
		"002c012601ffffefdd0102", "112fd95400000d8007e2ac0899", "393c7629b100372d2511d753dc10fb14e2ac0899",
		"ae82e86701008600e2ac0899",
		"007a6453999cc65553fc7e0011223344556677889900aabbe2ac0899", "15070011223344556677889900112233445566",
		"000000000000ffff000000000200aabbe2ac0899",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(0))
		f.Add(b, uint16(40))
	}
	f.Fuzz(func(t *testing.T, b []byte, more uint16) {
		dg := &machine.Datagram{Bytes: b, Length: len(b) + int(more)}
		var d dissect.Dissection
		for _, p := range Protocol.Profiles {
			d.Reset()
			ctx := dissect.Context{Config: p.Config}
			Dissect(ctx, dg, &d)
			if len(d.Fields) == 0 || len(Info(ctx, dg, nil)) == 0 {
				t.Fatalf("%s: nothing is said of %x", p.Name, b)
			}
			for _, field := range d.Fields {
				if int(field.Bit)+int(field.Bits) > dg.Length*8 {
					t.Fatalf("%s: %s ends at bit %d of %d", p.Name, field.Spec.Name, field.Bit+field.Bits, dg.Length*8)
				}
			}
			if more > 0 || d.Problem != nil {
				continue
			}
			if missing := coverage(&d, len(b)*8); missing != "" {
				t.Fatalf("%s: %x: %s\n%s", p.Name, b, missing, treeText(&d))
			}
			if a := newAssembly(p.Config); a != nil {
				if whole := a.Add(dg); whole != nil {
					d.Reset()
					Dissect(ctx, whole, &d)
				}
			}
		}
		c := Protocol.Classify()
		for i := range 3 {
			dg.From = machine.Side(i % 2)
			c.Feed(dg)
		}
		if v := c.Verdict(); v.Config != nil && v.Settled && len(b) < 1000 {
			t.Fatalf("three copies of one datagram are taken for %s: %s", v.Config.Dialect, v.Reason)
		}
	})
}

// TestReassemblerIsBounded: pieces that never become whole must not fill memory.
func TestReassemblerIsBounded(t *testing.T) {
	for _, name := range []string{"reliable", "article-fragments", "article-slices"} {
		config := builtinConfig(t, name)
		p := settings(dissect.Context{Config: config})
		r := NewReassembler(p)
		data := make([]byte, 1024)
		for i := range 40000 {
			pk := &wire.Packet{
				Kind: wire.KindFragment, Sequence: uint32(i*3) & 0xffff, FragmentID: 1 + i%200,
				FragmentCount: 250, Chunk: uint16(i), SliceID: i % 30, SliceCount: 32,
			}
			if name == "article-slices" {
				pk.Kind = wire.KindSlice
			}
			b := p.Append(nil, pk, data)
			r.Add(&machine.Datagram{Bytes: b, Length: len(b), From: machine.Side(i % 2)})
		}
		for _, a := range r.sides {
			held := 0
			count := func(p *partial) {
				for _, piece := range p.pieces {
					held += len(piece)
				}
			}
			a.partial.All(func(_ uint32, p *partial) bool { count(p); return true })
			for i := range a.blocks {
				count(&a.blocks[i])
			}
			if held != a.held || held > maxHeld {
				t.Errorf("%s: %d bytes are held, counted as %d, at most %d allowed", name, held, a.held, maxHeld)
			}
		}
	}
}
