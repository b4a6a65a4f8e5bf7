package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/metrics"
	"github.com/ackscope/ackscope/printable"
)

// running is an analysis of traffic as it comes, from interfaces or a pipe. One
// goroutine reads and analyses; it holds the lock but while it waits for the next
// frame, so that others (a scrape of metrics, the table on the terminal) see the
// session as it is between two frames.
type running struct {
	app    *app
	watch  *watchFlags
	live   *session       // nil for files and pipes
	in     *capture.Input // nil on interfaces
	feed   *feed
	from   *recording
	flags  *liveFlags
	paint  painter
	limits analyze.Limits
	memory int64

	mu        sync.Mutex
	session   *analyze.Session
	decoder   *capture.Decoder
	each      []uint64 // frames by interface, or by file
	unsaved   uint64
	collector *metrics.Collector
	alerts    *alerts
	rows      *export.Rows[export.FindingRow] // of alerts as JSON
	access    *metricsAccess                  // of the server; nil without metrics
	server    *http.Server
	screen    *screen // nil where nothing is drawn
	tick      func()  // what the command does every so often; nil for nothing
	err       error   // of printing

	onFrame func(*capture.Frame) // of the command, before the analysis; nil for nothing
}

// flushEvery is the longest that what was printed is kept back.
const flushEvery = 200 * time.Millisecond

// begin opens a recording, or the interfaces that the flags name. The caller ends what it gives.
func (l *liveFlags) begin(a *app, w *watchFlags, from *recording) (r *running, err error) {
	r = &running{app: a, watch: w, from: from, flags: l}
	if r.limits, r.memory, err = w.limits(a, l.endless(w)); err != nil {
		return nil, err
	}
	if r.alerts, err = a.parseAlerts(w.alerts); err != nil {
		return nil, err
	}
	if r.paint, err = a.painter(); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if w.metrics != "" { // refused while nothing is open yet
		if _, err := listenAddress(w.metrics); err != nil {
			return nil, err
		}
	}
	if err := w.checkAccess(); err != nil {
		return nil, err
	}
	if len(l.devices) == 0 {
		if r.access, err = w.access(a.advise); err != nil {
			return nil, err
		}
		if r.in, err = a.open(from, capture.KeepNothing); err != nil {
			return nil, err
		}
		r.feed, r.each = &feed{source: r.in, most: l.left()}, make([]uint64, r.in.Files())
		if l.write != "" {
			if r.feed.copyTo, err = a.newStream(l.write, l.format, originOf(r.in)); err != nil {
				return nil, errors.Join(err, r.in.Close())
			}
		}
		return r, nil
	}
	s, packets, err := l.open(a)
	if err != nil {
		return nil, err
	}
	if r.access, err = w.access(a.advise); err != nil { // by the user who goes on
		return nil, errors.Join(err, s.live.Close())
	}
	r.live = s
	r.feed, r.each = &feed{source: s.live, most: least(packets, l.count)}, make([]uint64, len(l.devices))
	s.notice = r.warn
	if err := l.saveTo(a, s, r.feed, r.warn); err != nil {
		return nil, errors.Join(err, s.live.Close())
	}
	if !a.flags.quiet {
		fmt.Fprintf(a.err, "capturing on %s\n", printable.String(l.device()))
	}
	return r, nil
}

// warn prints a warning, from the goroutine that reads.
func (r *running) warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.screen.clear()
	r.app.warn(text)
}

// Next implements capture.Source: it lets go of the lock while it waits.
func (r *running) Next(f *capture.Frame) error {
	r.mu.Unlock()
	err := r.feed.Next(f)
	r.mu.Lock()
	switch {
	case r.err != nil:
		return r.err
	case err != nil:
		return err
	}
	n := f.Interface
	if r.live == nil {
		n = f.Ref.File()
	}
	r.each[n]++
	if r.feed.copyErr != nil {
		r.unsaved++
	}
	if r.onFrame != nil {
		r.onFrame(f)
	}
	return nil
}

