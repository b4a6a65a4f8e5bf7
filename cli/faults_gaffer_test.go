package cli

import (
	"bytes"
	"testing"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// gafferOracles are the oracles of the Gaffer faults: near the faulty endpoint,
// and away from it. A fault that is not listed is one of acks.
var gafferOracles = map[string]oracles{
	"sequence-skipped":           {differs, explained}, // away: the numbers between may be lost
	"sequence-repeated":          {differs, numberReused},
	"fragments-reversed":         {brokenFragments, explained}, // away: fragments overtake each other
	"fragment-count":             {brokenFragments, unevenFragments},
	"stale-entry-kept":           {differs, acksAway}, // near: the naive model has no window
	"sequence-reset":             {differs, numberReused},
	"fragment-numbers":           {differs, explained}, // away: the numbers between may be lost
	"fragment-empty-last":        {emptyFragment, emptyFragment},
	"wrap-forgets":               {differs, acksAway}, // near: the naive model begins at 0
	"fragment-acked-early":       {acksNear, acksAway},
	"message-window":             {brokenMessages, brokenMessages},
	"message-resend-early":       {brokenMessages, brokenMessages},
	"message-resend-late":        {brokenMessages, brokenMessages},
	"message-resend-without-end": {brokenMessages, brokenMessages},
	"message-resend-slip-early":  {brokenMessages, brokenMessages},
	"message-resend-slip-never":  {brokenMessages, brokenMessages},
	"message-resend-slip-storm":  {brokenMessages, brokenMessages},
	"message-type":               {unknownType, unknownType},
}

// profile returns the profile that decodes the packets of a view.
func (v *view) profile(t *testing.T) *wire.Profile {
	t.Helper()
	a := &app.App{Registry: protocols()}
	a.Flags.Profiles = []string{messagesFile, simpleFile, resendFile}
	if err := about.LoadProfiles(a); err != nil {
		t.Fatal(err)
	}
	profile, err := gaffer.Simulated(a, v.run.flags.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// packets passes the packets of a view to each until it returns true.
func (v *view) packets(t *testing.T, each func(i int, k *wire.Packet) (stop bool)) {
	t.Helper()
	profile := v.profile(t)
	var k wire.Packet
	for i, x := range v.sightings {
		if profile.Parse(x.b, len(x.b), &k) == nil && each(i, &k) {
			return
		}
	}
}

// numberReused finds two different packets with one number. The network
// duplicates packets, but changes none.
func numberReused(t *testing.T, v *view) (frame uint64) {
	known := map[uint32][]byte{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindRegular {
			return false
		}
		if was, ok := known[k.Sequence]; ok && !bytes.Equal(was, v.sightings[i].b) {
			frame = v.frames[i]
			return true
		}
		known[k.Sequence] = v.sightings[i].b
		return false
	})
	return frame
}

// brokenFragments holds at the endpoint. The fragments of a packet leave one
// after the other, all of one size except the last. The capture may begin
// within a packet.
func brokenFragments(t *testing.T, v *view) (frame uint64) {
	due, count, size, sequence, met := 0, 0, 0, uint32(0), false
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own {
			return false
		}
		fragment := k.Kind == wire.KindFragment
		switch {
		case due > 0 && (!fragment || k.Sequence != sequence || k.FragmentID != due || k.FragmentCount != count),
			due > 0 && (k.FragmentID < count-1 && k.PayloadLen != size || k.PayloadLen > size),
			due == 0 && met && (k.Sequence == sequence || fragment && k.FragmentID != 0):
			frame = v.frames[i]
			return true
		case fragment && due == 0:
			count, size, due = k.FragmentCount, k.PayloadLen, k.FragmentID
		}
		met, sequence = true, k.Sequence
		if due++; !fragment || due == count {
			due = 0
		}
		return false
	})
	return frame
}

// unevenFragments: all fragments of an endpoint have one size, except the last
// of a packet. So a receiver knows the position of each.
func unevenFragments(t *testing.T, v *view) (frame uint64) {
	size := 0
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindFragment || k.FragmentID == k.FragmentCount-1 {
			return false
		}
		if size > 0 && k.PayloadLen != size {
			frame = v.frames[i]
			return true
		}
		size = k.PayloadLen
		return false
	})
	return frame
}

// emptyFragment: the last fragment of a packet has what the others leave over, which is at
// least one byte.
func emptyFragment(t *testing.T, v *view) (frame uint64) {
	v.packets(t, func(i int, k *wire.Packet) bool {
		if v.sightings[i].own && k.Kind == wire.KindFragment && k.PayloadLen == 0 {
			frame = v.frames[i]
		}
		return frame > 0
	})
	return frame
}

// numbers unwraps sequences relative to the newest so far.
type numbers struct {
	met    bool
	newest int64
}

func (n *numbers) of(sequence uint32) int64 {
	if !n.met {
		return int64(sequence)
	}
	return n.newest + int64(int16(uint16(sequence)-uint16(n.newest)))
}

func (n *numbers) take(sequence uint32) int64 {
	q := n.of(sequence)
	if !n.met || q > n.newest {
		n.met, n.newest = true, q
	}
	return q
}

