package reader

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/metrics"
	"github.com/ackscope/ackscope/show"
)

// Running is an analysis of live traffic, from interfaces or a pipe. One
// goroutine reads and analyses. It holds the lock, except while it waits for
// the next frame. So others, such as a scrape of metrics, see the session
// between two frames.
type Running struct {
	app    *app.App
	watch  *WatchFlags
	Reader *Reader
	from   *Recording
	flags  *LiveFlags
	paint  show.Painter
	limits analyze.Limits
	memory int64

	mu        sync.Mutex
	Session   *analyze.Session
	decoder   *capture.Decoder
	Each      []uint64 // frames by interface, or by file
	unsaved   uint64
	collector *metrics.Collector
	Alerts    *alerts
	rows      *export.Rows[export.FindingRow] // alerts as JSON
	access    *metricsAccess                  // access to the server; nil without --metrics
	server    io.Closer                       // of metrics; nil without --metrics
	common    commonCause
	Screen    *app.Screen // nil if nothing is drawn
	live      *live.Live
	every     time.Duration // between two calls of Tick; 0 for never
	drawn     time.Time
	Tick      func() // called at every interval of --every; may be nil
	Err       error  // the error of printing

	OnFrame func(*capture.Frame)   // called before the analysis; may be nil
	OnFound func(*analyze.Finding) // called for each occurrence of a rule; may be nil
	OnTick  func()                 // called several times a second, with the lock; may be nil
}

// flushEvery is how long output stays buffered at most.
const flushEvery = 200 * time.Millisecond

// Begin opens a recording, or the interfaces of the flags. The caller calls
// End.
func (l *LiveFlags) Begin(a *app.App, w *WatchFlags, from *Recording) (r *Running, err error) {
	r = &Running{app: a, watch: w, from: from, flags: l}
	if r.limits, r.memory, err = w.Limits(a, l.endless(w)); err != nil {
		return nil, err
	}
	if r.Alerts, err = parseAlerts(a, w.Alerts); err != nil {
		return nil, err
	}
	if r.paint, err = a.Painter(); err != nil {
		return nil, err
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	if w.Metrics != "" { // refuse wrong flags before anything is opened
		if _, err := listenAddress(w.Metrics); err != nil {
			return nil, err
		}
	}
	if err := w.checkAccess(); err != nil {
		return nil, err
	}
	if len(l.Devices) == 0 {
		if r.access, err = w.access(a.Advise); err != nil {
			return nil, err
		}
		if r.Reader, err = Open(a, from, Options{Keep: capture.KeepNothing}); err != nil {
			return nil, err
		}
		r.Reader.Most, r.Each = l.Left(), make([]uint64, r.Reader.In.Files())
		if l.Write != "" {
			if r.Reader.Save, err = NewStream(a, l.Write, l.Format, OriginOf(r.Reader.In)); err != nil {
				return nil, errors.Join(err, r.Reader.Close())
			}
		}
		return r, nil
	}
	access := func() (err error) {
		r.access, err = w.access(a.Advise) // as the unprivileged user
		return err
	}
	if r.Reader, err = l.start(a, r.Warn, access); err != nil {
		return nil, err
	}
	r.Reader.Most, r.Each = Least(r.Reader.Most, l.Count), make([]uint64, len(l.Devices))
	return r, nil
}

// Warn prints a warning, from the goroutine that reads.
func (r *Running) Warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Screen.Clear()
	r.app.Warn(text)
}

// Next implements capture.Source.
func (r *Running) Next(f *capture.Frame) error { return r.Reader.Next(f) }

// count counts a frame, with the lock.
func (r *Running) count(f *capture.Frame) error {
	if r.Err != nil {
		return r.Err
	}
	n := f.Interface
	if r.Reader.Live == nil {
		n = f.Ref.File()
	}
	r.Each[n]++
	if r.Reader.SaveErr != nil {
		r.unsaved++
	}
	if r.OnFrame != nil {
		r.OnFrame(f)
	}
	return nil
}

// Dropped returns how many packets the capture lacks.
func (r *Running) Dropped() uint64 {
	if r.Reader.Live == nil {
		return r.Reader.Dropped()
	}
	return live.Dropped(r.Reader.Live.Group)
}

// sampled writes a sample to the file of -w. That can warn, which takes the lock.
func (r *Running) sampled(s *host.Sample) error {
	r.mu.Unlock()
	defer r.mu.Lock()
	return r.Reader.writeSample(s)
}

// Host implements analyze.Hosted.
func (r *Running) Host() *host.Timeline { return r.Reader.Host() }

