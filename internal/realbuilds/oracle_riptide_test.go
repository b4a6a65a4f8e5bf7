package realbuilds

import (
	"fmt"
	"net/netip"
)

// ripAck is an Ack of Riptide 2.1 and later. Bit n of bits is the id last-1-n.
type ripAck struct {
	last     int64
	bits     uint16
	answers  int64
	position int
}

// has reports whether the Ack says that id was received.
func (a *ripAck) has(id int64) bool {
	return id == a.last || id < a.last && id >= a.last-16 && a.bits>>(a.last-1-id)&1 == 1
}

// field reads n bits at bit position p. Low bits come first.
func field(b []byte, p, n int) (v uint64, ok bool) {
	if p+n > 8*len(b) {
		return 0, false
	}
	for i := range n {
		v |= uint64(b[(p+i)/8]>>((p+i)%8)&1) << i
	}
	return v, true
}

// The low 4 bits of a datagram's first byte are its type.
const (
	typeAck      = 1
	reliableFrom = 7 // user messages, Welcome, ClientConnected, ClientDisconnected
	reliableTo   = 10
)

// impossibleRiptide looks for the first Ack of a side that no correct endpoint of
// Riptide 2.1 or later can have sent. It returns its frame and why; 0 for none.
//
// A correct endpoint answers every reliable message at once, in the order of its
// socket, and accepts all. So at its own tap its Acks are known exactly. Behind a
// network, an Ack names what passed before. Of two Acks, one names all that the
// other names. Captures with jumps of 32 ids are not judged: there the releases
// are known to be wrong.
func impossibleRiptide(list []datagram, side netip.AddrPort, near bool) (frame uint64, why string) {
	var arrived []int64 // reliable ids, by position
	passed := map[int64]int{}
	var newest int64
	var acks []ripAck
	for i := range list {
		d := &list[i]
		kind, ok := field(d.b, 0, 4)
		if !ok {
			continue
		}
		if d.to == side && kind >= reliableFrom && kind <= reliableTo {
			if v, ok := field(d.b, 4, 16); ok {
				id := unwrap(newest, uint16(v))
				newest = max(newest, id)
				arrived = append(arrived, id)
				if _, before := passed[id]; !before {
					passed[id] = i
				}
			}
		}
		if d.from != side || kind != typeAck {
			continue
		}
		a, ok := readAck(d.b, newest, i)
		switch {
		case !ok:
			return d.frame, "an Ack that is too short"
		case near && len(acks) >= len(arrived):
			return d.frame, "an Ack, and all messages have been answered"
		case near:
			why = answers(arrived[:len(acks)+1], &a)
		default:
			why = agrees(passed, acks, &a)
		}
		if why != "" {
			return d.frame, why
		}
		acks = append(acks, a)
	}
	return 0, ""
}

func readAck(b []byte, newest int64, at int) (a ripAck, ok bool) {
	last, _ := field(b, 4, 16)
	mask, _ := field(b, 20, 16)
	other, ok := field(b, 36, 1)
	a = ripAck{last: unwrap(newest, uint16(last)), bits: uint16(mask), position: at}
	a.answers = a.last
	if other == 1 {
		var v uint64
		v, ok = field(b, 37, 16)
		a.answers = unwrap(newest, uint16(v))
	}
	return a, ok
}

// answers holds an Ack against what its endpoint has read: arrived, whose last is
// the one that it answers.
func answers(arrived []int64, a *ripAck) string {
	var last int64 // at the start the newest id is 0
	have := map[int64]bool{0: true}
	for _, id := range arrived {
		have[id] = true
		last = max(last, id)
	}
	if id := arrived[len(arrived)-1]; a.answers != id {
		return fmt.Sprintf("it answers %d, and %d is to be answered", a.answers, id)
	}
	if a.last != last {
		return fmt.Sprintf("the newest id is %d, not %d", last, a.last)
	}
	for id := last - 1; id >= last-16; id-- {
		if a.has(id) != have[id] {
			return fmt.Sprintf("id %d was received: %v", id, have[id])
		}
	}
	return ""
}

// agrees holds an Ack against what passed before it, and against the Acks that
// passed before it.
func agrees(passed map[int64]int, before []ripAck, a *ripAck) string {
	if a.answers > a.last || a.answers >= a.last-16 && !a.has(a.answers) {
		return fmt.Sprintf("it answers id %d, and does not name it", a.answers)
	}
	if _, ok := passed[a.answers]; !ok {
		return fmt.Sprintf("it answers id %d, which did not pass", a.answers)
	}
	for id := a.last; id >= a.last-16; id-- {
		if _, ok := passed[id]; !ok && id != 0 && a.has(id) {
			return fmt.Sprintf("it names id %d, which did not pass", id)
		}
	}
	for i := range before {
		if b := &before[i]; !within(a, b) && !within(b, a) {
			return "of two Acks, each names an id that the other denies"
		}
	}
	return ""
}

// within reports whether the first Ack can have been sent before the second.
func within(first, second *ripAck) bool {
	if first.last > second.last {
		return false
	}
	for id := first.last; id >= second.last-16; id-- {
		if first.has(id) && !second.has(id) {
			return false
		}
	}
	return true
}
