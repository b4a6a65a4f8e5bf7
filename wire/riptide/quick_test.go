package riptide

import (
	"math/rand/v2"
	"testing"
)

// TestQuick compares messages that quick reads with what slow reads from them.
func TestQuick(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	read := map[Type]int{}
	for range 400_000 {
		b := make([]byte, 1+rng.IntN(10))
		for i := range b {
			b[i] = byte(rng.Uint32()) & byte(-rng.IntN(2)|15) // many bits are 0, as in padding
		}
		b[0] = b[0]&0xf0 | []byte{0, 1, 6, 7}[rng.IntN(4)]
		length := len(b) + max(0, rng.IntN(6)-3)
		c := Codec{Dialect: V21, BigEndian: rng.IntN(2) == 0}
		var m Message
		kind, _ := V21.TypeOf(b[0] & 15)
		m.Type, m.Value = kind, b[0]&15
		want := m
		if !m.quick(V21.layouts[kind], load(b), len(b)*8, length*8) {
			continue
		}
		read[kind]++
		if f := c.slow(b, length, V21.layouts[kind], load(b), &want); f.err != nil || want != m {
			t.Fatalf("% x of %d bytes: %+v, expected %+v, %v", b, length, m, want, f.err)
		}
	}
	for _, kind := range []Type{Unreliable, Ack, Notify, Reliable} {
		if read[kind] < 1000 {
			t.Errorf("%v was read %d times", kind, read[kind])
		}
	}
}

// TestLoad compares load with a sum over the bytes.
func TestLoad(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for n := range len(b) + 1 {
		want := uint64(0)
		for i, v := range b[:min(n, 8)] {
			want |= uint64(v) << (8 * i)
		}
		if got := load(b[:n]); got != want {
			t.Errorf("%d bytes: %x, expected %x", n, got, want)
		}
	}
}
