package analyze

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/machine"
)

// ErrNotReached says that the run that fills the timeline has not reached the
// frame yet.
var ErrNotReached = errors.New("not reached yet: the capture is being read")

// Walk steps over one flow again, datagram by datagram, with all effects of
// each. It starts at the last checkpoint before the wanted place. Its cost
// grows with the number of steps.
type Walk struct {
	timeline *Timeline
	flow     *Flow
	tracker  machine.Tracker
	conn     *stream.Conn
	places   []machine.Place
	passed   uint32   // 1 + the last entry that was stepped over
	queue    []uint32 // next entries, the first one last
	out      machine.Effects
	stream   stream.Output
	message  int // index of the next message in stream
	batch    Batch
	rest     []byte // of a batch: the payloads of its next datagrams, in the walk's own buffer
	buffer   []byte
	next     int // index of the first of them
	segment  machine.Datagram
	datagram machine.Datagram
	record   Record
	err      error
}

// Walk returns a walk for which the flow's first datagram at or after entry
// from is still to come. Earlier ones may come before it.
func (t *Timeline) Walk(f *Flow, from int) (*Walk, error) {
	switch {
	case f.Protocol == nil:
		return nil, fmt.Errorf("flow %d has no state: %s", f.ID, f.Verdict.Reason)
	case t.track(f) == nil:
		return nil, ErrNotReached
	}
	w := &Walk{timeline: t, flow: f}
	k := t.track(f)
	w.places = k.places
	// The walk starts before the first checkpoint at or after the entry.
	after := sort.Search(len(k.checkpoints), func(i int) bool { return int(k.checkpoints[i].entry) >= from })
	if after == 0 {
		w.tracker = t.session.newTracker(f)
		if f.Transport == capture.TCP {
			w.conn = stream.New(t.session.formats, stream.Limits{})
		}
		return w, nil
	}
	c := &k.checkpoints[after-1]
	w.passed, w.tracker, w.places = c.entry+1, c.tracker.Unpack(), k.places[c.places:]
	if c.conn != nil {
		w.conn = c.conn.Clone()
	}
	return w, nil
}

// Tracker returns the flow's tracker after the last step. It belongs to the
// walk.
func (w *Walk) Tracker() machine.Tracker { return w.tracker }

// Flow returns the flow of the walk.
func (w *Walk) Flow() *Flow { return w.flow }

// Err returns why the walk ended early. It returns nil if the walk ended where
// the flow does, as far as it was read.
func (w *Walk) Err() error { return w.err }

// Passed returns the entry of the last step. It returns -1 before the first
// step.
func (w *Walk) Passed() int { return int(w.passed) - 1 }

// fill finds the next entries of the flow, up to its next checkpoint at most.
func (w *Walk) fill() {
	w.queue = w.queue[:0]
	k := w.timeline.track(w.flow)
	if k == nil {
		return // the flow was removed since the walk began
	}
	last := k.last
	next := sort.Search(len(k.checkpoints), func(i int) bool { return k.checkpoints[i].entry >= w.passed })
	if next < len(k.checkpoints) {
		last = k.checkpoints[next].entry + 1
	}
	for n := last; n > w.passed; n = w.timeline.entries.at(n - 1).previous {
		w.queue = append(w.queue, n-1)
	}
}

// Peek returns the entry of the next step. It returns false if there is none.
func (w *Walk) Peek() (int, bool) {
	if w.err != nil {
		return 0, false
	}
	if w.inFrame() {
		return int(w.passed) - 1, true
	}
	if len(w.queue) == 0 {
		if w.fill(); len(w.queue) == 0 {
			return 0, false
		}
	}
	return int(w.queue[len(w.queue)-1]), true
}

// Next takes a step. The record belongs to the walk, and is valid until the
// next step. Its Frame and Packet belong to the timeline. At the end Next
// returns nil. If the capture grows, later calls may return more.
func (w *Walk) Next() *Record {
	if _, ok := w.Peek(); !ok {
		return nil
	}
	w.out.Reset()
	t := w.timeline
	switch {
	case len(w.rest) > 0:
		return w.nextOfBatch()
	case w.inFrame():
		return w.nextMessage()
	}
	n := w.queue[len(w.queue)-1]
	t.expect(w.queue)
	w.queue = w.queue[:len(w.queue)-1]
	w.passed = n + 1
	d, p, err := t.datagram(w.flow, n)
	if err != nil {
		w.err = err
		return nil
	}
	w.datagram = d
	if w.conn == nil {
		if size := int(t.batches[n]); size > 0 && size < len(d.Bytes) {
			w.buffer = append(w.buffer[:0], d.Bytes...)
			w.rest, w.next, w.batch = w.buffer, 0, Batch{Count: (len(d.Bytes) + size - 1) / size, Size: size}
			return w.nextOfBatch()
		}
		if len(w.places) > 0 {
			w.datagram.Place, w.places = w.places[0], w.places[1:]
		}
		w.tracker.Observe(&w.datagram, &w.out)
		w.record = Record{
			N: uint64(n), Frame: &t.frame, Packet: p, Flow: w.flow, Datagram: w.datagram, Events: w.out.Events,
			Anomalies: w.out.Anomalies, Messages: w.out.Messages,
		}
		return &w.record
	}
	w.conn.Feed(d.From, p, &w.stream)
	w.message, w.segment = 0, d
	if len(w.stream.Messages) > 0 {
		return w.nextMessage()
	}
	w.record = Record{N: uint64(n), Frame: &t.frame, Packet: p, Flow: w.flow, Datagram: d}
	return &w.record
}

