package analyze

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

var numberSpec = &dissect.FieldSpec{Name: "test.number", Kind: dissect.KindUint, Content: dissect.ContentSequence}

// numbered returns the test protocol with a dissector, and a tracker that hashes each datagram.
// A datagram is the mark 'T', an operation and a number. dissected counts the calls.
func numbered(dissected *int) *dissect.Protocol {
	p := *testProtocol
	seed := maphash.MakeSeed()
	p.NewTracker = func(*dissect.Config) machine.Tracker { return &foldTracker{seed: seed} }
	p.Dissect = func(_ dissect.Context, d *machine.Datagram, to *dissect.Dissection) {
		*dissected++
		if len(d.Bytes) < 4 || d.Bytes[0] != 'T' {
			to.Problem = os.ErrInvalid
			return
		}
		to.Add(dissect.Field{Spec: numberSpec, Bit: 16, Bits: 16, Uint: uint64(binary.LittleEndian.Uint16(d.Bytes[2:]))})
	}
	return &p
}

// numberedBytes returns a datagram with a number and so many bytes in all.
func numberedBytes(r *rand.Rand, n, length int) []byte {
	b := mark('.', n)
	for len(b) < length {
		b = append(b, byte(r.Uint32()))
	}
	return b[:length]
}

// batchOf returns count datagrams of a size that begin with a number. The last one has rest
// bytes.
func batchOf(r *rand.Rand, number, count, size, rest int) (joined []byte, list [][]byte) {
	for i := range count {
		n := size
		if i == count-1 {
			n = rest
		}
		list = append(list, numberedBytes(r, number+i, n))
		joined = append(joined, list[i]...)
	}
	return joined, list
}

// TestBatches feeds datagrams in batches of many shapes, and by themselves at the same time
// from the same frame. The trackers see the same.
func TestBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var calls int
	protocol := numbered(&calls)
	type shape struct{ count, size, rest int }
	shapes := []shape{
		{3, 1472, 1472},
		{3, 1400, 4},
		{4, 500, 500},
		{64, 100, 7},
		{128, 12, 12},
		{20, 1024, 1023},
		{44, 1472, 4},
		{2, 1472, 1000},
		{2, 100, 5}, // of two, or short: only with a size that is known
	}
	for i := range 60 {
		s := shape{3 + r.IntN(60), 40 + r.IntN(900), 0}
		s.rest = 4 + r.IntN(s.size-3)
		if i%3 == 0 {
			s.rest = s.size
		}
		shapes = append(shapes, s)
	}
	for _, c := range shapes {
		number := r.IntN(1 << 16)
		var sessions [2]*Session
		var records [2][]Record
		for which := range sessions {
			s := NewSession(Options{Registry: dissect.NewRegistry(protocol), Sink: func(x *Record) {
				y := *x
				y.Datagram.Bytes, y.Spans = bytes.Clone(x.Datagram.Bytes), slices.Clone(x.Spans)
				records[which] = append(records[which], y)
			}})
			sessions[which] = s
			frame := uint64(0)
			feed := func(payload []byte) {
				s.Feed(nil, &capture.Packet{
					Ref: machine.MakeRef(0, frame), At: machine.Instant(frame) * 1e6, Transport: capture.UDP, Src: hostA, Dst: hostB,
					Payload: payload, Length: len(payload),
					Spans: []capture.Span{{Ref: machine.Ref(frame), Offset: 42, Length: len(payload)}},
				})
			}
			r := rand.New(rand.NewPCG(uint64(number), 9))
			for range 20 {
				frame++
				feed(numberedBytes(r, 1, 30))
			}
			teach, taught := batchOf(r, number-200, max(4, batchLeast/c.size+2), c.size, c.size) // long enough to be searched
			joined, list := batchOf(r, number, c.count, c.size, c.rest)
			for i, group := range [][][]byte{taught, list} {
				frame++
				whole := [][]byte{teach, joined}[i]
				if which == 1 {
					for _, b := range group {
						feed(b)
					}
					continue
				}
				feed(whole)
			}
		}
		x, y := sessions[0].Flows()[0], sessions[1].Flows()[0]
		if x.tracker.(*foldTracker).fold != y.tracker.(*foldTracker).fold {
			t.Errorf("%+v: the tracker saw something else", c)
		}
		if x.Packets != y.Packets || x.Bytes != y.Bytes {
			t.Errorf("%+v: packets %v, bytes %v; by themselves %v, %v", c, x.Packets, x.Bytes, y.Packets, y.Bytes)
		}
		list := records[0][len(records[0])-c.count:]
		for i := range list {
			z := &list[i]
			one := &records[1][len(records[1])-c.count+i]
			if z.Batch != (Batch{c.count, c.size}) || z.Index != i || z.More != (i+1 < c.count) ||
				!bytes.Equal(z.Datagram.Bytes, one.Datagram.Bytes) || z.Datagram.Length != len(z.Datagram.Bytes) ||
				len(z.Spans) != 1 || z.Spans[0].Offset != 42+i*c.size || z.Spans[0].Length != z.Datagram.Length {
				t.Fatalf("%+v: datagram %d is %+v of %v, spans %v", c, i, z.Index, z.Batch, z.Spans)
			}
		}
	}
}

