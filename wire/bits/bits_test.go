package bits

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A body from a real capture: type 1 in 2 bits, then -7, -20 and 30 in ranges
// of 21, 41 and 61 values.
func TestCapturedBody(t *testing.T) {
	b := []byte{0x0d, 0x80, 0x07}
	r := NewReader(b)
	w := NewWriter(nil)
	for _, f := range []struct {
		least, most int64
		want        int64
	}{{0, 3, 1}, {-10, 10, -7}, {-20, 20, -20}, {-30, 30, 30}} {
		n := Required(uint64(f.least), uint64(f.most))
		v, ok := r.Bits(n)
		if !ok || int64(v)+f.least != f.want {
			t.Fatalf("got %d, want %d", int64(v)+f.least, f.want)
		}
		w.Bits(v, n)
	}
	if r.Pos() != 19 || !r.Align() || r.Left() != 0 {
		t.Errorf("19 bits and zeros: at %d, %d left", r.Pos(), r.Left())
	}
	w.Align()
	if !bytes.Equal(w.Data(), b) {
		t.Errorf("written as %x, want %x", w.Data(), b)
	}
}

func TestRequired(t *testing.T) {
	for _, c := range []struct {
		least, most uint64
		want        int
	}{{0, 0, 0}, {5, 5, 0}, {0, 1, 1}, {0, 255, 8}, {0, 256, 9}, {1, 32, 5}, {0, 1<<64 - 1, 64}} {
		if got := Required(c.least, c.most); got != c.want {
			t.Errorf("Required(%d, %d) = %d, want %d", c.least, c.most, got, c.want)
		}
	}
}

// The model is a big integer, which equals little-endian words with the low bit
// first.
func TestReaderModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, random.IntN(30))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		reversed := make([]byte, len(b))
		for i := range b {
			reversed[len(b)-1-i] = b[i]
		}
		whole := new(big.Int).SetBytes(reversed)
		r, w := NewReader(b), NewWriter(nil)
		for r.Left() > 0 {
			n := random.IntN(65)
			at := r.Pos()
			v, ok := r.Bits(n)
			if !ok {
				if at+n <= len(b)*8 || r.Pos() != at {
					t.Fatalf("%d bits at %d of %d are refused", n, at, len(b)*8)
				}
				n = r.Left()
				if n > 64 {
					t.Fatal("unreachable: fewer than 64 bits are left")
				}
				v, _ = r.Bits(n)
			}
			want := new(big.Int).Rsh(whole, uint(at))
			want.And(want, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(n)), big.NewInt(1)))
			if v != want.Uint64() {
				t.Fatalf("%d bits at %d: %x, want %x", n, at, v, want.Uint64())
			}
			w.Bits(v, n)
			if w.Pos() != r.Pos() {
				t.Fatalf("writer at %d, reader at %d", w.Pos(), r.Pos())
			}
		}
		if !bytes.Equal(w.Data(), b) {
			t.Fatalf("written as %x, want %x", w.Data(), b)
		}
	}
}

func TestAlign(t *testing.T) {
	r := NewReader([]byte{0x07, 0x01, 0xff})
	r.Bits(3)
	if !r.Align() || r.Pos() != 8 {
		t.Error("zero padding is not passed")
	}
	if _, ok := r.Bytes(1); !ok {
		t.Error("a byte at a whole byte is refused")
	}
	r.Bits(1)
	if _, ok := r.Bytes(0); ok {
		t.Error("bytes within a byte are given")
	}
	if r.Align() {
		t.Error("padding of ones passes for zero")
	}
	if _, ok := r.Bits(1); ok {
		t.Error("a bit after the end is given")
	}
	for _, n := range []int{-1, 65} {
		if _, ok := r.Bits(n); ok {
			t.Errorf("%d bits are given", n)
		}
	}
}

// A reader, a writer and a measure must agree on their positions.
func TestCursors(t *testing.T) {
	walk := func(c Cursor, a, b *uint64, data *[]byte) {
		for _, err := range []error{c.Bits(a, 5), c.Bits(b, 60), c.Align(), c.Bytes(data, 3)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	a, b, data := uint64(21), uint64(1)<<59|7, []byte{1, 2, 3}
	w := NewWriter(nil)
	walk(Writing{&w}, &a, &b, &data)
	m := &Measuring{}
	walk(m, &a, &b, &data)
	r := NewReader(w.Data())
	var ra, rb uint64
	var rd []byte
	walk(Reading{&r}, &ra, &rb, &rd)
	if ra != a || rb != b || !bytes.Equal(rd, data) {
		t.Errorf("read %d %d %x, want %d %d %x", ra, rb, rd, a, b, data)
	}
	if m.At != w.Pos() || m.At != r.Pos() || m.At != 72+24 {
		t.Errorf("measured %d, written %d, read %d bits", m.At, w.Pos(), r.Pos())
	}
}

func BenchmarkReader(b *testing.B) {
	data := make([]byte, 1200)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(data)
		for {
			if _, ok := r.Bits(11); !ok {
				break
			}
		}
	}
}
