package analyze

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// crew does the jobs of several goroutines on one, in random order.
type crew struct {
	jobs
	t        *testing.T
	r        *rand.Rand
	chunks   int   // in all
	waits    bool  // shards wait for each other's frames
	does     []job // by goroutine
	asleep   []bool
	woken    int   // of those asleep, who have not looked yet
	tracks   []int // by shard: how often
	reads    int
	hands    int
	made     map[*chunk]bool
	recorded func(number int) bool // a chunk has records
}

// TestJobs: every chunk is read, tracked by each shard and handed on, once and in order, by one
// goroutine at a time. The run goes on where shards wait for each other, and ends.
func TestJobs(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 8} {
		for _, goroutines := range []int{shards, shards + 1, shards + 2} {
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 1))
				c := &crew{t: t, r: r, chunks: 1 + r.IntN(60), waits: seed%2 == 1}
				c.recorded = func(number int) bool { return seed%3 > 0 && (seed%3 == 1 || number%4 == 1) }
				c.run(shards, goroutines)
				if t.Failed() {
					t.Fatalf("%d shards, %d goroutines, seed %d", shards, goroutines, seed)
				}
			}
		}
	}
}

func (c *crew) run(shards, goroutines int) {
	c.begin(shards, goroutines)
	c.made = map[*chunk]bool{}
	c.does, c.asleep, c.tracks = make([]job, goroutines), make([]bool, goroutines), make([]int, shards)
	for i := range c.does {
		c.look(i)
	}
	for !c.over() {
		var may []int
		for i, j := range c.does {
			if j.kind != noJob && !c.stuck(j) {
				may = append(may, i)
			}
		}
		for i := range c.asleep {
			if c.asleep[i] && c.woken > 0 {
				may = append(may, i)
			}
		}
		if len(may) == 0 {
			c.t.Errorf("nobody does anything: %s", c.where())
			return
		}
		i := may[c.r.IntN(len(may))]
		if c.asleep[i] {
			c.asleep[i] = false
			c.waiting--
			c.woken--
		} else {
			c.end(i)
		}
		c.look(i)
	}
	for _, n := range append(c.tracks, c.reads) {
		if n != c.chunks {
			c.t.Errorf("a run of %d chunks ended so: %s", c.chunks, c.where())
		}
	}
	for number := range c.chunks {
		if c.recorded(number) {
			c.hands--
		}
	}
	if c.hands != 0 {
		c.t.Errorf("%d chunks more were handed on than have records", c.hands)
	}
	if len(c.made) > chunksAhead {
		c.t.Errorf("%d chunks were made, expected %d at most", len(c.made), chunksAhead)
	}
}

// look does what next does, in place of a goroutine that looks for a job.
func (c *crew) look(i int) {
	j := c.claim(i)
	c.does[i] = j
	if j.kind == noJob {
		c.asleep[i] = true
		c.waiting++
		return
	}
	if c.waiting > c.woken && c.worthWaking() {
		c.woken++
	}
	at := map[jobKind]int{reads: c.reads, hands: int(c.handed), tracks: c.tracks[j.shard]}[j.kind]
	for k, other := range c.does {
		if k != i && other.kind == j.kind && (j.kind != tracks || other.shard == j.shard) {
			c.t.Errorf("two goroutines do %+v", j)
		}
	}
	if j.kind == reads {
		c.made[j.chunk] = true
		for _, other := range c.does {
			if other.kind != reads && other.kind != noJob && other.chunk == j.chunk {
				c.t.Errorf("a chunk is read to while another goroutine uses it: %s", c.where())
			}
		}
		if c.reads-int(c.handed) >= chunksAhead {
			c.t.Errorf("more than %d chunks are read ahead", chunksAhead)
		}
		j.chunk.reset(uint64(at), 0)
		j.chunk.whole = 0
	} else if int(j.chunk.number) != at {
		c.t.Errorf("the job %d is given chunk %d, expected %d", j.kind, j.chunk.number, at)
	}
	if j.kind == hands {
		for shard, n := range c.tracks {
			if n <= at {
				c.t.Errorf("chunk %d is handed on before shard %d has tracked it", at, shard)
			}
		}
		if !c.recorded(at) {
			c.t.Errorf("chunk %d has nothing to hand on", at)
		}
	}
}

// end ends the job of a goroutine.
func (c *crew) end(i int) {
	j := c.does[i]
	switch j.kind {
	case reads:
		if c.recorded(c.reads) {
			j.chunk.count = 1 // one session takes its frame
		}
		c.reads++
	case tracks:
		c.tracks[j.shard]++
	case hands:
		c.hands++
	case noJob:
	}
	c.does[i] = job{}
	c.finish(j, c.reads == c.chunks)
}

// stuck reports whether a job waits for frames of other shards: those before the first of its own.
// The first frames of a chunk are those of the first shards.
func (c *crew) stuck(j job) bool {
	if !c.waits || j.kind != tracks {
		return false
	}
	for shard, n := range c.tracks {
		if n < int(j.chunk.number) || n == int(j.chunk.number) && shard < j.shard {
			return true
		}
	}
	return false
}