// acksAway holds away from the endpoint. Its headers, ordered by their numbers,
// are snapshots of a set that only grows. They ack nothing that did not pass
// the tap towards the endpoint before.
func acksAway(t *testing.T, v *view) (frame uint64) {
	type header struct {
		number, ack int64
		named       map[int64]bool
	}
	var peer, own numbers
	passed, cut := map[int64]bool{}, map[int64]bool{}
	first := int64(-1)
	var kept []header
	// holds reports whether a later header still acks what an earlier one did.
	holds := func(earlier, later *header) bool {
		if later.ack < earlier.ack {
			return false
		}
		for q := range earlier.named {
			if later.ack-q < 32 && !later.named[q] {
				return false
			}
		}
		return true
	}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own {
			q := peer.take(k.Sequence)
			if first < 0 {
				first = q
			}
			passed[q] = true
			if k.Kind == wire.KindFragment {
				cut[q] = true
			}
			return false
		}
		if !k.HasHeader {
			return false
		}
		h := header{own.take(k.Header.Sequence), peer.of(k.Header.Ack), map[int64]bool{}}
		if k.Header.Ack == 0xffff && k.Header.AckBits == 0 && h.ack < first+32 || !peer.met {
			return false // the header says that nothing was received
		}
		bad := h.ack > peer.newest
		for n := range int64(32) {
			if k.Header.AckBits>>n&1 == 0 {
				continue
			}
			h.named[h.ack-n] = true
			bad = bad || !passed[h.ack-n] && h.ack-n >= first
		}
		bad = bad || !h.named[h.ack] && passed[h.ack] && !cut[h.ack]
		for j := range kept {
			g := &kept[j]
			switch {
			case g.number < h.number:
				bad = bad || !holds(g, &h)
			case g.number > h.number:
				bad = bad || !holds(&h, g)
			}
		}
		if bad {
			frame = v.frames[i]
			return true
		}
		if kept = append(kept, h); len(kept) > 64 {
			kept = kept[1:]
		}
		return false
	})
	return frame
}

// acksNear checks the same at the endpoint with a naive model: sets of plain
// numbers, without a window. The packets that passed the tap wait in the
// endpoint's socket in that order. Its application may refuse packets.
func acksNear(t *testing.T, v *view) (frame uint64) {
	o := &headerOracle{
		complete: map[uint32]int{}, parts: map[uint32]map[int]bool{}, cut: map[uint32]bool{},
		accepted: map[uint32]bool{}, skipped: map[uint32]skip{}, read: -1,
	}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own {
			o.came(k)
		} else if k.HasHeader {
			frame = o.sent(v.frames[i], k.Header)
		}
		return frame > 0
	})
	return frame
}

type skip struct {
	frame uint64 // the frame of the header that omitted the packet
	at    int    // position of the packet in headerOracle.order
}

// headerOracle follows the headers of one side. Its runs are short: sequences
// never wrap.
type headerOracle struct {
	order    []uint32                // whole packets in order of arrival
	complete map[uint32]int          // position in order at which a packet was whole
	parts    map[uint32]map[int]bool // fragments that arrived
	cut      map[uint32]bool
	accepted map[uint32]bool
	skipped  map[uint32]skip
	read     int // position in order up to which all packets were read
	newest   int64
	spoken   bool
}

func (o *headerOracle) came(k *wire.Packet) {
	if k.Kind == wire.KindFragment {
		o.cut[k.Sequence] = true
		if o.parts[k.Sequence] == nil {
			o.parts[k.Sequence] = map[int]bool{}
		}
		o.parts[k.Sequence][k.FragmentID] = true
		if len(o.parts[k.Sequence]) < k.FragmentCount {
			return
		}
	}
	delete(o.skipped, k.Sequence) // another copy may be accepted now
	if i, ok := o.complete[k.Sequence]; !ok || i <= o.read && !o.accepted[k.Sequence] {
		o.complete[k.Sequence] = len(o.order)
	}
	o.order = append(o.order, k.Sequence)
}

// sent checks a header. It returns the wrong frame, or 0.
func (o *headerOracle) sent(frame uint64, h wire.Header) uint64 {
	if h.Ack == 0xffff && h.AckBits == 0 && !o.spoken {
		return 0
	}
	named := map[uint32]bool{}
	for n := range uint32(32) {
		if h.AckBits>>n&1 == 1 {
			named[(h.Ack-n)&0xffff] = true
		}
	}
	inRange := func(q uint32) bool { return (h.Ack-q)&0xffff < 32 }
	if o.spoken && int16(uint16(h.Ack)-uint16(o.newest)) < 0 {
		return frame
	}
	for q := range o.accepted {
		if inRange(q) && !named[q] {
			return frame // the header has forgotten an acked packet
		}
	}
	until := o.read
	bad := uint64(0)
	for q := range named {
		i, came := o.complete[q]
		switch {
		case o.accepted[q]:
		case !came:
			return frame
		case o.skipped[q].frame > 0: // the packet had arrived, and an earlier header omitted it
			if f := o.skipped[q].frame; bad == 0 || f < bad {
				bad = f
			}
		default:
			until = max(until, i)
		}
	}
	if bad > 0 {
		return bad
	}
	if !named[h.Ack] && !(o.cut[h.Ack] && len(o.parts[h.Ack]) > 0) {
		return frame
	}
	for i := o.read + 1; i <= until; i++ {
		q := o.order[i]
		if named[q] || o.accepted[q] {
			continue
		}
		if inRange(q) || int16(uint16(q)-uint16(h.Ack)) > 0 {
			o.skipped[q] = skip{frame, i}
		}
	}
	o.read = until
	for q := range named {
		o.accepted[q] = true
	}
	o.spoken, o.newest = true, int64(h.Ack)
	return 0
}
