package interfaces

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/cli/privilege"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// Flags say on which interfaces a program captures, and as whom, with tshark's names.
type Flags struct {
	Devices   []string
	filter    string
	program   string
	snap      int
	buffer    int
	noPromisc bool
	noHost    bool
	privilege.Options
}

// Register adds the flags to a command.
func (l *Flags) Register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVarP(&l.Devices, "interface", "i", nil,
		"capture live on an `interface` (repeatable); any for all of them")
	f.StringVarP(&l.filter, "capture-filter", "f", "",
		"capture only what passes a `filter` in tcpdump's language, as 'udp port 7777'")
	f.StringVar(&l.program, "bpf-raw", "",
		"the capture filter as a BPF program, from a `FILE` in the form of tcpdump -ddd")
	f.IntVarP(&l.buffer, "buffer-size", "B", 0, "size of the ring that the kernel fills, in `MiB` (32)")
	l.Options.Register(f)
	f.IntVarP(&l.snap, "snapshot-length", "s", 0, "keep at most `N` bytes of each packet captured live")
	f.BoolVarP(&l.noPromisc, "no-promiscuous-mode", "p", false, "do not ask the interface for packets of others")
	f.BoolVar(&l.noHost, "no-host", false, "do not sample what the host counts at its sockets and interfaces")
	_ = c.RegisterFlagCompletionFunc("interface",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
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
}

// Device names the interfaces. It returns "" for files.
func (l *Flags) Device() string { return strings.Join(l.Devices, ", ") }

// Check refuses flags that only a live capture can have, where no interface is given.
func (l *Flags) Check() error {
	if len(l.Devices) > 0 {
		return nil
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"-f", l.filter != ""},
		{"--bpf-raw", l.program != ""},
		{"-B", l.buffer != 0},
		{"-Z", l.User != ""},
		{"--keep-root", l.KeepRoot},
		{"--no-host", l.noHost},
	} {
		if f.set {
			return OnlyLive(f.name)
		}
	}
	return nil
}

// OnlyLive returns the error for a flag that only a live capture can have.
func OnlyLive(flag string) error {
	return fmt.Errorf("%s is for live captures: expected -i too; files are filtered by -Y", flag)
}

// options returns the options of each interface.
func (l *Flags) options() ([]afpacket.Options, error) {
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
		if err = readProgram(&o, string(text)); err != nil {
			return nil, fmt.Errorf("--bpf-raw: %w", err)
		}
	}
	// Refuse a wrong filter before anything is opened.
	if err := checkFilter(l.filter); err != nil {
		return nil, err
	}
	var list []afpacket.Options
	for i, name := range l.Devices {
		if slices.Contains(l.Devices[:i], name) {
			return nil, fmt.Errorf("-i %s: expected each interface once", name)
		}
		o.Interface = name
		list = append(list, o)
	}
	return list, nil
}

// Open starts to capture with the least privileges. Where there are privileges to give up, it does
// not return: it executes the program again, which comes here a second time. So what needs no
// privilege is opened after Open. idle is called before a wait, and notice with problems that do not
// end the capture. The probe samples the host; it is nil with --no-host.
func (l *Flags) Open(idle func(), notice func(string)) (afpacket.Group, *live.Probe, error) {
	list, err := l.options()
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		list[i].Idle, list[i].Notice = idle, notice
	}
	var probe *live.Probe
	if !l.noHost {
		probe = live.NewProbe() // before the privileges are given up
	}
	group, err := privilege.OpenCapture(list, &l.Options)
	if err != nil {
		return nil, nil, lacking(err)
	}
	if probe != nil {
		probe.Opened()
	}
	return group, probe, nil
}

// RootAdvice returns a warning if the capture continues as root, so that --keep-root is not forgotten.
// Otherwise it returns "".
func RootAdvice() string {
	if os.Geteuid() == 0 {
		return "--keep-root: capturing as user 0: what takes over this process can write root's files"
	}
	return ""
}

// lacking adds to an error how to grant a missing privilege.
func lacking(err error) error {
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	path, pathErr := os.Executable()
	if pathErr != nil {
		path = "$(command -v ackscope)"
	}
	return fmt.Errorf("%w; grant it for good with `sudo setcap cap_net_raw+ep %s`", err, path)
}
