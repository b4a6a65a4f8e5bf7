package analyze

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Timeline gives the state of any flow at any packet, forward and back. It
// keeps no packets: 24 bytes for each frame, and copies of the trackers
// (checkpoints) from which the few packets in between are stepped again.
//
// It is filled as a session's sink (Record), in capture order. A session holds
// datagrams back of flows that its Survey does not know: Note must follow every
// Feed (Options.Fed), so that their frames have entries too.
//
// A first run may enter the frames alone (Note), to be shown while it goes on;
// Again then has the second run fill in the same entries.
type Timeline struct {
	frames  *capture.Near
	session *Session
	decoder *capture.Decoder
	frame   capture.Frame
	packet  capture.Packet
	buf     []byte
	spacing int // bytes of checkpoints a packet
	spare   int // bytes of checkpoints beyond that, once the length of the capture is known
	dense   int // bytes of checkpoints a packet in this run

	newest  machine.Ref // the frame of the last entry
	filled  int         // entries that this run has filled in
	entries book
	files   [][]uint32          // by file: entry of frame 1, 2, ...; nil while frames of one file come in order
	parts   map[uint32][]uint32 // frames of a datagram that IP had cut, by the entry that completed it
	tracks  []*track            // by the number of the flow; nil for one that was let go
	held    int                 // bytes of what is kept of flows and endpoints, and of parts
	indexed int                 // bytes of files
	// keptFlow is the flow that has the checkpoint of Walk.Keep; 0 for none.
	keptFlow int
	scratch  []byte
	scopes   map[scopeKey]*scopeTrack
}

// kept is a tracker that cannot be packed: a clone.
type kept struct{ machine.Tracker }

func (k kept) Unpack() machine.Tracker { return k.Clone() }

func (t *Timeline) pack(tracker machine.Tracker) machine.Packed {
	if p, ok := tracker.(machine.Packer); ok {
		return p.Pack(&t.scratch)
	}
	return kept{tracker.Clone()}
}

// packedShare is how much smaller a packed tracker is than a clone, about: until
// the first one of a flow has shown it.
const packedShare = 4

// Checkpoints are spaced so that they cost about this many bytes a packet,
// whatever the size of the state, but never closer than minSpacing.
const (
	checkpointBytesPerPacket = 16
	minSpacing               = 256
)

// NewTimeline makes an empty timeline over an input that can be read at random.
func NewTimeline(in *capture.Input) *Timeline {
	return &Timeline{frames: in.Near(), decoder: capture.NewDecoder(capture.DecodeOptions{}), parts: map[uint32][]uint32{},
		spacing: checkpointBytesPerPacket, dense: checkpointBytesPerPacket}
}

// Spacing sets how many bytes a packet checkpoints may take, and how many beyond
// that in all: a second run over a short capture (Again) has them closer together.
func (t *Timeline) Spacing(bytes, beyond int) { t.spacing, t.spare, t.dense = bytes, beyond, bytes }

// Again begins another run over the same capture: its session fills in the
// entries that there are. States are told up to where it has come.
func (t *Timeline) Again(s *Session) {
	t.session, t.newest, t.filled = s, 0, 0
	if n := t.entries.len(); n > 0 {
		t.dense = t.spacing + t.spare/n
	}
	t.tracks, t.held, t.keptFlow, t.scopes, t.parts = nil, 0, 0, nil, map[uint32][]uint32{}
}

// Attach names the session whose records will be fed: trackers are copied from its flows.
func (t *Timeline) Attach(s *Session) { t.session = s }

// Record takes the session's next record.
func (t *Timeline) Record(r *Record) {
	if r.Frame != nil {
		// A TCP segment is told once for each of its messages.
		t.Note(r.Frame, r.Packet, r.Flow)
	}
	t.mark(r)
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
		return // it was held back: a checkpoint here would not know which came before it
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

// nextSize returns what the next checkpoint of a flow will take, about.
func (t *Timeline) nextSize(k *track, tracker machine.Tracker) int {
	if _, ok := tracker.(machine.Packer); !ok {
		return tracker.Size()
	}
	if k.size > 0 {
		return k.size // as much as the last one
	}
	return tracker.Size() / packedShare
}

// Note enters a frame, if it has no entry yet, as one of the flow that the
// session put its datagram to (Session.Landed); nil for none.
func (t *Timeline) Note(frame *capture.Frame, p *capture.Packet, f *Flow) {
	if ref := frame.Ref; ref != t.newest {
		t.newest = ref
		t.enter(frame, p, f)
	}
}

// enter adds the entry of a frame, or fills it in anew.
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

// enterFile notes which entry a frame has. Frames of one file are numbered like
// their entries; only those of several need a table.
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

// mark notes at the frames what a record settled.
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

// FlowAt returns the flow that a frame belongs to; false for a frame without one
// or outside of the capture.
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

// ref returns the file and frame number of an entry: the file whose list holds it.
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
