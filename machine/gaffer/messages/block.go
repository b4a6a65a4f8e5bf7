package messages

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

const (
	// TransferMost is how many bytes of one block are kept.
	// Source: bound, the bytes of a block that are kept
	TransferMost = 1 << 20
	// blockStall is how long a transfer must go without a fragment that is new to its
	// receiver to count as stalled.
	// Source: definition, block-stalled: a block stalls after a second without a new fragment
	blockStall = time.Second
)

// transfer is a block message on its way. Each fragment is sent again until a packet
// that carried it is acked. A packet carries at most one fragment of a channel.
type transfer struct {
	parts    []part
	arrived  int
	acked    int
	bytes    int // of the fragments that passed the tap
	complete bool
	progress machine.Instant // when a fragment last arrived that the receiver did not have
	longest  time.Duration   // between two of those
	begun    machine.Instant
	resends  int
	last     machine.Instant
	lastRef  machine.Ref
	came     Receipt // of all fragments that have arrived
}

type part struct {
	data           []byte
	attempts       int
	arrived, acked bool
	at             machine.Instant // of the first packet that carried it
	sequence       uint32
}

// carry records that a packet carries a fragment.
func (b *transfer) carry(index int, data []byte, k *Carrier) {
	p := &b.parts[index]
	if p.attempts == 0 {
		if b.bytes+len(data) <= TransferMost {
			p.data = append([]byte(nil), data...)
		}
		b.bytes += len(data)
		p.at, p.sequence = k.At, k.Sequence
	} else {
		b.resends++
	}
	p.attempts++
	b.last, b.lastRef = k.At, k.Ref
	if b.begun == 0 {
		b.begun, b.progress = k.At, k.At
	}
}

// arrive records that a packet arrived that carried a fragment, and r when.
func (b *transfer) arrive(index int, e *machine.Event, r Receipt, whole machine.Instant) {
	p := &b.parts[index]
	if p.arrived {
		return
	}
	p.arrived = true
	b.came = b.came.with(r.of(e, p.sequence, p.at, whole).atMost(e.Certainty))
	b.longest = max(b.longest, e.At.Sub(b.progress))
	b.progress = e.At
	if b.arrived++; b.arrived == len(b.parts) {
		b.complete = true
	}
}

func (b *transfer) ack(index int) {
	if p := &b.parts[index]; !p.acked {
		p.acked = true
		b.acked++
	}
}

func (b *transfer) allAcked() bool { return b.acked == len(b.parts) }

// data returns the block. It returns nil if a fragment did not pass the tap.
func (b *transfer) data() []byte {
	out := make([]byte, 0, min(b.bytes, TransferMost))
	for i := range b.parts {
		if b.parts[i].data == nil {
			return nil
		}
		out = append(out, b.parts[i].data...)
	}
	return out
}

// stalled reports a transfer that made no progress for blockStall or longer.
func (b *transfer) stalled(c *Lane, l *life, out *machine.Effects) {
	longest := b.longest
	if !b.complete {
		longest = max(longest, b.last.Sub(b.progress))
	}
	if longest >= blockStall {
		out.At(b.last, b.lastRef).Report(BlockStalled, c.From, c.atMost(machine.Certain), l.sends.frames[0],
			longest.Seconds(), float64(b.arrived), float64(len(b.parts)))
	}
}

func (b *transfer) clone() *transfer {
	c := *b
	c.parts = append([]part(nil), b.parts...)
	return &c
}
