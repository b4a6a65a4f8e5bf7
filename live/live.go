// Package live runs the analysis of traffic that is still arriving: of interfaces, of a pipe, or of
// a file that grows.
//
//	source → Session.Feed → Found, Ended, …   one goroutine, with the lock
//	clock  → Snapshot                         between two frames
//
// For example:
//
//	group, err := afpacket.OpenGroup(options)
//	session, err := live.Run(ctx, group, live.Options{
//		Analysis: analyze.Options{Registry: registry, Limits: analyze.LiveLimits, Found: found},
//		Ended:    func(f *analyze.Flow, why live.Why) { … },
//	})
//
// Callbacks run one at a time. None of them may call Do or wait for the run.
package live

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
)

// Options configure a run.
type Options struct {
	// Analysis configures the session. Its Limits are analyze.LiveLimits for traffic without end.
	// Its Found is called for each occurrence of a rule.
	Analysis analyze.Options

	// Frame is called for each frame before its analysis. An error ends the run. It may be nil.
	Frame func(*capture.Frame) error
	// Ended is called for each flow when its figures are final. That is when a limit removes it
	// (after Analysis.Gone), or at the end. It may be nil.
	Ended func(*analyze.Flow, Why)
	// Snapshot is called every Every (default: a second) between two frames, whether frames arrive
	// or not. It may be nil.
	Snapshot func(*analyze.Session)
	Every    time.Duration
	// Probe samples the host beside the frames of its interfaces. The findings then say what the host
	// dropped. It may be nil.
	Probe *Probe
	// Sampled is called for each sample of Probe, after the frame at which it was taken. An error ends
	// the run. It may be nil.
	Sampled func(*host.Sample) error
	// Dropped returns how many packets the capture lacks so far. If it is nil, nothing tells it
	// before the end of a source that is an analyze.Dropper. See the function Dropped.
	Dropped func() uint64
	// Grace is how long a source may still take, after the context is done, to return what it has
	// (default: a second). Then the run ends without it.
	Grace time.Duration
	// Lock is held but while the source is waited for. A caller that shares more than the session
	// with the run gives its own. It may be nil.
	Lock sync.Locker
}

// Why says why a flow ended.
type Why uint8

const (
	WhyIdle    Why = iota // it was silent for Limits.Idle
	WhyFlows              // there were too many flows
	WhyBytes              // their state was too large
	WhySession            // another session began on its addresses
	WhyEnd                // the run ended
)

// String returns the word of a Why: that of the analyze.Reason, or "end".
func (w Why) String() string {
	for reason, why := range whys {
		if why == w {
			return reason.String()
		}
	}
	return "end"
}

var whys = map[analyze.Reason]Why{
	analyze.ReasonIdle: WhyIdle, analyze.ReasonFlows: WhyFlows, analyze.ReasonBytes: WhyBytes,
	analyze.ReasonSession: WhySession,
}

// Live is a run.
type Live struct {
	source  capture.Source
	options Options
	lock    sync.Locker
	session *analyze.Session
	decoder *capture.Decoder
	over    bool // the run ended without waiting for the source
}

const (
	usualEvery = time.Second
	usualGrace = time.Second // Source: choice, the writer of a pipe that was interrupted too writes its last frames
)

// New prepares a run over a source, which the caller closes after Run. If the source has a method
// Stop, as afpacket.Group and File have, it is called when the context is done.
func New(src capture.Source, o Options) *Live {
	l := &Live{source: src, options: o, lock: o.Lock}
	if l.lock == nil {
		l.lock = &sync.Mutex{}
	}
	if l.options.Every <= 0 {
		l.options.Every = usualEvery
	}
	if l.options.Grace <= 0 {
		l.options.Grace = usualGrace
	}
	a := o.Analysis
	if o.Ended != nil {
		gone := a.Gone
		a.Gone = func(f *analyze.Flow, reason analyze.Reason) {
			if gone != nil {
				gone(f, reason)
			}
			o.Ended(f, whys[reason])
		}
	}
	if p := o.Probe; p != nil {
		found := a.Found
		a.Found = func(x *analyze.Finding) {
			p.Ask()
			if found != nil {
				found(x)
			}
		}
	}
	l.session, l.decoder = analyze.NewSession(a), capture.NewDecoder(a.Decode)
	return l
}

// Session returns the session. Until Run has returned, only callbacks and holders of the lock use
// it.
func (l *Live) Session() *analyze.Session { return l.session }

// Decoder returns the decoder of the frames, for the same users.
func (l *Live) Decoder() *capture.Decoder { return l.decoder }

