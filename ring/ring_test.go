package ring

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

const (
	start    = machine.Instant(1_700_000_000_000_000_000)
	rawIP    = 101 // LINKTYPE_RAW
	smallest = 64 << 10
)

func at(d time.Duration) machine.Instant { return start.Add(d) }

func describe(_, index int) capture.Interface {
	return capture.Interface{Name: []string{"eth0", "lo"}[index], LinkType: rawIP}
}

// small are the options of a ring of at most 64 KiB, in files of 8 KiB.
func small() Options { return Options{Bytes: smallest, FileBytes: smallest / 8, Interface: describe} }

func open(t *testing.T, folder string, o Options) *Ring {
	t.Helper()
	r, err := Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func frame(at machine.Instant, data []byte) *capture.Frame {
	return &capture.Frame{Ref: machine.MakeRef(0, 1), At: at, LinkType: rawIP, Length: len(data), Data: data}
}

func write(t *testing.T, r *Ring, list ...*capture.Frame) {
	t.Helper()
	for _, f := range list {
		if err := r.Write(f); err != nil {
			t.Fatal(err)
		}
	}
}

// cut cuts a span, and returns the frames of the cut.
func cut(t *testing.T, r *Ring, s Span) (*Cut, []*capture.Frame, *capture.Input) {
	t.Helper()
	var b bytes.Buffer
	c, err := r.Cut(context.Background(), &b, s)
	if err != nil {
		t.Fatal(err)
	}
	if c.Bytes != int64(b.Len()) {
		t.Errorf("the cut has %d bytes, and says %d", b.Len(), c.Bytes)
	}
	list, in, err := frames(&b)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(list)) != c.Frames {
		t.Errorf("the cut has %d frames, and says %d", len(list), c.Frames)
	}
	return c, list, in
}

// frames reads a capture.
func frames(r io.Reader) (list []*capture.Frame, in *capture.Input, err error) {
	if in, err = capture.Open([]string{"-"}, capture.Options{Stdin: r}); err != nil {
		return nil, nil, err
	}
	for {
		var f capture.Frame
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return list, in, nil
		} else if err != nil {
			return list, in, err
		}
		f.Data = bytes.Clone(f.Data)
		list = append(list, &f)
	}
}

// same compares frames with those that are wanted, in the order of both.
func same(t *testing.T, found, want []*capture.Frame) {
	t.Helper()
	if len(found) != len(want) {
		t.Fatalf("found %d frames, expected %d", len(found), len(want))
	}
	for i := range found {
		if found[i].At != want[i].At || found[i].Length != want[i].Length || !bytes.Equal(found[i].Data, want[i].Data) {
			t.Fatalf("frame %d of %d is another one", i, len(found))
		}
	}
}

// numbered returns frames that all differ, a millisecond apart.
func numbered(from, n, size int) (list []*capture.Frame) {
	for i := range n {
		data := make([]byte, size)
		binary.BigEndian.PutUint64(data, uint64(from+i))
		list = append(list, frame(at(time.Duration(from+i)*time.Millisecond), data))
	}
	return list
}

// onDisk returns the sizes of the ring's files.
func onDisk(t *testing.T, folder string) (files int, bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".pcapng") {
			files, bytes = files+1, bytes+info.Size()
		}
	}
	return files, bytes
}

func reasons(c *Cut) string {
	var words []string
	for i := range c.Missing {
		words = append(words, c.Missing[i].Reason.String())
	}
	return strings.Join(words, "; ")
}

// TestBounds: whatever is written, the folder keeps its bounds at every moment, and holds the newest
// frames without a hole.
func TestBounds(t *testing.T) {
	for _, files := range []int{0, 5} {
		folder, o := t.TempDir(), small()
		o.Files = files
		r := open(t, folder, o)
		var all []*capture.Frame
		for i := range 3000 {
			f := numbered(i, 1, 8+i*37%1500)[0]
			f.Interface = i / 7 % 2
			all = append(all, f)
			write(t, r, f)
			if i%5 == 0 {
				if err := r.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if n, size := onDisk(t, folder); size > smallest || files > 0 && n > files {
				t.Fatalf("frame %d: %d files of %d bytes: the bounds are %d and %d", i, n, size, files, smallest)
			}
		}
		c, list, _ := cut(t, r, Span{From: start, To: at(time.Hour)})
		if len(list) < 20 || len(list) == len(all) {
			t.Fatalf("the ring holds %d frames, expected some of %d", len(list), len(all))
		}
		same(t, list, all[len(all)-len(list):])
		if got := reasons(c); got != "the ring begins later; the ring ends earlier" {
			t.Errorf("missing: %s", got)
		}
		if c.Missing[0].To != list[0].At-1 || c.Missing[1].From != list[len(list)-1].At+1 {
			t.Errorf("the gaps do not meet the frames: %v", c.Missing)
		}
		if s := r.Status(); s.Oldest != list[0].At || s.Newest != all[2999].At || s.Frames != 3000 || s.Removed == 0 {
			t.Errorf("status %+v", s)
		}
		write(t, r, frame(at(time.Hour), make([]byte, smallest)))
		if s := r.Status(); s.Oversized != 1 {
			t.Errorf("a frame larger than a file is not counted: %+v", s)
		}
	}
}

func TestOptionsAreRefused(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.Bytes = 3 * o.FileBytes },
		func(o *Options) { o.FileBytes = 100 },
		func(o *Options) { o.Interface = nil },
		func(o *Options) { o.Files = -1 },
		func(o *Options) { o.Age = -1 },
	} {
		o := small()
		change(&o)
		if _, err := Open(t.TempDir(), o); !errors.Is(err, errBounds) {
			t.Errorf("%+v: found %v", o, err)
		}
	}
}