// inFrame reports whether messages or datagrams of the last frame are left.
func (w *Walk) inFrame() bool { return w.message < len(w.stream.Messages) || len(w.rest) > 0 }

// nextOfBatch steps over a datagram of the last frame's batch.
func (w *Walk) nextOfBatch() *Record {
	size := min(w.batch.Size, len(w.rest))
	w.datagram.Bytes, w.rest = w.rest[:size:size], w.rest[size:]
	w.datagram.Length = size
	w.tracker.Observe(&w.datagram, &w.out)
	w.record = Record{
		N: uint64(w.passed) - 1, Frame: &w.timeline.frame, Packet: &w.timeline.packet, Flow: w.flow, Datagram: w.datagram,
		Batch: w.batch, Index: w.next, More: len(w.rest) > 0,
		Events: w.out.Events, Anomalies: w.out.Anomalies, Messages: w.out.Messages,
	}
	w.next++
	return &w.record
}

// nextMessage steps over a message of the last segment.
func (w *Walk) nextMessage() *Record {
	m := &w.stream.Messages[w.message]
	w.message++
	w.datagram = datagramOf(m)
	w.tracker.Observe(&w.datagram, &w.out)
	w.record = Record{
		N: uint64(w.passed) - 1, Flow: w.flow, Datagram: w.datagram, Message: true, Index: m.Index, Spans: m.Spans,
		More:   w.message < len(w.stream.Messages),
		Events: w.out.Events, Anomalies: w.out.Anomalies, Messages: w.out.Messages,
	}
	if m.Ref == w.segment.Ref {
		w.record.Frame, w.record.Packet = &w.timeline.frame, &w.timeline.packet
	}
	return &w.record
}

// Finish settles what is open when the flow ends. It returns nil if nothing
// was. No step may follow.
func (w *Walk) Finish() *Record {
	w.out.Reset()
	w.tracker.Finish(&w.out)
	w.err = errors.New("the walk is finished")
	if len(w.out.Events)+len(w.out.Anomalies)+len(w.out.Messages) == 0 {
		return nil
	}
	w.record = Record{
		Flow: w.flow, Datagram: machine.Datagram{At: w.flow.Last, Ref: w.flow.LastRef}, Events: w.out.Events,
		Anomalies: w.out.Anomalies, Messages: w.out.Messages,
	}
	return &w.record
}

// StateAt returns a tracker that has observed the flow's packets up to and
// including frame ref. The frame may belong to another flow. The tracker
// belongs to the caller. It equals a tracker that was stepped from the flow's
// first packet.
func (t *Timeline) StateAt(f *Flow, ref machine.Ref) (machine.Tracker, error) {
	if f.Protocol == nil {
		return nil, fmt.Errorf("flow %d has no state: %s", f.ID, f.Verdict.Reason)
	}
	at, err := t.entry(ref)
	if err != nil {
		return nil, err
	}
	if int(at) >= t.filled {
		return nil, ErrNotReached
	}
	w, err := t.Walk(f, int(at)+1)
	if err != nil {
		return nil, err
	}
	for {
		n, ok := w.Peek()
		if !ok || n > int(at) {
			break
		}
		w.Next()
	}
	if w.err != nil {
		return nil, w.err
	}
	scopes, err := t.scopesAt(f, at)
	if err != nil || scopes[machine.A] == nil {
		return w.tracker, err
	}
	return inScope{w.tracker, scopes}, nil
}

// datagram reads again the datagram that entry n completed, or for TCP the
// segment.
func (t *Timeline) datagram(f *Flow, n uint32) (machine.Datagram, *capture.Packet, error) {
	p, err := t.read(n)
	if err != nil {
		return machine.Datagram{}, nil, err
	}
	if p.Transport != f.Transport {
		return machine.Datagram{}, nil, fmt.Errorf("frame %d reads differently now: the file has changed", t.ref(n).Frame())
	}
	d := machine.Datagram{At: p.At, Ref: p.Ref, Bytes: p.Payload, Length: p.Length}
	if keyOf(p.Src) != f.origin {
		d.From = machine.B
	}
	return d, p, nil
}

// Entries are read together if their frames lie within expectGap bytes of each
// other. A system call costs as much as copying that many bytes.
const (
	expectGap  = 6 << 10
	expectMost = 128
	expectTail = 2048     // for the bytes of the last frame
	readAhead  = 16 << 10 // a caller that reads one frame often reads the next ones too
)

