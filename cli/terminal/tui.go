package terminal

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
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/recorder"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui"
	"github.com/ackscope/ackscope/tui/store"
)

// TUICommand builds `ackscope tui`.
func TUICommand(a *app.App) *cobra.Command {
	live, bounds := &reader.LiveFlags{}, &reader.WatchFlags{}
	theme, filter := "", ""
	var logs *reader.Logs
	c := &cobra.Command{
		Use:   "tui [FILE...]",
		Short: "Look through a capture in the terminal: flows, packets, what both sides knew",
		Long: `tui opens captures, standard input or an interface in the terminal. The first screen is there
before the capture is read through. ? lists every key, : takes commands, q goes back.

A recording of capture --on opens at the packet that it was made for.

Several captures are shown one at a time: :n goes to the next, :N to the one before, :file NAME
to any.

Of compressed files and pipes, what is read is kept in a temporary file without a name.

--memory limits what is kept. Half is for the state of flows: when it is full, ackscope drops the
flows that were silent longest. Half is for the index of packets: when it is full, the screens
keep what they have, and say how many more packets have come.`,
		Example: `  ackscope tui match.pcapng
  ackscope tui -Y 'flow.rtt > 80ms' match.pcapng.zst
  ssh server tcpdump -U -w - udp port 7777 | ackscope tui -
  ackscope tui --log client=game.jsonl match.pcapng
  ackscope tui -i any`,
		RunE: func(c *cobra.Command, args []string) error {
			options := screenOptions(a, theme, filter)
			options.Flags = app.Repeated(c)
			return look(a, live, bounds, &options, logs, args)
		},
	}
	live.Register(c)
	a.Writes(c)
	bounds.RegisterBounds(c, "; the others' packets stay", " (never)")
	reader.JoinFlag(a, c)
	reader.FilterFlag(a, c, &filter)
	logs = reader.LogFlag(a, c)
	c.Flags().StringVar(&theme, "theme", "", "colours: `dark|light|mono` (default: as the terminal says, if it does)")
	_ = c.RegisterFlagCompletionFunc("theme", app.CompleteWords("dark", "light", "mono"))
	return c
}

func look(a *app.App, live *reader.LiveFlags, bounds *reader.WatchFlags, options *tui.Options,
	logs *reader.Logs, args []string,
) error {
	if live.List {
		return reader.ListInterfaces(a)
	}
	if !app.IsTerminal(a.Out) {
		return errors.New("tui: standard output is no terminal (`ackscope flows`, packets and state print)")
	}
	o, err := a.Options()
	if err != nil {
		return err
	}
	if _, err := reader.Compile(a, options.Filter); err != nil {
		return err
	}
	if err := logs.Load(); err != nil {
		return err
	}
	screens := &screens{app: a, bounds: bounds, analysis: o, options: *options, logs: logs}
	if len(live.Devices) > 0 {
		if len(args)+len(a.Flags.Read) > 0 {
			return reader.ErrIAndFile
		}
		var in *capture.Input
		stop, err := pipeLive(a, live, &in)
		if err != nil {
			return err
		}
		defer stop()
		_, err = screens.show(in, true)
		return err
	}
	list, err := reader.Recordings(a, args)
	if err != nil {
		return err
	}
	piped := slices.ContainsFunc(list, func(r *reader.Recording) bool { return slices.Contains(r.Paths, "-") })
	if len(list) > 1 && piped {
		return errors.New("standard input among several captures can be looked at only once: expected files, or --join")
	}
	for _, r := range list {
		screens.options.Files = append(screens.options.Files, r.Name())
	}
	for next := 0; ; {
		r := list[next]
		in, err := reader.Open(a, r, reader.Options{Keep: capture.KeepAll})
		if err != nil {
			return err
		}
		screens.options.File, screens.options.Begin = next, troubleOf(in.In)
		if next, err = screens.show(in.In, slices.Contains(r.Paths, "-")); err != nil || next == screens.options.File {
			return err
		}
	}
}

// troubleOf returns the frame that a recording of `capture --on` was made for. The zero value means that the capture
// is no such file.
func troubleOf(in *capture.Input) (b tui.Begin) {
	if in.Files() != 1 {
		return b
	}
	for _, x := range in.Sections(0) {
		for _, comment := range x.Comments {
			if frame, at, ok := recorder.Marked(comment); ok {
				return tui.Begin{Ref: machine.MakeRef(0, frame), At: at, Text: printable.String(comment)}
			}
		}
	}
	return b
}

