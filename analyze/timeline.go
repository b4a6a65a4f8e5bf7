package analyze

import (
	"fmt"
	"slices"
	"sort"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/machine"
)

// Frames reads single records of a capture again; capture.Input does.
type Frames interface {
	// ReadAt reads the frame ref at an offset that an earlier pass gave in
	// Frame.Offset, into buf where that is large enough.
	ReadAt(ref machine.Ref, offset int64, f *capture.Frame, buf []byte) ([]byte, error)
}

// Timeline gives the state of any flow at any packet, forward and back. It
// keeps no packets: 16 bytes for each frame, and copies of the trackers
// (checkpoints) from which the few packets in between are stepped again.
//
// It is filled as a session's sink (Record), in capture order. The session must
// have a Survey, so that no datagram is held back.
type Timeline struct {
	frames  Frames
	session *Session
	decoder *capture.Decoder
	packet  capture.Packet
	buf     []byte

	newest  machine.Ref // the frame of the last entry
	entries []entry
	files   [][]uint32          // by file: entry of frame 1, 2, ...
	parts   map[uint32][]uint32 // frames of a datagram that IP had cut, by the entry that completed it
	flows   []track
	scopes  map[scopeKey]*scopeTrack
}

// entry is one frame. Entries of one flow are chained backwards.
type entry struct {
	offset   int64
	flow     uint32 // number of the flow, 0 for none
	previous uint32 // 1 + the entry before it of the same flow; 0 for the first
}

// track is what the timeline knows of one flow.
type track struct {
	last        uint32 // 1 + its newest entry
	since       int    // its datagrams since the last checkpoint
	checkpoints []checkpoint
	places      []machine.Place // of its datagrams, in order, where its endpoints have scopes
}

type checkpoint struct {
	entry   uint32 // the last one that was observed
	tracker machine.Tracker
	conn    *stream.Conn // of a TCP flow
	places  int          // how many of the flow's places are behind it
}

// Checkpoints are spaced so that they cost about this many bytes a packet,
// whatever the size of the state, but never closer than minSpacing.
const (
	checkpointBytesPerPacket = 16
	minSpacing               = 256
)

// NewTimeline makes an empty timeline over frames that can be read again.
func NewTimeline(frames Frames) *Timeline {
	return &Timeline{frames: frames, decoder: capture.NewDecoder(capture.DecodeOptions{}), parts: map[uint32][]uint32{}}
}

// Attach names the session whose records will be fed: trackers are copied from its flows.
func (t *Timeline) Attach(s *Session) { t.session = s }

// Record takes the session's next record.
func (t *Timeline) Record(r *Record) {
	if r.Frame == nil {
		return // what was settled at a flow's end is no frame
	}
	ref := r.Frame.Ref
	if ref != t.newest { // a TCP segment is told once for each of its messages
		t.newest = ref
		t.enter(r, ref)
	}
	if r.Flow == nil || r.Packet.Duplicate || r.More {
		return
	}
	k, f := &t.flows[r.Flow.ID-1], r.Flow
	t.noteScope(r, k)
	if f.tracker != nil && k.since >= minSpacing && k.since*checkpointBytesPerPacket >= f.tracker.Size() {
		c := checkpoint{entry: uint32(len(t.entries)) - 1, tracker: f.tracker.Clone(), places: len(k.places)}
		if f.conn != nil {
			c.conn = f.conn.Clone()
		}
		k.checkpoints = append(k.checkpoints, c)
		k.since = 0
	}
}

// enter adds the entry of a frame.
func (t *Timeline) enter(r *Record, ref machine.Ref) {
	n := uint32(len(t.entries))
	e := entry{offset: r.Frame.Offset}
	for len(t.files) <= ref.File() {
		t.files = append(t.files, nil)
	}
	t.files[ref.File()] = append(t.files[ref.File()], n)
	if f := r.Flow; f != nil && !r.Packet.Duplicate {
		for len(t.flows) < f.ID {
			t.flows = append(t.flows, track{})
		}
		k := &t.flows[f.ID-1]
		e.flow, e.previous = uint32(f.ID), k.last
		k.last = n + 1
		if r.Packet.Fragments > 1 {
			for _, span := range r.Packet.Spans {
				t.parts[n] = append(t.parts[n], t.files[span.Ref.File()][span.Ref.Frame()-1])
			}
			slices.Sort(t.parts[n])
			t.parts[n] = slices.Compact(t.parts[n])
		}
		k.since++
	}
	t.entries = append(t.entries, e)
}

// Len gives the number of frames.
func (t *Timeline) Len() int { return len(t.entries) }

