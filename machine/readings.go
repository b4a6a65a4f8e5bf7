package machine

// Readings is the evidence for two ways to read the same packets: reading 0 and reading
// 1. For example, bit 0 of Gaffer's ack_bits is ack itself in one dialect, and the packet
// before it in another. Nothing else in a packet differs.
type Readings struct {
	Broken [2][2]uint32 // packets that no correct endpoint of that reading writes, by side and reading
	Differ bool         // the readings say different things about a packet that was lost
}

// readingShown is by how many more packets one reading must be broken than the other. A
// single datagram can be damaged or forged.
// Source: law, a correct endpoint writes no packet that breaks its own reading
const readingShown = 2

// Shows reports whether the packets show that a reading is right, and the other is not.
func (e *Readings) Shows(reading int) bool { return e.lead(reading) >= readingShown }

// Doubts reports whether the packets speak against a reading, and for the other: a single
// one is enough.
func (e *Readings) Doubts(reading int) bool { return e.lead(1-reading) > 0 }

// Disputed reports whether the packets of one side break one reading, and those of the
// other side break the other.
func (e *Readings) Disputed() bool {
	a, b := e.Broken[A], e.Broken[B]
	return a[0] > a[1] && b[1] > b[0] || a[1] > a[0] && b[0] > b[1]
}

// lead returns how many more packets break the other reading than this one. It is 0 if the
// sides disagree. The fault of one endpoint can look like the other reading, but its peer
// then contradicts it.
func (e *Readings) lead(reading int) (packets int) {
	for _, broken := range e.Broken {
		if broken[reading] > broken[1-reading] {
			return 0
		}
		packets += int(broken[1-reading] - broken[reading])
	}
	return packets
}

// AmongOpen returns the certainty of a fact, given whether the behaviours that are still
// open agree on it. It is the one rule for doubt about a version: where they disagree, the
// fact is likely at most. For example, some releases of a library drop a second copy and
// others deliver it. While both are open, it is likely that the copy was dropped.
func AmongOpen(c Certainty, agree bool) Certainty {
	if agree {
		return c
	}
	return min(c, Likely)
}
