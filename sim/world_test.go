package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// counting is the simplest endpoint: it numbers what it sends and remembers
// what it received.
type counting struct {
	next   uint32
	got    []uint32
	at     []machine.Instant
	stream []byte
	opened int
	closed int
	wakes  int
}

func (c *counting) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	switch in := in.(type) {
	case machine.Submit:
		b := binary.LittleEndian.AppendUint32(nil, c.next)
		c.next++
		if in.Channel == 1 {
			out.Send(in.To, machine.SendBytes, append(b, in.Payload...))
			return nil
		}
		out.Send(in.To, machine.SendDatagram, append(b, in.Payload...))
	case machine.Arrive:
		if !in.Refuse {
			c.got = append(c.got, binary.LittleEndian.Uint32(in.Bytes))
			c.at = append(c.at, now)
			out.Hand(machine.Delivery{From: in.From, Payload: in.Bytes})
		}
	case machine.Command:
		kind := machine.OpenStream
		if in.Kind == machine.Disconnect {
			kind = machine.CloseStream
		}
		out.Send(in.Peer, kind, nil)
	case machine.Open:
		c.opened++
	case machine.Bytes:
		c.stream = append(c.stream, in.Bytes...)
	case machine.Close:
		c.closed++
	case machine.Wake:
		c.wakes++
	}
	return nil
}

func (c *counting) Deadline() (machine.Instant, bool) { return 0, false }
func (c *counting) Inspect(v *machine.View)           { v.Reset() }
func (c *counting) Clone() machine.Endpoint {
	d := *c
	d.got, d.at, d.stream = slices.Clone(c.got), slices.Clone(c.at), slices.Clone(c.stream)
	return &d
}

const ms = time.Millisecond

