//go:build unix

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// written is a command that writes a file.
type written struct {
	name string
	args string // IN, IN2, PAGE and OUT are the captures, the page of ackscope web, and the file
	mode fs.FileMode
	// stream reports whether the file grows under its own name.
	stream bool
	// invented reports whether the command reads no capture.
	invented bool
	// seeks reports whether the file cannot be a pipe.
	seeks bool
}

// allWritten lists the commands that write a file. Captures, bytes and values
// are readable by their owner only. The umask of the tests is 022.
var allWritten = []written{
	{name: "packets -w", args: "packets -w OUT IN", mode: 0o600},
	{name: "packets -Y -w", args: "packets -Y riptide -w OUT IN", mode: 0o600},
	{name: "packets --live -w", args: "packets --live -w OUT IN", mode: 0o600},
	{name: "flows -w", args: "flows -w OUT IN", mode: 0o600},
	{name: "flows --live -w", args: "flows --live -w OUT IN", mode: 0o600, stream: true},
	{name: "events --live -w", args: "events --live -w OUT IN", mode: 0o600, stream: true},
	{name: "findings --live -w", args: "findings --live -w OUT IN", mode: 0o600, stream: true},
	{name: "merge -w", args: "merge -w OUT IN IN2", mode: 0o600},
	{name: "merge --report", args: "merge --report OUT IN IN2", mode: 0o644},
	{name: "reduce", args: "reduce --keep riptide-resent-ack-lost --trials 20 IN OUT", mode: 0o600},
	{name: "anonymise", args: "anonymise IN OUT", mode: 0o600},
	{name: "report", args: "report -o OUT IN", mode: 0o644},
	{name: "report --interactive", args: "report --interactive --assets PAGE -o OUT IN", mode: 0o600},
	{name: "report markdown", args: "report --format markdown --replay=false -o OUT IN", mode: 0o644},
	{name: "graph", args: "graph -o OUT IN", mode: 0o644},
	{name: "export jsonl packets", args: "export jsonl --table packets -o OUT IN", mode: 0o600},
	{name: "export csv messages", args: "export csv --table messages -o OUT IN", mode: 0o600},
	{name: "export csv events", args: "export csv --table events -o OUT IN", mode: 0o644},
	{name: "export parquet flows", args: "export parquet --table flows -o OUT IN", mode: 0o644},
	{name: "export qlog", args: "export qlog -o OUT IN", mode: 0o644},
	{name: "export pcapng", args: "export pcapng -o OUT IN", mode: 0o600},
	{name: "export wireshark", args: "export wireshark -o OUT IN", mode: 0o600},
	{name: "replay --junit", args: "replay --matrix --junit OUT IN", mode: 0o644},
	{name: "simulate -w", args: "simulate --duration 1s -w OUT", mode: 0o600, invented: true},
	{name: "simulate --truth", args: "simulate --duration 1s --truth OUT", mode: 0o600, invented: true},
	{name: "simulate --journal", args: "simulate --duration 1s --journal OUT", mode: 0o600, invented: true},
	{
		name: "lab -w", args: "lab gaffer -c 3 --linger 50ms --recorder relay -w OUT", mode: 0o600, stream: true,
		invented: true,
	},
	{name: "lab --truth", args: "lab gaffer -c 3 --linger 50ms --truth OUT", mode: 0o600, stream: true, invented: true},
	{
		name: "lab --journal", args: "lab gaffer -c 3 --linger 50ms --journal OUT", mode: 0o600, stream: true, invented: true,
		seeks: true,
	},
}

// scene is a folder that contains captures and nothing else.
type scene struct {
	t      *testing.T
	folder string
	page   string    // the page of ackscope web, in a folder of its own; its program is empty
	bytes  [2][]byte // the contents of the captures
}

// newScene returns a scene with the first packets of two captures of one
// session.
func newScene(t *testing.T) *scene {
	t.Helper()
	old := syscall.Umask(0o022)
	t.Cleanup(func() { syscall.Umask(old) })
	s := &scene{t: t, folder: t.TempDir(), page: t.TempDir()}
	if err := os.CopyFS(s.page, os.DirFS(filepath.Join(testenv.Module(t), "web", "dist"))); err != nil {
		t.Fatal(err)
	}
	for _, built := range []string{"ackscope.wasm", "wasm_exec.js"} {
		if err := os.WriteFile(filepath.Join(s.page, built), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, end := range []string{"client.pcapng", "server.pcap"} {
		from := testenv.Capture(t, "u210_loss10."+end+".gz")
		output(t, "packets", "-c", "300", "-w", s.path(s.capture(i)), from)
		b, err := os.ReadFile(s.path(s.capture(i)))
		if err != nil {
			t.Fatal(err)
		}
		s.bytes[i] = b
	}
	return s
}

func (s *scene) capture(i int) string { return []string{"in.pcapng", "in2.pcapng"}[i] }

func (s *scene) path(name string) string { return filepath.Join(s.folder, name) }

// args returns the arguments of a command, with more before the paths.
func (s *scene) args(w *written, out string, more ...string) []string {
	args := strings.Fields(w.args)
	at := 1
	if args[0] == "export" || args[0] == "lab" {
		at = 2
	}
	args = slices.Insert(args, at, more...)
	for i, a := range args {
		switch a {
		case "IN":
			args[i] = s.path(s.capture(0))
		case "IN2":
			args[i] = s.path(s.capture(1))
		case "PAGE":
			args[i] = s.page
		case "OUT":
			args[i] = out
		}
	}
	return append([]string{args[0]}, append(args[1:], "-q")...)
}

// run runs a command and returns how it ended.
func (s *scene) run(w *written, out string, more ...string) (errs string, code int) {
	_, errs, code = outcome(s.args(w, out, more...)...)
	return errs, code
}

// refuses checks that a command ends with 2 and this error.
func (s *scene) refuses(w *written, out, want string, more ...string) {
	s.t.Helper()
	if errs, code := s.run(w, out, more...); code != app.ExitFailed || !strings.Contains(errs, want) {
		s.t.Errorf("%s to %s: exit %d, %q; expected %d and %q", w.name, filepath.Base(out), code, errs, app.ExitFailed, want)
	}
}

// stays checks that a file has not changed.
func (s *scene) stays(name, text string) {
	s.t.Helper()
	if b, err := os.ReadFile(s.path(name)); err != nil || string(b) != text {
		s.t.Errorf("%s holds %d bytes, expected the %d that it had (%v)", name, len(b), len(text), err)
	}
}

// clean checks that the folder contains these files and the unchanged captures.
// It then removes the files.
func (s *scene) clean(names ...string) {
	s.t.Helper()
	for i := range s.bytes {
		s.stays(s.capture(i), string(s.bytes[i]))
	}
	names = append(names, s.capture(0), s.capture(1))
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			s.t.Errorf("%s is left", e.Name())
		}
		if e.Name() != s.capture(0) && e.Name() != s.capture(1) {
			if err := os.Remove(s.path(e.Name())); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// put writes a file that all users may read and write.
func (s *scene) put(name, text string) string {
	s.t.Helper()
	path := s.path(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// made checks that a file was written with these permissions.
func (s *scene) made(w *written, path string, mode fs.FileMode) {
	s.t.Helper()
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode || info.Size() < 20 {
		s.t.Errorf("%s: %v, expected a file with mode %04o (%v)", w.name, info, mode, err)
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("expected %s", what)
}
