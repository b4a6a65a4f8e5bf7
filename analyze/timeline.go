package analyze

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Timeline returns the state of any flow at any packet, forwards and backwards.
// It stores no packets. It stores 24 bytes for each frame, and copies of the
// trackers (checkpoints). From a checkpoint it steps over the few packets up to
// the wanted one.
//
// A session fills it in capture order, as a sink (Record). A session holds back
// datagrams of flows that its Survey does not know. So Note must follow every
// Feed (Options.Fed), to give their frames entries too.
//
// A first run may enter only the frames (Note), so that they can be shown
// meanwhile. Refill then lets the second run fill in the same entries.
type Timeline struct {
	frames  *capture.RangeReader
	session *Session
	decoder *capture.Decoder
	frame   capture.Frame
	packet  capture.Packet
	buf     []byte
	spacing int // bytes of checkpoints per packet
	spare   int // additional bytes of checkpoints, once the length of the capture is known
	dense   int // bytes of checkpoints per packet in this run

	newest  machine.Ref // the frame of the last entry
	filled  int         // entries that this run has filled in
	entries frameIndex
	files   [][]uint32          // by file: entry of frame 1, 2, ...; nil as long as the frames of one file come in order
	batches map[uint32]uint32   // size of the datagrams of a batch, by its entry
	quotes  map[uint32]Quoted   // what ICMP errors concern, by their entries
	parts   map[uint32][]uint32 // frames of a fragmented datagram, by the entry that completed it
	tracks  []*track            // by the number of the flow; nil for a flow that a limit removed
	held    int                 // bytes stored for flows and endpoints, and in parts
	indexed int                 // bytes of files
	// keptFlow is the flow that has the checkpoint of Walk.Keep; 0 if none.
	keptFlow int
	scratch  []byte
	scopes   map[scopeKey]*scopeTrack
}

// kept is a clone of a tracker that cannot be packed.
type kept struct{ machine.Tracker }

func (k kept) Unpack() machine.Tracker { return k.Clone() }

func (t *Timeline) pack(tracker machine.Tracker) machine.Packed {
	if p, ok := tracker.(machine.Packer); ok {
		return p.Pack(&t.scratch)
	}
	return kept{tracker.Clone()}
}

// packedShare is about how much smaller a packed tracker is than a clone. It is
// an estimate until the first one of a flow shows the size.
const packedShare = 4

// Checkpoints are spaced so that they cost about this many bytes per packet,
// whatever the size of the state, but never closer than minSpacing.
const (
	checkpointBytesPerPacket = 16
	minSpacing               = 256
)

// NewTimeline returns an empty timeline over an input that can be read at
// random.
func NewTimeline(in *capture.Input) *Timeline {
	return &Timeline{
		frames: in.RangeReader(), decoder: capture.NewDecoder(capture.DecodeOptions{}),
		parts:   map[uint32][]uint32{},
		spacing: checkpointBytesPerPacket, dense: checkpointBytesPerPacket,
	}
}

// Spacing sets how many bytes checkpoints may take per packet, and how many in
// addition to that in all. A second run over a short capture (Refill) then has
// them closer together.
func (t *Timeline) Spacing(bytes, beyond int) { t.spacing, t.spare, t.dense = bytes, beyond, bytes }

// Refill starts another run over the same capture. Its session fills in the
// existing entries. States are available up to the entry that it has reached.
func (t *Timeline) Refill(s *Session) {
	t.session, t.newest, t.filled = s, 0, 0
	if n := t.entries.len(); n > 0 {
		t.dense = t.spacing + t.spare/n
	}
	t.batches, t.quotes = nil, nil
	t.tracks, t.held, t.keptFlow, t.scopes, t.parts = nil, 0, 0, nil, map[uint32][]uint32{}
}

// Attach sets the session whose records will come. Trackers are copied from its
// flows.
func (t *Timeline) Attach(s *Session) { t.session = s }

