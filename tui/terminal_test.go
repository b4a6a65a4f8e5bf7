package tui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/store"
)

// crashing is an environment variable. It makes this test program show a
// capture and crash on purpose: in the foreground ("draw") or in the background
// ("work").
const crashing = "ACKSCOPE_TUI_CRASH"

func TestMain(m *testing.M) {
	if how := os.Getenv(crashing); how != "" {
		crash(how, os.Getenv("ACKSCOPE_TUI_CAPTURE"))
	}
	testenv.Main(m)
}

// crash shows a capture. Saving packets (:w) panics in the foreground, an autopsy
// (A) in the background.
func crash(how, path string) {
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		panic(err)
	}
	registry := dissect.NewRegistry(gaffer.Protocol)
	s := store.New(in, analyze.Options{Registry: registry}, false)
	o := Options{Table: fields.NewTable(fields.Options{Registry: registry, Rules: analyze.Rules})}
	o.Autopsy = func(*analyze.Flow, machine.Instant, func(analyze.Sink)) []string { panic("a crash on purpose") }
	o.Save = func(string, *capture.Input) (store.Saver, error) { panic("a crash on purpose") }
	if _, err := Run(s, o); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// After a crash the terminal is restored, and the message can be read.
func TestTUICrash(t *testing.T) {
	session(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for how, key := range map[string]string{"draw": ":w x", "work": "A"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, "80", "24", crashing+"="+how, "ACKSCOPE_TUI_CAPTURE="+
				testenv.Capture(t, "reliable-loss10.client.pcap.gz"))
			x.run("stty -a >before; " + self + " 2>said; echo left $?; stty -a | cmp - before && echo as before; grep -m1 -o " +
				"'a crash on purpose' said")
			x.see(`gaffer/reliable`)
			x.see(`2,332 packets`)
			x.typed(key)
			x.keys("Enter")
			screen := x.see(`left 2(?s:.*)as before(?s:.*)a crash on purpose`)
			if strings.Contains(screen, "gaffer/reliable") {
				t.Errorf("the screen that was shown is still there:\n%s", screen)
			}
			// The cursor is visible and mouse reports are off.
			if got := strings.TrimSpace(
				x.do("display-message", "-p", "#{cursor_flag} #{mouse_any_flag} #{alternate_on}")); got != "1 0 0" {
				t.Errorf("cursor, mouse and alternate screen are %s, expected 1 0 0", got)
			}
		})
	}
}

// Packets from a pipe appear while they arrive. They are kept in a file without
// a name, and jumps work as in a file.
func TestTUIPipe(t *testing.T) {
	session(t)
	program, dir := testenv.Ackscope(t), t.TempDir()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		testenv.Skip(t, "no /proc: which files a program has open cannot be seen")
	}
	packed, whole := testenv.Capture(t, "reliable-loss10.client.pcap.gz"), filepath.Join(dir, "whole.pcap")
	x := newTerminal(t, "100", "30", "TMPDIR="+dir)
	x.run("gzip -dc " + packed + " >" + whole + "; mkfifo pipe; " + program + " tui - <pipe; echo left $?")
	pipe := x.follow(whole)
	pipe(0, 60_000)
	x.see(`gaffer/reliable(?s:.*)`)
	x.keys("Enter")
	x.see(`following +1/\d`)
	x.keys(".")
	first := number1(x.see(`packets, following(?s:.*)`))
	if first == 0 || first >= 2332 {
		t.Errorf("with a part of the capture come, %d packets are shown", first)
	}
	x.see(fmt.Sprintf(`%d/`, first)) // the selection follows the newest packet
	// The file has no name any more.
	if left, err := filepath.Glob(filepath.Join(dir, "ackscope-*")); err != nil || len(left) > 0 {
		t.Errorf("kept under a name: %v, %v", left, err)
	}
	if !keepsUnlinked(x.do("display-message", "-p", "#{pane_pid}"), dir) {
		t.Error("no open file without a name keeps what came")
	}
	pipe(60_000, 1<<30)
	x.see(`2332/2,332`)
	x.typed("300G")
	x.see(`frame 300`)
	x.keys("S")
	x.see(`A thinks B has packets up to 152`)
	x.keys("Z", "Z")
	x.see("left 0")
}