// expect prepares to read entries again, the next one last. It requests as many
// at once as lie near each other in the file.
func (t *Timeline) expect(queue []uint32) {
	n := queue[len(queue)-1]
	ref, from := t.ref(n), t.entries.at(n).offset
	if t.frames.Holds(ref.File(), from) {
		return
	}
	to := from
	for i := len(queue) - 2; i >= max(0, len(queue)-expectMost); i-- {
		at := t.entries.at(queue[i]).offset
		if t.files != nil && t.ref(queue[i]).File() != ref.File() {
			continue
		}
		if at < to || at-to > expectGap || at+expectTail-from > capture.MostRange {
			break
		}
		to = at
	}
	t.frames.Expect(to - from + expectTail)
}

// read reads entry n again into the timeline's frame and packet. It also reads
// the earlier frames that hold the rest of its datagram.
func (t *Timeline) read(n uint32) (*capture.Packet, error) {
	parts := t.parts[n]
	if parts == nil {
		parts = []uint32{n}
	}
	decoder := t.decoder
	if len(parts) > 1 {
		// The fragments that t.decoder holds must not mix with these.
		decoder = capture.NewDecoder(capture.DecodeOptions{})
	}
	for _, part := range parts {
		ref := t.ref(part)
		var err error
		if t.buf, err = t.frames.ReadAt(ref, t.entries.at(part).offset, &t.frame, t.buf); err != nil {
			return nil, fmt.Errorf("reading frame %d again: %w", ref.Frame(), err)
		}
		decoder.Decode(&t.frame, &t.packet)
	}
	t.packet.Duplicate = t.entries.at(n).marks.Duplicate()
	return &t.packet, nil
}

// Entry is what the timeline stores of a frame.
type Entry struct {
	N       int // position in the order of the capture, from 0
	Ref     machine.Ref
	Flow    int // number of its flow; 0 if none
	Marks   Marks
	Settled int // the entry that settled the fate of its packet; -1 while open
}

// At returns the nth entry.
func (t *Timeline) At(n int) Entry {
	e := t.entries.at(uint32(n))
	return Entry{N: n, Ref: t.ref(uint32(n)), Flow: int(e.flow), Marks: e.marks, Settled: int(e.settled) - 1}
}

// FlowID returns the number of the nth entry's flow, or 0. It is cheaper than
// At, for callers that check very many entries.
func (t *Timeline) FlowID(n int) int { return int(t.entries.at(uint32(n)).flow) }

// Find returns the entry of a frame.
func (t *Timeline) Find(ref machine.Ref) (int, bool) {
	n, err := t.entry(ref)
	return int(n), err == nil
}

// Filled returns how many entries the current run has filled in. States are
// known for the entries before that number.
func (t *Timeline) Filled() int { return t.filled }

// Read reads the nth frame again, as a record without effects: of a batch, its
// first datagram. The record is valid until the next call of any method that
// reads.
func (t *Timeline) Read(n int) (*Record, error) {
	t.frames.Expect(readAhead)
	p, err := t.read(uint32(n))
	if err != nil {
		return nil, err
	}
	r := &Record{
		N: uint64(n), Frame: &t.frame, Packet: p,
		Datagram: machine.Datagram{At: p.At, Ref: p.Ref, Bytes: p.Payload, Length: p.Length},
	}
	if f, ok := t.flowOf(uint32(n)); ok {
		r.Flow = f
		r.Datagram.From = t.entries.at(uint32(n)).marks.From()
	}
	if size := int(t.batches[uint32(n)]); size > 0 && size < len(p.Payload) && len(p.Spans) == 1 {
		r.Batch, r.More = Batch{Count: (len(p.Payload) + size - 1) / size, Size: size}, true
		r.Datagram.Bytes, r.Datagram.Length = p.Payload[:size:size], size
		r.Spans = []capture.Span{{Ref: p.Ref, Offset: p.Spans[0].Offset, Length: size}}
	}
	if q, ok := t.quotes[uint32(n)]; ok {
		r.Quoted = &q
	}
	return r, nil
}

// Last returns the flow's last entry so far. It returns false if there is none.
func (t *Timeline) Last(f *Flow) (int, bool) {
	k := t.track(f)
	if k == nil || k.last == 0 {
		return 0, false
	}
	return int(k.last) - 1, true
}

// Previous returns the flow's entry before n. It returns false if there is
// none.
func (t *Timeline) Previous(n int) (int, bool) {
	p := t.entries.at(uint32(n)).previous
	return int(p) - 1, p > 0
}

// EntriesOf returns the flow's entries in [from, to), in order. If there are
// more than most, it returns only the last ones.
func (t *Timeline) EntriesOf(f *Flow, from, to, most int) []int {
	k := t.track(f)
	if k == nil {
		return nil
	}
	var out []int
	for n := k.last; n > 0; n = t.entries.at(n - 1).previous {
		if int(n)-1 < from {
			break
		}
		if int(n)-1 < to {
			if out = append(out, int(n)-1); len(out) == most {
				break
			}
		}
	}
	slices.Reverse(out)
	return out
}

// Where returns the reference and the file offset of the nth frame.
func (t *Timeline) Where(n int) (machine.Ref, int64) {
	return t.ref(uint32(n)), t.entries.at(uint32(n)).offset
}
