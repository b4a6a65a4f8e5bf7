package store

import (
	"errors"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// FilterJob finds the packets that belong to a flow and pass a display filter.
// It runs in a goroutine of its own. If the filter needs analysis, the job has
// an analysis of its own. Results appear while it runs.
//
// A row is a packet that passed, counted from 0. Each row has its entry in the
// store.
type FilterJob struct {
	store  *Store
	flow   int               // 0 for all
	filter *filter.Filter    // nil for none
	hits   hits              // needs the store's lock
	flows  map[int]bool      // flows of which a packet passes, whatever flow is shown; needs the store's lock
	done   bool              // every entry has been checked
	known  *filter.Hindsight // what the filter needs of later packets; nil until it is gathered
	err    error
	stop   chan struct{}
}

// StartFilter starts a search for the packets of a flow that pass a filter.
// Flow 0 means all flows; a nil filter passes everything.
func (s *Store) StartFilter(flow int, f *filter.Filter) *FilterJob {
	x := &FilterJob{store: s, flow: flow, filter: f, stop: make(chan struct{})}
	s.Work(x.run)
	return x
}

// Close stops the search.
func (x *FilterJob) Close() { close(x.stop) }

// Rows returns the number of packets that have passed so far.
func (x *FilterJob) Rows() int { return x.hits.total }

// Entry returns the entry of a row. It returns false if there is no such row.
func (x *FilterJob) Entry(row int) (int, bool) { return x.hits.nth(row) }

// Row returns the row of an entry, or of the next entry that passes.
func (x *FilterJob) Row(entry int) int { return x.hits.rank(entry) }

// Refused reports whether an entry was checked and did not pass.
func (x *FilterJob) Refused(entry int) bool {
	return !x.hits.has(entry) && (x.hits.scanned > entry || x.done)
}

// FlowPassed reports whether a packet of a flow passes the filter, whatever
// flow is shown.
func (x *FilterJob) FlowPassed(flow int) bool { return x.flows[flow] }

// Scanned returns the number of entries that were checked.
func (x *FilterJob) Scanned() int { return x.hits.scanned }

// Done reports whether every entry was checked.
func (x *FilterJob) Done() bool { return x.done }

// Hindsight returns what the filter needs of later packets, or nil.
func (x *FilterJob) Hindsight() *filter.Hindsight { return x.known }

// Err returns the error that kept packets from being read, or nil.
func (x *FilterJob) Err() error { return x.err }

// place is where to read a frame of the store.
type place struct {
	entry  int
	ref    machine.Ref
	offset int64
	flow   int
}

// run checks the entries batch by batch, and waits for more while the capture
// grows. The first run over a file learns settings that a filter may need. When
// it ends, run restarts.
func (x *FilterJob) run() {
	s := x.store
	var places []place
	var matcher *matcher
	next := 0
	var survey *analyze.Survey
	for {
		select {
		case <-x.stop:
			return
		default:
		}
		s.Lock()
		if x.filter != nil && matcher == nil || s.survey != survey {
			survey = s.survey
			next, x.hits, x.flows = 0, hits{}, map[int]bool{}
			if x.filter != nil {
				matcher = newMatcher(x, survey)
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
		if idle && len(places) == 0 && s.pass > 1 && matcher.gathers() {
			s.Unlock()
			matcher = matcher.gathered()
			next = 0
			continue
		}
		ended := idle && len(places) == 0 && s.pass == 3
		if x.filter == nil {
			x.hits.scanned = next
			x.hits.grow(next)
			ended = idle && s.pass == 3
		}
		x.done = ended
		s.notify()
		s.Unlock()
		if ended {
			if matcher != nil {
				matcher.finish()
			}
			return
		}
		if len(places) > 0 {
			matcher.take(places)
			continue
		}
		if idle && !s.wait(x.stop) {
			return
		}
	}
}

// matcher applies a filter to frames in order.
type matcher struct {
	job      *FilterJob
	session  *analyze.Session // nil if the filter needs frames only
	near     *capture.RangeReader
	decoder  *capture.Decoder
	frame    capture.Frame
	packet   capture.Packet
	record   analyze.Record
	buf      []byte
	reading  *filter.Reading
	previous machine.Instant
	passed   []machine.Ref
	survey   *analyze.Survey
	gather   *filter.Hindsight // filled by a run before the one that asks the filter; nil in that one
}

func newMatcher(x *FilterJob, survey *analyze.Survey) *matcher {
	m := &matcher{
		job: x, near: x.store.in.RangeReader(), decoder: capture.NewDecoder(x.store.options.Decode),
		reading: x.store.NewReading(),
	}
	m.survey = survey
	needs := x.filter.Needs()
	m.reading.Join = needs&filter.NeedFields != 0
	if needs != 0 {
		o := x.store.options
		o.Survey, o.Sink = survey, m.ask
		if survey != nil && needs&filter.NeedHindsight != 0 {
			m.gather = filter.NewHindsight(needs, hindsightRoom)
			o.Sink = m.gather.Take
		}
		m.session = analyze.NewSession(o)
	}
	m.previous = m.reading.Start
	m.near.Expect(capture.MostRange) // it reads every frame
	return m
}

// hindsightRoom bounds what a filter keeps of fates, messages and events of packets, in bytes.
// Source: bound, memory of one filter of the terminal UI: a million packets of one message each
const hindsightRoom = 1 << 30

// gathers reports whether m runs before the filter is asked.
func (m *matcher) gathers() bool { return m != nil && m.gather != nil }

// gathered ends such a run, and returns the matcher that asks the filter.
func (m *matcher) gathered() *matcher {
	m.session.Finish()
	x := m.job
	x.store.Lock()
	x.known = m.gather
	if m.gather.Full() {
		x.err = errors.New("the filter asks for more fates and messages than there is memory for: some packets are not found")
	}
	x.store.Unlock()
	next := &matcher{
		job: x, near: m.near, buf: m.buf, reading: m.reading, survey: m.survey, previous: m.reading.Start,
		// The decoder of the first run knows all frames. It would take each for a copy of itself.
		decoder: capture.NewDecoder(x.store.options.Decode),
	}
	next.reading.Hindsight = m.gather
	o := x.store.options
	o.Survey, o.Sink = m.survey, next.ask
	next.session = analyze.NewSession(o)
	return next
}

func (m *matcher) ask(r *analyze.Record) {
	if r.Frame == nil && r.Datagram.Bytes == nil {
		return
	}
	if m.job.filter.Match(m.reading.Take(r)) {
		m.passed = append(m.passed, r.Datagram.Ref)
	}
}

// take checks a batch of frames and publishes those that passed.
func (m *matcher) take(places []place) {
	x := m.job
	m.passed = m.passed[:0]
	var err error
	for _, p := range places {
		if m.buf, err = m.near.ReadAt(p.ref, p.offset, &m.frame, m.buf); err != nil {
			break
		}
		m.decoder.Decode(&m.frame, &m.packet)
		m.reading.Previous = m.previous
		m.previous = m.frame.At
		if m.session != nil {
			m.session.Feed(&m.frame, &m.packet)
			continue
		}
		m.record = analyze.Record{
			N: uint64(p.entry), Frame: &m.frame, Packet: &m.packet,
			Datagram: machine.Datagram{At: m.packet.At, Ref: m.packet.Ref, Bytes: m.packet.Payload, Length: m.packet.Length},
		}
		m.ask(&m.record)
	}
	if !m.gathers() {
		m.publish(places[len(places)-1].entry + 1)
	}
	if err != nil {
		x.store.Lock()
		x.err = err
		x.store.Unlock()
	}
}

func (m *matcher) publish(scanned int) {
	x := m.job
	x.store.Lock()
	defer x.store.Unlock()
	x.hits.grow(scanned)
	for _, ref := range m.passed {
		n, ok := x.store.timeline.Find(ref)
		if ok {
			x.flows[x.store.timeline.FlowID(n)] = true
		}
		if ok && (x.flow == 0 || x.store.timeline.FlowID(n) == x.flow) {
			x.hits.add(n)
		}
	}
	x.hits.scanned = scanned
	x.store.notify()
}

// finish checks the datagrams that the analysis held until the end of the
// capture.
func (m *matcher) finish() {
	if m.session == nil {
		return
	}
	m.passed = m.passed[:0]
	m.session.Finish()
	m.publish(m.job.hits.scanned)
}