// FlowAt gives the flow that a frame belongs to; false for a frame without one
// or outside of the capture.
func (t *Timeline) FlowAt(ref machine.Ref) (*Flow, bool) {
	n, err := t.entry(ref)
	if err != nil || t.entries[n].flow == 0 {
		return nil, false
	}
	return t.session.flows[t.entries[n].flow-1], true
}

func (t *Timeline) entry(ref machine.Ref) (uint32, error) {
	if ref.File() >= len(t.files) || ref.Frame() < 1 || ref.Frame() > uint64(len(t.files[ref.File()])) {
		frames := 0
		if ref.File() < len(t.files) {
			frames = len(t.files[ref.File()])
		}
		return 0, fmt.Errorf("no frame %d: the capture has frames 1 to %d", ref.Frame(), frames)
	}
	return t.files[ref.File()][ref.Frame()-1], nil
}

// StateAt gives a tracker that has observed the flow's packets up to and
// including frame ref, which need not be one of the flow's own. It is the
// caller's. It equals a tracker that was stepped from the flow's first packet.
func (t *Timeline) StateAt(f *Flow, ref machine.Ref) (machine.Tracker, error) {
	if f.Protocol == nil {
		return nil, fmt.Errorf("flow %d has no state: %s", f.ID, f.Verdict.Reason)
	}
	at, err := t.entry(ref)
	if err != nil {
		return nil, err
	}
	k := &t.flows[f.ID-1]
	// The first checkpoint after the frame bounds the walk back.
	after := sort.Search(len(k.checkpoints), func(i int) bool { return k.checkpoints[i].entry > at })
	from := k.last
	if after < len(k.checkpoints) {
		from = k.checkpoints[after].entry + 1
	}
	stop := uint32(0) // 1 + the entry that the starting point has observed
	var tracker machine.Tracker
	var conn *stream.Conn
	places := k.places
	if after > 0 {
		c := &k.checkpoints[after-1]
		stop, tracker, places = c.entry+1, c.tracker.Clone(), k.places[c.places:]
		if c.conn != nil {
			conn = c.conn.Clone()
		}
	} else {
		tracker = t.session.newTracker(f)
		if f.Transport == capture.TCP {
			conn = stream.New(t.session.formats, stream.Limits{})
		}
	}
	var steps []uint32
	for n := from; n > stop; n = t.entries[n-1].previous {
		if n-1 <= at {
			steps = append(steps, n-1)
		}
	}
	slices.Reverse(steps)
	var out machine.Effects
	var messages stream.Output
	for _, n := range steps {
		d, p, err := t.datagram(f, n)
		if err != nil {
			return nil, err
		}
		if conn == nil {
			if len(places) > 0 {
				d.Place, places = places[0], places[1:]
			}
			out.Reset()
			tracker.Observe(&d, &out)
			continue
		}
		conn.Feed(d.From, p, &messages)
		for i := range messages.Messages {
			m := &messages.Messages[i]
			out.Reset()
			tracker.Observe(&machine.Datagram{At: m.At, Ref: m.Ref, From: m.From, Bytes: m.Bytes, Length: m.Length}, &out)
		}
	}
	scopes, err := t.scopesAt(f, at)
	if err != nil || scopes[machine.A] == nil {
		return tracker, err
	}
	return inScope{tracker, scopes}, nil
}

// datagram reads the datagram (of TCP: the segment) that entry n completed again.
func (t *Timeline) datagram(f *Flow, n uint32) (machine.Datagram, *capture.Packet, error) {
	parts := t.parts[n]
	if parts == nil {
		parts = []uint32{n}
	}
	decoder := t.decoder
	if len(parts) > 1 {
		// What it holds of other datagrams must not bear on these fragments.
		decoder = capture.NewDecoder(capture.DecodeOptions{})
	}
	var frame capture.Frame
	p := &t.packet
	for _, part := range parts {
		ref := t.ref(part)
		var err error
		if t.buf, err = t.frames.ReadAt(ref, t.entries[part].offset, &frame, t.buf); err != nil {
			return machine.Datagram{}, nil, fmt.Errorf("reading frame %d again: %w", ref.Frame(), err)
		}
		decoder.Decode(&frame, p)
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

// ref gives the file and frame number of an entry: the file whose list holds it.
func (t *Timeline) ref(n uint32) machine.Ref {
	for file, entries := range t.files {
		if i, ok := slices.BinarySearch(entries, n); ok {
			return machine.MakeRef(file, uint64(i)+1)
		}
	}
	return 0
}
