package analyze

import "github.com/ackscope/ackscope/capture"

// decodedAhead is the shard whose frames are decoded when they are read. So two goroutines share
// the work on a capture of one pair of hosts.
const decodedAhead = 0

// A packet that is decoded ahead passes from one core to another. So that ends for good where the
// shards share the work well enough: where that shard has few of the frames.
const (
	// aheadShare and aheadOf are the share of frames from which they are decoded ahead.
	// Source: derived from profiles. Reading takes a fifth of the time of a frame. So a shard that
	// decodes and tracks five eighths of the frames does half of all work.
	aheadShare, aheadOf = 5, 8
	// aheadSample is how many frames show the share.
	// Source: bound, the frames of all chunks
	aheadSample = chunkFrames * chunksAhead
)

// decodesAhead reports whether frames of the next chunk are decoded ahead. After the chunk that
// ends this, the shard decodes its frames itself, with the same decoder.
func (r *intake) decodesAhead() bool {
	if !r.apart {
		share, of := r.router.load[decodedAhead], uint64(0)
		for _, n := range r.router.load {
			of += n
		}
		r.apart = of >= aheadSample && share*aheadOf < of*aheadShare
	}
	return !r.apart
}

// decodeTo decodes a frame of a chunk to its place there.
func (t *team) decodeTo(c *chunk, frame int, shard uint8) {
	p := &c.packets[frame]
	t.lanes[shard].decoder.Decode(&c.frames[frame], p)
	p.Own()
}

// decoded returns the packet of a frame of a chunk. It is own if only the caller reads it.
func (t *team) decoded(c *chunk, frame, shard int, own *capture.Packet) *capture.Packet {
	switch {
	case c.ahead && shard == decodedAhead:
	case t.copies:
		t.decodeTo(c, frame, uint8(shard))
	default:
		t.lanes[shard].decoder.Decode(&c.frames[frame], own)
		return own
	}
	return &c.packets[frame]
}
