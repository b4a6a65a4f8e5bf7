package riptide

// NotifyReceiver is the receiving half of the notify sequencer. It delivers a message only when its
// id is newer than all ids before.
type NotifyReceiver struct {
	Last uint16
	list bitList
}

// NewNotifyReceiver returns the state at the start of a connection.
func NewNotifyReceiver(b *Behaviour) NotifyReceiver {
	return NotifyReceiver{list: newBitList(false, b)}
}

// Take records a received id. It reports whether its message is delivered.
func (r *NotifyReceiver) Take(id uint16) bool {
	gap := GapOf(id, r.Last)
	if gap <= 0 {
		return false
	}
	r.list.shift(gap)
	r.Last = id
	if r.list.set(gap) {
		return false
	}
	r.list.mark(gap)
	return true
}

// Header returns the acks that the side's next notify header carries.
func (r *NotifyReceiver) Header() (last uint16, bits uint8) { return r.Last, uint8(r.list.word(0)) }

// Adopt sets the state to what a captured header shows.
func (r *NotifyReceiver) Adopt(last uint16, bits uint8) {
	r.list.reset(max(r.list.words, 2), uint32(bits))
	r.Last, r.list.count = last, wordBits
}

// Clone returns an independent copy.
func (r *NotifyReceiver) Clone() NotifyReceiver {
	c := *r
	c.list = r.list.clone()
	return c
}

// NotifySender is the sending half of the notify sequencer. The library settles each id once, and
// the result is final.
type NotifySender struct{ Last uint16 }

// NotifySpan is how many ids a notify header covers: its newest and the 8 before it.
// Source: library, Riptide 2.1.0: the newest id and the 8 bits of a notify header
const NotifySpan = 9

// Fate is what the library tells the application about a notify message.
type Fate uint8

const (
	Delivered Fate = iota
	Lost
	LostUncounted // also lost, but the library's loss rate leaves it out
)

// Acked records the acks of a notify header. It calls decide once for each id that the header
// settles, in order.
func (s *NotifySender) Acked(last uint16, bits uint8, decide func(id uint16, f Fate)) {
	gap := GapOf(last, s.Last)
	if gap <= 0 {
		return
	}
	for ; gap > NotifySpan; gap-- {
		s.Last++
		decide(s.Last, LostUncounted)
	}
	for bit := gap - 2; bit >= 0; bit-- {
		s.Last++
		if bits>>bit&1 == 1 {
			decide(s.Last, Delivered)
		} else {
			decide(s.Last, Lost)
		}
	}
	s.Last = last
	decide(last, Delivered)
}

// Join sets the state for a capture that begins in the middle of a connection.
func (s *NotifySender) Join(last uint16) { s.Last = last }