// pair runs two counting endpoints that send count datagrams each, one a frame.
func pair(t *testing.T, seed uint64, count int, path Path, setup func(w *World, l *Link)) (a, b *counting) {
	t.Helper()
	w := New(seed)
	a, b = &counting{}, &counting{}
	app := func(f *Frame) {
		if f.Number < count {
			f.Do(machine.Submit{Payload: make([]byte, 96)})
		}
	}
	ha := w.AddHost("a", a, HostOptions{Frame: 10 * ms, App: app})
	hb := w.AddHost("b", b, HostOptions{Frame: 10 * ms, Phase: 3 * ms, App: app})
	l := w.Connect(ha, hb, path, path)
	if setup != nil {
		setup(w, l)
	}
	if err := w.Run(machine.Instant(count)*machine.Instant(10*ms) + machine.Instant(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func upTo(n int) (out []uint32) {
	for i := range n {
		out = append(out, uint32(i))
	}
	return out
}

func TestPerfectWire(t *testing.T) {
	a, b := pair(t, 1, 100, Path{Delay: 20 * ms}, nil)
	if !slices.Equal(a.got, upTo(100)) || !slices.Equal(b.got, upTo(100)) {
		t.Fatalf("a got %d, b got %d of 100 in order", len(a.got), len(b.got))
	}
	// Sent at 0, arrived at 20 ms, read in b's next frame, at 23 ms.
	if b.at[0] != machine.Instant(23*ms) {
		t.Errorf("b read the first at %v, expected 23ms", b.at[0].Sub(0))
	}
}

// within fails when got is more than five standard deviations of n draws away
// from the share want.
func within(t *testing.T, what string, got, want float64, n int) {
	t.Helper()
	if d := 5 * math.Sqrt(want*(1-want)/float64(n)); math.Abs(got-want) > d {
		t.Errorf("%s: %.4f, expected %.4f within %.4f", what, got, want, d)
	}
}

func TestLossAndDuplicates(t *testing.T) {
	const n = 20000
	_, b := pair(t, 7, n, Path{Loss: 0.2, Duplicate: 0.1, Delay: 5 * ms}, nil)
	seen := map[uint32]int{}
	for _, g := range b.got {
		seen[g]++
	}
	twice := 0
	for _, c := range seen {
		if c == 2 {
			twice++
		} else if c > 2 {
			t.Fatal("three copies of one datagram")
		}
	}
	// A lost datagram may have been duplicated before: half of those copies
	// arrive.
	within(t, "arrived at all", float64(len(seen))/n, 0.8+0.2*0.1*0.5, n)
	within(t, "arrived twice", float64(twice)/n, 0.8*0.1, n)
}

func TestGilbertBursts(t *testing.T) {
	const n = 40000
	_, b := pair(t, 3, n, Path{Bursts: Gilbert{ToBad: 0.01, ToGood: 0.1}}, nil)
	runs, lost, last := 0, 0, int64(-1)
	for _, g := range b.got {
		if gap := int64(g) - last - 1; gap > 0 {
			runs, lost = runs+1, lost+int(gap)
		}
		last = int64(g)
	}
	// The share of time in the bad state is p/(p+q); the mean visit is 1/q
	// long. Consecutive datagrams share a state, so the tolerance counts
	// bursts.
	if share := float64(lost) / n; math.Abs(share-0.01/0.11) > 0.02 {
		t.Errorf("lost %.4f, expected about %.4f", share, 0.01/0.11)
	}
	if mean := float64(lost) / float64(runs); mean < 8 || mean > 12 {
		t.Errorf("mean burst %.2f, expected about 10", mean)
	}
}

func TestJitterReordersUnlessTold(t *testing.T) {
	_, b := pair(t, 5, 2000, Path{Delay: 5 * ms, Jitter: 60 * ms}, nil)
	if slices.IsSorted(b.got) {
		t.Error("60 ms of jitter on 10 ms frames left the order as it was")
	}
	if len(b.got) != 2000 {
		t.Errorf("jitter lost %d", 2000-len(b.got))
	}
	_, b = pair(t, 5, 2000, Path{Delay: 5 * ms, Jitter: 60 * ms, InOrder: true, Duplicate: 0.2}, nil)
	if !slices.IsSorted(b.got) {
		t.Error("an in-order path reordered")
	}
}

func TestOutage(t *testing.T) {
	_, b := pair(t, 5, 300, Path{Outages: []Outage{{From: machine.Instant(500 * ms), For: 200 * ms, Every: time.Second}}},
		nil)
	for _, g := range b.got {
		if in := time.Duration(g) * 10 * ms % time.Second; in >= 500*ms && in < 700*ms {
			t.Fatalf("datagram %d was sent in an outage and arrived", g)
		}
	}
	if len(b.got) != 240 {
		t.Errorf("%d arrived, expected 240 of 300", len(b.got))
	}
}

func TestRate(t *testing.T) {
	// 100 bytes every 10 ms are 80 kbit/s. The hop passes half of that and
	// holds 1000 bytes: it fills, then half is dropped, and the wait is 200 ms.
	_, b := pair(t, 5, 1000, Path{Rate: 40000, Queue: 1000}, nil)
	if n := len(b.got); n < 500 || n > 520 {
		t.Errorf("%d of 1000 passed a hop of half the rate", n)
	}
	late := 0 * ms
	for i, g := range b.got {
		late = max(late, b.at[i].Sub(machine.Instant(g)*machine.Instant(10*ms)))
	}
	if late < 180*ms || late > 215*ms {
		t.Errorf("longest wait %v, expected about 200ms", late)
	}
}

// Results of taps must be consistent. The sender's tap sees all that was sent,
// the receiver's all that arrived. A tap in between sees some number between
// the two. All are in order of time.
func TestTaps(t *testing.T) {
	type passage struct {
		n    uint32
		at   machine.Instant
		from string
	}
	var seen [3][]passage
	positions := []float64{0, 0.5, 1}
	_, b := pair(t, 11, 3000, Path{Delay: 40 * ms, Jitter: 30 * ms, Loss: 0.3, Duplicate: 0.1}, func(w *World, l *Link) {
		for i, at := range positions {
			l.Tap(at, func(s Tapped) {
				if s.At != w.Now() {
					t.Errorf("seen at %v, world stands at %v", s.At, w.Now())
				}
				seen[i] = append(seen[i], passage{binary.LittleEndian.Uint32(s.Bytes), s.At, s.From.Name})
			})
		}
	})
	from := func(i int, who string) (out []uint32) {
		for _, s := range seen[i] {
			if s.from == who {
				out = append(out, s.n)
			}
		}
		return out
	}
	if got := from(0, "a"); !slices.Equal(got, upTo(3000)) {
		t.Errorf("the tap at a saw %d of what a sent", len(got))
	}
	if !slices.Equal(from(2, "a"), b.got) {
		t.Error("the tap at b saw something else than what b got")
	}
	arrived, middle := map[uint32]bool{}, map[uint32]bool{}
	for _, n := range b.got {
		arrived[n] = true
	}
	for _, n := range from(1, "a") {
		middle[n] = true
	}
	for n := range arrived {
		if !middle[n] {
			t.Fatalf("%d arrived and never passed the middle", n)
		}
	}
	if len(middle) <= len(arrived) || len(middle) >= 3000 {
		t.Errorf("%d sent, %d in the middle, %d arrived", 3000, len(middle), len(arrived))
	}
}

func TestOneSeedOneRun(t *testing.T) {
	path := Path{Delay: 40 * ms, Jitter: 30 * ms, Loss: 0.3, Duplicate: 0.1, Bursts: Gilbert{ToBad: 0.02, ToGood: 0.2}}
	a1, b1 := pair(t, 99, 1000, path, nil)
	a2, b2 := pair(t, 99, 1000, path, nil)
	if !reflect.DeepEqual(a1, a2) || !reflect.DeepEqual(b1, b2) {
		t.Error("one seed gave two runs")
	}
	_, b3 := pair(t, 100, 1000, path, nil)
	if slices.Equal(b1.got, b3.got) {
		t.Error("another seed gave the same run")
	}
	// A tap only observes: it must not change what happens.
	_, b4 := pair(t, 99, 1000, path, func(_ *World, l *Link) { l.Tap(0.3, func(Tapped) {}) })
	if !slices.Equal(b1.got, b4.got) {
		t.Error("a tap changed the run")
	}
}

func TestHosts(t *testing.T) {
	w := New(4)
	a, b := &counting{}, &counting{}
	app := func(f *Frame) { f.Do(machine.Submit{}) }
	ha := w.AddHost("a", a, HostOptions{Frame: 10 * ms, FrameJitter: 2 * ms, App: app})
	hb := w.AddHost("b", b,
		HostOptions{EventDriven: true, Refuse: 0.25, ReadDelay: ms / 2, Stop: machine.Instant(10 * time.Second)})
	w.Connect(ha, hb, Path{Delay: ms}, Path{})
	if err := w.Run(machine.Instant(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	within(t, "accepted", float64(len(b.got))/1000, 0.75, 1000)
	frame := machine.Instant(10 * ms)
	for i, at := range b.at {
		sent := machine.Instant(b.got[i]) * frame
		if late := at - sent - machine.Instant(ms+ms/2); late < 0 || late > machine.Instant(2*ms) {
			t.Fatalf("datagram %d read %v after its frame was due", b.got[i], time.Duration(at-sent))
		}
	}
}

func TestStream(t *testing.T) {
	w := New(21)
	a, b := &counting{}, &counting{}
	var want []byte
	ha := w.AddHost("a", a, HostOptions{Frame: 10 * ms, App: func(f *Frame) {
		switch {
		case f.Number == 0:
			f.Do(machine.Command{Kind: machine.Connect})
		case f.Number >= 30 && f.Number < 130:
			p := make([]byte, f.Rand.IntN(3000))
			for i := range p {
				p[i] = byte(f.Rand.Uint32())
			}
			want = binary.LittleEndian.AppendUint32(want, uint32(f.Number-30))
			want = append(want, p...)
			f.Do(machine.Submit{Channel: 1, Payload: p})
		case f.Number == 130:
			f.Do(machine.Command{Kind: machine.Disconnect})
		}
	}})
	hb := w.AddHost("b", b, HostOptions{Frame: 10 * ms})
	l := w.ConnectStream(ha, hb, Path{Delay: 20 * ms, Jitter: 30 * ms, Loss: 0.1, Segment: 500}, Path{Delay: 20 * ms})
	seen := make([]byte, 0, 1<<20)
	l.Tap(0.5, func(s Tapped) {
		if s.Kind == machine.SendBytes {
			end := int(s.Offset) + len(s.Bytes)
			seen = seen[:max(len(seen), end)]
			copy(seen[s.Offset:], s.Bytes)
		}
	})
	if err := w.Run(machine.Instant(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if a.opened != 1 || b.opened != 1 || b.closed != 1 {
		t.Errorf("opened %d and %d, closed %d, expected 1 each", a.opened, b.opened, b.closed)
	}
	if !bytes.Equal(b.stream, want) {
		t.Errorf("b read %d bytes, expected the %d that a wrote", len(b.stream), len(want))
	}
	if !bytes.Equal(seen, want) {
		t.Errorf("the tap's segments make %d bytes, expected %d", len(seen), len(want))
	}
}

func TestJournalPlaysAgain(t *testing.T) {
	w := New(8)
	app := func(f *Frame) { f.Do(machine.Submit{Payload: []byte{byte(f.Rand.Uint32())}}) }
	ha := w.AddHost("a", &counting{}, HostOptions{Frame: 10 * ms, App: app})
	hb := w.AddHost("b", &counting{}, HostOptions{Frame: 15 * ms, App: app, Refuse: 0.1})
	w.Connect(ha, hb, Path{Delay: 3 * ms, Loss: 0.1, Jitter: 40 * ms}, Path{Duplicate: 0.3})
	j := w.Record()
	j.Note = map[string]string{"a": "counting"}
	var first, again bytes.Buffer
	w.Watch(func(s *Step) { tell(&first, s.Host.Index, s.At, s.Out) })
	if err := w.Run(machine.Instant(3 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := j.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	read, err := ReadJournal(&text)
	if err != nil {
		t.Fatal(err)
	}
	if read.Seed != 8 || read.Note["a"] != "counting" || len(read.Entries) != len(j.Entries) {
		t.Fatalf("read back %d entries of %d, seed %d, note %v", len(read.Entries), len(j.Entries), read.Seed, read.Note)
	}
	if err := read.Play([]machine.Endpoint{&counting{}, &counting{}},
		func(e *Entry, out *machine.Effects) { tell(&again, e.Host, e.At, out) }); err != nil {
		t.Fatal(err)
	}
	if first.Len() == 0 || !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("the journal gave another run")
	}
}

func tell(to *bytes.Buffer, host int, at machine.Instant, out *machine.Effects) {
	to.WriteByte(byte(host))
	binary.Write(to, binary.LittleEndian, int64(at))
	for _, x := range out.Transmit {
		to.Write(x.Bytes)
	}
	for _, x := range out.Deliver {
		to.Write(x.Payload)
	}
}

// When an endpoint sends something else, the error names the first step. A
// journal without its end says so.
func TestJournalTellsWhere(t *testing.T) {
	w := New(8)
	app := func(f *Frame) { f.Do(machine.Submit{Payload: []byte{byte(f.Rand.Uint32())}}) }
	ha := w.AddHost("a", &counting{}, HostOptions{Frame: 10 * ms, App: app})
	hb := w.AddHost("b", &counting{}, HostOptions{Frame: 15 * ms, App: app})
	w.Connect(ha, hb, Path{Delay: 3 * ms}, Path{})
	j := w.Record()
	if err := w.Run(machine.Instant(time.Second)); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := j.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	play := func(text string) (*Journal, error) {
		read, err := ReadJournal(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return read, read.Play([]machine.Endpoint{&counting{}, &counting{}}, func(*Entry, *machine.Effects) {})
	}
	lines := strings.SplitAfter(text.String(), "\n")
	if read, err := play(text.String()); err != nil || read.Cut {
		t.Errorf("whole: cut %v, %v", read.Cut, err)
	}
	if read, err := play(strings.Join(lines[:len(lines)/2], "")); err != nil || !read.Cut {
		t.Errorf("half: cut %v, %v", read.Cut, err)
	}
	at := slices.IndexFunc(lines, func(l string) bool {
		return strings.Contains(l, `"in":"submit"`) &&
			strings.Contains(l, `"sent":`)
	})
	i := strings.Index(lines[at], `"sent":"1:`) + len(`"sent":"1:`)
	lines[at] = lines[at][:i] + "0000000000000000" + lines[at][i+16:]
	_, err := play(strings.Join(lines, ""))
	var differs *DifferError
	if !errors.As(err, &differs) || differs.Line != at+1 ||
		!strings.Contains(err.Error(), "gets submit: expected that it sends 1 datagram(s) of digest 0000000000000000, it "+
			"sends 1 datagram(s)") {
		t.Errorf("%v, expected line %d to differ", err, at+1)
	}
}

// Every kind of input must survive being written and read.
func TestJournalText(t *testing.T) {
	j := &Journal{Seed: 1, Digests: true, Entries: []Entry{
		{1, 0, machine.Arrive{From: 3, Bytes: []byte{1, 2}, Refuse: true}, ""},
		{2, 1, machine.Submit{To: 1, Channel: 2, Type: 77, Payload: []byte{9}}, "2:0123456789abcdef"},
		{3, 1, machine.Command{Peer: 4, Kind: machine.Kick, Payload: []byte("bye")}, ""},
		{4, 0, machine.Open{Peer: 5}, ""},
		{5, 0, machine.Bytes{From: 6, Bytes: []byte{0}}, ""},
		{6, 0, machine.Close{Peer: 7}, ""},
		{7, 0, machine.Wake{}, ""},
	}}
	var text bytes.Buffer
	if _, err := j.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	read, err := ReadJournal(&text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(j, read) {
		t.Errorf("read back %+v", read)
	}
	for text, want := range map[string]string{
		``:              "line 1: expected its header, found an empty file",
		`{"journal":3}`: "version 3, expected 1 or 2",
		`{"jour`:        `line 1: expected its header {"journal":2,...}, found another line of 6 bytes: the line is cut short`,
		"\x1f\x8b":      `line 1: expected its header {"journal":2,...}, found another line of 2 bytes: it is no JSON from byte 1 on`,
		`{"journal":2}` + "\n" +
			`{"at":1,"host":0,"in":"wa`: `line 2: expected an input, found another line of 25 bytes: the line is cut short`,
		`{"journal":2}` + "\n" + `{"at":1,"host":0,"in":"wake"}` + "\n" +
			`{"end":2}`: "line 3: expected 2 inputs before it, found 1",
		`{"journal":2}` + "\n" + `{"end":0}` + "\n" +
			`{"at":1,"host":0,"in":"wake"}`: `line 3: expected nothing behind the last line, found another line of 29 bytes`,
		`{"journal":1}` + "\n" + `{"end":0}`:                                    `line 2: expected the input arrive`,
		`{"journal":1}` + "\n" + `{"at":1,"host":0,"in":"dance"}`:               `line 2: expected the input arrive`,
		`{"journal":1}` + "\n" + `{"at":1,"host":0,"in":"arrive","bytes":"zz"}`: "line 2: bytes",
		`{"journal":1}` + "\n" +
			`{"at":1,"host":0,"in":"command","command":"jump"}`: `line 2: expected a command such as "connect"`,
		`{"journal":1}` + "\n" + `{"at":1,"hosst":0,"in":"wake"}`: "line 2",
	} {
		if _, err := ReadJournal(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}
