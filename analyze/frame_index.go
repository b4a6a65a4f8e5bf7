package analyze

import "github.com/ackscope/ackscope/machine"

// entry is one frame, in 24 bytes. The entries of one flow are linked
// backwards.
type entry struct {
	offset   int64
	flow     uint32 // number of the flow; 0 if none
	previous uint32 // 1 + the previous entry of the same flow; 0 for the first
	settled  uint32 // 1 + the entry whose packet settled the fate of this one; 0 while open
	marks    Marks
}

// Marks are what a pass over the capture recorded about a frame. They are the
// fate of its packet, what its packet settled, and its most severe finding.
type Marks uint32

const (
	marksKinds    = 18 // bits 0-16: kinds of events settled here, 1 << kind; 17: a protocol's own kind
	markOwnKind   = Marks(1) << 17
	marksFate     = 20 // bits 20-21
	marksSeverity = 22 // bits 22-23: 1 + severity
	markFromB     = Marks(1) << 24
	markDuplicate = Marks(1) << 25
)

// Fate is the fate of a frame's packet, as its sender learned it.
type Fate uint8

const (
	FateOpen Fate = iota
	FateAcked
	FateLost
)

// Fate returns the fate of the frame's packet.
func (m Marks) Fate() Fate { return Fate(m >> marksFate & 3) }

// Has reports whether an event of kind k was settled at the frame.
func (m Marks) Has(k machine.EventKind) bool { return m&kindMark(k) != 0 }

// Changes reports whether the frame settled more than that it was sent and
// received, or has a finding.
func (m Marks) Changes() bool {
	return m&(1<<marksKinds-1)&^(kindMark(machine.EventSent)|kindMark(machine.EventReceived)|
		kindMark(machine.EventRegraded)) != 0 || m>>marksSeverity&3 != 0
}

// Severity returns the highest severity of a finding at the frame. It returns
// false if there is no finding.
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

// frameIndex holds entries in pages, so that growth neither moves nor wastes
// memory.
type frameIndex struct {
	pages [][]entry
	n     int
}

const (
	pageBits = 14
	pageSize = 1 << pageBits
)

func (b *frameIndex) len() int { return b.n }

func (b *frameIndex) at(n uint32) *entry { return &b.pages[n>>pageBits][n&(pageSize-1)] }

func (b *frameIndex) add(e entry) {
	if b.n>>pageBits == len(b.pages) {
		b.pages = append(b.pages, make([]entry, pageSize))
	}
	*b.at(uint32(b.n)) = e
	b.n++
}
