package analyze

import (
	"slices"
	"sync"
)

// A jobKind is what a goroutine of a run can do next. Chunks are read one after another, handed on one
// after another, and tracked one after another by each shard.
type jobKind uint8

const (
	noJob  jobKind = iota
	reads          // fills a chunk with frames
	tracks         // processes the frames of one shard in a chunk
	hands          // passes the records of a chunk to the sinks
)

// job is one piece of work on one chunk.
type job struct {
	kind  jobKind
	chunk *chunk
	shard int // that tracks it
}

// fewLeft is how many chunks a shard has before it when reading is more urgent than tracking.
// Source: measured, of 2 to 4 chunks, 3 take least time
const fewLeft = 3

// jobs says what the goroutines of a run do next. All of them take jobs of all kinds. So none waits
// while there is work: to be woken takes some 20 µs, and to track a chunk 70.
//
//	chunks:  | 7 | 8 | 9 | 10 | 11 |
//	           ^ handed    ^ tracked[0]
//	               ^ tracked[1]     ^ read
type jobs struct {
	sync.Mutex
	wake               *sync.Cond
	shards, goroutines int

	chunks       [chunksAhead]*chunk // that were read and not handed on, by number
	spare        []*chunk
	last         *chunk   // that was handed on
	read, handed uint64   // how many chunks
	tracked      []uint64 // by shard: how many chunks

	reading, handing bool   // a goroutine is at it
	tracking         []bool // by shard
	ended            bool   // nothing more is read
	waiting          int    // goroutines without a job
}

func (q *jobs) begin(shards, goroutines int) {
	q.wake, q.shards, q.goroutines = sync.NewCond(q), shards, goroutines
	q.tracked, q.tracking = make([]uint64, shards), make([]bool, shards)
}

// next returns a job for a goroutine that has done one. It has no kind when the run is over. A
// goroutine tracks the shard own if it can: the caches of its processor know the flows. Nothing more
// is read if ended is set.
func (q *jobs) next(own int, done job, ended bool) job {
	q.Lock()
	defer q.Unlock()
	q.finish(done, ended)
	for {
		if j := q.claim(own); j.kind != noJob {
			if q.waiting > 0 && q.worthWaking() {
				q.wake.Signal()
			}
			return j
		}
		if q.over() {
			q.wake.Broadcast()
			return job{}
		}
		q.waiting++
		q.wake.Wait()
		q.waiting--
	}
}

// finish notes that a job is done.
func (q *jobs) finish(j job, ended bool) {
	switch j.kind {
	case noJob:
	case reads:
		q.chunks[q.read%chunksAhead] = j.chunk
		q.read++
		q.reading, q.ended = false, ended
	case tracks:
		q.tracked[j.shard]++
		q.tracking[j.shard] = false
	case hands:
		q.release()
		q.handing = false
	}
	// Most chunks of most runs have nothing to hand on.
	for q.mayHand() && !q.oldest().toPass() {
		q.release()
	}
}

// release frees the oldest chunk.
func (q *jobs) release() {
	q.last = q.oldest()
	q.spare = append(q.spare, q.last)
	q.handed++
}

// pick returns what a goroutine does next. Where there are more goroutines than shards, some track
// as long as they can, and leave the rest to the others.
func (q *jobs) pick(own int) job {
	tracksOwn, spare := own < q.shards && q.mayTrack(own), q.goroutines > q.shards
	switch {
	case tracksOwn && spare:
		return job{kind: tracks, shard: own}
	case q.mayRead() && q.left(own) < fewLeft:
		return job{kind: reads}
	case q.mayHand():
		return job{kind: hands}
	case tracksOwn:
		return job{kind: tracks, shard: own}
	case q.mayRead() && spare:
		return job{kind: reads}
	}
	if behind := q.behind(); behind >= 0 {
		return job{kind: tracks, shard: behind}
	}
	if q.mayRead() {
		return job{kind: reads}
	}
	return job{}
}

// claim gives a goroutine the job that it picks.
func (q *jobs) claim(own int) job {
	j := q.pick(own)
	switch j.kind {
	case reads:
		q.reading = true
		if n := len(q.spare); n > 0 {
			j.chunk, q.spare = q.spare[n-1], q.spare[:n-1]
		} else {
			j.chunk = newChunk(q.shards)
		}
	case tracks:
		q.tracking[j.shard] = true
		j.chunk = q.chunks[q.tracked[j.shard]%chunksAhead]
	case hands:
		q.handing = true
		j.chunk = q.oldest()
	case noJob:
	}
	return j
}

// worthWaking reports whether there is work for one goroutine more. One that would only read is
// woken for some chunks at a time.
func (q *jobs) worthWaking() bool {
	return q.mayHand() || q.behind() >= 0 || q.mayRead() && q.ahead() <= chunksAhead/2
}

// over reports whether all is done, or will be by those who are at it.
func (q *jobs) over() bool { return q.ended && q.handed == q.read }

// oldest returns the oldest chunk that was not handed on.
func (q *jobs) oldest() *chunk { return q.chunks[q.handed%chunksAhead] }

// ahead returns how many chunks were read and not handed on.
func (q *jobs) ahead() uint64 { return q.read - q.handed }

// left returns how many chunks a shard has before it. For a goroutine without a shard of its own, it
// is the shard that has the fewest.
func (q *jobs) left(own int) uint64 {
	if own < q.shards {
		return q.read - q.tracked[own]
	}
	return q.read - slices.Max(q.tracked)
}

// behind returns the shard that has tracked the fewest chunks, of those that may track one. It
// returns -1 if there is none.
func (q *jobs) behind() int {
	behind := -1
	for i := range q.shards {
		if q.mayTrack(i) && (behind < 0 || q.tracked[i] < q.tracked[behind]) {
			behind = i
		}
	}
	return behind
}

func (q *jobs) mayRead() bool { return !q.reading && !q.ended && q.ahead() < chunksAhead }

func (q *jobs) mayTrack(shard int) bool { return !q.tracking[shard] && q.tracked[shard] < q.read }

// mayHand reports whether all shards have tracked the oldest chunk.
func (q *jobs) mayHand() bool {
	return !q.handing && q.handed < q.read && slices.Min(q.tracked) > q.handed
}