func (c *crew) where() string {
	return fmt.Sprintf("%d chunks read, shards tracked %d, %d handed on, %d with records, jobs %+v, %d of %d woken",
		c.reads, c.tracks, c.handed, c.hands, c.does, c.woken, c.waiting)
}

// TestJobsOrder: what a goroutine does next.
func TestJobsOrder(t *testing.T) {
	for _, x := range []struct {
		what               string
		shards, goroutines int
		own                int
		read, handed       uint64
		tracked            []uint64
		reading, ended     bool
		tracking           []int
		want               job
	}{
		{what: "nothing is read yet", shards: 2, goroutines: 2, tracked: []uint64{0, 0}, want: job{kind: reads}},
		{
			what: "nothing is read yet, and one goroutine is at it", shards: 2, goroutines: 2, tracked: []uint64{0, 0},
			reading: true,
		},
		{
			what: "few chunks are left", shards: 2, goroutines: 2, read: 4, handed: 1, tracked: []uint64{2, 1},
			want: job{kind: reads},
		},
		{
			what: "few chunks are left at the end", shards: 2, goroutines: 2, read: 4, handed: 1, tracked: []uint64{2, 1},
			ended: true, want: job{kind: tracks},
		},
		{
			what: "enough chunks are left", shards: 2, goroutines: 2, read: 6, handed: 2, tracked: []uint64{3, 2},
			want: job{kind: tracks},
		},
		{
			what: "the goroutine of the other shard", shards: 2, goroutines: 2, own: 1, read: 6, handed: 2,
			tracked: []uint64{3, 2}, want: job{kind: tracks, shard: 1},
		},
		{
			what: "records can be handed on", shards: 2, goroutines: 2, read: 6, handed: 1, tracked: []uint64{3, 2},
			want: job{kind: hands},
		},
		{
			what: "others hand on where there are more of them", shards: 1, goroutines: 2, read: 6, handed: 1,
			tracked: []uint64{3}, want: job{kind: tracks},
		},
		{
			what: "one of these others", shards: 1, goroutines: 2, own: 1, read: 6, handed: 1, tracked: []uint64{3},
			want: job{kind: hands},
		},
		{
			what: "one of them has nothing to hand on", shards: 1, goroutines: 2, own: 1, read: 6, handed: 3,
			tracked: []uint64{3}, want: job{kind: reads},
		},
		{
			what: "the own shard is done, and no more may be read ahead", shards: 2, goroutines: 2, read: chunksAhead,
			tracked: []uint64{chunksAhead, 0}, want: job{kind: tracks, shard: 1},
		},
		{
			what: "the other shard is the one that is further behind", shards: 3, goroutines: 3, read: chunksAhead,
			tracked: []uint64{chunksAhead, 3, 0}, want: job{kind: tracks, shard: 2},
		},
		{
			what: "the own shard has a goroutine, and the other one has tracked all", shards: 2, goroutines: 2, read: 5,
			tracked: []uint64{0, 5}, tracking: []int{0}, want: job{kind: reads},
		},
		{
			what: "a goroutine without a shard reads for the fastest", shards: 2, goroutines: 3, own: 2, read: 5, handed: 1,
			tracked: []uint64{4, 2}, want: job{kind: reads},
		},
		{what: "all is done", shards: 1, goroutines: 1, read: 5, handed: 5, tracked: []uint64{5}, ended: true},
	} {
		var q jobs
		q.begin(x.shards, x.goroutines)
		q.read, q.handed, q.tracked, q.reading, q.ended = x.read, x.handed, x.tracked, x.reading, x.ended
		for _, shard := range x.tracking {
			q.tracking[shard] = true
		}
		if got := q.pick(x.own); got != x.want {
			t.Errorf("%s: %+v, expected %+v", x.what, got, x.want)
		}
	}
}

// TestWorthWaking: whether there is work for one goroutine more. The shards are at work.
func TestWorthWaking(t *testing.T) {
	for _, x := range []struct {
		what         string
		read, handed uint64
		tracked      []uint64
		tracking     int // shards
		want         bool
	}{
		{"nothing is read yet", 0, 0, []uint64{0, 0}, 0, true},
		{"a shard has something to track", 7, 1, []uint64{1, 2}, 1, true},
		{"all shards are at work, and much is read", 7, 1, []uint64{1, 2}, 2, false},
		{"all shards are at work, and half is read", 5, 1, []uint64{1, 2}, 2, true},
		{"something is to be handed on", 8, 0, []uint64{1, 2}, 2, true},
	} {
		var q jobs
		q.begin(2, 2)
		q.read, q.handed, q.tracked = x.read, x.handed, x.tracked
		for i := range x.tracking {
			q.tracking[i] = true
		}
		if got := q.worthWaking(); got != x.want {
			t.Errorf("%s: %v, expected %v", x.what, got, x.want)
		}
	}
}
