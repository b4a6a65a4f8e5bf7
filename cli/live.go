package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/capture/pcapfilter"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/show"
)

// liveFlags are the flags of commands that can capture by themselves, as
// tshark has them.
type liveFlags struct {
	devices   []string
	filter    string
	program   string
	list      bool
	count     uint64
	counted   uint64 // packets that were read of the recordings before
	autostop  []string
	write     string
	format    string // of what is written
	snap      int
	buffer    int
	noPromisc bool
	privilegeFlags
}

func (l *liveFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVarP(&l.devices, "interface", "i", nil, "capture live on an `interface` (repeatable); any for all of them")
	f.StringVarP(&l.filter, "capture-filter", "f", "", "capture only what passes a `filter` in tcpdump's language, as 'udp port 7777'")
	f.StringVar(&l.program, "bpf-raw", "", "the capture filter as a BPF program, from a `FILE` in the form of tcpdump -ddd")
	f.IntVarP(&l.buffer, "buffer-size", "B", 0, "size of the ring that the kernel fills, in `MiB` (32)")
	l.privilegeFlags.register(f)
	f.BoolVarP(&l.list, "list-interfaces", "D", false, "list the interfaces and exit")
	f.Uint64VarP(&l.count, "count", "c", 0, "stop after `N` packets (where packets are filtered: that pass)")
	f.StringArrayVarP(&l.autostop, "autostop", "a", nil, "stop the live capture after `duration:SECONDS` or packets:N")
	f.StringVarP(&l.write, "write", "w", "", "write the packets to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	f.StringVarP(&l.format, "write-format", "F", "", "format of -w: `pcapng|pcap|nsecpcap` (default: by the file's name; pcap has nanoseconds where the source has)")
	_ = c.RegisterFlagCompletionFunc("write-format", completeWords(saveFormats...))
	f.IntVarP(&l.snap, "snapshot-length", "s", 0, "keep at most `N` bytes of each packet captured live")
	f.BoolVarP(&l.noPromisc, "no-promiscuous-mode", "p", false, "do not ask the interface for packets of others")
	_ = c.RegisterFlagCompletionFunc("interface", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		devices, err := afpacket.Devices()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, d := range devices {
			names = append(names, d.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	_ = c.RegisterFlagCompletionFunc("autostop", completeWords("duration:", "packets:"))
}

// completeWords completes a flag by a closed list.
func completeWords(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// limits reads -a.
func (l *liveFlags) limits() (duration time.Duration, packets uint64, err error) {
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

const interruptAgain = 500 * time.Millisecond

// session is an opened live capture with what ends it.
type session struct {
	live   afpacket.Group
	idle   func()       // called before it waits; may be set until the first Next
	notice func(string) // told of what the capture goes on after; the same
	done   chan struct{}
}

// device names what is captured on; empty for files.
func (l *liveFlags) device() string { return strings.Join(l.devices, ", ") }

// options gives what the capture is opened with, one for each interface.
func (l *liveFlags) options() ([]afpacket.Options, error) {
	o := afpacket.Options{Promiscuous: !l.noPromisc, SnapLength: l.snap, Filter: l.filter, Buffer: l.buffer << 20}
	if l.buffer < 0 || l.buffer > 1<<10 {
		return nil, fmt.Errorf("-B %d: expected a number of MiB up to 1024", l.buffer)
	}
	if l.program != "" {
		if l.filter != "" {
			return nil, errors.New("-f and --bpf-raw: expected one of them")
		}
		text, err := yamlfile.ReadFile(l.program)
		if err != nil {
			return nil, fmt.Errorf("--bpf-raw: %w", err)
		}
		if o.Program, err = pcapfilter.ParseRaw(string(text)); err != nil {
			return nil, fmt.Errorf("--bpf-raw: %w", err)
		}
	}
	// Refused while nothing is open yet, whatever the interfaces are.
	if _, err := pcapfilter.Compile(l.filter, pcapfilter.EthernetSocket, 1); err != nil {
		return nil, err
	}
	var list []afpacket.Options
	for i, name := range l.devices {
		if slices.Contains(l.devices[:i], name) {
			return nil, fmt.Errorf("-i %s: expected each interface once", name)
		}
		o.Interface = name
		list = append(list, o)
	}
	return list, nil
}

// open starts to capture, with no more privileges than it takes. An interrupt,
// or the duration that was asked for, ends it as if the file had ended.
func (l *liveFlags) open(a *app) (*session, uint64, error) {
	duration, packets, err := l.limits()
	if err != nil {
		return nil, 0, err
	}
	list, err := l.options()
	if err != nil {
		return nil, 0, err
	}
	s := &session{done: make(chan struct{})}
	for i := range list {
		list[i].Idle = func() {
			if s.idle != nil {
				s.idle()
			}
		}
		list[i].Notice = func(text string) {
			if s.notice != nil {
				s.notice(text)
			}
		}
	}
	if s.live, err = openCapture(list, &l.privilegeFlags); err != nil {
		return nil, 0, lacking(err)
	}
	a.tellRoot()
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(interrupt, syscall.SIGHUP)
	}
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
		s.live.Stop()
		// An interrupt after this ends the program at once; but some callers send
		// one to the process and to its group, and mean it once.
		time.Sleep(interruptAgain)
		signal.Stop(interrupt)
	}()
	return s, packets, nil
}

// tellRoot warns where root goes on: that nobody forgets that it was asked for.
func (a *app) tellRoot() {
	if os.Geteuid() == 0 {
		a.advise("--keep-root: capturing as user 0: what takes over this process can write root's files")
	}
}

// lacking says what to grant where a privilege was missing.
func lacking(err error) error {
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; grant it for good with `sudo setcap cap_net_raw+ep %s`", err, program())
}

// program is the path of this program.
func program() string {
	path, err := os.Executable()
	if err != nil {
		return "$(command -v ackscope)"
	}
	return path
}

// origin describes what is captured on, for a save.
func (s *session) origin() origin {
	list := s.live.Interfaces()
	return origin{of: func(_, index int) capture.Interface { return list[index] }}
}

// close ends the capture and tells what the kernel counted.
func (s *session) close(a *app, frames uint64) ([]capture.Statistics, error) {
	close(s.done)
	list, err := s.live.Statistics()
	if closeErr := s.live.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	if !a.flags.quiet {
		if err := a.flush(); err != nil {
			return nil, err
		}
		var dropped, before uint64
		for _, st := range list {
			dropped, before = dropped+st.OSDropped, before+st.Dropped
		}
		fmt.Fprintf(a.err, "%s captured, %s dropped by the kernel", show.Plural(frames, "packet"), show.Grouped(dropped))
		if before > 0 {
			fmt.Fprintf(a.err, ", %s by the interface before", show.Grouped(before))
		}
		fmt.Fprintln(a.err)
	}
	return list, nil
}

// saveTo makes a feed write what it gives, where -w asks for it. Where that fails
// the reading goes on.
func (l *liveFlags) saveTo(a *app, s *session, f *feed, warn func(string)) (err error) {
	if l.write == "" {
		return nil
	}
	if f.copyTo, err = a.newStream(l.write, l.format, s.origin()); err != nil {
		return err
	}
	s.idle = f.flush
	f.lost = func(err error) { warn(unsavedText(err)) }
	return nil
}

func unsavedText(err error) string {
	return fmt.Sprintf("%v: nothing more is saved, the analysis goes on", err)
}

// warn prints a warning on a line of its own.
func (a *app) warn(text string) {
	_ = a.flush() // a failure comes back with the next one
	if isTerminal(a.err) {
		fmt.Fprint(a.err, "\r\x1b[K") // a line of counts
	}
	a.say("warning: ", errors.New(text))
}

// advise prints a warning that -q leaves out.
func (a *app) advise(text string) {
	if !a.flags.quiet {
		a.warn(text)
	}
}

// check refuses what only a live capture can do.
func (l *liveFlags) check() error {
	if l.format != "" && l.write == "" {
		return errors.New("-F: expected -w too: it is the format of what is written")
	}
	if len(l.devices) > 0 {
		return nil
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"-f", l.filter != ""}, {"--bpf-raw", l.program != ""}, {"-B", l.buffer != 0}, {"-Z", l.user != ""}, {"--keep-root", l.keepRoot}, {"-a", len(l.autostop) > 0}} {
		if f.set {
			return fmt.Errorf("%s is for live captures: expected -i too; files are filtered by -Y", f.name)
		}
	}
	return nil
}

// fileOnly refuses what commands that read files twice cannot do with them.
func (l *liveFlags) fileOnly() error {
	switch {
	case l.write != "":
		return errors.New("-w: expected -i or --live too; of files, `ackscope packets -Y … -w` writes some of the packets")
	case l.count != 0:
		return errors.New("-c: expected -i or --live too")
	}
	return l.check()
}

var errIAndFile = errors.New("-i and a file: expected one or the other")

// listInterfaces prints what -i takes.
func (a *app) listInterfaces() error {
	devices, err := afpacket.Devices()
	if err != nil {
		return err
	}
	for i, d := range devices {
		if a.flags.json {
			var o object
			o.begin()
			o.str("name", d.Name)
			o.bool("up", d.Up)
			o.bool("loopback", d.Loopback)
			o.key("addresses")
			o.buf = append(o.buf, '[')
			for j, p := range d.Addresses {
				if j > 0 {
					o.buf = append(o.buf, ',')
				}
				o.buf = export.AppendString(o.buf, p.String())
			}
			o.buf = append(o.buf, ']')
			if err := o.end(a.writer()); err != nil {
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
		fmt.Fprintf(a.writer(), "%d. %-16s %s\n", i+1, d.Name, strings.TrimSpace(about))
	}
	return nil
}
