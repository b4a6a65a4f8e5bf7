package analyze

import "github.com/ackscope/ackscope/machine"

// entry is one frame: 24 bytes. Entries of one flow are chained backwards.
type entry struct {
	offset   int64
	flow     uint32 // number of the flow, 0 for none
	previous uint32 // 1 + the entry before it of the same flow; 0 for the first
	settled  uint32 // 1 + the entry whose packet settled what became of this one; 0 while open
	marks    Marks
}

// Marks is what a pass over the capture noted of a frame: what became of its
// packet, what its packet settled, and the gravest rule that found something.
type Marks uint32

const (
	marksKinds    = 18 // bits 0-16: kinds of events settled here, 1 << kind; 17: a protocol's own kind
	markOwnKind   = Marks(1) << 17
	marksFate     = 20 // bits 20-21
	marksSeverity = 22 // bits 22-23: 1 + severity
	markFromB     = Marks(1) << 24
	markDuplicate = Marks(1) << 25
)

// Fate is what became of a frame's packet, as its sender learned.
type Fate uint8

const (
	FateOpen Fate = iota
	FateAcked
	FateLost
)

// Fate returns what became of the frame's packet.
func (m Marks) Fate() Fate { return Fate(m >> marksFate & 3) }

// Has reports whether an event of a kind was settled at the frame.
func (m Marks) Has(k machine.EventKind) bool { return m&kindMark(k) != 0 }

// Changes reports whether the frame settled more than that it was sent and received.
func (m Marks) Changes() bool {
	return m&(1<<marksKinds-1)&^(kindMark(machine.EventSent)|kindMark(machine.EventReceived)|
		kindMark(machine.EventRegraded)) != 0 || m>>marksSeverity&3 != 0
}

// Severity returns the gravest finding at the frame; false for none.
func (m Marks) Severity() (machine.Severity, bool) {
	s := m >> marksSeverity & 3
	return machine.Severity(max(s, 1) - 1), s > 0
}

// From returns the side that sent the frame's datagram.
func (m Marks) From() machine.Side { return machine.Side(m >> 24 & 1) }

// Duplicate reports whether the tap captured the frame's datagram before.
func (m Marks) Duplicate() bool { return m&markDuplicate != 0 }

func kindMark(k machine.EventKind) Marks {
	if k >= machine.EventProtocol {
		return markOwnKind
	}
	return 1 << min(k, 16)
}

// book holds entries in pages, so that growing moves and wastes nothing.
type book struct {
	pages [][]entry
	n     int
}

const (
	pageBits = 14
	pageSize = 1 << pageBits
)

func (b *book) len() int { return b.n }

func (b *book) at(n uint32) *entry { return &b.pages[n>>pageBits][n&(pageSize-1)] }

func (b *book) add(e entry) {
	if b.n>>pageBits == len(b.pages) {
		b.pages = append(b.pages, make([]entry, pageSize))
	}
	*b.at(uint32(b.n)) = e
	b.n++
}