// Dropped gives how many packets the capture lacks.
func (r *running) Dropped() (n uint64) {
	if r.live == nil {
		return r.feed.Dropped()
	}
	list, err := r.live.live.Statistics()
	if err != nil {
		return 0 // the end tells
	}
	for _, st := range list {
		n += st.OSDropped + st.Dropped
	}
	return n
}

// Close implements capture.Source.
func (r *running) Close() error { return r.feed.Close() }

// prepare sets an analysis up with what the flags ask for.
func (r *running) prepare(o analyze.Options) error {
	o.Limits = r.limits
	if r.watch.metrics != "" {
		version, goVersion := buildVersion()
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
		if r.alerts.wants(x) {
			r.alert(x)
		}
	}
	if r.memory > 0 {
		debug.SetMemoryLimit(r.memory)
	}
	r.session, r.decoder = analyze.NewSession(o), capture.NewDecoder(o.Decode)
	if r.watch.metrics != "" {
		return r.serve()
	}
	return nil
}

// run analyses all that comes. The session is finished then; the error is how
// the source ended.
func (r *running) run(o analyze.Options) (*analyze.Session, error) {
	if err := r.prepare(o); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		err := r.session.Drive(r, r.decoder)
		r.session.Finish()
		ended <- err
	}()
	err := r.wait(ended)
	if r.server != nil {
		err = errors.Join(err, r.server.Close())
	}
	r.screen.clear()
	if !errors.Is(err, r.err) {
		err = errors.Join(err, r.err)
	}
	return r.session, err
}

// show analyses all that comes: on the way tick prints, on a screen where there
// is one, as rows where they are asked for; all prints what there is at the end.
func (r *running) show(o analyze.Options, rows bool, tick func(), all func(*analyze.Session) error) error {
	if r.screen = r.app.newScreen(); r.screen != nil || rows {
		r.tick = tick
	}
	s, err := r.run(o)
	if s != nil {
		err = errors.Join(err, all(s))
	}
	return r.app.ended(errors.Join(err, r.end()))
}

// count reads all that comes and does no more.
func (r *running) count() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var f capture.Frame // not the loop's own: that would be a new one for each packet
	for {
		if err := r.Next(&f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// every is how often the command does what is due by the clock; 0 for never.
func (r *running) every() time.Duration {
	if r.watch.every == 0 && r.screen != nil {
		return time.Second
	}
	return r.watch.every
}

// wait lets the analysis run, and does in between what is due by the clock. It
// returns with the lock, which nobody needs any more.
func (r *running) wait(ended <-chan error) error {
	interrupt := make(chan os.Signal, 1)
	if r.live == nil { // captures see to it themselves
		signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(interrupt)
	}
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	drawn, every := time.Now(), r.every()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			r.mu.Lock()
			return err
		case <-interrupt:
			// Who writes into the pipe was likely interrupted too: its last words are to come.
			signal.Stop(interrupt)
			late = time.After(time.Second)
		case <-late: // the reader waits for a frame, and may do so for good
			r.mu.Lock()
			r.session.Finish()
			return nil
		case now := <-ticker.C:
			r.mu.Lock()
			if r.live != nil {
				r.session.CaptureDropped(r.Dropped())
			}
			if every > 0 && now.Sub(drawn) >= every && r.tick != nil {
				drawn = now
				r.tick()
			}
			if err := r.app.flush(); err != nil && r.err == nil {
				r.err = err
			}
			r.mu.Unlock()
		}
	}
}

// end closes the source, tells what the capture counted and ends the file that
// was written.
func (r *running) end() error {
	if r.live == nil {
		var err error
		r.flags.counted += r.feed.frames
		if r.feed.copyTo != nil {
			err = r.feed.copyTo.close(nil)
		}
		return errors.Join(err, r.in.Close())
	}
	st, err := r.live.close(r.app, r.feed.frames)
	if r.feed.copyTo != nil {
		err = errors.Join(err, r.feed.copyTo.close(st))
	}
	return errors.Join(err, r.feed.copyErr)
}
