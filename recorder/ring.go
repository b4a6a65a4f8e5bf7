package recorder

import "github.com/ackscope/ackscope/machine"

// ring holds the newest frames, in a fixed array of bytes and one of slots.
type ring struct {
	data  []byte
	slots []slot
	from  int // of the oldest frame in data
	bytes int
	slot  int // the oldest
	used  int
	next  uint64 // number of the next frame
}

// slot describes a frame of the ring. Its options follow its data.
type slot struct {
	at, seen  machine.Instant // seen never runs backwards
	flow      uint64
	number    uint64
	size      int
	options   int
	device    int32
	link      uint32
	length    uint32
	bigEndian bool
}

// slotBytes is what one slot takes.
const slotBytes = 64

// newRing returns a ring of so many bytes in all. A frame of the usual 192 bytes fills both arrays evenly.
// Source: choice, the mean frame of the captures in testdata/pcaps has 120 to 200 bytes
func newRing(bytes int) ring {
	count := bytes / 4 / slotBytes
	return ring{slots: make([]slot, count), data: make([]byte, bytes-count*slotBytes)}
}

// fits reports whether a frame has room.
func (r *ring) fits(size int) bool { return r.used < len(r.slots) && r.bytes+size <= len(r.data) }

// add copies a frame and returns its number.
func (r *ring) add(f *Frame, now machine.Instant) uint64 {
	s := &r.slots[(r.slot+r.used)%len(r.slots)]
	*s = slot{
		at: f.At, seen: now, flow: f.Flow, number: r.next, size: len(f.Data), options: len(f.Options),
		device: int32(f.Interface), link: f.Link, length: uint32(f.Length), bigEndian: f.BigEndian,
	}
	r.put(f.Data)
	r.put(f.Options)
	r.used++
	r.next++
	return s.number
}

func (r *ring) put(b []byte) {
	n := copy(r.data[(r.from+r.bytes)%len(r.data):], b)
	copy(r.data, b[n:])
	r.bytes += len(b)
}

func (r *ring) oldest() *slot { return &r.slots[r.slot] }

func (r *ring) drop() {
	s := r.oldest()
	size := s.size + s.options
	r.from, r.bytes = (r.from+size)%len(r.data), r.bytes-size
	r.slot, r.used = (r.slot+1)%len(r.slots), r.used-1
}

func (r *ring) clear() { r.used, r.bytes = 0, 0 }

// each calls take for every frame, the oldest first, with its position in data.
func (r *ring) each(take func(s *slot, position int)) {
	position := r.from
	for i := range r.used {
		s := &r.slots[(r.slot+i)%len(r.slots)]
		take(s, position)
		position = (position + s.size + s.options) % len(r.data)
	}
}

// copy returns a copy of a frame, whose bytes it puts in b.
func (r *ring) copy(s *slot, position int, b []byte) Frame {
	n := copy(b, r.data[position:])
	copy(b[n:], r.data)
	return Frame{
		At: s.at, Flow: s.flow, Interface: int(s.device), Link: s.link, Length: int(s.length),
		Data: b[:s.size:s.size], Options: b[s.size:len(b):len(b)], BigEndian: s.bigEndian,
	}
}
