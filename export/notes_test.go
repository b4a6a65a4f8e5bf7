package export

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestNotesAreSorted: notes come back by frame, in the order in which they were
// added, whether they were kept in memory or in files.
func TestNotesAreSorted(t *testing.T) {
	defer func(n int) { runNotes = n }(runNotes)
	for _, runNotes = range []int{7, 1 << 18} {
		n := NewNotes()
		random := rand.New(rand.NewPCG(1, 2))
		var want []note
		for i := range 1000 {
			x := note{
				ref: machine.MakeRef(random.IntN(2), 1+random.Uint64N(50)), other: machine.MakeRef(1, random.Uint64N(1<<40)),
				sequence: random.Int64() - 1<<62, rtt: random.Int64N(1e9) - 1, kind: NoteReceived,
				side: machine.Side(random.IntN(2)), certainty: machine.Certainty(random.IntN(4)),
			}
			if i%10 == 0 {
				x.kind, x.word = NoteEvent, n.wordOf([]string{"joined", "left"}[random.IntN(2)])
			}
			n.add(x)
			want = append(want, x)
		}
		slices.SortStableFunc(want, func(x, y note) int { return cmp.Compare(x.ref, y.ref) })
		if err := n.Sort(); err != nil {
			t.Fatal(err)
		}
		var got []Note
		for frame := range uint64(60) {
			for file := range 3 {
				list, err := n.At(machine.MakeRef(file, frame), nil)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, list...)
			}
		}
		slices.SortStableFunc(got, func(x, y Note) int { return cmp.Compare(x.Ref, y.Ref) })
		if len(got) != len(want) {
			t.Fatalf("%d notes, expected %d", len(got), len(want))
		}
		for i, x := range want {
			y := Note{
				Ref: x.ref, Kind: x.kind, Side: x.side, Certainty: x.certainty, Sequence: x.sequence,
				Other: x.other, RTT: x.rtt,
			}
			if x.kind == NoteEvent {
				y.Word = []string{"joined", "left"}[0]
				if n.words[x.word] == "left" {
					y.Word = "left"
				}
			}
			if got[i] != y {
				t.Fatalf("note %d is %+v, expected %+v", i, got[i], y)
			}
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
