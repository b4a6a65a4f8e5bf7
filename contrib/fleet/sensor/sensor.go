// Package sensor analyses traffic on one host and tells a hub of it.
//
//	interface or file → live session ─┬→ flows, findings → spool → forwarder → hub
//	                                  └→ ring of pcapng files → cut → object store, when asked
//
// The spool lies on the disk. So the hub may be away for as long as the spool has room.
package sensor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/ring"
	"github.com/ackscope/ackscope/unit"
)

// Options configure a sensor.
type Options struct {
	At       message.Place
	Version  string
	Analysis analyze.Options // the registry and the overrides of detection
	Probe    *live.Probe     // samples the host beside live frames; nil if nothing is sampled
	Ring     *ring.Ring      // nil if packets are not kept
	Fetch    FetchOptions
	Health   time.Duration // time between two reports
	Notice   func(text string)
}

const (
	// DefaultHealth is the time between two reports of a sensor.
	DefaultHealth = 10 * time.Second
	tick          = time.Second // for what is due by the clock
	// pinAfter is how much longer than the finding the packets are kept: what follows it often explains it.
	pinAfter = 10 * time.Second
	// mostPins bounds the flows whose packets are pinned. The ring bounds their bytes too.
	mostPins = 1024
)

// Sensor is a running sensor.
type Sensor struct {
	options   Options
	spool     *Spool
	hub       *nats.Conn
	forwarder *Forwarder
	fetcher   *fetcher

	rows *message.Rows
	body []byte
	told map[*analyze.Finding]uint64 // the count that was told
	pins []pin
	err  error // of a callback
	ctx  context.Context

	begun   time.Time
	packets atomic.Uint64
	lacks   atomic.Uint64 // packets
	flows   atomic.Int64
}

// pin holds the packets of a flow with a finding.
type pin struct {
	flow *analyze.Flow
	ring *ring.Pin
}

