package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
)

var registry = dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)

// lengths adds up the lengths on the wire of a capture's frames.
type lengths struct {
	*capture.Input
	bytes, frames uint64
}

func (l *lengths) Next(f *capture.Frame) error {
	err := l.Input.Next(f)
	if err == nil {
		l.bytes += uint64(f.Length)
		l.frames++
	}
	return err
}

func (l *lengths) Rewind() error { l.bytes, l.frames = 0, 0; return l.Input.Rewind() }

// read returns the ledger of a capture.
func read(t testing.TB, path string, twice bool) (*ledger.Ledger, *lengths) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	src, l := &lengths{Input: in}, &ledger.Ledger{}
	o := analyze.Options{Registry: registry, Sink: func(r *analyze.Record) {
		for i := range r.Events {
			if r.Events[i].Kind == machine.EventResent && !r.Flow.Protocol.Resends {
				t.Fatalf("%s: %s reports what is sent again, and its descriptor denies it", path, r.Flow.Protocol.Name)
			}
		}
		l.Take(r)
	}}
	if twice {
		_, err = analyze.RunTwice(src, o)
	} else {
		_, err = analyze.Run(src, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, src
}

// Every bit of every frame must be in one cell. For every shipped capture, the
// ledger must add up to the bytes on the wire.
func TestAddsUpToTheWire(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures: %v", len(paths), err)
	}
	for i, path := range paths {
		if testing.Short() && i%8 != 0 {
			continue
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() || strings.Contains(path, ".replay") {
			continue
		}
		l, src := read(t, path, true)
		total, frames := l.Total(), l.Other().Frames
		for _, f := range l.Flows() {
			frames += f.Sides[0].Frames + f.Sides[1].Frames
		}
		if total.Total() != 8*src.bytes {
			t.Errorf("%s: %d bits in the ledger, %d on the wire", filepath.Base(path), total.Total(), 8*src.bytes)
		}
		if frames != src.frames {
			t.Errorf("%s: %d frames in the ledger, %d in the capture", filepath.Base(path), frames, src.frames)
		}
	}
}

// Forgotten flows must stay in the sum.
func TestForget(t *testing.T) {
	path := testenv.Capture(t, "u210_loss10.client.pcapng.gz")
	whole, src := read(t, path, true)
	l, _ := read(t, path, true)
	flows := len(l.Flows())
	for _, f := range l.Flows() {
		l.Forget(f.Flow)
		l.Forget(f.Flow) // a second call changes nothing
	}
	if _, n := l.Gone(); n != flows || len(l.Flows()) != 0 {
		t.Errorf("%d of %d flows are forgotten, %d are left", n, flows, len(l.Flows()))
	}
	was, is := whole.Total(), l.Total()
	if was != is || is.Total() != 8*src.bytes {
		t.Errorf("%+v of %d bytes, before %+v", is, src.bytes, was)
	}
}

// TestNoAllocations: once the rows are there, charging a packet allocates nothing.
func TestNoAllocations(t *testing.T) {
	for _, name := range []string{"reliable-clean.client.pcap.gz", "u210_loss10.server.pcap.gz"} {
		in, err := capture.Open([]string{filepath.Join(testenv.Module(t), "testdata", "pcaps", name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		l, tried := &ledger.Ledger{}, 0
		_, err = analyze.RunTwice(in, analyze.Options{Registry: registry, Sink: func(r *analyze.Record) {
			l.Take(r)
			if r.Frame == nil || r.Flow == nil || r.Flow.Protocol == nil || tried == 20 {
				return
			}
			tried++
			again, frame := *r, *r.Frame
			again.Frame = &frame
			step := func() { // the ledger knows a frame by its number
				frame.Ref += 1 << 30
				again.Datagram.Ref = frame.Ref
				l.Take(&again)
			}
			if n := testing.AllocsPerRun(100, step); n > 0 {
				t.Errorf("%s, frame %d: %v allocations a packet", name, r.Datagram.Ref.Frame(), n)
			}
		}})
		if err != nil || tried < 20 {
			t.Fatalf("%s: %d packets: %v", name, tried, err)
		}
	}
}
