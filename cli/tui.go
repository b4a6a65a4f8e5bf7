package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui"
)

func (a *app) tuiCommand() *cobra.Command {
	live, bounds := &liveFlags{}, &watchFlags{}
	theme, filter := "", ""
	c := &cobra.Command{
		Use:   "tui [FILE...]",
		Short: "Look through a capture in the terminal: flows, packets, what both sides knew",
		Long: `tui opens captures, standard input or an interface in the terminal. The first screen is there
before the capture is read through. ? lists every key, : takes commands, q goes back.

Several captures are shown one at a time: :n goes to the next, :N to the one before, :file NAME
to any.

Of compressed files and pipes, what is read is kept in a temporary file without a name.

--memory bounds what is kept, half for the state of flows, of which those that were silent
longest are let go, and half for the index of packets.
When that is full, the screens keep what they have, and say how much more has come.`,
		Example: `  ackscope tui match.pcapng
  ackscope tui -Y 'flow.rtt > 80ms' match.pcapng.zst
  ssh server tcpdump -U -w - udp port 7777 | ackscope tui -
  ackscope tui -i any`,
		RunE: func(_ *cobra.Command, args []string) error { return a.tui(live, bounds, theme, filter, args) },
	}
	live.register(c)
	a.writes(c)
	bounds.registerBounds(c, "; the others' packets stay", " (never)")
	a.joinFlag(c)
	a.filterFlag(c, &filter)
	c.Flags().StringVar(&theme, "theme", "", "colours: `dark|light|mono` (default: as the terminal says, if it does)")
	_ = c.RegisterFlagCompletionFunc("theme", completeWords("dark", "light", "mono"))
	return c
}

func (a *app) tui(live *liveFlags, bounds *watchFlags, theme, filter string, args []string) error {
	if live.list {
		return a.listInterfaces()
	}
	if !isTerminal(a.out) {
		return errors.New("tui: standard output is no terminal (`ackscope flows`, packets and state print)")
	}
	o, err := a.options()
	if err != nil {
		return err
	}
	if _, err := a.compile(filter); err != nil {
		return err
	}
	screens := &screens{app: a, bounds: bounds, analysis: o, options: a.screenOptions(theme, filter)}
	if len(live.devices) > 0 {
		if len(args)+len(a.flags.read) > 0 {
			return errIAndFile
		}
		var in *capture.Input
		stop, err := a.pipeLive(live, &in)
		if err != nil {
			return err
		}
		defer stop()
		_, err = screens.show(in, true)
		return err
	}
	list, err := a.recordings(args)
	if err != nil {
		return err
	}
	if len(list) > 1 && slices.Contains(a.paths(args), "-") {
		return errors.New("standard input among several captures can be looked at only once: expected files, or --join")
	}
	for _, r := range list {
		screens.options.Files = append(screens.options.Files, r.name())
	}
	for next := 0; ; {
		r := list[next]
		in, err := a.open(r, capture.KeepAll)
		if err != nil {
			return err
		}
		screens.options.File = next
		if next, err = screens.show(in, slices.Contains(r.paths, "-")); err != nil || next == screens.options.File {
			return err
		}
	}
}

// screenOptions are what the screens are given, of whichever capture.
func (a *app) screenOptions(theme, filter string) tui.Options {
	options := tui.Options{Table: a.table(), Theme: theme, Filter: filter, Save: func(path string, in *capture.Input) (tui.Saver, error) {
		// The screens end the program on signals themselves.
		s, err := a.beginSave("", path, "", originOf(in), a.outputs.Whole)
		return saver{s}, err
	}, Autopsy: a.autopsyLines}
	if dir, err := os.UserConfigDir(); err == nil {
		options.Config = filepath.Join(dir, "ackscope", "tui.json")
	}
	return options
}

// screens shows captures in the terminal, one at a time.
type screens struct {
	app      *app
	bounds   *watchFlags
	analysis analyze.Options
	options  tui.Options
}

// show shows a capture until the user leaves: for the capture next, where that is
// another one.
func (s *screens) show(in *capture.Input, growing bool) (next int, err error) {
	bounds, o := s.bounds, s.analysis
	limits, memory, err := bounds.limits(s.app, growing)
	if err != nil {
		return s.options.File, errors.Join(err, in.Close())
	}
	if growing && !bounds.set("flow-idle") {
		limits.Idle = 0 // what has ended is what one looks at
	}
	o.Limits = limits
	if memory > 0 {
		debug.SetMemoryLimit(memory)
	}
	store := tui.NewStore(in, o, growing)
	store.Bound(int(memory / 2))
	next, err = tui.Run(store, s.options)
	return next, errors.Join(err, store.Stop())
}

// saver fits save to what the screens want.
type saver struct{ *save }

func (s saver) Write(f *capture.Frame) error { return s.write(f) }
func (s saver) Close() error                 { return s.close(nil) }
func (s saver) Abort() error                 { return s.abort() }

// pipeLive captures from an interface into a pipe of pcapng: what comes is then
// kept and read again like any other pipe's.
func (a *app) pipeLive(live *liveFlags, in **capture.Input) (stop func(), err error) {
	s, packets, err := live.open(a)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	source := &feed{source: s.live, most: least(packets, live.count)}
	go func() { w.CloseWithError(a.copyLive(source, s, live, w)) }()
	*in, err = capture.Open([]string{"-"}, capture.Options{Keep: capture.KeepAll, Stdin: r})
	stop = func() {
		_ = r.Close()
		s.live.Stop()
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("-i %s: %w", live.device(), err)
	}
	return stop, nil
}

// copyLive writes what is captured to w, and to the file of -w, until the end.
func (a *app) copyLive(source *feed, s *session, live *liveFlags, w io.Writer) error {
	from := s.origin()
	if live.write != "" {
		var err error
		if source.copyTo, err = a.newStream(live.write, live.format, from); err != nil {
			return err
		}
	}
	pipe, err := capture.NewWriter(w, capture.WriterOptions{Application: "ackscope"})
	if err != nil {
		return err
	}
	// The screens open before the first packet comes: by what the file begins with.
	if err := pipe.Flush(); err != nil {
		return err
	}
	copied := &save{app: a, ng: pipe, from: from, ids: map[[2]int]int{}}
	var f capture.Frame
	for err == nil {
		if err = source.Next(&f); err == nil {
			if err = copied.write(&f); err == nil {
				err = pipe.Flush()
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if source.copyTo != nil {
		err = errors.Join(err, source.copyTo.close(nil))
	}
	return errors.Join(err, s.live.Close())
}

// autopsyLines words how a connection ended, for protocols that have such pages.
func (a *app) autopsyLines(f *analyze.Flow, end machine.Instant, each func(analyze.Sink)) []string {
	dead := a.newEndings()
	each(dead.Take)
	for _, x := range dead.Ended(end) {
		if x.flow == f {
			return strings.Split(strings.TrimRight(string(x.page(painter(true))), "\n"), "\n")
		}
	}
	return nil
}