// New returns a sensor that tells what it sees through a spool.
func New(s *Spool, hub *nats.Conn, o Options) (*Sensor, error) {
	if err := o.At.Check(); err != nil {
		return nil, err
	}
	if o.Health <= 0 {
		o.Health = DefaultHealth
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	f, err := NewForwarder(s, hub)
	if err != nil {
		return nil, err
	}
	f.Notice = o.Notice
	x := &Sensor{
		options: o, spool: s, hub: hub, forwarder: f, rows: message.NewRows(), told: map[*analyze.Finding]uint64{},
		begun: time.Now(),
	}
	if o.Fetch.Allow {
		if o.Ring == nil {
			return nil, errors.New("--allow-fetch: expected --ring too, from which packets are cut")
		}
		x.fetcher = newFetcher(hub, &x.options)
	}
	return x, nil
}

// Run analyses a source until it ends or the context is done. What is told then is in the spool. The function dropped
// returns how many packets the source lacks so far; nil means that only its end tells.
func (s *Sensor) Run(ctx context.Context, src capture.Source, dropped func() uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.ctx = context.WithoutCancel(ctx) // the last rows are told after the end
	o := s.options.Analysis
	o.Found = s.found
	run := live.New(src, live.Options{
		Analysis: o, Frame: s.frame, Ended: s.ended, Every: tick, Dropped: dropped,
		Probe: s.options.Probe, Sampled: s.sampled,
		Snapshot: func(session *analyze.Session) {
			if s.snapshot(session); s.err != nil {
				cancel(s.err)
			}
		},
	})
	err := run.Run(ctx)
	s.snapshot(run.Session())
	if s.err == nil {
		s.err = s.spool.Settle(s.ctx)
	}
	return errors.Join(err, s.err)
}

// Serve forwards, answers and reports until the context ends.
func (s *Sensor) Serve(ctx context.Context) error {
	if s.fetcher != nil {
		if err := s.fetcher.serve(ctx); err != nil {
			return err
		}
	}
	go s.report(ctx)
	return s.forwarder.Run(ctx)
}

// Drain waits until the hub has all rows, or the context is done. It returns how many rows are left.
func (s *Sensor) Drain(ctx context.Context) uint64 {
	for {
		rows, _, err := s.spool.Waiting(context.WithoutCancel(ctx))
		if err != nil || rows == 0 {
			return rows
		}
		select {
		case <-ctx.Done():
			return rows
		case <-time.After(leastPause):
		}
	}
}

// frame keeps a frame. A ring that cannot be written does not end the analysis.
func (s *Sensor) frame(f *capture.Frame) error {
	if s.err != nil {
		return s.err
	}
	if s.options.Ring != nil {
		s.kept(s.options.Ring.Write(f))
	}
	return nil
}

// sampled keeps a sample of the host beside the frames.
func (s *Sensor) sampled(x *host.Sample) error {
	if s.options.Ring != nil {
		s.kept(s.options.Ring.WriteHost(x))
	}
	return nil
}

// kept gives up the ring after an error.
func (s *Sensor) kept(err error) {
	if err != nil {
		s.options.Notice(fmt.Sprintf("ring: %v: packets are kept no more, the analysis goes on", err))
		s.options.Ring = nil
	}
}

// found tells a finding that is new, and again each time its count has doubled. A rule that fires for every packet
// must not fill the spool.
func (s *Sensor) found(x *analyze.Finding) {
	before := s.told[x]
	if before > 0 && x.Count < 2*before {
		return
	}
	s.told[x] = x.Count
	s.finding(x, true)
	s.pin(x)
}

// ended tells a flow with its last findings.
func (s *Sensor) ended(f *analyze.Flow, why live.Why) {
	for _, x := range f.Findings() {
		s.finding(x, false)
		delete(s.told, x)
	}
	word := ""
	if why != live.WhyEnd { // the column has words for limits only
		word = why.String()
	}
	s.tell(message.Flows, s.rows.Flow(unit.FlowUID(f).String(), &export.FlowRow{Flow: f, Ended: word}))
}

func (s *Sensor) finding(x *analyze.Finding, provisional bool) {
	row := s.rows.Finding(unit.FlowUID(x.Flow).String(), &export.FindingRow{Finding: x, Provisional: provisional})
	s.tell(message.Findings, row)
}

func (s *Sensor) tell(kind message.Kind, cells []export.Cell) {
	if s.err != nil {
		return
	}
	s.body = message.Append(s.body[:0], kind, cells)
	s.err = s.spool.Tell(s.ctx, kind, append([]byte(nil), s.body...))
}

// pin keeps the packets of the flow of a finding, from its first one on.
func (s *Sensor) pin(x *analyze.Finding) {
	r := s.options.Ring
	if r == nil {
		return
	}
	kept := s.pins[:0]
	for _, p := range s.pins {
		if p.flow == x.Flow {
			defer p.ring.Release() // once the new one holds
			continue
		}
		kept = append(kept, p)
	}
	s.pins = kept
	if len(s.pins) == mostPins {
		s.pins[0].ring.Release()
		s.pins = s.pins[1:]
	}
	s.pins = append(s.pins, pin{x.Flow, r.Pin(x.Flow.First, x.Last.Add(pinAfter))})
}

// snapshot takes the figures for reports, and lets the ring do what is due.
func (s *Sensor) snapshot(session *analyze.Session) {
	s.packets.Store(session.Packets())
	s.lacks.Store(session.Dropped())
	s.flows.Store(int64(len(session.Flows())))
	if r := s.options.Ring; r != nil {
		if err := r.Tick(); err != nil {
			s.options.Notice("ring: " + err.Error())
		}
	}
}

// report publishes how the sensor does.
func (s *Sensor) report(ctx context.Context) {
	every := time.NewTicker(s.options.Health)
	defer every.Stop()
	for {
		if body, err := message.Encode(s.Report(ctx)); err == nil {
			_ = s.hub.Publish(message.Subject(message.Health, s.options.At), body) // the next one follows
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// Report returns how the sensor does.
func (s *Sensor) Report(ctx context.Context) *message.Report {
	r := &message.Report{
		Version: s.options.Version, Epoch: s.spool.Epoch(), Up: int64(time.Since(s.begun) / time.Second),
		Packets: s.packets.Load(), KernelDropped: s.lacks.Load(), OpenFlows: int(s.flows.Load()),
		Told: s.spool.Told(), Forwarded: s.forwarder.Confirmed(), Dropped: s.forwarder.Dropped(), Fetch: s.fetcher != nil,
	}
	r.Spooled, r.SpoolSize, _ = s.spool.Waiting(ctx) // zero says that it is not known
	if s.options.Ring != nil {
		status := s.options.Ring.Status()
		r.RingBytes, r.RingFrom, r.GivenUp = status.Bytes, status.Oldest, status.GivenUp
	}
	return r
}
