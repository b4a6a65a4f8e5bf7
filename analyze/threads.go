package analyze

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/ackscope/ackscope/capture"
)

// Several goroutines share a run:
//
//	              .-> shard 0 -.
//	source -> chunk -> shard 1 -> chunk -> sink
//	    reads     decodes, tracks   in order of frames
//
// Each shard has a Session of its own, with the flows of some pairs of hosts. The sinks get the
// records in the order of their frames. Every goroutine reads, tracks and hands on, as jobs says:
// each of these jobs is done by one goroutine at a time. The results are those of one goroutine,
// byte for byte: see shard for what crosses shards.

// errRefused ends a run whose flows concern each other across shards.
var errRefused = errors.New("the flows of the capture must be analysed together")

// team is a run that several goroutines share. What one of them writes for each frame is apart from
// what others read, by whole cache lines: see intake and lane.
type team struct {
	source  capture.Source
	options []Options
	copies  bool // records are handed on
	jobs    jobs
	intake  *intake // what reading knows: for others, when nothing more is read
	lanes   []*lane // by shard
	refused atomic.Bool
	relays  []relays // by session

	// What handing on knows.
	packet capture.Packet // of the current frame
	next   []int          // by shard: the next record of a chunk
	whole  []*Session     // that have all flows; nil if shards have them

	group  sync.WaitGroup
	failed atomic.Pointer[failure] // a panic of a goroutine
}

// lane is what a shard works with.
type lane struct {
	_        cacheLines
	decoder  *capture.Decoder
	sessions []*Session     // of the run
	packet   capture.Packet // of the current frame
	_        cacheLines
}

// failure is a panic in a job. The caller's goroutine panics with it.
type failure struct {
	value any
	stack []byte
}

func (f *failure) String() string { return fmt.Sprintf("%v\n\n%s", f.value, f.stack) }

// runAll reads a source to its end through new sessions at a time. The error is that of Run.
func runAll(src capture.Source, options []Options) ([]*Session, error) {
	shards, copies := plan(src, options)
	for ; shards > 0; shards = 1 {
		t := &team{source: src, options: options, copies: copies}
		list, err := t.drive(shards, min(options[0].Threads, shards+2)) // one reads, and one hands on
		if err == nil || !errors.Is(err, errRefused) {
			finish(src, list)
			return list, err
		}
		if err := src.(Rewinder).Rewind(); err != nil {
			return newSessions(options), err
		}
		if t.intake.sampled {
			src.(Sampled).ForgetHost()
			break
		}
	}
	list := newSessions(options)
	err := drive(src, capture.NewDecoder(options[0].Decode), list)
	finish(nil, list)
	return list, err
}

func newSessions(options []Options) (list []*Session) {
	for _, o := range options {
		list = append(list, NewSession(o))
	}
	return list
}

// finish settles what is open. The source is one whose counts the sessions do not know yet.
func finish(src capture.Source, list []*Session) {
	for _, s := range list {
		if x, ok := src.(Dropper); ok {
			s.CaptureDropped(x.Dropped())
			s.counted = x.Counted()
		}
		s.Finish()
	}
}

// drive reads a source to its end by several goroutines. It returns the sessions, not yet
// finished. The error is that of Run, or errRefused.
func (t *team) drive(shards, goroutines int) ([]*Session, error) {
	t.begin(shards)
	t.jobs.begin(shards, goroutines)
	if x, ok := t.source.(Lender); ok {
		t.intake.lent = x.Lend(t.intake.swap)
		defer x.Lend(nil)
	}
	for i := range goroutines { // all alike: a panic has one stack, whoever does the job
		t.group.Go(func() { t.work(i) })
	}
	t.group.Wait()
	if f := t.failed.Load(); f != nil {
		panic(f.String())
	}
	if t.refused.Load() {
		return nil, errRefused
	}
	if t.whole == nil {
		last := t.jobs.last
		if t.whole = t.join(last, last.count, false); t.refused.Load() {
			return nil, errRefused
		}
	}
	for _, n := range t.lanes {
		for _, s := range t.whole {
			s.noteFragments(n.decoder)
		}
	}
	if t.intake.err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
		return t.whole, nil
	}
	return t.whole, t.intake.err
}

// work does jobs until the run is over.
func (t *team) work(own int) {
	var j job
	for {
		if j = t.jobs.next(own, j, t.over(j)); j.kind == noJob {
			return
		}
		t.do(j)
	}
}

// over reports whether nothing more is read after a job.
func (t *team) over(j job) bool { return j.kind == reads && (t.intake.err != nil || t.refused.Load()) }

// do does a job. A panic ends the run, but not the goroutine: what was begun is read to its end, and
// tracked and handed on in vain.
func (t *team) do(j job) {
	defer t.keepPanic()
	switch c := j.chunk; j.kind {
	case reads:
		t.intake.fill(c)
	case tracks:
		n := t.lanes[j.shard]
		defer n.sessions[0].shard.passed(c) // other shards may wait for it, whatever happens
		if !t.refused.Load() && !c.alone {
			t.step(c, j.shard, n)
		}
	case hands:
		if !t.refused.Load() {
			t.pass(c)
		}
	case noJob:
	}
}

// keepPanic ends the run where the function that defers it panics.
func (t *team) keepPanic() {
	if v := recover(); v != nil {
		t.failed.CompareAndSwap(nil, &failure{v, debug.Stack()})
		t.refused.Store(true)
	}
}

