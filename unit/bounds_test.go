package unit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/protocols"
)

// made is a capture that is made while it is read, with one datagram a millisecond. Each is of a flow
// of its own if flows is set, and otherwise of one of ten.
type made struct {
	packets, next int
	flows         bool
	left          []byte
	read          func() // called before each read; may be nil
}

const madeRecord = 16 + 20 + 8 + 16 // a record header, IPv4, UDP and a payload

func (m *made) size() int64 { return 24 + int64(m.packets)*madeRecord }

func (m *made) Read(p []byte) (int, error) {
	if m.read != nil {
		m.read()
	}
	if len(m.left) == 0 && m.next == m.packets {
		return 0, io.EOF
	}
	if len(m.left) == 0 {
		m.left = m.record()
	}
	n := copy(p, m.left)
	m.left = m.left[n:]
	return n, nil
}

func (m *made) record() []byte {
	b := make([]byte, 0, 24+madeRecord)
	if m.next == 0 {
		for _, v := range []uint32{0xa1b2c3d4, 2 | 4<<16, 0, 0, 65535, 101} { // raw IP
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	flow := m.next % 10
	if m.flows {
		flow = m.next
	}
	for _, v := range []uint32{uint32(m.next / 1000), uint32(m.next % 1000 * 1000), madeRecord - 16, madeRecord - 16} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	ip := make([]byte, madeRecord-16)
	ip[0], ip[3], ip[8], ip[9] = 0x45, madeRecord-16, 64, 17
	binary.BigEndian.PutUint16(ip[4:], uint16(m.next))
	binary.BigEndian.PutUint32(ip[12:], 0x0a000000+uint32(flow))
	binary.BigEndian.PutUint32(ip[16:], 0x0b000001)
	binary.BigEndian.PutUint16(ip[20:], 40000)
	binary.BigEndian.PutUint16(ip[22:], 7777)
	binary.BigEndian.PutUint16(ip[24:], madeRecord-16-20)
	binary.BigEndian.PutUint64(ip[28:], uint64(m.next)*0x9e3779b97f4a7c15)
	m.next++
	return append(b, ip...)
}

func analyzeMade(t *testing.T, m *made, o Options) *Result {
	t.Helper()
	r, err := Analyze(context.Background(), "made", []Input{{Name: "made", Size: m.size(), Reader: m}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBoundOfPackets: the rows are those of a file with so many packets.
func TestBoundOfPackets(t *testing.T) {
	got := analyzeMade(t, &made{packets: 3000}, Options{Packets: 1000})
	if s := got.Status; s.State != Bounded || s.Bound != BoundPackets || s.Packets != 1000 || s.Studied != 1000 {
		t.Errorf("%+v", s)
	}
	want := analyzeMade(t, &made{packets: 1000}, Options{Packets: 1000})
	if want.Status.State != OK || !reflect.DeepEqual(got.Flows, want.Flows) || len(want.Flows) != 10 {
		t.Errorf("%+v, and %d rows", want.Status, len(want.Flows))
	}
}

// TestBoundOfMemory: flows end early, and rows are left out beyond a quarter of the memory. It is the
// same each time.
func TestBoundOfMemory(t *testing.T) {
	const memory = 4 << 20
	got := analyzeMade(t, &made{packets: 5000, flows: true}, Options{Memory: memory})
	s, size := got.Status, 0
	for _, r := range got.Flows {
		size += len(r.Cells)
	}
	if s.State != Bounded || s.Bound != BoundMemory || s.EndedEarly == 0 || s.LeftOut == 0 || s.Packets != 5000 {
		t.Errorf("%+v", s)
	}
	if size > memory/rowsPart || len(got.Flows)+len(got.Findings)+int(s.LeftOut) < 5000 {
		t.Errorf("%d rows of %d bytes, %d left out", len(got.Flows), size, s.LeftOut)
	}
	again := analyzeMade(t, &made{packets: 5000, flows: true}, Options{Memory: memory})
	if !reflect.DeepEqual(got, again) {
		t.Error("another run gives another result")
	}
}

// TestBoundOfTime: the status says that time ran out, and the rest stands. The waiting for a reader
// does not count.
func TestBoundOfTime(t *testing.T) {
	got := analyzeMade(t, &made{packets: 3000}, Options{Time: 3})
	if s := got.Status; s.State != Bounded || s.Bound != BoundTime || s.Packets >= 3000 {
		t.Errorf("%+v", s)
	}
	slow := &made{packets: 10}
	first := true
	slow.read = func() {
		if first {
			first = false
			time.Sleep(50 * time.Millisecond)
		}
	}
	if s := analyzeMade(t, slow, Options{Time: time.Hour}).Status; s.State != OK {
		t.Errorf("%+v", s)
	}
	r := newRun(context.Background(), "x", nil, Options{})
	r.waited.Store(int64(time.Hour))
	if r.worked() > 0 {
		t.Error("waiting for a reader counts as work")
	}
}

// TestContextEndsAnalysis: Analyze returns the error of ctx, while it analyses and while a reader
// blocks, and gives no result.
func TestContextEndsAnalysis(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &made{packets: 1 << 40}
	reads := 0
	m.read = func() {
		if reads++; reads == 5000 {
			cancel()
		}
	}
	r, err := Analyze(ctx, "x", []Input{{Name: "x", Size: m.size(), Reader: m}}, Options{})
	if r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v and %v", r, err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	blocked := make(chan struct{})
	defer close(blocked)
	m = &made{packets: 100, read: func() {
		cancel()
		<-blocked
	}}
	if r, err := Analyze(ctx, "x", []Input{{Name: "x", Size: m.size(), Reader: m}}, Options{}); r != nil ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("a blocked reader: %v and %v", r, err)
	}
	if _, err := Analyze(ctx, "x", nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// panickingTracker panics at its third datagram.
type panickingTracker struct {
	machine.Tracker
	seen int
}

func (p *panickingTracker) Observe(d *machine.Datagram, out *machine.Effects) {
	if p.seen++; p.seen == 3 {
		panic("planted")
	}
	p.Tracker.Observe(d, out)
}

// panics returns protocols whose analysis panics.
func panics() *dissect.Registry {
	var list []*dissect.Protocol
	for _, p := range protocols.Default().Protocols() {
		x := *p
		x.Extend = nil
		x.NewTracker = func(c *dissect.Config) machine.Tracker { return &panickingTracker{Tracker: p.NewTracker(c)} }
		list = append(list, &x)
	}
	return dissect.NewRegistry(list...)
}

// TestPanicsAreAState: a panic of the analysis, also on another goroutine, is a state with a stack
// that is the same each time.
func TestPanicsAreAState(t *testing.T) {
	_, plain := sample(t)
	for _, threads := range []int{1, 4} {
		o := Options{Registry: panics(), Threads: threads}
		got, again := analyzeBytes(t, "x", plain, o), analyzeBytes(t, "x", plain, o)
		s := got.Status
		if s.State != Panicked || s.Error != "planted" ||
			!strings.Contains(s.Stack, "panickingTracker") || len(got.Flows) > 0 {
			t.Errorf("%d threads: %+v", threads, s)
		}
		if threads > 1 && !strings.Contains(s.Stack, "work") {
			t.Errorf("no shard panicked: %s", s.Stack)
		}
		if !reflect.DeepEqual(got, again) || strings.Contains(s.Stack, "0x") || strings.Contains(s.Stack, "goroutine") {
			t.Errorf("%d threads: another run has another stack: %s and %s", threads, s.Stack, again.Status.Stack)
		}
		if got.Aggregates.Captures("", Panicked) != 1 || got.Aggregates.Analysed("") != 0 {
			t.Error("the capture is not counted")
		}
	}
}

// TestMemoryStaysFlat: the heap does not grow from capture to capture.
func TestMemoryStaysFlat(t *testing.T) {
	packed, _ := sample(t)
	total := &Aggregates{}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools hold goes with the second
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := uint64(0)
	for i := range 60 {
		total.Merge(analyzeBytes(t, "x", packed, Options{Threads: 1 + i%2}).Aggregates)
		if i == 9 {
			before = heap()
		}
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes over 50 captures", before, after)
	}
	if total.Captures("", OK) != 60 {
		t.Error("a capture is missing")
	}
}

// TestSeveralFilesAreOneCapture: the files of a rotated row give the rows of the whole, and each row
// names its file.
func TestSeveralFilesAreOneCapture(t *testing.T) {
	_, plain := sample(t)
	at := 24
	for at < len(plain)/2 {
		at += 16 + int(binary.LittleEndian.Uint32(plain[at+8:]))
	}
	second := append(bytes.Clone(plain[:24]), plain[at:]...)
	var inputs []Input
	for i, b := range [][]byte{plain[:at], second} {
		inputs = append(inputs, Input{Name: string(rune('a' + i)), Size: int64(len(b)), Reader: bytes.NewReader(b)})
	}
	got, err := Analyze(context.Background(), "row", inputs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := analyzeBytes(t, "row", plain, Options{})
	if got.Status.State != OK || got.Status.Packets != want.Status.Packets || len(got.Flows) != len(want.Flows) ||
		got.Flows[0].Flow != want.Flows[0].Flow || got.Status.Files != 2 {
		t.Errorf("%+v, as one file %+v", got.Status, want.Status)
	}
}
