package analyze

import "github.com/ackscope/ackscope/capture"

// ReadAhead is a source that may be read on another goroutine than the caller's, ahead of the
// analysis, until it is closed.
type ReadAhead interface {
	MayReadAhead() bool
}

// Lender is a source whose frames can stay valid until their reader needs them no more. capture.Input
// is a Lender, and says what Lend does.
type Lender interface {
	Lend(swap func(full []byte) []byte) bool
}

// Sampled is a source that forgets the samples of the capturing host that it has read so far.
type Sampled interface {
	ForgetHost()
}

// plan says how many shards a run over a source has, and whether they hand on copies of records.
// No shards mean that the caller's goroutine does everything.
func plan(src capture.Source, options []Options) (shards int, copies bool) {
	ahead, ok := src.(ReadAhead)
	if !ok || !ahead.MayReadAhead() {
		return 0, false
	}
	if h, ok := src.(Hosted); ok && !h.Host().Empty() {
		return 0, false // its samples are read between the frames
	}
	shards = options[0].Threads
	if _, again := src.(Rewinder); shards < 2 || !again {
		return 0, false
	}
	for i := range options {
		o := &options[i]
		sink := o.Sink != nil || o.Split != nil
		switch {
		case o.Fed != nil, o.Found != nil, o.Limits.Idle > 0, sink && (o.Survey == nil || !o.Detached && o.Split == nil):
			return 0, false
		case sink && !o.Survey.separable(o):
			shards = 1
		}
	}
	for i := range options {
		o := &options[i]
		if shards == 1 && o.Split != nil && o.Detached { // another goroutine shares the work
			o.Sink, o.Split = o.Split(), nil
		}
		copies = copies || o.Sink != nil && o.Split == nil
	}
	return min(shards, maxShards), copies
}

// maxShards bounds the goroutines of a run. Reading keeps a few shards busy, not more.
// Source: bound, reading and decoding take a third of the time of the trackers
const maxShards = 8
