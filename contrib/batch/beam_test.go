// Package batch_test holds what Beam writes against what `ackscope batch` writes.
package batch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/contrib/batch/apart"
	"github.com/ackscope/ackscope/contrib/batch/command"
	"github.com/ackscope/ackscope/contrib/batch/pipeline"
	"github.com/ackscope/ackscope/internal/folders"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

var known = protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}

// Variables of the processes that a test starts.
const (
	// role makes the test program the programs ackscope and ackscope-beam.
	role = "ACKSCOPE_BEAM_TEST_ROLE"
	// poison has a text: a process dies of a capture with it in the name.
	poison = "ACKSCOPE_BEAM_TEST_POISON"
	// murder has a path and a name. The first process that gets the capture of that name makes a file at
	// the path, and kills the worker that started it.
	murder = "ACKSCOPE_BEAM_TEST_MURDER"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		_ = os.Setenv(role, "program") // of the processes that this one starts
		os.Exit(m.Run())
	}
	os.Exit(program(os.Args[1:]))
}

func program(args []string) int {
	var w batch.Worker
	switch {
	case args[0] == pipeline.AnalyzeCommand && os.Getenv(poison)+os.Getenv(murder) != "":
		w = apart.NewAnalyzer(unit.Options{})
	case args[0] == "batch" && slices.Contains(args, "--worker") && os.Getenv(poison) != "":
		out := ""
		for _, arg := range args {
			if value, ok := strings.CutPrefix(arg, "--output="); ok {
				out = value
			}
		}
		a, err := batch.NewAnalyzer(&outfile.Outputs{}, out, unit.Options{})
		if err != nil {
			return 2
		}
		w = a
	case args[0] == "batch":
		return cli.Main(known, args)
	default:
		return command.Main(args, os.Stdout, os.Stderr)
	}
	if err := command.Serve(deadly{w}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// deadly is a worker whose process dies of a capture, or kills the process that started it.
type deadly struct{ batch.Worker }

func (d deadly) Do(ctx context.Context, job *batch.Job) (*batch.Done, error) {
	if bad := os.Getenv(poison); bad != "" && strings.Contains(job.Capture.Name, bad) {
		os.Exit(137)
	}
	if mark, bad, ok := strings.Cut(os.Getenv(murder), "|"); ok && strings.Contains(job.Capture.Name, bad) {
		if file, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = file.Close()
			_ = syscall.Kill(os.Getppid(), syscall.SIGKILL) // the status of a shell is then 137
		}
	}
	return d.Worker.Do(ctx, job)
}

// ackscope runs a command line of ackscope and checks the exit code. It returns what it said.
func ackscope(t testing.TB, code int, args ...string) string {
	t.Helper()
	var o bytes.Buffer
	if got := cli.Run(known, args, app.Streams{In: strings.NewReader(""), Out: &o, Err: &o}); got != code {
		t.Fatalf("ackscope %s: exit %d, expected %d\n%s", strings.Join(args, " "), got, code, o.String())
	}
	return o.String()
}

// run runs `ackscope-beam run` in this process and checks the exit code. It returns what it said.
func run(t testing.TB, code int, args ...string) string {
	t.Helper()
	var o bytes.Buffer
	if got := command.Run(t.Context(), append([]string{"run"}, args...), &o, &o); got != code {
		t.Fatalf("ackscope-beam run %s: exit %d, expected %d\n%s", strings.Join(args, " "), got, code, o.String())
	}
	return o.String()
}

// simulated writes a simulated capture.
func simulated(t testing.TB, path string, args ...string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	ackscope(t, 0, append([]string{"simulate", "-q", "--duration", "2s", "-w", path}, args...)...)
	return path
}

// broken writes captures that are broken in several ways into a folder.
func broken(t testing.TB, folder string) {
	t.Helper()
	folders.Break(t, simulated(t, filepath.Join(folder, "whole.pcapng"), "--loss", "5%"))
}

// rotated writes a plain pcap as the files of a rotated row.
func rotated(t testing.TB, path, folder string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest := b[:24], b[24:]
	for i := range 3 {
		file := slices.Clone(head)
		for n := 0; len(rest) > 0 && (n < 100 || i == 2); n++ {
			length := 16 + binary.LittleEndian.Uint32(rest[8:])
			file, rest = append(file, rest[:length]...), rest[length:]
		}
		folders.Put(t, filepath.Join(folder, fmt.Sprintf("m_%05d_202611221015%02d.pcap", i+1, i)), file)
	}
}

// set writes a manifest with captures of each protocol, broken ones, a rotated row and hostile
// names. It returns the path.
func set(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	broken(t, filepath.Join(folder, "broken"))
	for i, p := range []string{"gaffer:reliable", "riptide:2.2.1", "srdp"} {
		path := filepath.Join(folder, "good", fmt.Sprintf("%d.pcapng", i))
		simulated(t, path, "--protocol", p, "--loss", "10%", "--seed", fmt.Sprint(i+1))
	}
	rotated(t, simulated(t, filepath.Join(folder, "whole.pcap")), filepath.Join(folder, "rows"))
	simulated(t, filepath.Join(folder, "odd", "..%2f<script> '\"\n*.pcapng"), "--seed", "9")
	if b, err := os.ReadFile(filepath.Join(folder, "whole.pcap")); err == nil { // some systems have no such names
		_ = os.MkdirAll(filepath.Join(folder, "bytes"), 0o755)
		_ = os.WriteFile(filepath.Join(folder, "bytes", "\xff\xfe.pcap"), b, 0o644)
		_ = os.WriteFile(filepath.Join(folder, "bytes", "a.pcap"), b, 0o644)
	}
	return folders.Put(t, filepath.Join(folder, "captures.csv"), []byte("capture,build,region\n"+
		"good/0.pcapng,1.4,eu\ngood/1.pcapng,../../../up,eu\ngood/2.pcapng,..,/etc\n"+
		"broken,1.4,\nrows/*.pcap,1.5,a=b%\nbytes,1.6,\n"+
		"\"odd/..%2f<script> '\"\"\n*.pcapng\",1.5,us\n"))
}
