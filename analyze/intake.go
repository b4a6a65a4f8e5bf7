package analyze

import (
	"io"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// cacheLines keeps apart what different goroutines write for each frame. A cache line that two cores
// write goes from one to the other each time.
// Source: law, lines of 64 bytes, which some processors load in pairs
type cacheLines [128]byte

// intake is the goroutine that reads for the shards of a run.
type intake struct {
	_      cacheLines
	team   *team
	router router
	made   int      // chunks
	lent   bool     // frames keep the bytes of the source's buffers
	spare  [][]byte // of those buffers: what no chunk needs
	filled *chunk   // the chunk that it fills
	apart  bool     // no shard's frames are decoded ahead any more
	// What it knows of the capture. For other goroutines it is valid when team.order is closed.
	first          machine.Instant // time of the first frame
	latest, before machine.Instant // the newest time, and that of the last frame
	sampled        bool            // the capture has samples of its host
	err            error           // how the source ended
	_              cacheLines
}

// take returns a chunk to fill, or nil if the caller has ended.
func (r *intake) take(number, first uint64) *chunk {
	t := r.team
	var c *chunk
	select {
	case c = <-t.free:
	default:
		if r.made < chunksAhead {
			r.made++
			c = newChunk(len(t.lanes))
			break
		}
		select {
		case c = <-t.free:
		case <-t.quit:
			return nil
		}
	}
	r.spare = append(r.spare, c.lent...)
	c.reset(number, first)
	r.filled = c
	return c
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

// read fills chunks and hands them on.
func (r *intake) read() {
	t := r.team
	defer close(t.order)
	defer func() {
		for _, n := range t.lanes {
			close(n.in)
		}
	}()
	if x, ok := t.source.(Lender); ok {
		r.lent = x.Lend(r.swap)
		defer x.Lend(nil)
	}
	hosted, _ := t.source.(Hosted)
	whole := false // one session takes all frames from here on
	n := uint64(0) // frames
	for number := uint64(0); r.err == nil && !t.refused.Load(); number++ {
		c := r.take(number, n)
		if c == nil {
			return
		}
		c.whole, c.ahead = -1, r.decodesAhead()
		c.decodes(c.ahead || t.copies)
		if whole {
			c.whole = 0
		}
		for !c.full() {
			f := &c.frames[c.count]
			if r.err = t.source.Next(f); r.err != nil {
				break
			}
			if quotes := r.place(c, f); quotes && !whole {
				whole, c.whole = true, c.count-1
			}
			n++
		}
		c.begin = r.first
		if hosted != nil && !hosted.Host().Empty() {
			r.sampled = true
			t.refused.Store(true)
		}
		handed := c.whole != 0
		if c.whole < 0 {
			c.whole = c.count
		}
		r.send(c, handed)
	}
	if r.err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
		r.err = nil
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

// send hands a chunk on: to the shards, unless one session takes it all.
func (r *intake) send(c *chunk, shards bool) {
	t := r.team
	if shards {
		c.open.Store(int32(len(t.lanes)))
		for _, n := range t.lanes {
			n.in <- c
		}
	} else {
		c.ready <- struct{}{}
	}
	t.order <- c
}