// TestOneRingAtATime: a folder has one ring, until it is closed. Then the next one goes on.
func TestOneRingAtATime(t *testing.T) {
	folder, first := t.TempDir(), numbered(0, 100, 100)
	r := open(t, folder, small())
	if _, err := Open(folder, small()); err == nil {
		t.Fatal("a second ring opened the folder")
	}
	write(t, r, first...)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(first[0]); !errors.Is(err, errClosed) {
		t.Errorf("a closed ring takes frames: %v", err)
	}
	r = open(t, folder, small())
	second := numbered(100, 100, 100)
	write(t, r, second...)
	c, list, in := cut(t, r, Span{From: start, To: at(199 * time.Millisecond)})
	same(t, list, append(first, second...))
	if got := reasons(c); got != "the capture ended and began again" {
		t.Errorf("missing: %s", got)
	}
	if n := len(in.Interfaces(0)); n != 1 {
		t.Errorf("one interface became %d", n)
	}
	if s := in.Sections(0)[0]; len(s.Comments) != 1 || !strings.Contains(s.Comments[0], "began again") {
		t.Errorf("the section says %q", s.Comments)
	}
}

// TestAge: files go when their time is over, though no frame arrives.
func TestAge(t *testing.T) {
	now, o := time.Unix(1_700_000_000, 0), small()
	o.Age, o.Now = time.Hour, func() time.Time { return now }
	folder := t.TempDir()
	r := open(t, folder, o)
	write(t, r, numbered(0, 200, 100)...)
	pin := r.Pin(at(0), at(0))
	for range 3 {
		now = now.Add(50 * time.Minute)
		if err := r.Tick(); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := onDisk(t, folder); files != 1 {
		t.Errorf("%d files, expected the pinned one", files)
	}
	pin.Release()
	if err := r.Tick(); err != nil {
		t.Fatal(err)
	}
	if files, _ := onDisk(t, folder); files != 0 {
		t.Errorf("%d files are older than the ring keeps them", files)
	}
}

// TestPin: a pinned file stays while others come and go, until it is released.
func TestPin(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, small())
	all := numbered(0, 3000, 200)
	span := Span{From: at(100 * time.Millisecond), To: at(120 * time.Millisecond)}
	write(t, r, all[:50]...)
	pin := r.Pin(span.From, span.To) // of frames to come
	write(t, r, all[50:]...)
	_, list, _ := cut(t, r, span)
	same(t, list, all[100:121])
	whole, _, _ := cut(t, r, Span{From: start, To: all[2999].At})
	if got := reasons(whole); got != "the ring begins later; files are gone" {
		t.Errorf("missing: %s", got)
	}
	if s := r.Status(); !pin.Held() || s.Pinned == 0 || s.GivenUp != 0 {
		t.Fatalf("the pin is gone: %+v", s)
	}
	pin.Release()
	pin.Release()
	write(t, r, numbered(3000, 200, 200)...)
	if c, list, _ := cut(t, r, span); pin.Held() || len(list) > 0 || c.Frames != 0 || len(c.Missing) == 0 {
		t.Errorf("a released file is there still: %d frames", len(list))
	}
}

// TestPinsAreBounded: pins of everything keep no more than their part, and the ring goes on.
func TestPinsAreBounded(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, small())
	var pins []*Pin
	for i, f := range numbered(0, 3000, 200) {
		write(t, r, f)
		if i%10 == 0 {
			pins = append(pins, r.Pin(f.At, f.At))
		}
		if _, size := onDisk(t, folder); size > smallest {
			t.Fatalf("frame %d: %d bytes", i, size)
		}
	}
	if s := r.Status(); s.Pinned > smallest/2+smallest/8 || s.GivenUp == 0 || pins[0].Held() || !pins[299].Held() {
		t.Errorf("pins hold %d bytes: %+v", s.Pinned, s)
	}
	for range 2 * mostPins {
		r.Pin(at(time.Hour), at(time.Hour))
	}
	if len(r.pins) > mostPins {
		t.Errorf("%d pins", len(r.pins))
	}
}