// Record processes the session's next record.
func (t *Timeline) Record(r *Record) {
	if r.Frame != nil {
		// A TCP segment has one record for each of its messages.
		t.Note(r.Frame, r.Packet, r.Flow)
	}
	t.mark(r)
	t.noteOdd(r)
	if r.Flow == nil || r.More || r.Frame == nil && r.Packet == nil && r.Datagram.Bytes == nil || r.Packet != nil &&
		r.Packet.Duplicate {
		return
	}
	f := r.Flow
	k := t.track(f)
	if k == nil {
		return
	}
	t.noteScope(r, k)
	if r.Frame == nil {
		return // it was held back: a checkpoint here would not know which datagrams came before it
	}
	if f.tracker != nil && k.since >= minSpacing && k.since*t.dense >= t.nextSize(k, f.tracker) {
		c := checkpoint{entry: uint32(t.filled) - 1, tracker: t.pack(f.tracker), places: len(k.places)}
		if f.conn != nil {
			c.conn = f.conn.Clone()
		}
		k.checkpoints = append(k.checkpoints, c)
		k.since, k.size = 0, c.tracker.Size()
		t.held += c.bytes()
	}
}

// noteOdd stores what only a run tells of a frame: the size of a batch's datagrams, and what an
// ICMP error concerns.
func (t *Timeline) noteOdd(r *Record) {
	switch {
	case r.Batch.Count > 0 && r.Index == 0:
		if n, err := t.entry(r.Datagram.Ref); err == nil {
			if t.batches == nil {
				t.batches = map[uint32]uint32{}
			}
			t.batches[n] = uint32(r.Batch.Size)
			t.held += batchCost
		}
	case r.Quoted != nil && r.Frame != nil:
		if t.quotes == nil {
			t.quotes = map[uint32]Quoted{}
		}
		t.quotes[uint32(t.filled)-1] = *r.Quoted
		t.held += quoteCost
	}
}

// nextSize returns the estimated size of a flow's next checkpoint in bytes.
func (t *Timeline) nextSize(k *track, tracker machine.Tracker) int {
	if _, ok := tracker.(machine.Packer); !ok {
		return tracker.Size()
	}
	if k.size > 0 {
		return k.size // the size of the last one
	}
	return tracker.Size() / packedShare
}

// Note enters a frame, unless it has an entry already. f is the flow of its
// datagram (Session.LastFlow), or nil.
func (t *Timeline) Note(frame *capture.Frame, p *capture.Packet, f *Flow) {
	if ref := frame.Ref; ref != t.newest {
		t.newest = ref
		t.enter(frame, p, f)
	}
}

// enter adds the entry of a frame, or fills in the existing one.
func (t *Timeline) enter(frame *capture.Frame, p *capture.Packet, f *Flow) {
	n := uint32(t.filled)
	e := entry{offset: frame.Offset}
	fresh := t.filled == t.entries.len()
	if fresh {
		t.enterFile(frame.Ref, n)
	}
	if p.Duplicate {
		e.marks |= markDuplicate
	}
	if f != nil {
		if keyOf(p.Src) != f.origin {
			e.marks |= markFromB
		}
		e.flow = uint32(f.ID)
	}
	if f != nil && !p.Duplicate {
		k := t.beginTrack(f)
		e.previous = k.last
		k.last = n + 1
		if p.Fragments > 1 {
			for _, span := range p.Spans {
				if part, err := t.entry(span.Ref); err == nil {
					t.parts[n] = append(t.parts[n], part)
				}
			}
			if own, err := t.entry(frame.Ref); fresh && err != nil {
				t.parts[n] = append(t.parts[n], n)
			} else if err == nil {
				t.parts[n] = append(t.parts[n], own)
			}
			slices.Sort(t.parts[n])
			t.parts[n] = slices.Compact(t.parts[n])
			t.held += partsCost + cap(t.parts[n])*int(unsafe.Sizeof(n))
		}
		k.since++
	}
	if fresh {
		t.entries.add(e)
	} else {
		*t.entries.at(n) = e
	}
	t.filled++
}

