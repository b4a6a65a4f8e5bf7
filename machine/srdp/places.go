package srdp

import (
	"slices"
	"unsafe"
)

// Places finds by its id what is kept in a list: it maps ids to places. It grows with use. The zero Places is
// empty and ready.
//
//   - len(slots) is 0 or a power of two, and at most half of the slots are taken
type Places struct {
	slots []uint64 // by hash of the id, with linear probing: the place plus one, then the 16 bits of the id; 0 if free
	count int
}

const (
	// firstPlaces is how many slots a Places has when it is first used.
	// Source: bound, the first size of an index
	firstPlaces = 8
	// idBits is the size of an id in a slot, in bits.
	// Source: law, ids of 16 bits with their mark
	idBits = 16
)

// Home returns the slot of an index at which the search for an id starts. It scatters consecutive ids. In adjacent
// slots they would form one long run, which each removal would have to walk.
func Home(id uint16, mask int) int { return int(uint32(id)*2654435769>>16) & mask }

// Len returns how many ids have a place.
func (p *Places) Len() int { return p.count }

// Find returns the place of an id, or -1.
func (p *Places) Find(id uint16) int {
	if p.count == 0 {
		return -1
	}
	return int(p.slots[p.slot(id)]>>idBits) - 1
}

// slot returns the slot of an id, or the free one that it would take.
func (p *Places) slot(id uint16) int {
	mask := len(p.slots) - 1
	i := Home(id, mask)
	for p.slots[i] != 0 && uint16(p.slots[i]) != id {
		i = (i + 1) & mask
	}
	return i
}

// Set gives an id a place, instead of the one that it may have had.
func (p *Places) Set(id uint16, place int) {
	if 2*p.count >= len(p.slots) {
		p.grow()
	}
	slot := &p.slots[p.slot(id)]
	if *slot == 0 {
		p.count++
	}
	*slot = uint64(place+1)<<idBits | uint64(id)
}

func (p *Places) grow() {
	old := p.slots
	p.slots = make([]uint64, max(firstPlaces, 2*len(old)))
	for _, taken := range old {
		if taken != 0 {
			p.slots[p.slot(uint16(taken))] = taken
		}
	}
}

// Remove takes an id out, and closes the gap in the runs that cross it. It must have a place.
func (p *Places) Remove(id uint16) {
	mask := len(p.slots) - 1
	i := p.slot(id)
	for j := i; ; {
		j = (j + 1) & mask
		if p.slots[j] == 0 {
			break
		}
		// The entry at j may move to i unless its home lies between them.
		if first := Home(uint16(p.slots[j]), mask); (j-first)&mask >= (j-i)&mask {
			p.slots[i] = p.slots[j]
			i = j
		}
	}
	p.slots[i] = 0
	p.count--
}

// Clone returns an independent copy.
func (p *Places) Clone() Places { return Places{slices.Clone(p.slots), p.count} }

// Size returns the bytes of memory that the slots use.
func (p *Places) Size() int { return cap(p.slots) * int(unsafe.Sizeof(uint64(0))) }
