package capture

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// What is read in stretches equals what is read one by one, in any order.
func TestNearReadsTheSame(t *testing.T) {
	for _, names := range [][]string{
		{"reliable-loss10.client.pcap.gz"}, {"u210_loss10.client.pcapng.gz"}, {"reliable-dup10.client.pcap.gz", "reliable-dup10.server.pcap.gz"},
	} {
		var paths []string
		for _, name := range names {
			paths = append(paths, testenv.Capture(t, name))
		}
		in, err := Open(paths, Options{Keep: KeepAll})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = in.Close() }()
		var frames []Frame
		var f Frame
		for in.Next(&f) == nil {
			frames = append(frames, Frame{Ref: f.Ref, Offset: f.Offset})
		}
		near := in.Near()
		rng := rand.New(rand.NewPCG(1, 1))
		var one, other Frame
		var buf, buf2 []byte
		at, held := 0, 0
		for range 4000 {
			if rng.IntN(8) == 0 {
				at = rng.IntN(len(frames))
			}
			at = min(at+rng.IntN(3), len(frames)-1)
			near.Expect(int64(rng.IntN(2 * MostStretch)))
			x := &frames[at]
			if near.Holds(x.Ref.File(), x.Offset) {
				held++
			}
			if buf, err = in.ReadAt(x.Ref, x.Offset, &one, buf); err != nil {
				t.Fatal(err)
			}
			if buf2, err = near.ReadAt(x.Ref, x.Offset, &other, buf2); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(one.Data, other.Data) || one.At != other.At || one.Length != other.Length || one.Ref != other.Ref {
				t.Fatalf("%v: frame %d reads differently", names, x.Ref.Frame())
			}
		}
		if held < 1000 {
			t.Errorf("%v: only %d frames lay in a stretch: it was not tried", names, held)
		}
		if _, err := near.ReadAt(frames[0].Ref, -1, &one, buf); err == nil {
			t.Error("a frame at a negative offset was read")
		}
		if _, err := near.ReadAt(frames[0].Ref, 1<<40, &one, buf); err == nil {
			t.Error("a frame beyond the file was read")
		}
	}
}

func BenchmarkNear(b *testing.B) {
	in, err := Open([]string{testenv.Capture(b, "reliable-loss10.client.pcap.gz")}, Options{Keep: KeepAll})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var frames []Frame
	var f Frame
	for in.Next(&f) == nil {
		frames = append(frames, Frame{Ref: f.Ref, Offset: f.Offset})
	}
	near := in.Near()
	near.Expect(MostStretch)
	var buf []byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x := &frames[i%len(frames)]
		if buf, err = near.ReadAt(x.Ref, x.Offset, &f, buf); err != nil {
			b.Fatal(err)
		}
	}
}
