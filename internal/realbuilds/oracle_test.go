package realbuilds

import (
	"fmt"
	"net/netip"
)

// oracle says which datagram of one side is the first that no correct endpoint
// of the library `reliable` can have sent. It knows only what passed the tap.
//
// A correct endpoint may read late, and its application may refuse any packet.
// At the side's own tap (near) it reads in the order of the tap. Behind a
// network it may get any subset of what passed, in any order.
//
// The endpoint has the newest sequence that moved its window (ack), and the set
// of packets that it accepted. A packet is accepted when it is whole. The first
// fragment of a packet moves the window too.
//
// TestOracle compares it with an enumeration of all orders and subsets.
type oracle struct {
	near bool
	base int64 // unwrapped sequences are those next to it

	whole     map[int64][]int // by sequence: positions at which the packet was complete
	parts     map[int64][]int // positions of its fragments
	seen      map[int64]map[int]bool
	forced    map[int64]bool // the endpoint cannot ignore its first fragment
	fragments                // of the side itself

	told   []told // the side's headers so far, by sequence
	top    int64  // the newest of the side's own sequences
	any    bool   // the side has sent
	last   int64  // near: sequence of the side's last packet
	lastID int    // near: its last fragment, and their count
	lastOf int
}

// told is one header of the side.
type told struct {
	sequence, ack int64
	bits          uint32
	position      int
	read          int // near: the position up to which the endpoint has read at least
}

func (x *told) newest() bool { return x.bits&1 == 1 }

// names reports whether the header says that packet s was received.
func (x *told) names(s int64) bool {
	return s <= x.ack && s > x.ack-32 && x.bits>>(x.ack-s)&1 == 1
}

// speaks reports whether the header would name packet s if it was received.
func (x *told) speaks(s int64) bool { return s > x.ack-32 }

// fragments are what is known of a side's own fragments.
type fragments struct {
	size   int // of all but the last of a packet; 0 until one was seen
	counts map[int64]int
	lasts  int // the longest last fragment before size was known
}

// impossible returns the frame of the first datagram of a side that no correct
// endpoint can have sent, and why. It returns 0 where there is none.
func impossible(list []datagram, side netip.AddrPort, near bool) (frame uint64, why string) {
	o := newOracle(near)
	for i := range list {
		d := &list[i]
		h, ok := parse(d.b)
		switch {
		case d.from == side && !ok:
			return d.frame, "a datagram that is too short for its header"
		case d.from == side:
			if why := o.sent(i, &h); why != "" {
				return d.frame, why
			}
		case d.to == side && ok:
			o.passed(i, &h)
		}
	}
	return 0, ""
}

func newOracle(near bool) *oracle {
	return &oracle{
		near: near, base: 1 << 32, whole: map[int64][]int{}, parts: map[int64][]int{}, seen: map[int64]map[int]bool{},
		forced: map[int64]bool{}, fragments: fragments{counts: map[int64]int{}},
	}
}

// unwrap returns the number next to base whose low 16 bits are s.
func unwrap(base int64, s uint16) int64 { return base + int64(int16(s-uint16(base))) }

// passed takes a datagram that passed the tap towards the side.
func (o *oracle) passed(at int, h *header) {
	s := unwrap(o.base, h.sequence)
	if s > o.base {
		o.base = s
	}
	if !h.fragment {
		o.whole[s] = append(o.whole[s], at)
		return
	}
	o.parts[s] = append(o.parts[s], at)
	if o.seen[s] == nil {
		o.seen[s] = map[int]bool{}
		// More fragments than the library takes by default may be ignored.
		o.forced[s] = h.wrong == "" && h.count <= 16 && h.size > 0 && h.size <= 1024
	}
	if o.seen[s][h.id] = true; len(o.seen[s]) == h.count {
		o.whole[s] = append(o.whole[s], at)
		clear(o.seen[s]) // whole or refused, further copies begin anew
	}
}

// sent takes a datagram of the side. It returns why no correct endpoint can have
// sent it, or "".
func (o *oracle) sent(at int, h *header) string {
	if h.wrong != "" {
		return h.wrong
	}
	if !o.any {
		o.top = int64(h.sequence)
	}
	own := unwrap(o.top, h.sequence)
	o.top = max(o.top, own)
	if why := o.fragment(own, h); why != "" {
		return why
	}
	if o.near {
		if why := o.ordered(own, h); why != "" {
			return why
		}
	}
	o.any = true
	if !h.tells {
		return ""
	}
	x := told{sequence: own, ack: unwrap(o.base, h.ack), bits: h.bits, position: at}
	if o.near {
		return o.nearHeader(x)
	}
	return o.farHeader(x)
}

