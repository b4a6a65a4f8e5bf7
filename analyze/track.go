package analyze

import (
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/machine"
)

// track is what the timeline stores of one flow.
type track struct {
	last        uint32 // 1 + its newest entry
	since       int    // datagrams of the flow since the last checkpoint
	size        int    // estimated bytes of the next checkpoint; 0 if unknown
	checkpoints []checkpoint
	places      []machine.Place // of its datagrams, in order, if its endpoints have scopes
}

type checkpoint struct {
	entry   uint32 // the last one that was observed
	tracker machine.Packed
	conn    *stream.Conn // of a TCP flow
	places  int          // how many of the flow's places come before it
	extra   bool         // from Walk.Keep; there is at most one
}

// Estimates of the bytes that the timeline's maps take per key, in addition to
// the values. A map's groups of eight are at most seven eighths full, and less
// than half full after a split (internal/runtime/maps). Each value is an
// allocation.
const (
	partsCost      = 2 * int(unsafe.Sizeof(uint64(0))+unsafe.Sizeof([]uint32{}))
	batchCost      = 2 * 2 * int(unsafe.Sizeof(uint32(0)))
	quoteCost      = 2 * int(unsafe.Sizeof(uint32(0))+unsafe.Sizeof(Quoted{}))
	scopeTrackCost = 2*int(unsafe.Sizeof(scopeKey{})+unsafe.Sizeof(uintptr(0))) + int(unsafe.Sizeof(scopeTrack{}))
)

// bytes returns the approximate size of the checkpoint.
func (c *checkpoint) bytes() int {
	n := int(unsafe.Sizeof(*c)) + c.tracker.Size()
	if c.conn != nil {
		n += c.conn.Size()
	}
	return n
}

// bytes returns the approximate size of the track.
func (k *track) bytes() int {
	n := int(unsafe.Sizeof(*k)) + cap(k.places)*int(unsafe.Sizeof(machine.Place{}))
	for i := range k.checkpoints {
		n += k.checkpoints[i].bytes()
	}
	return n
}

// track returns the track of a flow. It returns nil for a flow without a frame
// so far, and for one that a limit removed.
func (t *Timeline) track(f *Flow) *track {
	if f.ID > len(t.tracks) {
		return nil
	}
	return t.tracks[f.ID-1]
}

// beginTrack returns the track of a flow, and creates it at the flow's first
// frame.
func (t *Timeline) beginTrack(f *Flow) *track {
	if n := f.ID - len(t.tracks); n > 0 {
		t.tracks = append(t.tracks, slices.Repeat([]*track{nil}, n)...)
	}
	k := t.tracks[f.ID-1]
	if k == nil {
		k = &track{}
		t.tracks[f.ID-1] = k
		t.held += k.bytes()
	}
	return k
}

// addPlace stores what a scope said of the flow's next datagram.
func (t *Timeline) addPlace(k *track, x machine.Place) {
	before := cap(k.places)
	k.places = append(k.places, x)
	t.held += (cap(k.places) - before) * int(unsafe.Sizeof(x))
}

// Forget frees what is stored for the states of a flow that the session
// removed. Its entries remain.
func (t *Timeline) Forget(f *Flow) {
	if k := t.track(f); k != nil {
		t.held -= k.bytes()
		t.tracks[f.ID-1] = nil
	}
}

// Size returns the approximate size of the timeline in bytes.
func (t *Timeline) Size() int {
	return len(t.entries.pages)*pageSize*int(unsafe.Sizeof(entry{})) + cap(t.tracks)*int(unsafe.Sizeof(&track{})) +
		t.indexed + t.held
}