// follow returns a function that writes a part of a file to the terminal's
// pipe. At the end of the file it closes the pipe.
func (x *testTerminal) follow(path string) func(from, to int) {
	data := []byte(nil)
	pipe := (*os.File)(nil)
	return func(from, to int) {
		x.t.Helper()
		var err error
		for deadline := time.Now().Add(30 * time.Second); pipe == nil; time.Sleep(20 * time.Millisecond) {
			dir := strings.TrimSpace(x.do("display-message", "-p", "#{pane_current_path}"))
			if data, err = os.ReadFile(path); err == nil && len(data) > 0 {
				if info, statErr := os.Stat(filepath.Join(dir, "pipe")); statErr == nil && info.Mode()&os.ModeNamedPipe != 0 {
					if pipe, err = os.OpenFile(filepath.Join(dir, "pipe"), os.O_WRONLY, 0); err != nil {
						x.t.Fatal(err)
					}
				}
			}
			if time.Now().After(deadline) {
				x.t.Fatalf("no pipe to write %s to: %v", path, err)
			}
		}
		if _, err := pipe.Write(data[from:min(to, len(data))]); err != nil {
			x.t.Fatal(err)
		}
		if to >= len(data) {
			_ = pipe.Close()
		}
	}
}

// number1 returns the number of packets at the right end of a screen's top
// line.
func number1(screen string) int {
	m := regexp.MustCompile(`/([\d,]+) +\?`).FindStringSubmatch(screen)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
	return n
}

// keepsUnlinked reports whether a process below a shell has an unlinked file of
// a folder open.
func keepsUnlinked(shell, dir string) bool {
	children, _ := exec.Command("pgrep", "-P", strings.TrimSpace(shell)).Output()
	for pid := range strings.FieldsSeq(string(children) + " " + shell) {
		list, _ := filepath.Glob("/proc/" + pid + "/fd/*")
		for _, fd := range list {
			if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir+"/ackscope-") &&
				strings.HasSuffix(to, "(deleted)") {
				return true
			}
		}
	}
	return false
}

// A live capture of a game between two real endpoints on loopback. The flows
// and states follow it.
func TestTUILive(t *testing.T) {
	session(t)
	program := testenv.Ackscope(t)
	if os.Geteuid() != 0 {
		testenv.Skip(t, "capturing needs root or CAP_NET_RAW")
	}
	x := newTerminal(t, "140", "40")
	x.run(program + " tui -Z " + testenv.AsUser + " -i lo -f 'udp and host 127.0.0.2'; echo left $?")
	x.see(`following`)
	lab := exec.Command(program, "lab", "gaffer", "--profile", "reliable", "--loss", "20%", "--delay", "5ms",
		"--duration", "60s", "-q")
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = lab.Process.Signal(os.Interrupt)
		_ = lab.Wait()
	}()
	x.see(`gaffer/reliable +127\.0\.0\.`)
	x.keys("Enter", ".")
	screen := x.see(`packets, following(?s:.*)ack_bits(?s:.*)A thinks B has packets up to \d`)
	first := number1(screen)
	x.see(`✓ \d`)
	for deadline := time.Now().Add(30 * time.Second); number1(x.do("capture-pane", "-p")) <= first; time.Sleep(
		50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing more came")
		}
	}
	x.keys("R")
	x.see(`(consistent|conforms)(?s:.*)packets`)
	x.keys("q", "Z", "Z")
	x.see("left 0")
}