// screenOptions returns the options of the UI that are the same for all
// captures.
func screenOptions(a *app.App, theme, filter string) tui.Options {
	options := tui.Options{
		Table: a.Table(), Theme: theme, Filter: filter,
		Save: func(path string, in *capture.Input) (store.Saver, error) {
			// The UI ends the program on signals itself.
			s, err := reader.BeginSave(a, "", path, "", reader.OriginOf(in), a.Outputs.Whole)
			return saver{s}, err
		}, Autopsy: func(f *analyze.Flow, end machine.Instant, each func(analyze.Sink)) []string {
			return autopsyLines(a, f, end, each)
		},
	}
	if dir, err := os.UserConfigDir(); err == nil {
		options.Config = filepath.Join(dir, "ackscope", "tui.json")
	}
	return options
}

// screens shows captures in the terminal, one at a time.
type screens struct {
	app      *app.App
	bounds   *reader.WatchFlags
	analysis analyze.Options
	options  tui.Options
	logs     *reader.Logs
}

// show shows a capture until the user leaves. next is the capture to show next.
func (s *screens) show(in *capture.Input, growing bool) (next int, err error) {
	bounds, o := s.bounds, s.analysis
	limits, memory, err := bounds.Limits(s.app, growing)
	if err != nil {
		return s.options.File, errors.Join(err, in.Close())
	}
	if growing && !bounds.Set("flow-idle") {
		limits.Idle = 0 // users look at ended flows too
	}
	o.Limits = limits
	if memory > 0 {
		debug.SetMemoryLimit(memory)
	}
	held := store.New(in, o, growing)
	held.StudyWith(func() store.Study { return &study{endings: s.app.NewEndings()} })
	s.options.Overview = !growing
	held.Bound(int(memory / 2))
	if s.logs.Asked() {
		held.AddLogs(s.logs.Again())
	}
	next, err = tui.Run(held, s.options)
	return next, errors.Join(err, held.Stop())
}

// saver adapts a Save to store.Saver.
type saver struct{ *reader.Save }

// Write implements store.Saver.
func (s saver) Write(f *capture.Frame) error { return s.Save.Write(f) }

// Close implements store.Saver.
func (s saver) Close() error { return s.Save.Close(nil) }

// pipeLive captures from an interface into a pipe of pcapng. The UI then keeps
// and rereads the packets like those of any pipe.
func pipeLive(a *app.App, live *reader.LiveFlags, in **capture.Input) (stop func(), err error) {
	source, err := live.Open(a)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	source.Most = reader.Least(source.Most, live.Count)
	go func() { w.CloseWithError(copyLive(a, source, live, w)) }()
	*in, err = capture.Open([]string{"-"}, capture.Options{Keep: capture.KeepAll, Stdin: r})
	stop = func() {
		_ = r.Close()
		source.Live.Group.Stop()
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("-i %s: %w", live.Device(), err)
	}
	return stop, nil
}

// copyLive writes the captured packets to w, and to the file of -w, until the
// end.
func copyLive(a *app.App, source *reader.Reader, live *reader.LiveFlags, w io.Writer) error {
	from := source.Live.Origin()
	if live.Write != "" {
		var err error
		if source.Save, err = reader.NewStream(a, live.Write, live.Format, from); err != nil {
			return err
		}
	}
	pipe, err := capture.NewWriter(w, capture.WriterOptions{Application: "ackscope"})
	if err != nil {
		return err
	}
	// The UI opens before the first packet: the head of the file is enough.
	if err := pipe.Flush(); err != nil {
		return err
	}
	copied := reader.SaveTo(a, pipe, from)
	var f capture.Frame
	for err == nil {
		if err = source.Next(&f); err == nil {
			if err = copied.Write(&f); err == nil {
				err = pipe.Flush()
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if source.Save != nil {
		err = errors.Join(err, source.Save.Close(nil))
	}
	return errors.Join(err, source.Close())
}

// autopsyLines describes how a connection ended, if the protocol has autopsies.
func autopsyLines(a *app.App, f *analyze.Flow, end machine.Instant, each func(analyze.Sink)) []string {
	dead := a.NewEndings()
	each(dead.Take)
	for _, x := range dead.Ended(end) {
		if x.Flow == f {
			return strings.Split(strings.TrimRight(string(x.Page(show.Painter(true))), "\n"), "\n")
		}
	}
	return nil
}
