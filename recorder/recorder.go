// Package recorder keeps the last frames of a capture in bounded memory and cuts out the time around a trouble.
//
// For example, Keep of 60 s and After of 10 s make a recording of 70 s around one finding. The package does no
// input or output: frames, findings and the time are arguments. The caller decides which findings trigger.
package recorder

import (
	"errors"
	"slices"
	"time"
)

// slotBytes is what the bookkeeping of one frame is charged.
const slotBytes = 64

// Options sets the window and the limits. A limit of zero is no limit, except Bytes.
type Options struct {
	Keep    time.Duration // time before the first trigger
	After   time.Duration // time after the last trigger that joined
	Longest time.Duration // time from the first trigger to the end, however many join; zero means 10 times After
	Bytes   int           // memory of the ring; a finished Recording copies at most as much again
	Files   int           // recordings in all
	Written int64         // bytes of frames in all recordings
	Every   time.Duration // least time between the first triggers of two recordings
	All     bool          // record all flows, not only those that triggered
}

// Trigger is one finding that asks for a recording.
type Trigger struct {
	At   time.Time
	Rule string
	Flow int
}

// Frame is one frame of a recording, in order of arrival.
type Frame struct {
	At   time.Time // as the capture stamped it
	Flow int
	Data []byte
}

// Recording is the time around the triggers of one trouble.
type Recording struct {
	From, To time.Time // both ends belong to the window
	First    Trigger
	Rules    []string // each once, in order of their first trigger; at most 64
	Flows    []int    // each once, in order of their first trigger; at most maxFlows
	Triggers int      // all that joined, listed or not
	Frames   []Frame
	Evicted  int // frames of the window's time, of any flow, that the memory limit pushed out
	Limited  int // frames of the recording that Options.Written refused
}

const (
	maxRules = 64
	maxFlows = 4096
)

// Counts says what the limits refused.
type Counts struct {
	Recordings, Refused int // Refused counts triggers
	Oversized           int // frames larger than the whole ring
	Written             int64
}

type slot struct {
	at, seen time.Time // seen never runs backwards
	flow     int
	size     int
	written  bool
}

// Recorder is not safe for concurrent use.
type Recorder struct {
	options     Options
	data        []byte
	slots       []slot
	dataAt      int // of the oldest frame
	dataUsed    int
	slotAt      int
	slotUsed    int
	now         time.Time
	lastEvicted time.Time
	lastFirst   time.Time
	open        *Recording
	listed      map[int]bool
	counts      Counts
}

// New makes a recorder. Bytes below 4,096 and negative times are errors.
func New(options Options) (*Recorder, error) {
	if options.Bytes < 4096 {
		return nil, errors.New("recorder: the memory must be at least 4096 bytes")
	}
	if options.Keep < 0 || options.After < 0 || options.Longest < 0 || options.Every < 0 {
		return nil, errors.New("recorder: a time is negative")
	}
	if options.Longest == 0 {
		options.Longest = 10 * options.After
	}
	options.Longest = max(options.Longest, options.After)
	count := options.Bytes / 4 / slotBytes
	return &Recorder{
		options: options, slots: make([]slot, count), data: make([]byte, options.Bytes-count*slotBytes),
	}, nil
}

// Push takes a copy of one frame. It returns the recording that the frame's time ends, or nil.
func (r *Recorder) Push(at time.Time, flow int, data []byte) *Recording {
	done := r.Tick(at)
	if len(data) > len(r.data) {
		r.counts.Oversized++
		if r.open != nil {
			r.open.Evicted++
		}
		return done
	}
	for r.slotUsed == len(r.slots) || r.dataUsed+len(data) > len(r.data) {
		r.evict()
	}
	start := (r.dataAt + r.dataUsed) % len(r.data)
	copied := copy(r.data[start:], data)
	copy(r.data, data[copied:])
	r.slots[(r.slotAt+r.slotUsed)%len(r.slots)] = slot{at: at, seen: r.now, flow: flow, size: len(data)}
	r.slotUsed++
	r.dataUsed += len(data)
	return done
}

