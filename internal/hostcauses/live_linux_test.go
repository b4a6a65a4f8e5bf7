package hostcauses

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/protocols"
)

const (
	liveVariable = "ACKSCOPE_HOSTCAUSES_LIVE" // where TestLiveRun writes what it found
	liveOpen     = "veth0 is open"            // it says that when it captures
)

// beginLive begins an analysis of veth0 by package live, with a probe, as other programs make it. The function that
// it returns ends the analysis, and returns the findings as JSON Lines.
//
// The analysis is a process of its own, as such a program is. The threads of this one are in several namespaces, and
// /proc/net is that of its first thread.
func beginLive(t *testing.T) (end func() []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "findings.jsonl")
	child := exec.Command(os.Args[0], "-test.run=^TestLiveRun$")
	child.Env = append(os.Environ(), liveVariable+"="+path)
	stop, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); strings.TrimSpace(line) != liveOpen {
		rest, _ := io.ReadAll(said)
		t.Fatalf("%v: it said %q %q, expected %q", err, line, rest, liveOpen)
	}
	return func() []byte {
		if err := stop.Close(); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(said)
		if err := child.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, rest)
		}
		rows, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
}

// TestLiveRun is the process that beginLive begins. It ends with its standard input.
func TestLiveRun(t *testing.T) {
	path := os.Getenv(liveVariable)
	if path == "" {
		return // it is not that process
	}
	group, err := afpacket.OpenGroup([]afpacket.Options{{Interface: "veth0", Filter: "udp or icmp"}})
	if err != nil {
		t.Fatal(err)
	}
	var rows bytes.Buffer
	lines := export.NewRows(export.Findings, export.NewLines(&rows, &export.Findings.Schema))
	samples := 0
	run := live.New(group, live.Options{
		Analysis: analyze.Options{Registry: protocols.Default(), Limits: analyze.LiveLimits},
		Ended: func(f *analyze.Flow, _ live.Why) {
			for _, x := range f.Findings() {
				if err := lines.Add(&export.FindingRow{Finding: x}); err != nil {
					t.Error(err)
				}
			}
		},
		Dropped: func() uint64 { return live.Dropped(group) },
		Probe:   live.NewProbe(),
		Sampled: func(*host.Sample) error { samples++; return nil },
	})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println(liveOpen)
	if err := run.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	if samples < 2 {
		t.Errorf("%d samples in three seconds", samples)
	}
	if err := os.WriteFile(path, rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
