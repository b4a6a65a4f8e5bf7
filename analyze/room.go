package analyze

import "github.com/ackscope/ackscope/capture"

// Whether a datagram of an answered flow is held whole depends on how much all such flows hold.
// Shards are at different frames, and so cannot add up what they hold now. But no shard is more
// than chunksAhead chunks behind another. So what counts is what all of them held that many chunks
// before:
//
//	chunk 0   1   2   3   4   5   6   7   8   9
//	      '------ total after chunk 0 ----^   decides for chunk 8
//	          '------ total after chunk 1 ----^   decides for chunk 9
//
// A session with all flows counts its frames by chunks too, so that it holds the same. In between,
// flows hold at most what these chunks contain.

// heldTotals has the bytes that answered flows of a session held after each of the last chunks, by
// number. While one shard reads what counts for it, another may be chunksAhead chunks further.
type heldTotals [2 * chunksAhead]int

// extent is how much of a chunk has been read.
type extent struct{ count, size int } // frames, and their bytes

// full reports whether there is no room for a further frame.
func (e *extent) full() bool { return e.count == chunkFrames || e.size >= chunkBytes }

func (e *extent) add(f *capture.Frame) {
	e.count++
	if f != nil {
		e.size += len(f.Data) + len(f.Options)
	}
}

// nextChunk begins the next chunk, in a session with all flows.
func (s *Session) nextChunk() {
	s.endChunk()
	s.beginChunk(s.chunk + 1)
}

// beginChunk finds out whether datagrams of the chunk with a number are held whole.
func (s *Session) beginChunk(number uint64) {
	s.chunk, s.extent = number, extent{}
	total := 0
	if number >= chunksAhead {
		for _, x := range s.peers {
			total += x.heldAfter[(number-chunksAhead)%uint64(len(x.heldAfter))]
		}
	}
	s.crowded = total > s.wholeRoom
}

// endChunk notes what the session's answered flows hold now.
func (s *Session) endChunk() {
	s.heldAfter[s.chunk%uint64(len(s.heldAfter))] = s.waiting[1].bytes
}
