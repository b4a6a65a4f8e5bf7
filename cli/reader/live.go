package reader

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/interfaces"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
)

// LiveFlags are the flags of commands that can capture, with tshark's names.
type LiveFlags struct {
	interfaces.Flags
	List     bool
	Count    uint64
	Counted  uint64 // packets read from earlier recordings
	autostop []string
	Write    string
	Format   string // format of the written file
}

// Register adds the flags to a command.
func (l *LiveFlags) Register(c *cobra.Command) {
	l.Flags.Register(c)
	f := c.Flags()
	f.BoolVarP(&l.List, "list-interfaces", "D", false, "list the interfaces and exit")
	f.Uint64VarP(&l.Count, "count", "c", 0, "stop after `N` packets (where packets are filtered: that pass)")
	f.StringArrayVarP(&l.autostop, "autostop", "a", nil, "stop the live capture after `duration:SECONDS` or packets:N")
	f.StringVarP(&l.Write, "write", "w", "",
		"write the packets to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	f.StringVarP(&l.Format, "write-format", "F", "",
		"format of -w: `pcapng|pcap|nsecpcap` (default: by the file's name; pcap has nanoseconds where the source has)")
	_ = c.RegisterFlagCompletionFunc("write-format", app.CompleteWords(saveFormats...))
	_ = c.RegisterFlagCompletionFunc("autostop", app.CompleteWords("duration:", "packets:"))
}

// limits parses -a.
func (l *LiveFlags) limits() (duration time.Duration, packets uint64, err error) {
	for _, text := range l.autostop {
		kind, value, ok := strings.Cut(text, ":")
		number, parseErr := strconv.ParseFloat(value, 64)
		switch {
		case !ok || parseErr != nil || number <= 0 || number > 1e9:
			return 0, 0, fmt.Errorf("-a %q: expected duration:SECONDS or packets:N", text)
		case kind == "duration":
			duration = time.Duration(number * float64(time.Second))
		case kind == "packets":
			packets = uint64(number)
		default:
			return 0, 0, fmt.Errorf("-a %q: expected duration:SECONDS or packets:N", text)
		}
	}
	return duration, packets, nil
}

// InterruptAgain is how long a second interrupt counts as the first. Some
// callers send one to the process and one to its group.
const InterruptAgain = 500 * time.Millisecond

// Session is an open live capture.
type Session struct {
	Group  afpacket.Group
	Idle   func()       // called before a wait; may be set until the first Next
	notice func(string) // called with problems that do not end the capture; may be set until the first Next
	done   chan struct{}
	probe  *live.Probe // nil if nothing is sampled
}

// open starts to capture with the least privileges. An interrupt or the
// duration of -a ends the capture like the end of a file.
func (l *LiveFlags) open(a *app.App) (*Session, uint64, error) {
	duration, packets, err := l.limits()
	if err != nil {
		return nil, 0, err
	}
	s := &Session{done: make(chan struct{})}
	idle := func() {
		if s.Idle != nil {
			s.Idle()
		}
	}
	notice := func(text string) {
		if s.notice != nil {
			s.notice(text)
		}
	}
	if s.Group, s.probe, err = l.Flags.Open(idle, notice); err != nil {
		return nil, 0, err
	}
	WarnRoot(a)
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	hangUp(interrupt)
	var timeout <-chan time.Time
	if duration > 0 {
		timeout = time.After(duration)
	}
	go func() {
		select {
		case <-interrupt:
		case <-timeout:
		case <-s.done:
		}
		s.Group.Stop()
		// A later interrupt ends the program at once. But some callers send one to
		// the process and one to its group, and mean one interrupt.
		time.Sleep(InterruptAgain)
		signal.Stop(interrupt)
	}()
	return s, packets, nil
}

// WarnRoot warns if the capture continues as root, so that --keep-root is not
// forgotten.
func WarnRoot(a *app.App) {
	if text := interfaces.RootAdvice(); text != "" {
		a.Advise(text)
	}
}

// Origin describes the interfaces, for a Save.
func (s *Session) Origin() Origin {
	list := s.Group.Interfaces()
	return Origin{Of: func(_, index int) capture.Interface { return list[index] }}
}

