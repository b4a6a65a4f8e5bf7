package store

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// Sieve finds the packets that a flow and a display filter leave, in the
// background: a goroutine of its own, with an analysis of its own where the
// filter asks about what only an analysis knows. Results show as they come.
//
// What passes are rows, from 0, each with its entry.
type Sieve struct {
	store  *Store
	flow   int            // 0 for all
	filter *filter.Filter // nil for none
	hits   hits           // under the store's lock
	flows  map[int]bool   // of which a packet passes, whichever flow is shown; under the lock too
	done   bool           // all that is to be expected was looked at
	err    error
	stop   chan struct{}
}

// Sift begins to look for the packets of a flow (0 for all) that pass a filter (nil
// for none).
func (s *Store) Sift(flow int, f *filter.Filter) *Sieve {
	x := &Sieve{store: s, flow: flow, filter: f, stop: make(chan struct{})}
	s.Work(x.run)
	return x
}

// Close ends the search.
func (x *Sieve) Close() { close(x.stop) }

// Rows is how many packets have passed so far.
func (x *Sieve) Rows() int { return x.hits.total }

// Entry returns the entry of a row; false where there are not so many.
func (x *Sieve) Entry(row int) (int, bool) { return x.hits.nth(row) }

// Row returns the row of an entry, or of the next one that passes.
func (x *Sieve) Row(entry int) int { return x.hits.rank(entry) }

// Refused reports whether an entry was looked at and does not pass.
func (x *Sieve) Refused(entry int) bool {
	return !x.hits.has(entry) && (x.hits.scanned > entry || x.done)
}

// FlowPassed reports whether a packet of a flow passes the filter, whichever flow is
// shown.
func (x *Sieve) FlowPassed(flow int) bool { return x.flows[flow] }

// Scanned is how many entries were looked at.
func (x *Sieve) Scanned() int { return x.hits.scanned }

// Done reports whether all that is to be expected was looked at.
func (x *Sieve) Done() bool { return x.done }

// Err says why packets could not be read; nil where they could.
func (x *Sieve) Err() error { return x.err }

// place is where a frame is read again.
type place struct {
	entry  int
	ref    machine.Ref
	offset int64
	flow   int
}

// run looks at the entries, batch by batch, and waits for more while the
// capture grows. A filter that was begun before the first run had learned what
// it could starts over then.
func (x *Sieve) run() {
	s := x.store
	var places []place
	var judge *judge
	next := 0
	var survey *analyze.Survey
	for {
		select {
		case <-x.stop:
			return
		default:
		}
		s.Lock()
		if x.filter != nil && judge == nil || s.survey != survey {
			survey = s.survey
			next, x.hits, x.flows = 0, hits{}, map[int]bool{}
			if x.filter != nil {
				judge = newJudge(x, survey)
			}
		}
		places = places[:0]
		for n := next; n < s.Len() && len(places) < batch; n++ {
			flow := s.timeline.FlowID(n)
			if x.filter == nil {
				if flow == x.flow {
					x.hits.add(n)
				}
				next = n + 1
				if next%(64*batch) == 0 {
					break
				}
				continue
			}
			places = append(places, s.placeOf(n))
			next = n + 1
		}
		idle := next == s.Len()
		ended := idle && len(places) == 0 && s.pass == 3
		if x.filter == nil {
			x.hits.scanned = next
			x.hits.grow(next)
			ended = idle && s.pass == 3
		}
		x.done = ended
		s.tell()
		s.Unlock()
		if ended {
			if judge != nil {
				judge.finish()
			}
			return
		}
		if len(places) > 0 {
			judge.take(places)
			continue
		}
		if idle && !s.wait(x.stop) {
			return
		}
	}
}

// judge asks a filter about frames, in order.
type judge struct {
	sieve    *Sieve
	session  *analyze.Session // nil where the filter asks about frames only
	near     *capture.RangeReader
	decoder  *capture.Decoder
	frame    capture.Frame
	packet   capture.Packet
	record   analyze.Record
	buf      []byte
	reading  *filter.Reading
	previous machine.Instant
	passed   []machine.Ref
}

func newJudge(x *Sieve, survey *analyze.Survey) *judge {
	j := &judge{sieve: x, near: x.store.in.RangeReader(), decoder: capture.NewDecoder(x.store.options.Decode),
		reading: x.store.NewReading()}
	needs := x.filter.Needs()
	j.reading.Join = needs&filter.NeedFields != 0
	if needs != 0 {
		o := x.store.options
		o.Survey, o.Sink = survey, j.ask
		j.session = analyze.NewSession(o)
	}
	j.previous = j.reading.Start
	j.near.Expect(capture.MostRange) // it looks at everything
	return j
}

func (j *judge) ask(r *analyze.Record) {
	if r.Frame == nil && r.Datagram.Bytes == nil {
		return
	}
	if j.sieve.filter.Match(j.reading.Take(r)) {
		j.passed = append(j.passed, r.Datagram.Ref)
	}
}

// take looks at a batch and publishes what passed.
func (j *judge) take(places []place) {
	x := j.sieve
	j.passed = j.passed[:0]
	var err error
	for _, p := range places {
		if j.buf, err = j.near.ReadAt(p.ref, p.offset, &j.frame, j.buf); err != nil {
			break
		}
		j.decoder.Decode(&j.frame, &j.packet)
		j.reading.Previous = j.previous
		j.previous = j.frame.At
		if j.session != nil {
			j.session.Feed(&j.frame, &j.packet)
			continue
		}
		j.record = analyze.Record{N: uint64(p.entry), Frame: &j.frame, Packet: &j.packet,
			Datagram: machine.Datagram{At: j.packet.At, Ref: j.packet.Ref, Bytes: j.packet.Payload, Length: j.packet.Length}}
		j.ask(&j.record)
	}
	j.publish(places[len(places)-1].entry + 1)
	if err != nil {
		x.store.Lock()
		x.err = err
		x.store.Unlock()
	}
}

func (j *judge) publish(scanned int) {
	x := j.sieve
	x.store.Lock()
	defer x.store.Unlock()
	x.hits.grow(scanned)
	for _, ref := range j.passed {
		n, ok := x.store.timeline.Find(ref)
		if ok {
			x.flows[x.store.timeline.FlowID(n)] = true
		}
		if ok && (x.flow == 0 || x.store.timeline.FlowID(n) == x.flow) {
			x.hits.add(n)
		}
	}
	x.hits.scanned = scanned
	x.store.tell()
}

// finish takes what the end of the capture tells of held datagrams.
func (j *judge) finish() {
	if j.session == nil {
		return
	}
	j.passed = j.passed[:0]
	j.session.Finish()
	j.publish(j.sieve.hits.scanned)
}