// Colours follow the terminal, NO_COLOR and the background.
func TestTUIColours(t *testing.T) {
	session(t)
	program := testenv.Ackscope(t)
	capture := testenv.Capture(t, "plain-le-stalebug-loss98.client.pcap.gz")
	trueColour, of256, of16 := regexp.MustCompile(`\x1b\[[\d;]*[34]8;2;`), regexp.MustCompile(`\x1b\[[\d;]*[34]8;5;`),
		regexp.MustCompile(`\x1b\[(\d+;)*([349][0-7]|10[0-7])[;m]`)
	for _, c := range []struct {
		name     string
		env      []string
		has, not []*regexp.Regexp
	}{
		{
			"true",
			[]string{"TERM=screen-256color", "COLORTERM=truecolor"},
			[]*regexp.Regexp{trueColour},
			[]*regexp.Regexp{of256},
		},
		{"256", []string{"TERM=screen-256color"}, []*regexp.Regexp{of256}, []*regexp.Regexp{trueColour}},
		{"16", []string{"TERM=screen"}, []*regexp.Regexp{of16}, []*regexp.Regexp{trueColour, of256}},
		{
			"none",
			[]string{"TERM=screen-256color", "COLORTERM=truecolor", "NO_COLOR=1"},
			nil,
			[]*regexp.Regexp{trueColour, of256, of16},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, "120", "30", c.env...)
			x.run(program + " tui " + capture)
			x.see(`gaffer/`)
			x.keys("F", "j")
			// Without colours the letters of severities say the same.
			x.see(`E stale-entry(?s:.*)W loss-burst(?s:.*)N ack-window-edge`)
			seen := x.seen()
			for _, re := range c.has {
				if !re.MatchString(seen) {
					t.Errorf("no %s in the screen", re)
				}
			}
			for _, re := range c.not {
				if re.MatchString(seen) {
					t.Errorf("%s in the screen: %q", re, re.FindString(seen))
				}
			}
			x.keys("Z", "Z")
		})
	}
}

// A terminal that changes its size: the mouse, the clipboard, a saved layout,
// saved packets.
func TestTUITerminal(t *testing.T) {
	session(t)
	program, dir := testenv.Ackscope(t), t.TempDir()
	x := newTerminal(t, "160", "50", "TERM=screen-256color")
	x.do("set-option", "-s", "set-clipboard", "on")
	open := program + " tui " + testenv.Capture(t, "reliable-loss10.client.pcap.gz")
	x.run(open)
	x.see(`gaffer/reliable`)
	x.keys("Enter")
	x.see(`both sides of flow 1 at frame 1\b`)
	// Click the eleventh row of the list, then turn the wheel over it.
	x.typed("\x1b[<0;10;14M\x1b[<0;10;14m")
	x.see(`both sides of flow 1 at frame 11\b`)
	x.typed("\x1b[<65;10;14M")
	x.see(`both sides of flow 1 at frame 14\b`)
	x.typed("300G")
	x.see(`▶ +300 `)
	x.keys("c")
	x.see(`copied: 300`)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(30 * time.Millisecond) {
		out, err := exec.Command(x.tmux, "-S", x.name, "show-buffer").CombinedOutput()
		if err == nil && strings.Contains(string(out), "seq 154 ack 154 ack_bits 0xf7fbffff") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the clipboard has %q, %v", out, err)
		}
	}
	x.do("resize-window", "-x", "80", "-y", "24")
	x.see(`(?m)▶ +300 (?s:.*)frame 300 (?s:.*)bytes`)
	if screen := x.do("capture-pane", "-p"); strings.Contains(screen, "both sides") {
		t.Errorf("80 columns have no room for the state beside:\n%s", screen)
	}
	x.keys("S")
	x.see(`A thinks B has|more ▾`)
	x.keys("q")
	x.do("resize-window", "-x", "140", "-y", "40")
	x.see(`both sides of flow 1 at frame 300`)
	x.run(":columns number gaffer.sequence info")
	x.run(":theme light")
	x.run(":layout save")
	x.see(`kept in .*tui\.json`)
	x.run("fgaffer.sequence in {100..110}")
	x.see(`22 of 2,332 packets`)
	saved := filepath.Join(dir, "some.pcapng")
	x.run(":w " + saved)
	x.see(`22 packets written to`)
	x.keys("C-z")
	x.see(`(?i)stopped(?s:.*)ready>`)
	x.run("fg")
	x.see(`(?s)^ (flows|1) .*22 of 2,332 packets`)
	x.keys("Z", "Z")
	x.see(`ready>`)
	if got := strings.Count(string(testenv.Output(t, program, "packets", saved)), "seq "); got != 22 {
		t.Errorf("the file that was saved has %d packets, expected 22", got)
	}
	x.run("clear; " + open)
	x.see(`gaffer/reliable`)
	x.keys("Enter")
	x.see(`(?m)^▶ +1 +0 +seq 0 `)
}
