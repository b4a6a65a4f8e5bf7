package machine_test

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// Contents that differ in one bit, in length or in seed have different digests.
// The same bytes have the same digest wherever they are in memory.
func TestDigestTellsApart(t *testing.T) {
	seen := map[uint64][]byte{}
	note := func(seed uint64, b []byte) {
		t.Helper()
		key := append(binary.LittleEndian.AppendUint64(nil, seed), b...)
		d := machine.Digest(seed, b)
		if was, ok := seen[d]; ok && !bytes.Equal(was, key) {
			t.Fatalf("%x and %x have the same digest", was, key)
		}
		seen[d] = key
		if moved := append([]byte{1}, b...)[1:]; machine.Digest(seed, slices.Clone(moved)) != d {
			t.Fatalf("%x has two digests", b)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 70 {
		b := make([]byte, n)
		note(0, b) // zeros of each length
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		for seed := range uint64(4) {
			note(seed, b)
		}
		for bit := range 8 * n {
			b[bit/8] ^= 1 << (bit % 8)
			note(0, b)
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// Packets of games are alike: counters and zeros. Digest keeps them apart where
// FNV-1a collides.
func TestDigestOfPackets(t *testing.T) {
	digests, sums := map[uint64]bool{}, map[uint64]bool{}
	const packets = 50000
	for i := range uint32(packets) {
		b := make([]byte, 12+i%24)
		binary.LittleEndian.PutUint16(b, uint16(i))
		binary.LittleEndian.PutUint32(b[4:], i/16)
		h := fnv.New64a()
		h.Write(b)
		digests[machine.Digest(0, b)], sums[h.Sum64()] = true, true
	}
	if len(digests) != len(sums) || len(sums) != packets {
		t.Errorf("%d digests and %d sums of %d packets", len(digests), len(sums), packets)
	}
	b := make([]byte, 1200)
	if got := testing.AllocsPerRun(100, func() { machine.Digest(0, b) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
