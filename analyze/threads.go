package analyze

import (
	"errors"
	"fmt"
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
// One reads ahead. Each shard has a Session of its own, with the flows of some pairs
// of hosts. The caller's goroutine takes the records in the order of their frames, and calls the
// sink. The results are those of one goroutine, byte for byte: see shard for what crosses shards.

// errRefused ends a run whose flows concern each other across shards.
var errRefused = errors.New("the flows of the capture must be analysed together")

// team is a run that several goroutines share. What one of them writes for each frame is apart from
// what others read, by whole cache lines: see intake and lane.
type team struct {
	source  capture.Source
	options []Options
	copies  bool           // records are handed on
	packet  capture.Packet // of the caller's goroutine
	intake  *intake        // what the goroutine that reads knows: for others, when order is closed
	lanes   []*lane        // by shard
	free    chan *chunk
	order   chan *chunk // as they were read
	quit    chan struct{}
	refused atomic.Bool
	relays  []relays // by session
	next    []int    // by shard: the next record of a chunk

	group  sync.WaitGroup
	failed atomic.Pointer[failure] // a panic of a goroutine
}

// lane is what the goroutine of a shard works with.
type lane struct {
	_        cacheLines
	in       chan *chunk
	decoder  *capture.Decoder
	sessions []*Session     // of the run
	packet   capture.Packet // of the current frame
	_        cacheLines
}

// failure is a panic of a goroutine. The caller's goroutine panics with it.
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
		list, err := t.drive(shards)
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
func (t *team) drive(shards int) ([]*Session, error) {
	t.begin(shards)
	defer t.group.Wait()
	defer close(t.quit)
	t.group.Add(1)
	go t.guard(t.intake.read)
	for i := range t.lanes {
		t.group.Add(1)
		go t.guard(func() { t.work(i) })
	}
	var whole []*Session
	var last *chunk
	for c := range t.order {
		<-c.ready
		if whole == nil {
			t.hand(c)
			if c.whole < c.count {
				whole = t.join(c, c.whole, true)
			}
			last = c
		}
		for i := c.whole; i < c.count && whole != nil; i++ {
			packet := t.decoded(c, i, int(c.shards[i]), &t.packet)
			for _, s := range whole {
				s.Feed(&c.frames[i], packet)
			}
		}
		select {
		case t.free <- c:
		default: // the reader has ended
		}
	}
	if f := t.failed.Load(); f != nil {
		panic(f.String())
	}
	if t.refused.Load() {
		return nil, errRefused
	}
	if whole == nil {
		if whole = t.join(last, last.count, false); t.refused.Load() {
			return nil, errRefused
		}
	}
	return whole, t.intake.err
}

// guard runs a goroutine, and keeps its panic.
func (t *team) guard(f func()) {
	defer t.group.Done()
	defer t.keepPanic()
	f()
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
	t.free, t.order = make(chan *chunk, chunksAhead), make(chan *chunk, chunksAhead)
	t.quit = make(chan struct{})
	streams, extra := make([][2]atomic.Int64, len(t.options)), make([]atomic.Int64, len(t.options))
	done := make([]atomic.Uint64, shards)
	t.next, t.relays = make([]int, shards), make([]relays, len(t.options))
	for i := range t.relays {
		t.relays[i].apart = map[*Flow]*findingList{}
	}
	for i := range shards {
		n := &lane{in: make(chan *chunk, chunksAhead), decoder: capture.NewDecoder(t.options[0].Decode)}
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

// work is the goroutine of a shard.
func (t *team) work(index int) {
	n := t.lanes[index]
	x := n.sessions[0].shard
	for c := range n.in {
		if !t.refused.Load() {
			t.step(c, index, n)
		}
		x.done[index].Store(c.first + uint64(c.count))
		if c.open.Add(-1) == 0 {
			c.ready <- struct{}{}
		}
	}
}

// step processes the frames of a shard in a chunk. A panic ends the run, but not the goroutine:
// the caller's waits until every shard has taken the chunk.
func (t *team) step(c *chunk, index int, n *lane) {
	defer t.keepPanic()
	p := &c.parts[index]
	decodes := !t.copies && !(c.ahead && index == decodedAhead)
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
	for _, s := range n.sessions {
		p.relayed = append(p.relayed, s.shard.relayed...)
		s.shard.relayed = s.shard.relayed[:0]
		s.endChunk()
	}
}

// hand passes the records of a chunk to the sinks, and notes the messages that may be relayed.
func (t *team) hand(c *chunk) {
	if t.refused.Load() {
		return
	}
	records, relayed := c.made()
	if records {
		t.handRecords(c)
	}
	if relayed {
		t.handRelayed(c)
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
