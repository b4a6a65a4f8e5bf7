package riptide

import (
	"fmt"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Receiver is the receiving half of the reliable sequencer. It decides what is delivered, and what
// the next Ack says. The zero value is not usable: call NewReceiver.
type Receiver struct {
	Behaviour *Behaviour
	Last      uint16 // newest id received
	List      bitList

	// Overran is set once the window has dropped the place of an id that never came. The library
	// then ends the connection without a word, whatever its limits (Behaviour.WindowMost).
	Overran bool

	// The window of 2.0.0 and of the notes.
	bits   uint16 // bit i: last-1-i
	filter uint64 // bit i: last-17-i
}

// NewReceiver returns the state at the start of a connection.
func NewReceiver(b *Behaviour) Receiver {
	return Receiver{Behaviour: b, List: newBitList(false, b)}
}

// GapOf returns how much newer id is than reference, -32768 to 32767.
func GapOf(id, reference uint16) int { return int(int16(id - reference)) }

// Take records a received id. It reports whether its message is delivered.
func (r *Receiver) Take(id uint16) bool {
	switch r.Behaviour.Receive {
	case ReceiveEverything:
		r.Last = id
		return true
	case ReceiveWindow, ReceiveNotes:
		return r.takeWindow(id)
	}
	gap := GapOf(id, r.Last)
	switch {
	case gap == 0:
		return false
	case gap > 0:
		dropped := r.List.shift(gap)
		r.Overran = r.Overran || dropped && r.Behaviour.WindowMost > 0
		r.Last = id
	default:
		gap = -gap
	}
	fresh := !r.List.set(gap)
	r.List.mark(gap)
	return fresh
}

const (
	// WindowAcks is how many ids behind the newest one the bits of an Ack cover.
	// Source: library, Riptide 2.0.0: the 16 bits of an Ack
	WindowAcks = 16
	// windowAll is how many ids behind the newest one the receiver's window covers.
	// Source: library, Riptide 2.0.0: the 16 bits of acks and 64 older ones
	windowAll = 80
)

func (r *Receiver) takeWindow(id uint16) bool {
	gap := GapOf(id, r.Last)
	switch {
	case gap == 0:
		return false
	case gap < 0:
		return r.markWindow(-gap)
	}
	// The library's shifts take their count modulo the width.
	r.filter <<= uint(gap) & 63
	switch {
	case gap <= WindowAcks:
		moved := uint64(r.bits) << gap
		r.bits = uint16(moved)
		r.filter |= moved >> WindowAcks
		fresh := r.markWindow(gap)
		r.Last = id
		return fresh
	case gap <= windowAll:
		moved := uint64(r.bits) << (uint(gap-WindowAcks) & 63)
		r.bits = 0
		r.filter |= moved
		fresh := r.markWindow(gap)
		if r.Behaviour.Receive == ReceiveNotes {
			r.Last = id
		}
		return fresh
	}
	return true
}

func (r *Receiver) markWindow(gap int) bool {
	switch {
	case gap <= WindowAcks:
		bit := uint16(1) << (gap - 1)
		fresh := r.bits&bit == 0
		r.bits |= bit
		return fresh
	case gap <= windowAll:
		bit := uint64(1) << (gap - 1 - WindowAcks)
		fresh := r.filter&bit == 0
		r.filter |= bit
		return fresh
	}
	return true
}

// Ack returns the newest id and the 16 bits that the next Ack carries.
func (r *Receiver) Ack() (last, bits uint16) {
	if r.Behaviour.Receive == ReceiveList {
		return r.Last, uint16(r.List.word(0))
	}
	return r.Last, r.bits
}

// Holds reports whether an Ack shows exactly this state.
func (r *Receiver) Holds(m *wire.Message) bool {
	last, bits := r.Ack()
	return last == m.Last && bits == m.AckBits
}

// answersMost is how many arrivals Answers tries at most.
// Source: bound, the arrivals that are looked through
const answersMost = 256

// Answers finds the arrival that an Ack answers when the Ack does not name it. id returns the ids
// of n arrivals in order. The result is the first arrival after which the state is as the Ack shows
// it, or n for none.
func (r *Receiver) Answers(m *wire.Message, n int, id func(int) uint16) int {
	after := r.Clone()
	for k := range min(n, answersMost) {
		if after.Take(id(k)); after.Holds(m) {
			return k
		}
	}
	return n
}

// Adopt sets the state to what an Ack shows. It serves a connection that is joined in its middle,
// or whose packets the capture lost. Ids beyond the 16 bits then count as not received.
func (r *Receiver) Adopt(last, bits uint16) {
	r.Last, r.bits = last, bits
	if r.Behaviour.Receive != ReceiveList {
		return
	}
	r.List.reset(max(r.List.words, 3), uint32(bits))
	r.List.count = (r.List.words - 1) * wordBits
}

// Merge updates the state from an Ack that shows more than is known, because the capture lacks
// arrivals. Bits beyond the Ack's 16 keep their values and move with the newest id.
func (r *Receiver) Merge(last, bits uint16) {
	if r.Behaviour.Receive != ReceiveList {
		r.Last, r.bits = last, bits
		return
	}
	switch gap := GapOf(last, r.Last); {
	case gap > 0:
		r.List.shift(gap)
		r.List.mark(gap)
		r.Last = last
	case gap < 0:
		r.Adopt(last, bits) // a newest id never goes back: this is another state altogether
		return
	}
	r.List.setWord(0, r.List.word(0)&^0xffff|uint32(bits))
	r.List.count = max(r.List.count, WindowAcks)
}

// As returns a copy that goes on as another behaviour with the same kind of window.
func (r *Receiver) As(b *Behaviour) Receiver {
	c := r.Clone()
	c.Behaviour = b
	c.List.Fault, c.List.most = b.ShiftFault, newBitList(false, b).most
	return c
}

// Clone returns an independent copy.
func (r *Receiver) Clone() Receiver {
	c := *r
	c.List = r.List.clone()
	return c
}

// FilterText formats what the receiver knows about ids beyond the 16 bits of its Acks.
func (r *Receiver) FilterText() string {
	switch r.Behaviour.Receive {
	case ReceiveEverything:
		return "none: every copy is handed over"
	case ReceiveWindow, ReceiveNotes:
		return fmt.Sprintf("0x%016x, of the 64 ids behind those", r.filter)
	}
	missing := 0
	for bit := WindowAcks + 1; bit <= r.List.count; bit++ {
		if !r.List.set(bit) {
			missing++
		}
	}
	return fmt.Sprintf("the %s behind the newest, %d beyond the bits missing", count(uint64(r.List.count), "id"), missing)
}

// Received reports whether an id counts as received. known is false where the id is older than all
// that the state keeps.
func (r *Receiver) Received(id uint16) (received, known bool) {
	gap := GapOf(r.Last, id)
	switch {
	case gap == 0:
		return true, true
	case gap < 0:
		return false, true
	case r.Behaviour.Receive == ReceiveList:
		return r.List.set(gap), gap <= r.List.count
	case gap <= WindowAcks:
		return r.bits>>(gap-1)&1 == 1, true
	case gap <= windowAll:
		return r.filter>>(gap-1-WindowAcks)&1 == 1, true
	}
	return false, false
}