// TestClockStepsBack: frames are found by their time, wherever they stand in the row.
func TestClockStepsBack(t *testing.T) {
	r := open(t, t.TempDir(), small())
	var all []*capture.Frame
	for round, offset := range []time.Duration{0, -time.Hour, time.Minute, -2 * time.Hour, 24 * time.Hour} {
		for i, f := range numbered(1000*round, 20, 100) {
			f.At = at(offset + time.Duration(i)*time.Millisecond)
			all = append(all, f)
		}
	}
	write(t, r, all...)
	for _, span := range []Span{
		{From: start, To: at(time.Hour)},
		{From: at(-time.Hour), To: at(-time.Hour + 5*time.Millisecond)},
		{From: at(-3 * time.Hour), To: at(time.Minute)},
		{From: at(-30 * 24 * time.Hour), To: at(30 * 24 * time.Hour)},
	} {
		var want []*capture.Frame
		for _, f := range all {
			if f.At >= span.From && f.At <= span.To {
				want = append(want, f)
			}
		}
		_, list, _ := cut(t, r, span)
		same(t, list, want)
	}
}

// TestDropsOfASpan: a cut has the drops of its files only, and says where they are not known.
func TestDropsOfASpan(t *testing.T) {
	o, dropped := small(), uint64(0)
	o.Counts = func() ([]capture.Statistics, error) {
		return []capture.Statistics{{Known: capture.KnownOSDropped, OSDropped: dropped}}, nil
	}
	folder := t.TempDir()
	r := open(t, folder, o)
	for i, f := range numbered(0, 4, 100) {
		f.At = at(time.Duration(i) * 2 * time.Minute) // each in a file of its own
		write(t, r, f)
		dropped += 10
	}
	for i, want := range []uint64{10, 20, 30, 40} {
		c, _, in := cut(t, r, Span{From: start, To: at(time.Duration(i) * 2 * time.Minute)})
		if c.Dropped != want || c.Uncounted || in.Dropped() != want || !in.Counted() {
			t.Errorf("%d files: %d dropped, the file says %d, expected %d", i+1, c.Dropped, in.Dropped(), want)
		}
	}
	_ = r.Close()
	r = open(t, folder, small())
	write(t, r, frame(at(time.Hour), []byte{0x45}))
	if c, _, in := cut(t, r, Span{From: start, To: at(2 * time.Hour)}); !c.Uncounted || c.Dropped != 40 || in.Counted() {
		t.Errorf("%d dropped, uncounted %v", c.Dropped, c.Uncounted)
	}
}

// TestBoundOfACut: the bound holds, and the cut says where it ended.
func TestBoundOfACut(t *testing.T) {
	r := open(t, t.TempDir(), small())
	all := numbered(0, 100, 200)
	write(t, r, all...)
	const most = 10 << 10
	c, list, in := cut(t, r, Span{From: start, To: all[99].At, Bytes: most})
	if c.Bytes > most || len(list) < 10 || reasons(c) != "the cut has reached its bound" ||
		c.Missing[0].From != all[len(list)].At {
		t.Fatalf("%d bytes, %d frames, missing: %s", c.Bytes, len(list), reasons(c))
	}
	same(t, list, all[:len(list)])
	if s := in.Sections(0); !strings.Contains(strings.Join(s[len(s)-1].Comments, ""), "bound") {
		t.Errorf("the file does not say it: %v", s)
	}
}

func TestEndedContextEndsACut(t *testing.T) {
	o := small()
	o.Bytes, o.FileBytes = 1<<20, 1<<18
	r := open(t, t.TempDir(), o)
	write(t, r, numbered(0, 5000, 20)...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Cut(ctx, io.Discard, Span{From: start, To: at(time.Hour)}); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v", err)
	}
}

// TestRow: names count on, and a file ends at each of its limits.
func TestRow(t *testing.T) {
	r := Row{Path: filepath.Join("x", "match.pcapng"), Bytes: 100, Duration: time.Second, Packets: 3}
	now := time.Date(2026, 11, 21, 13, 5, 0, 0, time.UTC)
	if name := r.Next(now); name != filepath.Join("x", "match_00001_20261121130500.pcapng") {
		t.Error(name)
	}
	if r.Full(1000, start) {
		t.Error("an empty file is full")
	}
	r.Note(start)
	for _, c := range []struct {
		bytes int64
		at    machine.Instant
		full  bool
	}{{99, start, false}, {100, start, true}, {0, at(time.Second - 1), false}, {0, at(time.Second), true}} {
		if r.Full(c.bytes, c.at) != c.full {
			t.Errorf("%+v", c)
		}
	}
	r.Note(start)
	r.Note(start)
	if !r.Full(0, start) {
		t.Error("three packets are not enough")
	}
	if name := r.Next(now); !strings.Contains(name, "00002") || r.Full(1000, start) {
		t.Error(name)
	}
}

var (
	hostA = netip.MustParseAddr("10.0.0.1")
	hostB = netip.MustParseAddr("10.0.0.2")
	hostC = netip.MustParseAddr("10.0.0.3")
)
