//go:build !js

package files

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/capture"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/show"
)

// CaptureCommand builds `ackscope capture`.
func CaptureCommand(a *app.App) *cobra.Command {
	live, watch, recording := &reader.LiveFlags{}, &reader.WatchFlags{}, &recordFlags{}
	var conditions []string
	c := &cobra.Command{
		Use:   "capture -i INTERFACE... [-w FILE]",
		Short: "Capture live to pcapng files, for as long as it is asked to",
		Long: `capture writes the packets of interfaces to a file, or to a row of files. With -b, the oldest
file is deleted to make room, as tshark and dumpcap do. It opens its sockets, then gives up every
privilege and goes on as the user who called sudo (or -Z): the files are that user's. Root
without sudo gives -Z, or --keep-root. Without -w it counts.

At the end, capture prints how many packets the kernel and the interface dropped. The files
contain these numbers too, so the analysis takes none of those packets for lost by the network. A
file is whole up to the last moment that the capture waited for packets, whatever ends the
program.

With --metrics or --alert it analyses what it captures too, within --memory and without end.

With --on it is a flight recorder: it keeps the last minute (--keep) in memory. When a rule fires,
it writes the flow with the time before and after to a file of its own in the folder of -w, and
what it is about to a JSON file beside it. -r FILE, or -r - for a pipe, does so by the capture's
own clock. Then -b takes files:N and total:1GB, which bound the row by deleting the oldest, and
filesize:10MB and duration:SECONDS, which bound one recording.`,
		Example: `  ackscope capture -i eth0 -f 'udp port 7777' -w match.pcapng
  ackscope capture -i eth0 -i lo -f 'udp portrange 7777-7780' -w match.pcapng -b filesize:100MB -b files:10
  ackscope capture -i any -a duration:60 -B 64 -w minute.pcapng
  ackscope capture -i eth0 -w /srv/match.pcapng -Z capture      (root, in a service: the user capture goes on)
  ackscope capture -i eth0 -f 'udp port 7777' -w match.pcapng -b filesize:100MB -b files:10 --metrics :9090
  ackscope capture -i eth0 -f 'udp port 7777' --keep 60s --on warn -w recordings
  ackscope capture -i eth0 --on 'loss > 5%' --on stall --on SIGUSR1 --all -w recordings
  ackscope capture -r night.pcapng --on loss-burst -w recordings
  ackscope capture -D`,
		Args: app.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if len(recording.on) > 0 && !live.List {
				return record(a, live, watch, recording, conditions)
			}
			if err := recording.check(); err != nil {
				return err
			}
			return captureLive(a, live, watch, conditions)
		},
	}
	live.Register(c)
	a.Writes(c)
	watch.Register(a, c, false)
	recording.register(a, c)
	c.Flags().StringArrayVarP(&conditions, "ring-buffer", "b", nil,
		"begin a new file after `filesize:100MB`, duration:SECONDS or packets:N; keep files:N "+
			"(with --on also total:1GB)")
	_ = c.RegisterFlagCompletionFunc("ring-buffer",
		app.CompleteWords("filesize:", "duration:", "packets:", "files:", "total:"))
	return c
}

const countsEvery = time.Second

func captureLive(a *app.App, live *reader.LiveFlags, watch *reader.WatchFlags, conditions []string) error {
	if live.List {
		return reader.ListInterfaces(a)
	}
	if len(live.Devices) == 0 {
		return errors.New("expected -i INTERFACE: `ackscope capture -D` lists them")
	}
	if live.Write == "-" && len(watch.Alerts) > 0 {
		return errors.New("--alert prints to standard output, where -w - writes: expected a file")
	}
	row, err := reader.ParseRotation(live.Write, conditions)
	if err != nil {
		return err
	}
	write := live.Write
	format := live.Format
	live.Write, live.Format = "", "" // -w is written here; Begin would continue with a full disk
	r, err := live.Begin(a, watch, live.Recording())
	if err != nil {
		return err
	}
	switch {
	case row != nil:
		r.Reader.Save, err = reader.NewRotation(a, row, format, r.Reader.Live.Origin())
	case write != "":
		r.Reader.Save, err = reader.NewStream(a, write, format, r.Reader.Live.Origin())
	}
	if err != nil {
		return errors.Join(err, r.Reader.Live.Group.Close())
	}
	if r.Reader.Save != nil {
		r.Reader.Save.Counts = r.Reader.Live.Group.Statistics
	}
	analyses := watch.Metrics != "" || r.Alerts != nil
	if analyses {
		r.Reader.Lost = func(err error) { r.Warn(reader.UnsavedText(err)) }
	}
	t := &tally{app: a, session: r.Reader.Live, each: r.Each, visible: !a.Flags.Quiet && app.IsTerminal(a.Err)}
	r.Reader.Live.Idle = func() { r.Reader.Flush(); t.tick() }
	r.OnFrame = func(*capture.Frame) {
		if r.Reader.Frames&(1<<10-1) == 0 {
			t.tick()
		}
		if r.Reader.SaveErr != nil && r.Err == nil && !analyses { // a flush failed while the reader waited
			r.Err = r.Reader.SaveErr
		}
	}
	if analyses {
		o, optionsErr := a.Options()
		if optionsErr != nil {
			return errors.Join(optionsErr, r.Reader.Live.Group.Close())
		}
		_, err = r.Run(o)
	} else {
		err = r.Count()
	}
	t.wipe()
	st, closeErr := r.Reader.EndLive()
	if r.Reader.Save != nil && r.Reader.SaveErr == nil {
		closeErr = errors.Join(closeErr, r.Reader.Save.Close(st))
	}
	if !errors.Is(err, r.Reader.SaveErr) {
		err = errors.Join(err, r.Reader.SaveErr)
	}
	return errors.Join(err, closeErr, t.totals(st))
}

// tally counts the captured packets of each interface, and shows the counts
// while it captures.
type tally struct {
	app     *app.App
	session *reader.Session
	each    []uint64
	visible bool
	shown   time.Time
	drawn   bool
}

// tick updates the counts on a terminal.
func (t *tally) tick() {
	if !t.visible {
		return
	}
	now := time.Now()
	if now.Sub(t.shown) < countsEvery {
		return
	}
	t.shown, t.drawn = now, true
	var frames, dropped uint64
	st, err := t.session.Group.Statistics()
	if err != nil {
		return // the final counts report the error
	}
	for i := range st {
		frames, dropped = frames+t.each[i], dropped+st[i].OSDropped
	}
	fmt.Fprintf(t.app.Err, "\r\x1b[K%s, %s dropped", show.Plural(frames, "packet"), show.Grouped(dropped))
}

func (t *tally) wipe() {
	if t.drawn {
		fmt.Fprint(t.app.Err, "\r\x1b[K")
	}
}

// totals prints the counts of every interface as JSON.
func (t *tally) totals(st []capture.Statistics) error {
	if !t.app.Flags.JSON {
		return nil
	}
	for i, in := range t.session.Group.Interfaces() {
		if i >= len(st) {
			break
		}
		var o app.Object
		o.Begin()
		o.Str("interface", in.Name)
		o.Uint("captured", t.each[i])
		o.Uint("accepted", st[i].FilterAccepted)
		o.Uint("dropped", st[i].OSDropped)
		if st[i].Known&capture.KnownReceived != 0 {
			o.Uint("interface_received", st[i].Received)
			o.Uint("interface_dropped", st[i].Dropped)
		}
		if err := o.End(t.app.Writer()); err != nil {
			return err
		}
	}
	return nil
}
