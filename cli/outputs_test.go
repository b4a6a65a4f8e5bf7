//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/internal/testenv"
)

// TestOutputs checks the same rules for every command that writes a file.
func TestOutputs(t *testing.T) {
	testenv.Grid(t, "every command with every kind of output file")
	s := newScene(t)
	for i := range allWritten {
		w := &allWritten[i]
		t.Run(w.name, func(t *testing.T) {
			s.t = t
			// A new file, an old one, and one that other users may read.
			out := s.path("out.pcapng")
			for _, more := range [][]string{nil, nil, {"--mode", "0640"}} {
				if errs, code := s.run(w, out, more...); code == app.ExitFailed {
					t.Fatalf("exit %d, %s", code, errs)
				}
				mode := w.mode
				if more != nil {
					mode = 0o640
				}
				s.made(w, out, mode)
				s.put("out.pcapng", "old") // with mode 0666
			}
			s.refuses(w, out, "--no-clobber keeps it", "--no-clobber")
			s.stays("out.pcapng", "old")
			s.clean("out.pcapng")

			victim := s.put("victim", "old")
			for _, err := range []error{
				os.Symlink(victim, s.path("link")), os.Symlink(s.path("none"), s.path("hanging")),
				os.Link(victim, s.path("hard")),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s.refuses(w, s.path("link"), "symbolic link")
			s.refuses(w, s.path("hanging"), "symbolic link")
			s.stays("victim", "old")
			if errs, code := s.run(w, s.path("hard")); code == app.ExitFailed {
				t.Errorf("a second name of a file: exit %d, %s", code, errs)
			}
			s.stays("victim", "old")
			s.clean("victim", "link", "hanging", "hard")

			if !w.invented {
				in := s.path(s.capture(0))
				for _, err := range []error{os.Symlink(in, s.path("link")), os.Link(in, s.path("hard"))} {
					if err != nil {
						t.Fatal(err)
					}
				}
				s.refuses(w, in, "the capture to be read")
				s.refuses(w, s.path("hard"), "the capture to be read")
				s.refuses(w, s.path("link"), "symbolic link")
				s.clean("link", "hard")
			}
			s.refuses(w, s.folder, "found a directory")
			s.notRegular(w)
		})
	}
}

// notRegular makes a command write to a device and to a FIFO.
func (s *scene) notRegular(w *written) {
	if err := os.Symlink("/dev/null", s.path("null")); err != nil {
		s.t.Fatal(err)
	}
	for _, path := range []string{"/dev/null", s.path("null")} {
		if errs, code := s.run(w, path, "--no-clobber"); code == app.ExitFailed {
			s.t.Errorf("%s: exit %d, %s", path, code, errs)
		}
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		s.t.Fatalf("/dev/null is no device any more: %v, %v", info, err)
	}
	if !w.seeks {
		fifo := s.path("fifo")
		if err := syscall.Mkfifo(fifo, 0o666); err != nil {
			s.t.Fatal(err)
		}
		read := make(chan int64)
		go func() {
			f, err := os.Open(fifo)
			if err != nil {
				read <- -1
				return
			}
			defer f.Close()
			n, _ := io.Copy(io.Discard, f) // the test fails below if it copies too few bytes
			read <- n
		}()
		errs, code := s.run(w, fifo)
		if n := <-read; code == app.ExitFailed || n < 20 {
			s.t.Errorf("a FIFO: %d bytes, exit %d, %s", n, code, errs)
		}
	}
	s.clean("null", "fifo")
}

// Every command that writes files has the flags of outputs, and no other
// command has them.
func TestOutputFlags(t *testing.T) {
	for _, name := range []string{
		"capture", "packets", "events", "flows", "findings", "tui", "merge", "reduce",
		"anonymise", "report", "graph", "export csv", "export qlog", "replay", "simulate", "lab srdp", "man",
	} {
		if help := output(t, append(strings.Fields(name), "--help")...); !strings.Contains(help, "--no-clobber") ||
			!strings.Contains(help, "--mode OCTAL") {
			t.Errorf("%s has no --no-clobber or no --mode", name)
		}
	}
	for _, name := range []string{"messages", "state", "explain", "fields", "ledger"} {
		if help := output(t, name, "--help"); strings.Contains(help, "--no-clobber") {
			t.Errorf("%s has --no-clobber, and writes no file", name)
		}
	}
	for _, mode := range []string{"8", "1777", "rw", "-1"} {
		if _, errs, code := outcome("simulate", "--mode", mode, "-w", "-"); code != app.ExitFailed ||
			!strings.Contains(errs, "octal") {
			t.Errorf("--mode %s: exit %d, %s", mode, code, errs)
		}
	}
}

// Two outputs of a run cannot be one file. Files that flags name are not
// overwritten.
func TestOutputsOfOneRun(t *testing.T) {
	s := newScene(t)
	x := s.path("x.pcapng")
	keys := s.put("keys.yaml", "keys: []\n")
	if err := os.Symlink(s.folder, s.path("here")); err != nil {
		t.Fatal(err)
	}
	in, in2 := s.path(s.capture(0)), s.path(s.capture(1))
	for _, args := range [][]string{
		{"simulate", "--duration", "1s", "-w", x, "--truth", x},
		{"simulate", "--duration", "1s", "--journal", x, "--truth", s.path("here/x.pcapng")},
		{"simulate", "--duration", "1s", "-w", "-", "--truth", "-"},
		{"lab", "gaffer", "-c", "1", "--truth", x, "--journal", x},
		{"lab", "gaffer", "-c", "1", "--recorder", "relay", "--truth", x, "-w", s.path("here/x.pcapng")},
		{"merge", "-w", x, "--report", x, in, in2},
		{"merge", "-w", in2, in, in2},
		{"merge", "--report", s.path("here/" + s.capture(1)), in, in2},
		{"replay", "--update", "--junit", in + ".replay", in},
		{"packets", "--keys", keys, "-w", keys, in},
		{"export", "csv", "--keys", keys, "--table", "flows", "-o", keys, in},
	} {
		if _, errs, code := outcome(args...); code != app.ExitFailed {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
		s.stays("keys.yaml", "keys: []\n")
		for _, name := range []string{"x.pcapng", s.capture(0) + ".replay"} {
			_ = os.Remove(s.path(name)) // a stream keeps what it has
		}
	}
	s.clean("keys.yaml", "here")
}

// Baselines and manual pages follow the same rules.
func TestOutputsByConvention(t *testing.T) {
	s := newScene(t)
	in := s.path(s.capture(0))
	victim := s.put("victim", "old")
	link := func(name string) {
		if err := os.Symlink(victim, s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	link(s.capture(0) + ".replay")
	link("ackscope-flows.1")
	for _, args := range [][]string{{"replay", "--update", in}, {"man", s.folder}} {
		if _, errs, code := outcome(args...); code != app.ExitFailed || !strings.Contains(errs, "symbolic link") &&
			!strings.Contains(errs, "expected") {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
		s.stays("victim", "old")
	}
	if err := os.Remove(in + ".replay"); err != nil {
		t.Fatal(err)
	}
	output(t, "replay", "--update", in)
	s.made(&written{name: "replay --update"}, in+".replay", 0o644)
	s.put(s.capture(0)+".replay", "ackscope")
	if _, errs, code := outcome("replay", "--update", "--no-clobber", in); code != app.ExitFailed ||
		!strings.Contains(errs, "--no-clobber keeps it") {
		t.Errorf("exit %d, %s", code, errs)
	}
	s.stays(s.capture(0)+".replay", "ackscope")
}

// A failure leaves the old file, and nothing else. The failures are a full disk
// (a shell's file size limit), a capture that ends early, and an interrupt.
func TestOutputFailures(t *testing.T) {
	s := newScene(t)
	sh := testenv.Need(t, "sh")
	for i := range allWritten {
		w := &allWritten[i]
		if w.stream {
			continue // it keeps what it got
		}
		out := s.put("out.pcapng", "old")
		cmd := exec.Command(sh, append([]string{"-c", `ulimit -f 0; exec "$@"`, "sh", "ackscope"}, s.args(w, out)...)...)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != app.ExitFailed || !strings.Contains(string(text), "file too large") {
			t.Errorf("%s beyond the limit: %v, %s", w.name, err, text)
		}
		s.stays("out.pcapng", "old")
		s.clean("out.pcapng")
	}
	cut := s.path("cut.pcapng")
	if err := os.WriteFile(cut, s.bytes[0][:len(s.bytes[0])*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"packets -w OUT CUT", "flows -w OUT CUT", "anonymise CUT OUT",
		"export csv --table events -o OUT CUT", "export pcapng -o OUT CUT",
	} {
		s.put("out.pcapng", "old")
		list := strings.Fields(strings.NewReplacer("CUT", cut, "OUT", s.path("out.pcapng")).Replace(args))
		if _, errs, code := outcome(append(list, "--strict")...); code != app.ExitFailed {
			t.Errorf("%s --strict: exit %d, %s", args, code, errs)
		}
		s.stays("out.pcapng", "old")
		if _, errs, code := outcome(list...); code != app.ExitDone {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
		s.made(&written{name: args}, s.path("out.pcapng"),
			map[bool]fs.FileMode{true: 0o644, false: 0o600}[strings.Contains(args, "csv")])
	}
	s.clean("out.pcapng", "cut.pcapng")
}

// An interrupt during the writing of a whole file leaves the old one.
func TestOutputInterrupted(t *testing.T) {
	s := newScene(t)
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sent) {
			t.Fatalf("%v is ignored here, as under nohup, and the program keeps to that: run the tests without it", sent)
		}
		out := s.put("out", "old")
		cmd := exec.Command("ackscope", "report", "-o", out, "-")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(s.bytes[0][:len(s.bytes[0])/2]); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "a file beside the target", func() bool {
			entries, err := os.ReadDir(s.folder)
			return err == nil && len(entries) == 4
		})
		time.Sleep(20 * time.Millisecond) // the program catches signals only after it has created the file
		if err := cmd.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: exit 0", sent)
		}
		s.stays("out", "old")
		s.clean("out")
	}
}

// A second writer is refused, whichever way it writes.
func TestSecondWriter(t *testing.T) {
	s := newScene(t)
	out := s.path("out.pcapng")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan int)
	go func() {
		var errs bytes.Buffer
		first <- runKnown([]string{"flows", "-q", "--live", "-w", out, "-"}, app.Streams{In: r, Out: io.Discard, Err: &errs})
	}()
	if _, err := w.Write(s.bytes[0]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the first writer's file", func() bool { _, err := os.Stat(out); return err == nil })
	for i := range allWritten {
		s.refuses(&allWritten[i], out, "another process writes this file")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-first; code != app.ExitDone {
		t.Errorf("the first writer: exit %d", code)
	}
	if n := len(contentsOf(t, out).Frames); n != 300 {
		t.Errorf("the file has %d frames, expected 300", n)
	}
	s.clean("out.pcapng")
}

// Standard output is appended to at its position, under either name. It cannot
// overwrite an input.
func TestOutputToStandardOutput(t *testing.T) {
	s := newScene(t)
	sh := testenv.Need(t, "sh")
	for _, name := range []string{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"} {
		script := `cd "$1" && printf before > log && ackscope simulate -q --duration 1s -w ` + name +
			` >> log && head -c 6 log && rm log &&
ackscope packets -q -w ` + name + ` in.pcapng | ackscope flows -q - | grep -c riptide/
ackscope packets -q -w ` + name + ` in.pcapng >> in.pcapng; echo $?
ackscope packets -q -w in.pcapng - < in.pcapng; echo $?
ackscope anonymise -q in.pcapng both > both; echo $?; rm both`
		cmd := exec.Command(sh, "-c", script, "sh", s.folder)
		if _, err := os.Stat("/proc/self/fd"); err != nil && strings.HasPrefix(name, "/proc") {
			continue // not Linux
		}
		text, err := cmd.Output()
		if err != nil || strings.Join(strings.Fields(string(text)), " ") != "before1 2 2 2" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		s.clean()
	}
}

// The names of a row of files can be guessed. A file that another user has put
// there is neither overwritten nor deleted.
func TestRowOfFiles(t *testing.T) {
	s := newScene(t)
	victim := s.put("victim", "old")
	row, err := reader.ParseRotation(s.path("row.pcapng"), []string{"packets:10", "files:2"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		for second := range 20 {
			at := time.Now().Add(time.Duration(second) * time.Second).Format("20060102150405")
			if err := os.Symlink(victim, s.path(fmt.Sprintf("row_%05d_%s.pcapng", n, at))); err != nil {
				t.Fatal(err)
			}
		}
	}
	in, err := capture.Open([]string{s.path(s.capture(0))}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	a := &app.App{Streams: app.Streams{Out: io.Discard, Err: io.Discard}}
	defer a.Abandon()
	to, err := reader.NewRotation(a, row, "", reader.OriginOf(in))
	if err != nil {
		t.Fatal(err)
	}
	var f capture.Frame
	for in.Next(&f) == nil {
		if err := to.Write(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(nil); err != nil {
		t.Fatal(err)
	}
	s.stays("victim", "old")
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		t.Fatal(err)
	}
	links, own := 0, 0
	for _, e := range entries {
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			links++
		case strings.HasPrefix(e.Name(), "row_"):
			own++
			s.made(&written{name: e.Name()}, s.path(e.Name()), 0o600)
		}
	}
	if links != 800 || own != 2 {
		t.Errorf("%d links and %d files of the row, expected 800 and 2", links, own)
	}
}
