package recorder

import (
	"container/list"
	"slices"
)

// heads holds the first frames of each flow, since a handshake tells which protocol a flow speaks. Where the memory
// is full, the flow that was silent longest loses its frames.
type heads struct {
	room, used int
	flows      map[uint64]*list.Element
	recent     list.List // of *head; the flow of the last frame is in front
}

type head struct {
	flow   uint64
	frames []Frame
	number []uint64 // of each frame
	bytes  int
	ended  bool // no more frames
}

// Limits of one flow.
// Source: bound, the handshake of netcode: a request of 1,078 bytes, then challenges and responses of about 330
const (
	headFrames = 12
	headBytes  = 8 << 10
	headCost   = 256 // of a flow and of its places in the map and the list
	frameCost  = 128 // of a frame beside its bytes
)

func newHeads(room int) heads { return heads{room: room, flows: map[uint64]*list.Element{}} }

// add copies a frame if it is one of the first of its flow.
func (h *heads) add(f *Frame, number uint64) {
	e := h.flows[f.Flow]
	if e == nil {
		if !h.make(headCost) {
			return
		}
		e = h.recent.PushFront(&head{flow: f.Flow})
		h.flows[f.Flow] = e
		h.used += headCost
	} else if h.recent.Front() != e {
		h.recent.MoveToFront(e)
	}
	x := e.Value.(*head) //nolint:forcetypeassert // the list holds nothing else
	cost := len(f.Data) + len(f.Options) + frameCost
	if x.ended || len(x.frames) == headFrames || x.bytes+cost > headBytes {
		x.ended = true
		return
	}
	if !h.make(cost) || h.flows[f.Flow] != e {
		return
	}
	copied := *f
	copied.Data, copied.Options = slices.Clone(f.Data), slices.Clone(f.Options)
	x.frames, x.number = append(x.frames, copied), append(x.number, number)
	x.bytes += cost
	h.used += cost
}

// make drops flows until there is room. Where one flow fills all of it, that flow is dropped too.
func (h *heads) make(cost int) bool {
	for h.used+cost > h.room {
		e := h.recent.Back()
		if e == nil {
			return false
		}
		x := e.Value.(*head) //nolint:forcetypeassert // the list holds nothing else
		h.used -= x.bytes + headCost
		delete(h.flows, x.flow)
		h.recent.Remove(e)
	}
	return true
}

// of returns the first frames of a flow that came before a frame.
func (h *heads) of(flow, before uint64) []Frame {
	e := h.flows[flow]
	if e == nil {
		return nil
	}
	x := e.Value.(*head) //nolint:forcetypeassert // the list holds nothing else
	n := 0
	for n < len(x.frames) && x.number[n] < before {
		n++
	}
	return x.frames[:n:n]
}
