package messages

import wire "github.com/ackscope/ackscope/wire/gaffer"

// Assembler joins the fragments of reliable's packets as they pass the tap. It is only
// about the bytes. State answers which packets an endpoint accepted.
type Assembler struct {
	entries [assembled]assembly
	bytes   int // held by all entries
}

// Bounds of what an Assembler holds.
const (
	// assembled is how many packets an Assembler puts together at one time. reliable's own
	// table holds as many.
	// Source: bound, the packets that are put together at one time
	assembled = 64
	// assembledMost is how many bytes of fragments an Assembler holds at most.
	// Source: bound, the bytes of the fragments that are held
	assembledMost = 2 << 20
)

type assembly struct {
	sequence uint32
	missing  int
	live     bool
	started  uint64 // order in which assemblies started, to find the oldest
	parts    [][]byte
	bytes    int
}

// Add takes a datagram and returns the packet's payload once it is whole. For a regular
// packet that is at once, and the payload aliases data. For a fragmented packet it is
// with the last missing fragment, in new memory. The argument data is what follows the
// header.
func (a *Assembler) Add(pk *wire.Packet, data []byte) (payload []byte, whole bool) {
	if pk.Kind != wire.KindFragment {
		return data, true
	}
	e := &a.entries[pk.Sequence%assembled]
	if e.live && e.sequence != pk.Sequence || e.live && len(e.parts) != pk.FragmentCount {
		a.drop(e)
	}
	if !e.live {
		*e = assembly{
			sequence: pk.Sequence, live: true, missing: pk.FragmentCount, parts: make([][]byte, pk.FragmentCount),
			started: a.newest() + 1,
		}
	}
	if e.parts[pk.FragmentID] != nil {
		return nil, false
	}
	e.parts[pk.FragmentID] = append(make([]byte, 0, len(data)), data...)
	e.missing--
	e.bytes += len(data)
	a.bytes += len(data)
	if e.missing > 0 {
		for a.bytes > assembledMost {
			a.drop(a.oldest())
		}
		return nil, false
	}
	payload = make([]byte, 0, e.bytes)
	for _, p := range e.parts {
		payload = append(payload, p...)
	}
	a.drop(e)
	return payload, true
}

func (a *Assembler) drop(e *assembly) {
	a.bytes -= e.bytes
	*e = assembly{}
}

func (a *Assembler) newest() (n uint64) {
	for i := range a.entries {
		n = max(n, a.entries[i].started)
	}
	return n
}

func (a *Assembler) oldest() *assembly {
	best := -1
	for i := range a.entries {
		if a.entries[i].live && (best < 0 || a.entries[i].started < a.entries[best].started) {
			best = i
		}
	}
	return &a.entries[best]
}

// Clone returns an independent copy; the fragments themselves never change.
func (a *Assembler) Clone() Assembler {
	c := *a
	for i := range c.entries {
		c.entries[i].parts = append([][]byte(nil), c.entries[i].parts...)
	}
	return c
}

// Size returns the approximate size of a clone, in bytes.
func (a *Assembler) Size() int { return assembled*80 + a.bytes }