// Do calls f between two frames, for a caller in another goroutine.
func (l *Live) Do(f func(*analyze.Session)) {
	l.lock.Lock()
	defer l.lock.Unlock()
	f(l.session)
}

// Run makes a run over a source, and returns its session.
func Run(ctx context.Context, src capture.Source, o Options) (*analyze.Session, error) {
	l := New(src, o)
	err := l.Run(ctx)
	return l.session, err
}

// Run analyses until the source ends or the context is done, and then finishes the session, so that
// what is open is settled. The error is that of the source or of Options.Frame. The end of the
// context is none.
func (l *Live) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() {
		l.lock.Lock()
		defer l.lock.Unlock()
		err := l.session.Drive(l.guarded(), l.decoder)
		l.finish()
		ended <- err
	}()
	ticker := time.NewTicker(l.options.Every)
	defer ticker.Stop()
	done := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			return err
		case <-done:
			done = nil
			if s, ok := l.source.(interface{ Stop() }); ok {
				s.Stop()
			}
			timer := time.NewTimer(l.options.Grace)
			defer timer.Stop()
			late = timer.C
		case <-late: // the source may wait for a frame for ever
			return l.abandon(ended)
		case <-ticker.C:
			l.tick()
		}
	}
}

// abandon ends the run without its source, unless it has ended meanwhile.
func (l *Live) abandon(ended <-chan error) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	select {
	case err := <-ended:
		return err
	default:
	}
	l.over = true
	l.finish()
	return nil
}

// finish settles what is open.
func (l *Live) finish() {
	l.tellDropped()
	l.session.Finish()
	if l.options.Ended == nil {
		return
	}
	for _, f := range l.session.Flows() {
		l.options.Ended(f, WhyEnd)
	}
}

func (l *Live) tick() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.tellDropped()
	if l.options.Snapshot != nil {
		l.options.Snapshot(l.session)
	}
}

func (l *Live) tellDropped() {
	if l.options.Dropped != nil {
		l.session.CaptureDropped(l.options.Dropped())
	}
}

// Dropped returns how many packets a capture on interfaces lacks: what its kernel and its
// interfaces dropped.
func Dropped(src interface {
	Statistics() ([]capture.Statistics, error)
},
) (n uint64) {
	list, err := src.Statistics()
	if err != nil {
		return 0 // the final counts report the error
	}
	for _, st := range list {
		n += st.OSDropped + st.Dropped
	}
	return n
}

// guarded returns the source as the session reads it. It tells of drops only if the source does.
func (l *Live) guarded() capture.Source {
	g := &guarded{l}
	if d, ok := l.source.(analyze.Dropper); ok {
		return struct {
			*guarded
			analyze.Dropper
		}{g, d}
	}
	return g
}

// guarded is a source that gives the lock free while it waits.
type guarded struct{ *Live }

// Next implements capture.Source.
func (g *guarded) Next(f *capture.Frame) error {
	g.lock.Unlock()
	err := g.source.Next(f)
	sample := g.sample(f, err)
	g.lock.Lock()
	if g.over {
		runtime.Goexit() // the session has ended, and its caller reads it
	}
	if err == nil && g.options.Frame != nil {
		if err := g.options.Frame(f); err != nil {
			return err
		}
	}
	if sample != nil {
		g.options.Probe.keep(sample)
		if g.options.Sampled != nil {
			if err := g.options.Sampled(sample); err != nil {
				return err
			}
		}
	}
	return err
}

// sample takes a sample if one is due at a frame, or where the source has ended. That can take time,
// so it is done without the lock.
func (g *guarded) sample(f *capture.Frame, ended error) *host.Sample {
	switch {
	case g.options.Probe == nil:
		return nil
	case ended != nil:
		return g.options.Probe.take()
	}
	return g.options.Probe.look(f)
}

// Close implements capture.Source. The caller of the run closes the source itself.
func (g *guarded) Close() error { return nil }

// Host implements analyze.Hosted.
func (g *guarded) Host() *host.Timeline {
	if g.options.Probe != nil {
		return g.options.Probe.Host()
	}
	if h, ok := g.source.(analyze.Hosted); ok {
		return h.Host()
	}
	return nil
}

// InterfaceName implements analyze.Hosted.
func (g *guarded) InterfaceName(file, index int) string {
	switch s := g.source.(type) { // asked only where Host returned samples
	case analyze.Hosted:
		return s.InterfaceName(file, index)
	case interface{ Interfaces() []capture.Interface }: // a group of them, as of package afpacket
		if list := s.Interfaces(); index < len(list) {
			return list[index].Name
		}
	}
	return ""
}
