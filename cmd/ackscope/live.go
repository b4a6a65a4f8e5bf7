package main

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

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/show"
)

// liveFlags are the flags of commands that can capture by themselves, as
// tshark has them.
type liveFlags struct {
	device    string
	filter    string
	list      bool
	count     uint64
	autostop  []string
	write     string
	snap      int
	noPromisc bool
}

func (l *liveFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&l.device, "interface", "i", "", "capture live on an interface; `any` for all of them")
	f.StringVarP(&l.filter, "capture-filter", "f", "", "capture only what passes a `filter` in tcpdump's language, as 'udp port 7777'")
	f.BoolVarP(&l.list, "list-interfaces", "D", false, "list the interfaces and exit")
	f.Uint64VarP(&l.count, "count", "c", 0, "stop after `N` packets (where packets are filtered: that pass)")
	f.StringArrayVarP(&l.autostop, "autostop", "a", nil, "stop the live capture after `duration:SECONDS` or packets:N")
	f.StringVarP(&l.write, "write", "w", "", "write the packets to `FILE.pcapng`, - for standard output")
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
	live afpacket.Live
	done chan struct{}
}

// openLive starts to capture. An interrupt, or the duration that was asked for,
// ends it as if the file had ended.
func (l *liveFlags) open() (*session, uint64, error) {
	duration, packets, err := l.limits()
	if err != nil {
		return nil, 0, err
	}
	live, err := afpacket.Open(afpacket.Options{Interface: l.device, Promiscuous: !l.noPromisc, SnapLength: l.snap, Filter: l.filter})
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w (capturing needs CAP_NET_RAW: run as root, or `sudo setcap cap_net_raw+ep $(command -v ackscope)`)", err)
		}
		return nil, 0, fmt.Errorf("-i %s: %w", l.device, err)
	}
	s := &session{live: live, done: make(chan struct{})}
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
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
		live.Stop()
		// An interrupt after this ends the program at once; but some callers send
		// one to the process and to its group, and mean it once.
		time.Sleep(interruptAgain)
		signal.Stop(interrupt)
	}()
	return s, packets, nil
}

// close ends the capture and tells what the kernel counted.
func (s *session) close(a *app, frames uint64) (*capture.Statistics, error) {
	close(s.done)
	st, err := s.live.Statistics()
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
		fmt.Fprintf(a.err, "%s captured, %s dropped by the kernel\n", show.Plural(frames, "packet"), show.Grouped(st.OSDropped))
	}
	return &st, nil
}

// analyze runs the analysis over a live capture to its end.
func (l *liveFlags) analyze(a *app, args []string, o analyze.Options) (*analyze.Session, error) {
	if len(args)+len(a.flags.read) > 0 {
		return nil, errIAndFile
	}
	s, packets, err := l.open()
	if err != nil {
		return nil, err
	}
	f := &feed{source: s.live, most: least(packets, l.count)}
	if l.write != "" {
		if f.copyTo, err = a.newSave(l.write, func(int, int) capture.Interface { return s.live.Interface() }); err != nil {
			return nil, errors.Join(err, s.live.Close())
		}
	}
	if !a.flags.quiet {
		fmt.Fprintf(a.err, "capturing on %s\n", l.device)
	}
	session, err := analyze.Run(f, o)
	st, closeErr := s.close(a, f.frames)
	if f.copyTo != nil {
		closeErr = errors.Join(closeErr, f.copyTo.close(st))
	}
	return session, errors.Join(err, closeErr)
}

// check refuses what only a live capture can do.
func (l *liveFlags) check() error {
	if l.filter != "" && l.device == "" {
		return errors.New("-f filters what is captured live: expected -i too; files are filtered by -Y")
	}
	return nil
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
				o.buf = appendJSONString(o.buf, p.String())
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
