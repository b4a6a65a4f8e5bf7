package analyze

import (
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

const (
	// chunkFrames and chunkBytes bound a chunk. It must be long beside what it costs to hand it on
	// (some microseconds), and short beside the caches of a processor.
	// Source: measured, of 64 to 2,048 frames, 512 and 1,024 take least time
	chunkFrames = 512
	chunkBytes  = 256 << 10
	// chunkUsual is for how many bytes a chunk has room at first: those of game traffic.
	// Source: bound, 128 bytes a frame
	chunkUsual = 128 * chunkFrames
	// usualLayers is for how many headers of a packet there is room at first.
	// Source: bound, Ethernet, a VLAN, IP and UDP
	usualLayers = 4
	// chunksAhead is how many chunks there are: shards may be that far apart.
	// Source: measured, with 512 frames, 16 chunks are no faster than 8
	chunksAhead = 8
)

// chunk is a run of consecutive frames with their bytes. It is filled, then tracked by each shard,
// and then its records are handed on.
type chunk struct {
	number  uint64          // of the run, from 0
	first   uint64          // position of its first frame in the capture
	extent                  // its frames so far
	begin   machine.Instant // time of the first frame of the capture
	frames  []capture.Frame
	ahead   bool             // the frames of one shard are decoded ahead
	packets []capture.Packet // of those that are decoded ahead, and of all if records are copied; nil if none
	places  []framePlace     // of each frame
	shards  []uint8          // of each frame
	bytes   []byte           // of the frames, if they are copied
	lent    [][]byte         // buffers of the source that it and later chunks need no more
	whole   int              // from that frame on one session takes all; count if none does
	alone   bool             // it does so from the first frame on
	parts   []part           // by shard
}

// framePlace is what a shard needs of a frame beside its bytes. It stands apart from the frame: a
// shard passes the frames of others without a look at them.
type framePlace struct {
	latest machine.Instant // the newest time of all frames before it
	before machine.Instant // time of the frame before it; of the first frame, its own
}

// part is what a shard made of a chunk.
type part struct {
	records   []keptRecord
	relayed   []relayedMessage
	events    []machine.Event
	anomalies []machine.Anomaly
	messages  []machine.Message
	spans     []capture.Span
	bytes     []byte
}

// keptRecord is a record that outlives the call of the sink.
type keptRecord struct {
	Record
	session int   // of the run
	frame   int   // within the chunk
	gone    *Flow // if not nil, this is no record: a limit removed that flow
	why     Reason
}

func newChunk(shards int) *chunk {
	return &chunk{
		frames: make([]capture.Frame, chunkFrames), places: make([]framePlace, chunkFrames),
		shards: make([]uint8, chunkFrames), parts: make([]part, shards),
	}
}

// decodes says whether the chunk keeps decoded packets. They take more memory than all else in it.
func (c *chunk) decodes(keeps bool) {
	switch {
	case !keeps:
		c.packets = nil
	case c.packets == nil:
		// One piece of memory for all: how many chunks a run fills, which the scheduler decides, then hardly
		// changes how often it allocates.
		c.packets = make([]capture.Packet, chunkFrames)
		spans, layers := make([]capture.Span, chunkFrames), make([]capture.Layer, usualLayers*chunkFrames)
		for i := range c.packets {
			from, to := usualLayers*i, usualLayers*(i+1)
			c.packets[i].Spans, c.packets[i].Layers = spans[i:i:i+1], layers[from:from:to]
		}
	}
}

// reset empties the chunk, and keeps its memory.
func (c *chunk) reset(number, first uint64) {
	c.number, c.first, c.extent = number, first, extent{}
	c.bytes, c.lent = c.bytes[:0], c.lent[:0]
	for i := range c.parts {
		p := &c.parts[i]
		clear(p.records)
		*p = part{
			p.records[:0], p.relayed[:0], p.events[:0], p.anomalies[:0], p.messages[:0], p.spans[:0], p.bytes[:0],
		}
	}
}

// take makes the frame that was read to the next place one of the chunk's. Its bytes are copied,
// unless they stay valid.
func (c *chunk) take(f *capture.Frame, copies bool) {
	c.add(f)
	if !copies {
		return
	}
	if c.bytes == nil {
		c.bytes = make([]byte, 0, chunkUsual)
	}
	f.Data = c.copy(f.Data)
	if len(f.Options) > 0 {
		f.Options = c.copy(f.Options)
	}
}

// copy keeps bytes. Where the chunk's memory must grow, earlier copies stay in the old one.
func (c *chunk) copy(b []byte) []byte {
	at := len(c.bytes)
	c.bytes = append(c.bytes, b...)
	return c.bytes[at:len(c.bytes):len(c.bytes)]
}

// keep copies a record of a frame.
func (p *part) keep(r *Record, session, frame int) {
	p.records = append(p.records, keptRecord{Record: *r, session: session, frame: frame})
	k := &p.records[len(p.records)-1]
	k.Events = keepAll(&p.events, r.Events)
	k.Anomalies = keepAll(&p.anomalies, r.Anomalies)
	k.Messages = keepAll(&p.messages, r.Messages)
	for i := range k.Messages {
		m := &k.Messages[i]
		m.Body, m.Data = keepAll(&p.bytes, m.Body), keepAll(&p.bytes, m.Data)
	}
	k.Spans = keepAll(&p.spans, r.Spans)
	if r.Message || r.Packet == nil {
		k.Datagram.Bytes = keepAll(&p.bytes, r.Datagram.Bytes)
	}
	if q := r.Quoted; q != nil {
		c := *q
		k.Quoted = &c
	}
}

// keepAll copies a list to the end of another one. An empty list stays what it is.
func keepAll[T any](to *[]T, from []T) []T {
	if len(from) == 0 {
		return from
	}
	at := len(*to)
	*to = append(*to, from...)
	return (*to)[at:len(*to):len(*to)]
}

// toPass reports whether there is anything to hand on.
func (c *chunk) toPass() bool {
	records, relayed := c.made()
	return records || relayed || c.whole < c.count
}

// made reports whether shards made records of the chunk, and whether they noted messages in it that
// may be relayed.
func (c *chunk) made() (records, relayed bool) {
	for i := range c.parts {
		records = records || len(c.parts[i].records) > 0
		relayed = relayed || len(c.parts[i].relayed) > 0
	}
	return records, relayed
}
