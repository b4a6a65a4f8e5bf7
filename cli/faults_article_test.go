package cli

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// articleOracles say what can be known of the faults of the article series' programs:
// slices, fragments and the handshake.
var articleOracles = map[string]oracles{
	"slice-resent-early":   {slicesSoon, explained},
	"slice-order-reversed": {slicesOutOfOrder, explained}, // away: the slices before were lost
	"slice-count-differs":  {sliceCounts, sliceCounts},
	"slice-changed":        {sliceContents, sliceContents},
	"block-early":          {blocksNear, blocksAway},
	"block-skipped":        {blocksNear, blocksAway},
	"slice-ack-reversed":   {sliceAcksNear, sliceAcksAway},
	"slice-ack-gaps":       {sliceAcksNear, sliceAcksAway},
	"slice-ack-forgets":    {sliceAcksNear, sliceAcksAway},
	"slice-ack-early":      {sliceAcksSoon, explained},

	"fragment-order-reversed": {brokenFragments, explained}, // away: fragments overtake each other
	"fragment-count-differs":  {packetsAlike, packetsAlike},
	"fragment-number-differs": {firstOf(packetsAlike, fragmentNumbers), firstOf(packetsAlike, fragmentNumbers)},
	"packet-too-large":        {packetSizes, packetSizes},
	"fragment-needless":       {packetSizes, packetSizes},
	"packet-skipped":          {packetNumbers, explained}, // away: the numbers between were lost
	"packet-repeated":         {packetNumbers, packetsAlike},

	"connect-early":            {connectTimes, explained},
	"connect-keep-alive-early": {connectTimes, explained},
	"connect-timeout-ignored":  {connectTimes, explained},
	"connect-farewells":        {connectOrder, explained}, // away: the network doubles packets
	"connect-after-farewell":   {connectOrder, explained}, // away: packets overtake each other
	"connect-asks-on":          {connectOrder, explained},
	"connect-salts-combined":   {connectSalts, explained}, // away: the challenge may be the wrong packet
	"connect-salts-swapped":    {connectClient, between(connectSalts)},
	"connect-unanswered":       {connectAnswers, between(connectAnswers)},
}

// between is an oracle of the tap half way. At the far tap the rule speaks of a packet
// that the peer at the tap did not send. So that peer may be the one that is wrong.
func between(rule oracle) oracle {
	return func(t *testing.T, v *view) uint64 {
		if v.at == tapFar {
			return 0
		}
		return rule(t, v)
	}
}

const (
	// sampleTime is the article's least time between two sends of a slice, two acks of
	// slices, and two requests or responses.
	sampleTime = 100 * time.Millisecond
	// sampleClock is how much sooner the sample may send: it asks its clock once a frame.
	sampleClock = 20 * time.Millisecond
	// sampleSize is the most bytes of a datagram that is no fragment.
	sampleSize = 1024
	// joined is how many blocks behind the first one may have begun before the capture,
	// where slices overtake each other.
	joined = 2
)

// sliceKey is one slice.
type sliceKey struct {
	chunk uint16
	id    int
}

// slicesSoon: a slice goes out again after 100 ms at the soonest.
func slicesSoon(t *testing.T, v *view) (frame uint64) {
	last := map[sliceKey]machine.Instant{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindSlice {
			return false
		}
		key, at := sliceKey{k.Chunk, k.SliceID}, v.sightings[i].at
		was, ok := last[key]
		last[key] = at
		if ok && at.Sub(was) < sampleTime-sampleClock {
			frame = v.frames[i]
		}
		return frame > 0
	})
	return frame
}

// slicesOutOfOrder: a block begins with slice 0. The capture may begin within a block.
func slicesOutOfOrder(t *testing.T, v *view) (frame uint64) {
	met := map[uint16]bool{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindSlice {
			return false
		}
		if !met[k.Chunk] && len(met) > 0 && k.SliceID != 0 {
			frame = v.frames[i]
		}
		met[k.Chunk] = true
		return frame > 0
	})
	return frame
}

// sliceCounts: all slices of a block name one count.
func sliceCounts(t *testing.T, v *view) (frame uint64) {
	counts := map[uint16]int{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindSlice {
			return false
		}
		if n, ok := counts[k.Chunk]; ok && n != k.SliceCount {
			frame = v.frames[i]
		}
		counts[k.Chunk] = k.SliceCount
		return frame > 0
	})
	return frame
}

// sliceContents: the copies of a slice are the same.
func sliceContents(t *testing.T, v *view) (frame uint64) {
	first := map[sliceKey][]byte{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindSlice {
			return false
		}
		key, data := sliceKey{k.Chunk, k.SliceID}, v.sightings[i].b[k.PayloadOffset:k.PayloadOffset+k.PayloadLen]
		if was, ok := first[key]; ok && !bytes.Equal(was, data) {
			frame = v.frames[i]
		}
		first[key] = data
		return frame > 0
	})
	return frame
}

// blocksNear: a block begins once an ack of all slices of the block before has come.
func blocksNear(t *testing.T, v *view) uint64 { return blocksBegin(t, v, true) }

// blocksAway: the same, as far as it shows: all slices of the block before passed.
func blocksAway(t *testing.T, v *view) uint64 { return blocksBegin(t, v, false) }

