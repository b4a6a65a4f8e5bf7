package analyze

import (
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// cacheLines keeps apart what different goroutines write for each frame. A cache line that two cores
// write goes from one to the other each time.
// Source: law, lines of 64 bytes, which some processors load in pairs
type cacheLines [128]byte

// intake reads for the shards of a run.
type intake struct {
	_      cacheLines
	team   *team
	router router
	lent   bool     // frames keep the bytes of the source's buffers
	spare  [][]byte // of those buffers: what no chunk needs
	filled *chunk   // the chunk that it fills
	chunks uint64   // that it filled
	frames uint64   // that it read
	whole  bool     // one session takes all frames from here on
	apart  bool     // no shard's frames are decoded ahead any more
	// What it knows of the capture. For other goroutines it is valid when nothing more is read.
	first          machine.Instant // time of the first frame
	latest, before machine.Instant // the newest time, and that of the last frame
	sampled        bool            // the capture has samples of its host
	err            error           // how the source ended
	_              cacheLines
}

// swap keeps a buffer of the source until the chunk that is being filled has been read, and returns
// another one. Chunks are read in order: no earlier one needs the buffer then.
func (r *intake) swap(full []byte) []byte {
	r.filled.lent = append(r.filled.lent, full)
	if n := len(r.spare); n > 0 {
		b := r.spare[n-1]
		r.spare = r.spare[:n-1]
		if len(b) >= len(full) {
			return b
		}
	}
	return make([]byte, len(full))
}

// fill empties a chunk, and fills it with frames.
func (r *intake) fill(c *chunk) {
	t := r.team
	r.spare = append(r.spare, c.lent...)
	c.reset(r.chunks, r.frames)
	r.chunks++
	r.filled = c
	c.ahead = r.decodesAhead()
	c.decodes(c.ahead || t.copies)
	c.whole, c.alone = -1, r.whole
	if c.alone {
		c.whole = 0
	}
	for !c.full() {
		f := &c.frames[c.count]
		if r.err = t.source.Next(f); r.err != nil {
			break
		}
		if quotes := r.place(c, f); quotes && !r.whole {
			r.whole, c.whole, c.alone = true, c.count-1, c.count == 1
		}
		r.frames++
	}
	if c.ahead {
		t.lanes[decodedAhead].checkFragments()
	}
	c.begin = r.first
	if x, ok := t.source.(Hosted); ok && !x.Host().Empty() {
		r.sampled = true
		t.refused.Store(true)
	}
	if c.whole < 0 {
		c.whole = c.count
	}
}

// place gives the frame that was just read to a shard, and keeps its bytes. It reports whether it is
// an ICMP error.
func (r *intake) place(c *chunk, f *capture.Frame) (quotes bool) {
	n := c.count
	if c.first == 0 && n == 0 {
		r.first, r.latest, r.before = f.At, f.At, f.At
	}
	shard, quotes := r.router.shardOf(f) // before the copy: bytes that were just written are slow to read
	c.take(f, !r.lent)
	if c.ahead && shard == decodedAhead {
		r.team.decodeTo(c, n, shard)
	}
	c.places[n], c.shards[n] = framePlace{r.latest, r.before}, shard
	r.latest, r.before = max(r.latest, f.At), f.At
	return quotes
}
