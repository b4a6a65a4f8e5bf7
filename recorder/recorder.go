// Package recorder keeps the last frames of a capture in bounded memory and cuts out the time around a trouble.
//
// For example, Keep of 60 s and After of 10 s make a recording of 70 s around one finding:
//
//	frames → ring of Bytes ─┐
//	                        ├→ Recording: [trouble − Keep, told + After], of the flows that triggered
//	first frames of flows ──┘
//
// A recording is complete in itself. So a frame stands in two recordings where their windows overlap.
//
// The package does no input or output: frames, findings and the time are arguments. The caller decides which
// findings trigger.
package recorder

import (
	"errors"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Options sets the window and the limits.
type Options struct {
	Keep    time.Duration // time before the first trigger
	After   time.Duration // time after the last trigger that joined
	Longest time.Duration // time from the first trigger to the end, however many join; zero means 10 times After
	Late    time.Duration // how late a trigger may be told: the ring holds frames of so much more time than Keep
	Bytes   int           // memory of the ring and of the first frames; a Recording copies at most as much again
	Size    int           // bytes of the frames of one recording; zero for no limit
	Rate    int64         // bytes a second that recordings may come to on average; zero for no limit
	Every   time.Duration // least time between the first triggers of two recordings of one rule
	All     bool          // record all flows, not only those that triggered

	// Done takes each recording that has ended. It may keep it.
	Done func(*Recording)
	// Begin, if not nil, is called before frames are copied for Done. A caller that keeps recordings for a while can
	// wait there until the last one is let go, and so bound its memory.
	Begin func()
}

// Trigger is one finding that asks for a recording.
type Trigger struct {
	At   machine.Instant // of the trouble; the recorder's time where it is later than that
	Rule string          // triggers of one rule join; the rules must be a closed set
	Flow uint64          // as in Push
}

// Frame is one frame of a recording.
type Frame struct {
	At        machine.Instant
	Flow      uint64
	Interface int
	Link      uint32 // LINKTYPE_ number
	Length    int    // on the wire, in bytes
	Data      []byte
	Options   []byte // of the frame's record, undecoded
	BigEndian bool   // byte order of Options
}

// Shared is the flow of frames that belong to no conversation, as ICMP and pieces of IP datagrams. They are in every
// recording.
const Shared = 0

// Recording is the time around the triggers of one rule.
type Recording struct {
	From, To machine.Instant // both ends belong to the window
	First    Trigger
	Told     machine.Instant // when First was told
	Flows    []uint64        // each once, in order of their first trigger; at most 4,096
	Unlisted int             // triggers of flows beyond those, whose frames the recording lacks
	Triggers int             // all that joined, listed or not
	All      bool            // of all flows
	Frames   []Frame         // of the window, in order of arrival
	Heads    []Frame         // the first frames of the flows, where they came before Frames
	Evicted  int             // frames of the window's time, of any flow, that the memory limit pushed out: at least
	Limited  int             // frames that Options.Size refused
	Bytes    int             // of Frames and Heads
}

// rateSlack is how far ahead of Options.Rate recordings may be, so that two small troubles may follow each other.
// Source: choice, the usual time that a recording has after its trouble
const rateSlack = 10 * time.Second

const (
	maxFlows = 4096 // that a recording lists: about 200 kB
	maxOpen  = 64   // recordings at one time, each of another rule
)

// Counts says what the recorder did and what the limits refused.
type Counts struct {
	Recordings int
	Every      int // triggers that Options.Every refused
	Rate       int // triggers that Options.Rate refused
	Open       int // triggers refused since 64 recordings were open
	Oversized  int // frames larger than the whole ring
	Jumps      int // times that the clock went far back, and the ring was emptied
}

type opened struct {
	Recording
	listed map[uint64]bool
}

// Recorder is not safe for concurrent use.
type Recorder struct {
	options Options
	ring    ring
	heads   heads
	started bool
	now     machine.Instant
	evicted machine.Instant // time of the newest frame that the memory limit pushed out
	lost    bool            // evicted is set
	open    []*opened
	last    map[string]machine.Instant // by rule: the first trigger of its last recording
	busy    machine.Instant            // until then Options.Rate is used up
	counts  Counts
}

// leastBytes is the least memory: 16 frames of Ethernet, with their slots and first frames.
const leastBytes = 32 << 10

// New makes a recorder. Bytes below 32,768 and negative values are errors.
func New(o Options) (*Recorder, error) {
	switch {
	case o.Bytes < leastBytes:
		return nil, errors.New("recorder: the memory must be at least 32768 bytes")
	case o.Keep < 0 || o.After < 0 || o.Longest < 0 || o.Every < 0 || o.Late < 0:
		return nil, errors.New("recorder: a time is negative")
	case o.Size < 0 || o.Rate < 0:
		return nil, errors.New("recorder: a limit is negative")
	}
	if o.Longest == 0 {
		o.Longest = 10 * o.After
	}
	o.Longest = max(o.Longest, o.After)
	first := o.Bytes / 8
	return &Recorder{
		options: o, ring: newRing(o.Bytes - first), heads: newHeads(first), last: map[string]machine.Instant{},
	}, nil
}

// Push takes a copy of one frame. The recordings that its time ends go to Options.Done first.
func (r *Recorder) Push(f *Frame) {
	r.Tick(f.At)
	size := len(f.Data) + len(f.Options)
	if size > len(r.ring.data) {
		r.counts.Oversized++
		for _, x := range r.open {
			x.Evicted++
		}
		return
	}
	for !r.ring.fits(size) {
		r.evict()
	}
	number := r.ring.add(f, r.now)
	if f.Flow != Shared {
		r.heads.add(f, number)
	}
}

// Tick moves the time on. The recordings whose time is over go to Options.Done.
func (r *Recorder) Tick(now machine.Instant) {
	o := &r.options
	if !r.started {
		r.started, r.now, r.busy = true, now, now
	}
	// A capture may hold one wrong time far in the future. The time before it would never end.
	if back := r.now.Sub(now); back > o.Keep+o.Late+o.Longest {
		r.Close()
		r.ring.clear()
		r.counts.Jumps++
		r.now, r.busy, r.lost = now, now, false
		clear(r.last)
	}
	r.now = max(r.now, now)
	for i := 0; i < len(r.open); {
		if r.now <= r.open[i].To {
			i++
			continue
		}
		r.end(i)
	}
	oldest := r.now.Add(-o.Keep - o.Late)
	for _, x := range r.open {
		oldest = min(oldest, x.From)
	}
	for r.ring.used > 0 && r.ring.oldest().seen < oldest {
		r.ring.drop()
	}
}

// Trigger opens a recording, or joins the open one of its rule. It is told at the time now. A trouble of the past
// opens a recording that begins Keep before it, as far as the ring goes back.
func (r *Recorder) Trigger(t Trigger, now machine.Instant) { r.trigger(t, now, false) }

// Signal opens a recording of all flows, as a user asks for it. It joins the one of an earlier signal.
func (r *Recorder) Signal(rule string, now machine.Instant) {
	r.trigger(Trigger{At: now, Rule: rule}, now, true)
}

func (r *Recorder) trigger(t Trigger, now machine.Instant, all bool) {
	r.Tick(now)
	t.At = max(min(t.At, r.now), r.now.Add(-r.options.Keep-r.options.Late))
	x := r.opened(t.Rule)
	if x == nil {
		if x = r.begin(t); x == nil {
			return
		}
	}
	x.All = x.All || all
	x.Triggers++
	x.To = min(r.now.Add(r.options.After), x.Told.Add(r.options.Longest))
	switch {
	case t.Flow == Shared || x.listed[t.Flow]:
	case len(x.Flows) == maxFlows:
		x.Unlisted++
	default:
		x.listed[t.Flow] = true
		x.Flows = append(x.Flows, t.Flow)
	}
}

func (r *Recorder) opened(rule string) *opened {
	for _, x := range r.open {
		if x.First.Rule == rule {
			return x
		}
	}
	return nil
}

// begin opens a recording. It returns nil if a limit refuses that.
func (r *Recorder) begin(t Trigger) *opened {
	o := &r.options
	before, again := r.last[t.Rule]
	switch {
	case again && r.now.Sub(before) < o.Every:
		r.counts.Every++
		return nil
	case o.Rate > 0 && r.now < r.busy.Add(-rateSlack):
		r.counts.Rate++
		return nil
	case len(r.open) == maxOpen:
		r.counts.Open++
		return nil
	}
	r.last[t.Rule] = r.now
	r.counts.Recordings++
	x := &opened{listed: map[uint64]bool{}}
	x.From, x.First, x.Told = max(t.At.Add(-o.Keep), r.now.Add(-o.Keep-o.Late)), t, r.now
	x.All = o.All
	if r.lost && r.evicted >= x.From {
		x.Evicted = 1
	}
	r.open = append(r.open, x)
	return x
}

// Close ends the open recordings now, as at the end of a capture.
func (r *Recorder) Close() {
	for len(r.open) > 0 {
		r.end(0)
	}
}

// end hands over the i-th open recording.
func (r *Recorder) end(i int) {
	x := r.open[i]
	r.open = append(r.open[:i], r.open[i+1:]...)
	if r.options.Begin != nil {
		r.options.Begin()
	}
	count, first := 0, r.ring.next // first is the number of the recording's first frame
	x.Bytes, x.Limited = r.selected(x, func(s *slot, _, _ int) {
		count, first = count+1, min(first, s.number)
	})
	x.Frames = make([]Frame, 0, count)
	data := make([]byte, x.Bytes) // one for all, so that the copy takes little more than the ring
	r.selected(x, func(s *slot, position, at int) {
		x.Frames = append(x.Frames, r.ring.copy(s, position, data[at:at+s.size+s.options]))
	})
	for _, flow := range x.Flows {
		for _, f := range r.heads.of(flow, first) {
			if r.options.Size == 0 || x.Bytes+len(f.Data) <= r.options.Size {
				x.Heads = append(x.Heads, f)
				x.Bytes += len(f.Data) + len(f.Options)
			}
		}
	}
	if rate := r.options.Rate; rate > 0 {
		const perSecond = float64(time.Second)
		r.busy = max(r.busy, r.now).Add(time.Duration(float64(x.Bytes) / float64(rate) * perSecond))
	}
	r.options.Done(&x.Recording)
}

// selected calls take for each frame of a recording, with its position in the ring and the bytes of those before it.
// It returns the bytes of all, and how many frames Options.Size refused.
func (r *Recorder) selected(x *opened, take func(s *slot, position, at int)) (bytes, limited int) {
	r.ring.each(func(s *slot, position int) {
		switch size := s.size + s.options; {
		case s.seen < x.From || s.seen > x.To || !x.All && s.flow != Shared && !x.listed[s.flow]:
		case r.options.Size > 0 && bytes+size > r.options.Size:
			limited++
		default:
			take(s, position, bytes)
			bytes += size
		}
	})
	return bytes, limited
}

// Counts returns what was recorded and refused so far.
func (r *Recorder) Counts() Counts { return r.counts }

// evict drops the oldest frame for lack of memory.
func (r *Recorder) evict() {
	seen := r.ring.oldest().seen
	r.evicted, r.lost = seen, true
	for _, x := range r.open {
		if seen >= x.From {
			x.Evicted++
		}
	}
	r.ring.drop()
}
