package gaffer

import (
	"github.com/ackscope/ackscope/wire/bits"
)

// Append appends the connection packet that p describes. It copies bodies, blocks and
// fragments from source, at the positions in p. Here source is the packet that Parse read p
// from, or a buffer that holds them. Values are not checked. One that does not fit its
// field is cut to the field's width.
func (y *Yojimbo) Append(to []byte, p *ConnectionPacket, source []byte) []byte {
	w := connectionWriter{y: y, source: source, w: bits.NewWriter(to)}
	w.w.Bits(uint64(len(p.Entries)), y.plan.entries)
	for i := range p.Entries {
		w.entry(p, &p.Entries[i])
	}
	w.w.Align()
	return w.w.Data()
}

type connectionWriter struct {
	y      *Yojimbo
	source []byte
	w      bits.Writer
}

func (w *connectionWriter) entry(p *ConnectionPacket, e *ChannelEntry) {
	w.w.Bits(uint64(e.Channel), w.y.plan.channel)
	config, plan := &w.y.Channels[e.Channel], &w.y.plan.channels[e.Channel]
	if e.Block {
		w.w.Bits(1, 1)
		f := &e.Fragment
		w.w.Bits(uint64(f.ID), 16)
		w.w.Bits(uint64(f.Count-1), plan.fragments)
		w.w.Bits(uint64(f.Index), bits.Required(0, uint64(f.Count-1)))
		w.w.Bits(uint64(f.Size-1), plan.size)
		w.w.Bytes(w.source[f.Offset : f.Offset+f.Size])
		if f.Index == 0 {
			w.message(f.Type, f.Body, f.End)
		}
		return
	}
	w.w.Bits(0, 1)
	if e.Count == 0 {
		w.w.Bits(0, 1)
		return
	}
	w.w.Bits(1, 1)
	w.w.Bits(uint64(e.Count-1), plan.count)
	messages := p.Messages[e.First : e.First+e.Count]
	if config.Type == ReliableOrdered {
		w.w.Bits(uint64(messages[0].ID), 16)
		for i := range messages[1:] {
			w.relative(messages[i].ID, messages[i+1].ID)
		}
	}
	for i := range messages {
		m := &messages[i]
		w.message(m.Type, m.Body, m.End)
		if config.Type == UnreliableUnordered && w.y.CarriesBlock(m.Type) {
			w.w.Bits(uint64(m.BlockLen-1), plan.size)
			w.w.Bytes(w.source[m.BlockOffset : m.BlockOffset+m.BlockLen])
		}
	}
}

// relative writes an id as its distance from the previous one.
func (w *connectionWriter) relative(before, id uint16) {
	step := uint32(id - before)
	if step == 0 {
		step = 1 << 16
	}
	if step == 1 {
		w.w.Bits(1, 1)
		return
	}
	w.w.Bits(0, 1)
	for _, s := range relativeSteps {
		if step <= s.most {
			w.w.Bits(1, 1)
			w.w.Bits(uint64(step-s.least), s.bits)
			return
		}
		w.w.Bits(0, 1)
	}
}

func (w *connectionWriter) message(kind uint32, body, end int) {
	w.w.Bits(uint64(kind), w.y.plan.kind)
	var r bits.Reader
	r.Reset(w.source, body)
	for left := end - body; left > 0; {
		n := min(left, 64)
		v, _ := r.Bits(n)
		w.w.Bits(v, n)
		left -= n
	}
}
