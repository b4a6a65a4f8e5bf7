package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/show"
)

func (a *app) captureCommand() *cobra.Command {
	live := &liveFlags{}
	var conditions []string
	c := &cobra.Command{
		Use:   "capture -i INTERFACE... [-w FILE]",
		Short: "Capture live to pcapng files, for as long as it is asked to",
		Long: `capture writes what passes interfaces to a file, or to a row of files of which the oldest
make room (-b, as tshark's and dumpcap's). It opens its sockets, then gives up every privilege and
goes on as the user who called sudo (or -Z): the files are that user's. Without -w it counts.

What the kernel dropped for want of room, and what the interface dropped before, is told at the end
and stands in the files: the analysis then knows what it cannot know. A file is whole up to the
last moment that the capture waited for packets, whatever ends the program.`,
		Example: `  ackscope capture -i eth0 -f 'udp port 7777' -w match.pcapng
  ackscope capture -i eth0 -i lo -f 'udp portrange 7777-7780' -w match.pcapng -b filesize:100MB -b files:10
  ackscope capture -i any -a duration:60 -B 64 -w minute.pcapng
  ackscope capture -D`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.capture(live, conditions) },
	}
	live.register(c)
	c.Flags().StringArrayVarP(&conditions, "ring-buffer", "b", nil, "begin a new file after `filesize:100MB`, duration:SECONDS or packets:N; keep files:N")
	_ = c.RegisterFlagCompletionFunc("ring-buffer", completeWords("filesize:", "duration:", "packets:", "files:"))
	return c
}

const toldEvery = time.Second

func (a *app) capture(live *liveFlags, conditions []string) error {
	if live.list {
		return a.listInterfaces()
	}
	if len(live.devices) == 0 {
		return errors.New("expected -i INTERFACE: `ackscope capture -D` lists them")
	}
	row, err := parseRotation(live.write, conditions)
	if err != nil {
		return err
	}
	s, packets, err := live.open()
	if err != nil {
		return err
	}
	f := &feed{source: s.live, most: least(packets, live.count)}
	switch {
	case row != nil:
		f.copyTo, err = a.newRotation(row, s.interfaces())
	case live.write != "":
		f.copyTo, err = a.newSave(live.write, s.interfaces())
	}
	if err != nil {
		return errors.Join(err, s.live.Close())
	}
	if f.copyTo != nil {
		f.copyTo.counts = s.live.Statistics
	}
	if !a.flags.quiet {
		fmt.Fprintf(a.err, "capturing on %s\n", live.device())
	}
	t := &tally{app: a, session: s, each: make([]uint64, len(live.devices)), visible: !a.flags.quiet && isTerminal(a.err)}
	s.idle = func() { f.flush(); t.tick() }
	var frame capture.Frame
	for err == nil {
		if err = f.Next(&frame); err == nil {
			if t.each[frame.Interface]++; f.frames&(1<<10-1) == 0 {
				t.tick()
			}
			err = f.copyErr // of a flush while it waited
		}
	}
	t.wipe()
	if errors.Is(err, io.EOF) {
		err = f.copyErr
	}
	st, closeErr := s.close(a, f.frames)
	if f.copyTo != nil && f.copyErr == nil {
		closeErr = errors.Join(closeErr, f.copyTo.close(st))
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
