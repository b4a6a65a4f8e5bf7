// Command profile writes the CPU profile that `go build` reads. It profiles the
// work that users wait for: the listings and replay over captures of every
// protocol.
//
//	go run ./internal/profile cmd/ackscope/default.pgo      (make pgo)
//
// Run it on an idle machine. The captures are simulated, so that the profile is
// always of the same work.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/internal/traffic"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: profile FILE.pgo")
		os.Exit(2)
	}
	if err := take(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

// commands are profiled over each capture. flows is the work that all others do
// first, so it appears several times.
var commands = []string{
	"flows", "flows", "flows", "flows", "findings", "findings", "events", "packets",
	"ledger", "replay", "overview",
}

// rounds is how often they are profiled. With the samples of one round, the compiler inlines other
// functions for each profile, and the times differ by some percent.
const rounds = 4

// take writes the profile to a file.
func take(to string) error {
	dir, err := os.MkdirTemp("", "profile")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	os.Stdout = null
	captures, err := simulate(dir)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	for range rounds {
		for _, path := range captures {
			for _, command := range commands {
				if err := run(command, "-q", path); err != nil {
					return err
				}
			}
		}
	}
	pprof.StopCPUProfile()
	return out.Close()
}

// simulate makes a capture of each protocol: a million packets of Gaffer, and
// of the others as many clients as a match has.
func simulate(dir string) (paths []string, err error) {
	path := filepath.Join(dir, "gaffer.pcap")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := traffic.Write(f, traffic.Options{Packets: 1_000_000, Flows: 64, Loss: 0.05, Seed: 1}); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	paths = append(paths, path)
	for i, flags := range [][]string{
		{"--protocol", "gaffer:reliable", "--seed", "3"},
		{"--protocol", "riptide", "--no-limits", "--clients", "1"},
		{"--protocol", "riptide", "--no-limits", "--clients", "4"},
		{"--protocol", "srdp", "--clients", "4"},
		{"--protocol", "srdp", "--clients", "16"},
	} {
		path := filepath.Join(dir, fmt.Sprintf("simulated%d.pcapng", i))
		if err := run(append([]string{"simulate", "--loss", "5%", "--duration", "300s", "-w", path},
			flags...)...); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func run(args ...string) error {
	r := protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}
	if code := cli.Main(r, args); code > 1 { // 1: replay found a divergence
		return fmt.Errorf("%v: exit %d", args, code)
	}
	return nil
}