// TestNoBatch: long datagrams that are no batches stay whole, whatever they hold.
func TestNoBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var calls int
	protocol := numbered(&calls)
	kinds := map[string]func(n int) []byte{
		"random": func(n int) []byte { return numberedBytes(r, n, batchLeast+1+r.IntN(20000)) },
		"numbers that do not count up": func(n int) (b []byte) {
			for range 10 {
				b = append(b, numberedBytes(r, n, 300)...)
				n += 2
			}
			return b
		},
		"one gap": func(n int) []byte {
			b, _ := batchOf(r, n, 20, 300, 300)
			return append(b, numberedBytes(r, n+21, 300)...)
		},
		"a longer last one": func(n int) []byte {
			b, _ := batchOf(r, n, 6, 400, 400)
			return append(b, numberedBytes(r, n+6, 500)...)
		},
		"one number": func(n int) (b []byte) {
			for range 10 {
				b = append(b, numberedBytes(r, n, 300)...)
			}
			return b
		},
		"one number everywhere": func(n int) []byte { return bytes.Repeat(mark('.', n), 15000) },
		"two": func(n int) []byte {
			b, _ := batchOf(r, n, 2, 1200, 1200)
			return b
		},
		"zeros": func(n int) []byte { return append(mark('.', n), make([]byte, 9000)...) },
		"too many": func(n int) []byte {
			b, _ := batchOf(r, n, batchMost+1, 100, 100)
			return b
		},
		"cut by a snap length": nil,
	}
	for name, make := range kinds {
		s := NewSession(Options{Registry: dissect.NewRegistry(protocol)})
		calls = 0
		q := quoter{session: s}
		for i := range 10 {
			q.datagram(hostA, hostB, 0, 0, mark('.', i))
		}
		const long = 1000
		captured := []capture.Span{{Offset: 42, Length: 1000}}
		total := 0
		for i := range long {
			if make != nil {
				b := make(i)
				q.datagram(hostA, hostB, 0, 0, b)
				total += len(b)
				continue
			}
			b, _ := batchOf(r, i, 8, 400, 400)
			s.Feed(nil, &capture.Packet{
				Transport: capture.UDP, Src: hostA, Dst: hostB, Payload: b[:1000], Length: len(b), Spans: captured,
			})
		}
		f := s.Flows()[0]
		if make != nil && f.Bytes[0] != uint64(total+40) {
			t.Errorf("%s: %d bytes of %d", name, f.Bytes[0], total+40)
		}
		if f.Packets[0] != long+10 {
			t.Errorf("%s: %d datagrams of %d", name, f.Packets[0], long+10)
		}
		if per := calls / long; per > 60 {
			t.Errorf("%s: %d dissections for each datagram", name, per)
		}
	}
}