func blocksBegin(t *testing.T, v *view, near bool) (frame uint64) {
	first, newest, count := -1, -1, 0
	passed, acked := map[sliceKey]bool{}, map[int]bool{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		chunk := int(k.Chunk)
		if !v.sightings[i].own {
			all := k.Kind == wire.KindSliceAck
			for n := range k.SliceCount {
				all = all && k.SliceCame(n)
			}
			if all {
				acked[chunk] = true
			}
			return false
		}
		if k.Kind != wire.KindSlice {
			return false
		}
		if newest >= 0 && chunk > newest {
			whole := acked[newest] && near
			if !near {
				whole = true
				for n := range count {
					whole = whole && passed[sliceKey{uint16(newest), n}]
				}
			}
			if (chunk > newest+1 || !whole) && (near && newest > first || newest > first+joined) {
				frame = v.frames[i]
			}
		}
		if first < 0 {
			first = chunk
		}
		if chunk >= newest {
			newest, count = chunk, k.SliceCount
		}
		passed[sliceKey{k.Chunk, k.SliceID}] = true
		return frame > 0
	})
	return frame
}

// sliceAcksNear: an ack names slices that came, and all that an earlier ack of the block
// named.
func sliceAcksNear(t *testing.T, v *view) uint64 { return sliceAcks(t, v, true) }

// sliceAcksAway: of two acks of a block one has all that the other has; they may have
// overtaken each other. What they name passed, unless it passed before the capture.
func sliceAcksAway(t *testing.T, v *view) uint64 { return sliceAcks(t, v, false) }

func sliceAcks(t *testing.T, v *view, near bool) (frame uint64) {
	first := -1
	passed := map[sliceKey]bool{}
	said := map[uint16][]*wire.Packet{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		switch {
		case !v.sightings[i].own && k.Kind == wire.KindSlice:
			if first < 0 {
				first = int(k.Chunk)
			}
			passed[sliceKey{k.Chunk, k.SliceID}] = true
		case v.sightings[i].own && k.Kind == wire.KindSliceAck:
			for n := range k.SliceCount {
				never := k.SliceCame(n) && !passed[sliceKey{k.Chunk, n}]
				if never && (near || int(k.Chunk) > first+joined) {
					frame = v.frames[i]
				}
			}
			for _, was := range said[k.Chunk] {
				lacks, adds := false, false
				for n := range k.SliceCount {
					lacks = lacks || was.SliceCame(n) && !k.SliceCame(n)
					adds = adds || k.SliceCame(n) && !was.SliceCame(n)
				}
				if lacks && (near || adds) {
					frame = v.frames[i]
				}
			}
			kept := *k
			said[k.Chunk] = append(said[k.Chunk], &kept)
		}
		return frame > 0
	})
	return frame
}

// sliceAcksSoon: acks go out every 100 ms at most.
func sliceAcksSoon(t *testing.T, v *view) (frame uint64) {
	last, some := machine.Instant(0), false
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own || k.Kind != wire.KindSliceAck {
			return false
		}
		if at := v.sightings[i].at; some && at.Sub(last) < sampleTime-sampleClock {
			frame = v.frames[i]
		}
		last, some = v.sightings[i].at, true
		return frame > 0
	})
	return frame
}

// packetsAlike: what bears the number of a packet is that packet: whole, or fragments
// that name one count, and the same bytes again.
func packetsAlike(t *testing.T, v *view) (frame uint64) {
	counts, contents := map[uint32]int{}, map[sliceKey][]byte{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own {
			return false
		}
		count, key := 0, sliceKey{uint16(k.Sequence), -1}
		if k.Kind == wire.KindFragment {
			count, key.id = k.FragmentCount, k.FragmentID
		}
		if n, ok := counts[k.Sequence]; ok && n != count {
			frame = v.frames[i]
		}
		if was, ok := contents[key]; ok && !bytes.Equal(was, v.sightings[i].b) {
			frame = v.frames[i]
		}
		counts[k.Sequence], contents[key] = count, v.sightings[i].b
		return frame > 0
	})
	return frame
}

// fragmentNumbers: the first fragment of a packet begins with that packet's own header,
// a checksum and its number.
func fragmentNumbers(t *testing.T, v *view) (frame uint64) {
	v.packets(t, func(i int, k *wire.Packet) bool {
		if v.sightings[i].own && k.Kind == wire.KindFragment && k.FragmentID == 0 &&
			uint32(binary.LittleEndian.Uint16(v.sightings[i].b[k.PayloadOffset+4:])) != k.Sequence {
			frame = v.frames[i]
		}
		return frame > 0
	})
	return frame
}

// packetSizes: what is larger than a fragment leaves in fragments, and nothing else does.
func packetSizes(t *testing.T, v *view) (frame uint64) {
	v.packets(t, func(i int, k *wire.Packet) bool {
		if v.sightings[i].own && (k.Kind == wire.KindFragment && k.FragmentCount == 1 ||
			k.Kind == wire.KindRegular && len(v.sightings[i].b) > sampleSize) {
			frame = v.frames[i]
		}
		return frame > 0
	})
	return frame
}

// packetNumbers: at the endpoint the number of a packet is one more than that of the
// packet before.
func packetNumbers(t *testing.T, v *view) (frame uint64) {
	last, left := int64(-1), 0
	v.packets(t, func(i int, k *wire.Packet) bool {
		switch {
		case !v.sightings[i].own:
			return false
		case left > 0:
			left--
			return false
		case last >= 0 && int64(k.Sequence) != (last+1)&0xffff:
			frame = v.frames[i]
		}
		last = int64(k.Sequence)
		if k.Kind == wire.KindFragment {
			left = k.FragmentCount - 1 - k.FragmentID
		}
		return frame > 0
	})
	return frame
}