// enterFile records the entry of a frame. Frames of one file have the numbers
// of their entries. Only several files need a table.
func (t *Timeline) enterFile(ref machine.Ref, n uint32) {
	if t.files == nil {
		if ref == machine.MakeRef(0, uint64(n)+1) {
			return
		}
		t.files = [][]uint32{make([]uint32, n)}
		t.indexed += int(n) * int(unsafe.Sizeof(n))
		for i := range t.files[0] {
			t.files[0][i] = uint32(i)
		}
	}
	for len(t.files) <= ref.File() {
		t.files = append(t.files, nil)
	}
	list := t.files[ref.File()]
	before := cap(list)
	for uint64(len(list)) < ref.Frame()-1 {
		list = append(list, n) // a record that was no frame
	}
	list = append(list, n)
	t.files[ref.File()] = list
	t.indexed += (cap(list) - before) * int(unsafe.Sizeof(n))
}

// mark records at the frames what a record settled.
func (t *Timeline) mark(r *Record) {
	if t.filled == 0 {
		return
	}
	here := uint32(t.filled) - 1
	e := t.entries.at(here)
	for i := range r.Events {
		x := &r.Events[i]
		e.marks |= kindMark(x.Kind)
		var fate Fate
		switch x.Kind {
		case machine.EventAcked:
			fate = FateAcked
		case machine.EventLost:
			fate = FateLost
		default:
			continue
		}
		n, err := t.entry(x.About)
		if err != nil || int(n) >= t.filled {
			continue
		}
		about := t.entries.at(n)
		if about.marks.Fate() == FateAcked {
			continue
		}
		about.marks = about.marks&^(3<<marksFate) | Marks(fate)<<marksFate
		about.settled = here + 1
		if by, err := t.entry(x.Ref); err == nil {
			about.settled = by + 1
		}
	}
	for i := range r.Anomalies {
		s := Marks(r.Anomalies[i].Rule.Severity) + 1
		if s > e.marks>>marksSeverity&3 {
			e.marks = e.marks&^(3<<marksSeverity) | s<<marksSeverity
		}
	}
}

// Len returns the number of frames.
func (t *Timeline) Len() int { return t.entries.len() }

// FlowAt returns the flow of a frame. It returns false for a frame without one,
// and for a frame outside the capture.
func (t *Timeline) FlowAt(ref machine.Ref) (*Flow, bool) {
	n, err := t.entry(ref)
	if err != nil {
		return nil, false
	}
	return t.flowOf(n)
}

func (t *Timeline) flowOf(n uint32) (*Flow, bool) {
	f := t.session.Flow(int(t.entries.at(n).flow))
	return f, f != nil
}

func (t *Timeline) entry(ref machine.Ref) (uint32, error) {
	if t.files == nil {
		if ref.File() == 0 && ref.Frame() >= 1 && ref.Frame() <= uint64(t.entries.len()) {
			return uint32(ref.Frame() - 1), nil
		}
		return 0, fmt.Errorf("no frame %d: the capture has frames 1 to %d", ref.Frame(), t.entries.len())
	}
	if ref.File() >= len(t.files) || ref.Frame() < 1 || ref.Frame() > uint64(len(t.files[ref.File()])) {
		frames := 0
		if ref.File() < len(t.files) {
			frames = len(t.files[ref.File()])
		}
		return 0, fmt.Errorf("no frame %d: the capture has frames 1 to %d", ref.Frame(), frames)
	}
	return t.files[ref.File()][ref.Frame()-1], nil
}

// ref returns the file and frame number of an entry: the file whose list
// contains it.
func (t *Timeline) ref(n uint32) machine.Ref {
	if t.files == nil {
		return machine.MakeRef(0, uint64(n)+1)
	}
	for file, entries := range t.files {
		if i, ok := slices.BinarySearch(entries, n); ok {
			for i+1 < len(entries) && entries[i+1] == n {
				i++
			}
			return machine.MakeRef(file, uint64(i)+1)
		}
	}
	return 0
}