// begin makes the sessions of the shards.
func (t *team) begin(shards int) {
	t.intake = &intake{team: t}
	t.intake.router.begin(t.options[0].Decode, shards)
	streams, extra := make([][2]atomic.Int64, len(t.options)), make([]atomic.Int64, len(t.options))
	done := make([]atomic.Uint64, shards)
	t.next, t.relays = make([]int, shards), make([]relays, len(t.options))
	for i := range t.relays {
		t.relays[i].apart = map[*Flow]*findingList{}
	}
	for i := range shards {
		n := &lane{decoder: capture.NewDecoder(t.options[0].Decode)}
		for k, o := range t.options {
			strict := shards > 1 && o.Sink == nil && o.Split == nil
			split := o.Split
			x := &shard{
				index: i, of: shards, strict: strict, refused: &t.refused, done: done, extra: &extra[k],
				streams: &streams[k], session: k,
			}
			if o.Sink != nil && t.copies {
				x.takeOver(&o)
			}
			o.Split = nil
			s := NewSession(o)
			s.shard = x
			if split != nil {
				s.sink = split()
				s.noEvents = o.NoEvents
				s.sinks = []Sink{s.sink}
			}
			n.sessions = append(n.sessions, s)
		}
		t.lanes = append(t.lanes, n)
	}
	for k := range t.options {
		peers := t.ofSession(k)
		for _, s := range peers {
			s.peers = peers
		}
	}
}

// ofSession returns what all shards have of a session.
func (t *team) ofSession(k int) (parts []*Session) {
	for _, n := range t.lanes {
		parts = append(parts, n.sessions[k])
	}
	return parts
}

// step processes the frames of a shard in a chunk.
func (t *team) step(c *chunk, index int, n *lane) {
	p := &c.parts[index]
	decodes := !t.copies && !(c.ahead && index == decodedAhead) // the usual case of decoded
	for _, s := range n.sessions {
		s.shard.part = p
		s.beginChunk(c.number)
	}
	for i := range c.whole {
		if int(c.shards[i]) != index {
			continue
		}
		frame, packet, x := &c.frames[i], &n.packet, &c.places[i]
		if decodes {
			n.decoder.Decode(frame, packet)
		} else {
			packet = t.decoded(c, i, index, packet)
		}
		for _, s := range n.sessions {
			s.first, s.last, s.at, s.n = c.begin, x.latest, x.before, c.first+uint64(i)
			s.shard.frame = i
			s.Feed(frame, packet)
		}
	}
	if !c.ahead || index != decodedAhead {
		n.checkFragments()
	}
	for _, s := range n.sessions {
		p.relayed = append(p.relayed, s.shard.relayed...)
		s.shard.relayed = s.shard.relayed[:0]
		s.endChunk()
	}
}

// checkFragments refuses the run if the shard's decoder used more than its part of the room for
// fragments. It is for the goroutine that decodes.
func (n *lane) checkFragments() {
	if x := n.sessions[0].shard; !n.decoder.FragmentsFit(x.of) {
		x.refuse()
	}
}

// pass hands on what the shards made of a chunk. From c.whole on, one session takes the frames.
func (t *team) pass(c *chunk) {
	if t.whole == nil {
		records, relayed := c.made()
		if records {
			t.handRecords(c)
		}
		if relayed {
			t.handRelayed(c)
		}
		if c.whole == c.count {
			return
		}
		t.whole = t.join(c, c.whole, true)
	}
	for i := c.whole; i < c.count; i++ {
		packet := t.decoded(c, i, int(c.shards[i]), &t.packet)
		for _, s := range t.whole {
			s.Feed(&c.frames[i], packet)
		}
	}
}

// handRecords passes the records of a chunk to the sinks, in the order of frames.
func (t *team) handRecords(c *chunk) {
	clear(t.next)
	for i := range c.whole {
		records := c.parts[c.shards[i]].records
		at := &t.next[c.shards[i]]
		for ; *at < len(records) && records[*at].frame == i; *at++ {
			k := &records[*at]
			if o := &t.options[k.session]; k.gone != nil {
				o.Gone(k.gone, k.why)
			} else {
				o.Sink(&k.Record)
			}
		}
	}
}

// handRelayed notes the messages of a chunk that may be relayed, in the order of frames.
func (t *team) handRelayed(c *chunk) {
	clear(t.next)
	for i := range c.whole {
		relayed := c.parts[c.shards[i]].relayed
		at := &t.next[c.shards[i]]
		for ; *at < len(relayed) && relayed[*at].at == c.first+uint64(i)+1; *at++ {
			k := &relayed[*at]
			t.relays[k.session].note(k.flow, &k.content)
		}
	}
}

// join returns the sessions that go on at a frame of a chunk, where the shards stand. more says that
// frames follow.
func (t *team) join(c *chunk, frame int, more bool) []*Session {
	var list []*Session
	for k, o := range t.options {
		parts := t.ofSession(k)
		s := absorb(o, parts)
		s.beginChunk(c.number)
		for i := range frame {
			s.extent.add(&c.frames[i])
		}
		if more { // an ICMP error may quote what was sent
			s.absorbSent(parts)
		}
		s.first, s.n = c.begin, c.first+uint64(frame)
		if frame < c.count { // the reader may be at work
			s.last, s.at = c.places[frame].latest, c.places[frame].before
		} else {
			s.last, s.at = t.intake.latest, t.intake.before
		}
		s.before = s.at
		t.relays[k].settle()
		s.relays = t.relays[k]
		s.attend(t.source)
		list = append(list, s)
	}
	return list
}