// ordered holds the numbers of packets and fragments at the side's own tap: they
// step by one.
func (o *oracle) ordered(own int64, h *header) string {
	next, id := o.last+1, 0
	if o.any && o.lastID+1 < o.lastOf {
		next, id = o.last, o.lastID+1
	}
	if o.any && (own != next || h.id != id) {
		return fmt.Sprintf("packet %d, fragment %d comes next, not packet %d, fragment %d", next, id, own, h.id)
	}
	o.last, o.lastID, o.lastOf = own, h.id, h.count
	return ""
}

// fragment holds the sizes and counts of the side's own fragments.
func (o *oracle) fragment(s int64, h *header) string {
	if !h.fragment {
		return ""
	}
	if n, ok := o.counts[s]; ok && n != h.count {
		return fmt.Sprintf("one packet has %d fragments and %d", n, h.count)
	}
	o.counts[s] = h.count
	if h.size == 0 {
		return "each fragment has at least one byte"
	}
	if h.id == h.count-1 {
		o.lasts = max(o.lasts, h.size)
	} else if o.size == 0 {
		o.size = h.size
	} else if h.size != o.size {
		return "all fragments but the last of a packet have one size"
	}
	if o.size > 0 && o.lasts > o.size {
		return "the last fragment is not longer than the others"
	}
	return ""
}

// after returns the first position in the list behind p; -1 for none.
func after(list []int, p int) int {
	for _, q := range list {
		if q > p {
			return q
		}
	}
	return -1
}

// nearHeader holds a header against what passed the tap before it. It keeps the
// least position up to which the endpoint must have read. Any endpoint that
// explains all headers has read at least so far, at each of them.
func (o *oracle) nearHeader(x told) string {
	before := told{ack: x.ack, read: -1} // nothing was received, and ack is where the window begins
	if len(o.told) > 0 {
		before = o.told[len(o.told)-1]
	}
	if why := follows(&before, &x); why != "" {
		return why
	}
	x.read = before.read
	for s := x.ack; s > x.ack-32; s-- {
		if !x.names(s) || before.names(s) {
			continue
		}
		q := after(o.whole[s], before.read)
		if q < 0 {
			return fmt.Sprintf("packet %d had not arrived since the last header", uint16(s))
		}
		x.read = max(x.read, q)
	}
	if moved := x.ack != before.ack; moved && !x.newest() {
		q := after(o.parts[x.ack], before.read)
		if q < 0 {
			return fmt.Sprintf("no fragment of packet %d moved the window", uint16(x.ack))
		}
		x.read = max(x.read, q)
	}
	for s, at := range o.parts {
		if s > x.ack && o.forced[s] && at[0] <= x.read {
			return fmt.Sprintf("a fragment of packet %d was read before, and moved the window", uint16(s))
		}
	}
	o.told = append(o.told, x)
	return ""
}

// follows holds a header against one that the side sent before it.
func follows(before, x *told) string {
	if x.ack < before.ack {
		return fmt.Sprintf("ack goes back from %d to %d", uint16(before.ack), uint16(x.ack))
	}
	for s := before.ack; s > before.ack-32; s-- {
		if before.names(s) && x.speaks(s) && !x.names(s) {
			return fmt.Sprintf("packet %d was named before, and is not any more", uint16(s))
		}
	}
	return ""
}

// farHeader holds a header against what passed the tap, in any order, before it
// and before all later packets of the side that have passed.
func (o *oracle) farHeader(x told) string {
	n := len(o.told)
	for n > 0 && o.told[n-1].sequence > x.sequence {
		n--
	}
	var before, next *told
	if n > 0 {
		before = &o.told[n-1]
	}
	if n < len(o.told) {
		next = &o.told[n]
	}
	if before != nil && before.sequence == x.sequence {
		if before.ack != x.ack || before.bits != x.bits {
			return "another packet with the same number"
		}
		return ""
	}
	until := x.position // what it names passed before that
	for i := len(o.told) - 1; i >= n; i-- {
		until = min(until, o.told[i].position)
	}
	if why := o.explains(before, &x, until); why != "" {
		return why
	}
	if next != nil {
		until := next.position
		for i := n; i < len(o.told); i++ {
			until = min(until, o.told[i].position)
		}
		if why := o.explains(&x, next, until); why != "" {
			return why
		}
	}
	o.told = append(o.told[:n], append([]told{x}, o.told[n:]...)...)
	return ""
}

// explains holds a header against the one before it, nil for none, and against what
// passed before position until.
func (o *oracle) explains(before, x *told, until int) string {
	if before != nil {
		if why := follows(before, x); why != "" {
			return why
		}
	}
	for s := x.ack; s > x.ack-32; s-- {
		if list := o.whole[s]; x.names(s) && (len(list) == 0 || list[0] >= until) {
			return fmt.Sprintf("packet %d had not passed", uint16(s))
		}
	}
	// At first, ack is where the window begins.
	if before == nil || before.ack == x.ack || x.newest() {
		return ""
	}
	if list := o.parts[x.ack]; len(list) == 0 || list[0] >= until {
		return fmt.Sprintf("no fragment of packet %d had passed", uint16(x.ack))
	}
	return ""
}
