package capture

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// place is the place of a record in a capture.
type place struct {
	ref    machine.Ref
	offset int64
}

// places opens captures and returns the places of their records.
func places(t testing.TB, names ...string) (in *Input, list []place) {
	t.Helper()
	var paths []string
	for _, name := range names {
		paths = append(paths, testenv.Capture(t, name))
	}
	in, err := Open(paths, Options{Keep: KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	for f := (Frame{}); in.Next(&f) == nil; {
		list = append(list, place{f.Ref, f.Offset})
	}
	return in, list
}

// TestRangeReaderReadsTheSame: records read through RangeReader equal those
// read one by one, in any order.
func TestRangeReaderReadsTheSame(t *testing.T) {
	for _, names := range [][]string{
		{"reliable-loss10.client.pcap.gz"},
		{"u210_loss10.client.pcapng.gz"},
		{"reliable-dup10.client.pcap.gz", "reliable-dup10.server.pcap.gz"},
	} {
		in, frames := places(t, names...)
		reader := in.RangeReader()
		rng := rand.New(rand.NewPCG(1, 1))
		var one, other Frame
		var buf, buf2 []byte
		var err error
		at, held := 0, 0
		for range 4000 {
			if rng.IntN(8) == 0 {
				at = rng.IntN(len(frames))
			}
			at = min(at+rng.IntN(3), len(frames)-1)
			reader.Expect(int64(rng.IntN(2 * MostRange)))
			x := &frames[at]
			if reader.Holds(x.ref.File(), x.offset) {
				held++
			}
			if buf, err = in.ReadAt(x.ref, x.offset, &one, buf); err != nil {
				t.Fatal(err)
			}
			if buf2, err = reader.ReadAt(x.ref, x.offset, &other, buf2); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(one.Data, other.Data) || one.At != other.At || one.Length != other.Length || one.Ref != other.Ref {
				t.Fatalf("%v: frame %d reads differently", names, x.ref.Frame())
			}
		}
		if held < 1000 {
			t.Errorf("%v: only %d frames lay in a stretch: it was not tried", names, held)
		}
		if _, err := reader.ReadAt(frames[0].ref, -1, &one, buf); err == nil {
			t.Error("a frame at a negative offset was read")
		}
		if _, err := reader.ReadAt(frames[0].ref, 1<<40, &one, buf); err == nil {
			t.Error("a frame beyond the file was read")
		}
	}
}

func BenchmarkRangeReader(b *testing.B) {
	in, frames := places(b, "reliable-loss10.client.pcap.gz")
	reader := in.RangeReader()
	reader.Expect(MostRange)
	var f Frame
	var buf []byte
	var err error
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x := &frames[i%len(frames)]
		if buf, err = reader.ReadAt(x.ref, x.offset, &f, buf); err != nil {
			b.Fatal(err)
		}
	}
}