// Tick moves the time on. It returns the recording whose time is over, or nil.
func (r *Recorder) Tick(now time.Time) *Recording {
	if now.After(r.now) {
		r.now = now
	}
	var done *Recording
	if r.open != nil && r.now.After(r.open.To) {
		done = r.Close()
	}
	oldest := r.now.Add(-r.options.Keep)
	if r.open != nil && r.open.From.Before(oldest) {
		oldest = r.open.From
	}
	for r.slotUsed > 0 && r.slots[r.slotAt].seen.Before(oldest) {
		r.drop()
	}
	return done
}

// Trigger opens a recording or joins the open one. It returns the recording that the trigger's time ends, or nil.
// A trigger in the past counts as one of now: the frames before the ring's memory are gone.
func (r *Recorder) Trigger(t Trigger) *Recording {
	done := r.Tick(t.At)
	t.At = r.now
	if r.open == nil {
		o := r.options
		if o.Files > 0 && r.counts.Recordings >= o.Files || o.Written > 0 && r.counts.Written >= o.Written ||
			!r.lastFirst.IsZero() && t.At.Sub(r.lastFirst) < o.Every {
			r.counts.Refused++
			return done
		}
		r.lastFirst = t.At
		r.counts.Recordings++
		r.open = &Recording{From: t.At.Add(-o.Keep), First: t}
		r.listed = map[int]bool{}
		if !r.lastEvicted.Before(r.open.From) && !r.lastEvicted.IsZero() {
			r.open.Evicted = 1 // at least one
		}
	}
	open := r.open
	open.Triggers++
	open.To = t.At.Add(r.options.After)
	if last := open.First.At.Add(r.options.Longest); open.To.After(last) {
		open.To = last
	}
	if len(open.Rules) < maxRules && !slices.Contains(open.Rules, t.Rule) {
		open.Rules = append(open.Rules, t.Rule)
	}
	if len(open.Flows) < maxFlows && !r.listed[t.Flow] {
		r.listed[t.Flow] = true
		open.Flows = append(open.Flows, t.Flow)
	}
	return done
}

// Close ends the open recording now, as at the end of a capture. It returns nil if none is open.
func (r *Recorder) Close() *Recording {
	done := r.open
	if done == nil {
		return nil
	}
	position := r.dataAt
	for i := range r.slotUsed {
		s := &r.slots[(r.slotAt+i)%len(r.slots)]
		inside := !s.seen.Before(done.From) && !s.seen.After(done.To)
		full := r.options.Written > 0 && r.counts.Written+int64(s.size) > r.options.Written
		if inside && !s.written && (r.options.All || r.listed[s.flow]) {
			if full {
				done.Limited++
			} else {
				data := make([]byte, s.size)
				copied := copy(data, r.data[position:])
				copy(data[copied:], r.data)
				done.Frames = append(done.Frames, Frame{At: s.at, Flow: s.flow, Data: data})
				s.written = true
				r.counts.Written += int64(s.size)
			}
		}
		position = (position + s.size) % len(r.data)
	}
	r.open, r.listed = nil, nil
	return done
}

// Counts returns what was recorded and refused so far.
func (r *Recorder) Counts() Counts { return r.counts }

func (r *Recorder) evict() {
	s := r.slots[r.slotAt]
	r.lastEvicted = s.seen
	if r.open != nil && !s.seen.Before(r.open.From) {
		r.open.Evicted++
	}
	r.drop()
}

func (r *Recorder) drop() {
	size := r.slots[r.slotAt].size
	r.dataAt = (r.dataAt + size) % len(r.data)
	r.dataUsed -= size
	r.slotAt = (r.slotAt + 1) % len(r.slots)
	r.slotUsed--
}
