package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/show"
)

func (a *app) captureCommand() *cobra.Command {
	live, watch := &liveFlags{}, &watchFlags{}
	var conditions []string
	c := &cobra.Command{
		Use:   "capture -i INTERFACE... [-w FILE]",
		Short: "Capture live to pcapng files, for as long as it is asked to",
		Long: `capture writes what passes interfaces to a file, or to a row of files of which the oldest
make room (-b, as tshark's and dumpcap's). It opens its sockets, then gives up every privilege and
goes on as the user who called sudo (or -Z): the files are that user's. Root without sudo gives -Z,
or --keep-root. Without -w it counts.

What the kernel dropped for want of room, and what the interface dropped before, is told at the end
and stands in the files: the analysis then knows what it cannot know. A file is whole up to the
last moment that the capture waited for packets, whatever ends the program.

With --metrics or --alert it analyses what it captures too, within --memory and without end.`,
		Example: `  ackscope capture -i eth0 -f 'udp port 7777' -w match.pcapng
  ackscope capture -i eth0 -i lo -f 'udp portrange 7777-7780' -w match.pcapng -b filesize:100MB -b files:10
  ackscope capture -i any -a duration:60 -B 64 -w minute.pcapng
  ackscope capture -i eth0 -w /srv/match.pcapng -Z capture      (root, in a service: the user capture goes on)
  ackscope capture -i eth0 -f 'udp port 7777' -w match.pcapng -b filesize:100MB -b files:10 --metrics :9090
  ackscope capture -D`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.capture(live, watch, conditions) },
	}
	live.register(c)
	a.writes(c)
	watch.register(a, c, false)
	c.Flags().StringArrayVarP(&conditions, "ring-buffer", "b", nil, "begin a new file after `filesize:100MB`, duration:SECONDS or packets:N; keep files:N")
	_ = c.RegisterFlagCompletionFunc("ring-buffer", completeWords("filesize:", "duration:", "packets:", "files:"))
	return c
}

const toldEvery = time.Second

func (a *app) capture(live *liveFlags, watch *watchFlags, conditions []string) error {
	if live.list {
		return a.listInterfaces()
	}
	if len(live.devices) == 0 {
		return errors.New("expected -i INTERFACE: `ackscope capture -D` lists them")
	}
	if live.write == "-" && len(watch.alerts) > 0 {
		return errors.New("--alert prints to standard output, where -w - writes: expected a file")
	}
	row, err := parseRotation(live.write, conditions)
	if err != nil {
		return err
	}
	write := live.write
	format := live.format
	live.write, live.format = "", "" // begin would go on when the disk is full
	r, err := live.begin(a, watch, live.recording())
	if err != nil {
		return err
	}
	switch {
	case row != nil:
		r.feed.copyTo, err = a.newRotation(row, format, r.live.origin())
	case write != "":
		r.feed.copyTo, err = a.newStream(write, format, r.live.origin())
	}
	if err != nil {
		return errors.Join(err, r.live.live.Close())
	}
	if r.feed.copyTo != nil {
		r.feed.copyTo.counts = r.live.live.Statistics
	}
	analyses := watch.metrics != "" || r.alerts != nil
	if analyses {
		r.feed.lost = func(err error) { r.warn(unsavedText(err)) }
	}
	t := &tally{app: a, session: r.live, each: r.each, visible: !a.flags.quiet && isTerminal(a.err)}
	r.live.idle = func() { r.feed.flush(); t.tick() }
	r.onFrame = func(*capture.Frame) {
		if r.feed.frames&(1<<10-1) == 0 {
			t.tick()
		}
		if r.feed.copyErr != nil && r.err == nil && !analyses { // of a flush while it waited
			r.err = r.feed.copyErr
		}
	}
	if analyses {
		o, optionsErr := a.options()
		if optionsErr != nil {
			return errors.Join(optionsErr, r.live.live.Close())
		}
		_, err = r.run(o)
	} else {
		err = r.count()
	}
	t.wipe()
	st, closeErr := r.live.close(a, r.feed.frames)
	if r.feed.copyTo != nil && r.feed.copyErr == nil {
		closeErr = errors.Join(closeErr, r.feed.copyTo.close(st))
	}
	if !errors.Is(err, r.feed.copyErr) {
		err = errors.Join(err, r.feed.copyErr)
	}
	return errors.Join(err, closeErr, t.totals(st))
}

// tally counts what was captured on each interface and shows it on the way.
type tally struct {
	app     *app
	session *session
	each    []uint64
	visible bool
	shown   time.Time
	drawn   bool
}

// tick shows the counts, on a terminal, now and then.
func (t *tally) tick() {
	if !t.visible {
		return
	}
	now := time.Now()
	if now.Sub(t.shown) < toldEvery {
		return
	}
	t.shown, t.drawn = now, true
	var frames, dropped uint64
	st, err := t.session.live.Statistics()
	if err != nil {
		return // the end tells
	}
	for i := range st {
		frames, dropped = frames+t.each[i], dropped+st[i].OSDropped
	}
	fmt.Fprintf(t.app.err, "\r\x1b[K%s, %s dropped", show.Plural(frames, "packet"), show.Grouped(dropped))
}

func (t *tally) wipe() {
	if t.drawn {
		fmt.Fprint(t.app.err, "\r\x1b[K")
	}
}

// totals prints what every interface came to, as JSON.
func (t *tally) totals(st []capture.Statistics) error {
	if !t.app.flags.json {
		return nil
	}
	for i, in := range t.session.live.Interfaces() {
		if i >= len(st) {
			break
		}
		var o object
		o.begin()
		o.str("interface", in.Name)
		o.uint("captured", t.each[i])
		o.uint("accepted", st[i].FilterAccepted)
		o.uint("dropped", st[i].OSDropped)
		if st[i].Known&capture.KnownReceived != 0 {
			o.uint("interface_received", st[i].Received)
			o.uint("interface_dropped", st[i].Dropped)
		}
		if err := o.end(t.app.writer()); err != nil {
			return err
		}
	}
	return nil
}
