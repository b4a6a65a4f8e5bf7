package replay

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// copiesAtTap tells a datagram that the tap captured twice from one that was sent twice, where
// the packet has no identification to tell it by. An endpoint does not send the same bytes
// again within microseconds.
type copiesAtTap struct {
	last map[copyKey]lastDatagram
}

type copyKey struct {
	flow int
	from machine.Side
}

type lastDatagram struct {
	hash uint64
	at   machine.Instant
}

// forget drops what is kept of a flow.
func (t *copiesAtTap) forget(f *analyze.Flow) {
	delete(t.last, copyKey{f.ID, machine.A})
	delete(t.last, copyKey{f.ID, machine.B})
}

const copyWindow = 250 * time.Microsecond

func (t *copiesAtTap) isCopy(rec *analyze.Record) bool {
	d := &rec.Datagram
	if rec.Packet == nil || rec.Packet.IPID != 0 || rec.Message {
		return false
	}
	if t.last == nil {
		t.last = map[copyKey]lastDatagram{}
	}
	key, now := copyKey{rec.Flow.ID, d.From}, lastDatagram{machine.Digest(0, d.Bytes), d.At}
	was, ok := t.last[key]
	t.last[key] = now
	return ok && was.hash == now.hash && now.at.Sub(was.at).Abs() <= copyWindow
}