// InterfaceName implements analyze.Hosted.
func (r *Running) InterfaceName(file, index int) string { return r.Reader.InterfaceName(file, index) }

// Close implements capture.Source.
func (r *Running) Close() error { return r.Reader.Close() }

// prepare configures an analysis by the flags.
func (r *Running) prepare(o analyze.Options) error {
	o.Limits = r.limits
	if r.watch.Metrics != "" {
		version, goVersion := app.BuildVersion()
		r.collector = metrics.New(o.Registry, version, goVersion)
		sink := o.Sink
		o.Sink = func(rec *analyze.Record) {
			r.collector.Take(rec)
			if sink != nil {
				sink(rec)
			}
		}
	}
	o.Found = func(x *analyze.Finding) {
		if r.collector != nil {
			r.collector.Found(x)
		}
		if before, ok := r.Alerts.wants(x, r.Reader.latest); ok {
			r.alert(x, before)
		}
		if r.OnFound != nil {
			r.OnFound(x)
		}
	}
	if gone := o.Gone; r.Alerts != nil {
		o.Gone = func(f *analyze.Flow, why analyze.Reason) {
			r.Alerts.forget(f)
			if gone != nil {
				gone(f, why)
			}
		}
	}
	if r.memory > 0 {
		debug.SetMemoryLimit(r.memory)
	}
	x := live.Options{
		Analysis: o, Frame: r.count, Snapshot: r.tick, Every: flushEvery, Lock: &r.mu,
		Probe: r.Reader.Probe, Sampled: r.sampled,
	}
	r.Reader.Probe = nil // the analysis samples, where others do not read the samples
	if r.Reader.Live != nil {
		x.Dropped = r.Dropped
	}
	r.live = live.New(r, x)
	r.Session, r.decoder = r.live.Session(), r.live.Decoder()
	if r.watch.Metrics != "" {
		return r.serve()
	}
	return nil
}

// Run analyses everything and finishes the session. The error is how the source
// ended.
func (r *Running) Run(o analyze.Options) (*analyze.Session, error) {
	if err := r.prepare(o); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if r.Reader.Live == nil { // a live capture handles interrupts itself
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second interrupt ends the program
	}
	r.every, r.drawn = r.interval(), time.Now()
	err := r.live.Run(ctx)
	r.mu.Lock() // for good: a scrape waits for the end of its server
	if r.Err != nil {
		err = r.Err
	}
	if r.server != nil {
		err = errors.Join(err, r.server.Close())
	}
	r.Screen.Clear()
	if !errors.Is(err, r.Err) {
		err = errors.Join(err, r.Err)
	}
	return r.Session, err
}

// Show analyses everything. On the way it calls tick to print intermediate
// results, if there is a screen or rows is set. At the end it calls all to
// print the results.
func (r *Running) Show(o analyze.Options, rows bool, tick func(), all func(*analyze.Session) error) error {
	if r.Screen = r.app.NewScreen(); r.Screen != nil || rows {
		r.Tick = tick
	}
	s, err := r.Run(o)
	if s != nil {
		err = errors.Join(err, all(s))
	}
	return r.app.Ended(errors.Join(err, r.End()))
}

// Count reads everything without analysis.
func (r *Running) Count() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var f capture.Frame // declared here, since one in the loop would be allocated for each packet
	for {
		r.mu.Unlock()
		err := r.Next(&f)
		r.mu.Lock()
		if err == nil || r.Err != nil {
			err = r.count(&f)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// interval returns the interval of Tick, or 0 for never.
func (r *Running) interval() time.Duration {
	if r.watch.every == 0 && r.Screen != nil {
		return time.Second
	}
	return r.watch.every
}

// tick does what is due by the clock, with the lock.
func (r *Running) tick(*analyze.Session) {
	if now := time.Now(); r.every > 0 && now.Sub(r.drawn) >= r.every && r.Tick != nil {
		r.drawn = now
		r.Tick()
	}
	if r.OnTick != nil {
		r.OnTick()
	}
	if err := r.app.Flush(); err != nil && r.Err == nil {
		r.Err = err
	}
}

// End closes the source, prints what the capture counted, and ends the written
// file.
func (r *Running) End() error {
	if r.Reader.Live == nil {
		var err error
		r.flags.Counted += r.Reader.Frames
		if r.Reader.Save != nil {
			err = r.Reader.Save.Close(nil)
		}
		return errors.Join(err, r.Reader.Close())
	}
	st, err := r.Reader.EndLive()
	if r.Reader.Save != nil {
		err = errors.Join(err, r.Reader.Save.Close(st))
	}
	return errors.Join(err, r.Reader.SaveErr)
}

var started = time.Now()
