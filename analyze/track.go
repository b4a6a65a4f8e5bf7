package analyze

import (
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/machine"
)

// track is what the timeline knows of one flow.
type track struct {
	last        uint32 // 1 + its newest entry
	since       int    // its datagrams since the last checkpoint
	size        int    // bytes that the next one will take, about; 0 unknown
	checkpoints []checkpoint
	places      []machine.Place // of its datagrams, in order, where its endpoints have scopes
}

type checkpoint struct {
	entry   uint32 // the last one that was observed
	tracker machine.Packed
	conn    *stream.Conn // of a TCP flow
	places  int          // how many of the flow's places are behind it
	extra   bool         // Walk.Keep left it: there is one at most
}

// What the maps of the timeline take for a key beside its values, in bytes: a map's
// groups of eight are filled by seven eighths at most and by less than half after
// they were split (internal/runtime/maps), and each value is an allocation.
const (
	partsCost      = 2 * int(unsafe.Sizeof(uint64(0))+unsafe.Sizeof([]uint32{}))
	scopeTrackCost = 2*int(unsafe.Sizeof(scopeKey{})+unsafe.Sizeof(uintptr(0))) + int(unsafe.Sizeof(scopeTrack{}))
)

// bytes returns what the checkpoint takes, about.
func (c *checkpoint) bytes() int {
	n := int(unsafe.Sizeof(*c)) + c.tracker.Size()
	if c.conn != nil {
		n += c.conn.Size()
	}
	return n
}

// bytes returns what the track takes, about.
func (k *track) bytes() int {
	n := int(unsafe.Sizeof(*k)) + cap(k.places)*int(unsafe.Sizeof(machine.Place{}))
	for i := range k.checkpoints {
		n += k.checkpoints[i].bytes()
	}
	return n
}

// track returns what is known of a flow; nil for one without a frame so far, and for
// one that was let go.
func (t *Timeline) track(f *Flow) *track {
	if f.ID > len(t.tracks) {
		return nil
	}
	return t.tracks[f.ID-1]
}

// beginTrack returns the track of a flow, which it makes for the first frame of one.
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

// addPlace notes what a scope said of the flow's next datagram.
func (t *Timeline) addPlace(k *track, x machine.Place) {
	before := cap(k.places)
	k.places = append(k.places, x)
	t.held += (cap(k.places) - before) * int(unsafe.Sizeof(x))
}

// Forget gives back what is kept for the states of a flow that the session let
// go: its entries stay.
func (t *Timeline) Forget(f *Flow) {
	if k := t.track(f); k != nil {
		t.held -= k.bytes()
		t.tracks[f.ID-1] = nil
	}
}

// Size returns the bytes that the timeline takes, about.
func (t *Timeline) Size() int {
	return len(t.entries.pages)*pageSize*int(unsafe.Sizeof(entry{})) + cap(t.tracks)*int(unsafe.Sizeof(&track{})) +
		t.indexed + t.held
}