// TestWalkOverBatches: a timeline goes to any frame, and steps over the same datagrams.
func TestWalkOverBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	path := filepath.Join(t.TempDir(), "batches.pcap")
	var file bytes.Buffer
	w, err := capture.NewClassicWriter(&file, capture.LinkRaw, 0, capture.Nanoseconds, 0)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for i := range 1500 {
		payload := numberedBytes(r, number, 4+r.IntN(60))
		count := 1
		if i > 30 && i%5 == 0 {
			count = 4 + r.IntN(10)
			payload, _ = batchOf(r, number, count, 500+r.IntN(3), 100)
		}
		number += count
		e := capture.Envelope{Src: hostA, Dst: hostB, TTL: 64, ID: uint16(i)}
		if i%3 == 0 {
			e.Src, e.Dst = e.Dst, e.Src
		}
		data, err := capture.AppendUDP(nil, e, payload)
		if err != nil {
			t.Fatal(err)
		}
		err = w.WriteFrame(&capture.Frame{
			At: machine.Instant(i) * 1e6, LinkType: capture.LinkRaw, Length: len(data), Data: data,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var calls int
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	timeline := NewTimeline(in)
	type step struct {
		frame       uint64
		index, size int
		more        bool
		bytes       string
	}
	stepOf := func(x *Record) step {
		return step{x.Datagram.Ref.Frame(), x.Index, x.Batch.Size, x.More, string(x.Datagram.Bytes)}
	}
	var all []step
	folds := map[uint64]uint64{} // after each frame
	s, err := RunTwice(in, Options{Registry: dissect.NewRegistry(numbered(&calls)), Sink: func(x *Record) {
		timeline.Record(x)
		if x.Frame != nil {
			all = append(all, stepOf(x))
			folds[x.Datagram.Ref.Frame()] = x.Flow.tracker.(*foldTracker).fold
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	timeline.Attach(s)
	f := s.Flows()[0]
	if timeline.Len() != 1500 || len(all) < 3000 || f.Packets[0]+f.Packets[1] != uint64(len(all)) {
		t.Fatalf("%d frames, %d datagrams, packets %v", timeline.Len(), len(all), f.Packets)
	}
	for range 40 {
		from := r.IntN(1500)
		walk, err := timeline.Walk(f, from)
		if err != nil {
			t.Fatal(err)
		}
		var got []step
		for x := walk.Next(); x != nil && len(got) < 1000; x = walk.Next() {
			got = append(got, stepOf(x))
			if r.IntN(10) == 0 {
				walk.Keep()
			}
			if r.IntN(10) == 0 { // others read in between
				n := r.IntN(1500)
				x, err := timeline.Read(n)
				if err != nil {
					t.Fatal(err)
				}
				first := slices.IndexFunc(all, func(s step) bool { return s.frame == uint64(n)+1 })
				if got := stepOf(x); got != all[first] {
					t.Fatalf("entry %d reads as %+v, expected %+v", n, got, all[first])
				}
			}
		}
		if walk.Err() != nil {
			t.Fatal(walk.Err())
		}
		at := slices.IndexFunc(all, func(x step) bool { return x.frame == got[0].frame && x.index == 0 })
		if at < 0 || got[0].index != 0 || !slices.Equal(got, all[at:at+len(got)]) {
			t.Fatalf("from entry %d, at step %d of %d: the walk differs", from, at, len(all))
		}
		ref := machine.MakeRef(0, uint64(1+r.IntN(1500)))
		tracker, err := timeline.StateAt(f, ref)
		if err != nil {
			t.Fatal(err)
		}
		if got := tracker.(*foldTracker).fold; got != folds[ref.Frame()] {
			t.Errorf("the state at frame %d differs", ref.Frame())
		}
	}
}

// TestSearchIsBounded: many flows with hostile long datagrams cost work in proportion to the
// capture.
func TestSearchIsBounded(t *testing.T) {
	var calls int
	s := NewSession(Options{Registry: dissect.NewRegistry(numbered(&calls))})
	q := quoter{session: s}
	hostile := bytes.Repeat(mark('.', 7), 15000)
	frames := 0
	for i := range 3000 {
		src := netip.AddrPortFrom(hostA.Addr(), uint16(i+1))
		for n := range 9 {
			q.datagram(src, hostB, 0, 0, mark('.', n))
		}
		for range 3 {
			q.datagram(src, hostB, 0, 0, hostile)
		}
		frames += 12
	}
	// The last dissections of one search may go beyond the bound: those of one size.
	if most := batchFloor + batchWork*frames + batchSearch + batchMost; calls > most || calls < most/2 {
		t.Errorf("%d dissections for %d frames, expected at most %d, and most of them", calls, frames, most)
	}
}