// close ends the capture and prints what the kernel counted.
func (s *Session) close(a *app.App, frames uint64) ([]capture.Statistics, error) {
	close(s.done)
	list, err := s.Group.Statistics()
	if closeErr := s.Group.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	if !a.Flags.Quiet {
		if err := a.Flush(); err != nil {
			return nil, err
		}
		var dropped, before uint64
		for _, st := range list {
			dropped, before = dropped+st.OSDropped, before+st.Dropped
		}
		fmt.Fprintf(a.Err, "%s captured, %s dropped by the kernel", show.Plural(frames, "packet"), show.Grouped(dropped))
		if before > 0 {
			fmt.Fprintf(a.Err, ", %s by the interface before", show.Grouped(before))
		}
		fmt.Fprintln(a.Err)
	}
	return list, nil
}

// Open starts to capture on the interfaces. It saves nothing.
func (l *LiveFlags) Open(a *app.App) (*Reader, error) {
	s, packets, err := l.open(a)
	if err != nil {
		return nil, err
	}
	return &Reader{app: a, Live: s, Most: packets, source: s.Group, Probe: s.probe}, nil
}

// start opens the interfaces for a live analysis. It saves the packets if -w is
// given. If saving fails, reading continues and warn is called. opened runs as
// the unprivileged user, before any file is created.
func (l *LiveFlags) start(a *app.App, warn func(string), opened func() error) (*Reader, error) {
	r, err := l.Open(a)
	if err != nil {
		return nil, err
	}
	if err := opened(); err != nil {
		return nil, errors.Join(err, r.Live.Group.Close())
	}
	r.Live.notice = warn
	if l.Write != "" {
		if r.Save, err = NewStream(a, l.Write, l.Format, r.Live.Origin()); err != nil {
			return nil, errors.Join(err, r.Live.Group.Close())
		}
		r.Live.Idle = r.Flush
		r.Lost = func(err error) { warn(UnsavedText(err)) }
	}
	if !a.Flags.Quiet {
		fmt.Fprintf(a.Err, "capturing on %s\n", printable.String(l.Device()))
	}
	return r, nil
}

// EndLive ends the capture on interfaces and prints what the kernel counted.
func (r *Reader) EndLive() ([]capture.Statistics, error) { return r.Live.close(r.app, r.Frames) }

// UnsavedText formats the warning that a capture file ended and the analysis
// did not.
func UnsavedText(err error) string {
	return fmt.Sprintf("%v: nothing more is saved, the analysis goes on", err)
}

// Check refuses flags that only a live capture can have.
func (l *LiveFlags) Check() error {
	if l.Format != "" && l.Write == "" {
		return errors.New("-F: expected -w too: it is the format of what is written")
	}
	if len(l.Devices) == 0 && len(l.autostop) > 0 {
		return interfaces.OnlyLive("-a")
	}
	return l.Flags.Check()
}

// FileOnly refuses the flags of live traffic, for a command that has been told
// to read files.
func (l *LiveFlags) FileOnly() error {
	switch {
	case l.Write != "":
		return errors.New("-w: expected -i or --live too; of files, `ackscope packets -Y … -w` writes some of the packets")
	case l.Count != 0:
		return errors.New("-c: expected -i or --live too")
	}
	return l.Check()
}

// ErrIAndFile refuses -i together with a file.
var ErrIAndFile = errors.New("-i and a file: expected one or the other")

// ListInterfaces prints the possible values of -i.
func ListInterfaces(a *app.App) error {
	devices, err := afpacket.Devices()
	if err != nil {
		return err
	}
	for i, d := range devices {
		if a.Flags.JSON {
			var o app.Object
			o.Begin()
			o.Str("name", d.Name)
			o.Bool("up", d.Up)
			o.Bool("loopback", d.Loopback)
			o.Key("addresses")
			o.Buf = append(o.Buf, '[')
			for j, p := range d.Addresses {
				if j > 0 {
					o.Buf = append(o.Buf, ',')
				}
				o.Buf = export.AppendString(o.Buf, p.String())
			}
			o.Buf = append(o.Buf, ']')
			if err := o.End(a.Writer()); err != nil {
				return err
			}
			continue
		}
		about := ""
		switch {
		case d.Name == afpacket.Any:
			about = "all interfaces"
		case d.Loopback:
			about = "loopback"
		case !d.Up:
			about = "down"
		}
		for _, p := range d.Addresses {
			about += " " + p.String()
		}
		fmt.Fprintf(a.Writer(), "%d. %-16s %s\n", i+1, d.Name, strings.TrimSpace(about))
	}
	return nil
}
