package tui

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// testTerminal is a shell in a real terminal: a tmux server of its own.
type testTerminal struct {
	t    testing.TB
	tmux string
	name string
}

// newTerminal starts a shell with additional environment variables.
func newTerminal(t testing.TB, width, height string, env ...string) *testTerminal {
	t.Helper()
	x := &testTerminal{t: t, tmux: testenv.Need(t, "tmux"), name: filepath.Join(t.TempDir(), "tmux")}
	x.do("-f", "/dev/null", "new-session", "-d", "-c", t.TempDir(), "-x", width, "-y", height,
		"env -u NO_COLOR -u COLORTERM -u XDG_CONFIG_HOME PS1='ready> ' HISTFILE=/dev/null HOME="+t.TempDir()+" "+
			strings.Join(env, " ")+" sh")
	t.Cleanup(func() { _ = exec.Command(x.tmux, "-S", x.name, "kill-server").Run() })
	x.see("ready>")
	return x
}

// session marks a test as a session in a terminal. Such tests mostly wait, so
// they run in parallel; -short skips them.
func session(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a session in a terminal")
	}
	t.Parallel()
}

func (x *testTerminal) do(args ...string) string {
	x.t.Helper()
	out, err := exec.Command(x.tmux, append([]string{"-S", x.name}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// keys sends keys by their tmux names. Other words are typed.
func (x *testTerminal) keys(keys ...string) {
	x.t.Helper()
	x.do(append([]string{"send-keys"}, keys...)...)
}

// run types a command line and Enter.
func (x *testTerminal) run(line string) { x.t.Helper(); x.typed(line); x.keys("Enter") }

// seen returns the screen with its colours.
func (x *testTerminal) seen() string { x.t.Helper(); return x.do("capture-pane", "-e", "-p") }

func (x *testTerminal) typed(text string) { x.t.Helper(); x.do("send-keys", "-l", text) }

// see waits until the screen matches an expression, and returns the screen.
func (x *testTerminal) see(expr string) string {
	x.t.Helper()
	re := regexp.MustCompile(expr)
	screen := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if screen = x.do("capture-pane", "-p"); re.MatchString(screen) {
			return x.drawn(re, screen)
		}
	}
	x.t.Fatalf("the screen never showed %q:\n%s", expr, screen)
	return ""
}

// drawn returns a screen that shows re, once two pictures of it in a row are the same. Until then
// tmux may have drawn a part of it. A live screen never stands still: the last of ten pictures will do.
func (x *testTerminal) drawn(re *regexp.Regexp, screen string) string {
	x.t.Helper()
	for range 10 {
		time.Sleep(20 * time.Millisecond)
		again := x.do("capture-pane", "-p")
		if !re.MatchString(again) || again == screen {
			return screen
		}
		screen = again
	}
	return screen
}

// A typical session: open a capture, filter, open a finding, read both sides'
// state, go to the packet that settled it, leave.
func TestTUISession(t *testing.T) {
	program := testenv.Ackscope(t)
	x := newTerminal(t, "160", "50")
	x.typed("stty -a >before; " + program + " tui " + testenv.Capture(t, "reliable-loss10.client.pcap.gz") +
		"; echo left $?; stty -a | cmp - before && echo as before")
	x.keys("Enter")
	x.see(`The trouble is in the network(?s:.*)flow 1 +gaffer/reliable`) // the overview comes first
	x.keys("Tab")
	x.see(`gaffer/reliable +10\.77\.1\.2:30000`)
	x.keys("Enter")
	x.see(`300|2,332 of 2,332 packets`)
	x.keys("f")
	x.typed("gaffer.sequence == 154 && flow.side")
	x.see("incomplete|valid")
	x.typed(" == \"b\"")
	x.see(`"b" +valid`)
	x.keys("Enter")
	x.see(`1 of 2,332 packets`)
	x.see(`300/2,332`)
	x.keys("S")
	screen := x.see(`▸ state (?s:.*)both sides of flow 1 at frame 300`)
	for _, want := range []string{
		"A 10.77.1.2:30000  (captured here)", "B 10.77.1.1:40000  (inferred from its acks)",
		"A thinks B has packets up to 152; B also has 153–154   differ since 153, frame 292, 78.8 ms ago", "RTT 67.31 ms",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the state does not show %q:\n%s", want, screen)
		}
	}
	x.keys("f", "C-u", "Enter")
	x.keys("a")
	x.see(`frame 307\b`)
	x.see("the sender learned that frame 300 arrived")
	x.keys("q", "q")
	x.keys("F")
	x.see("findings by gravity")
	x.keys("q", "Z", "Z")
	x.see("left 0")
	x.see("as before")
}

// SIGTERM restores the terminal.
func TestTUIEndedBySignal(t *testing.T) {
	program := testenv.Ackscope(t)
	x := newTerminal(t, "80", "24")
	pid := filepath.Join(t.TempDir(), "pid")
	x.typed("stty -a >before; (sh -c 'echo $PPID' >" + pid + "; exec " + program + " tui " +
		testenv.Capture(t, "reliable-loss10.client.pcap.gz") + "); echo left $?; stty -a | cmp - before && echo as before")
	x.keys("Enter")
	x.see("gaffer/reliable")
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-TERM", strings.TrimSpace(string(b))).Run(); err != nil {
		t.Fatal(err)
	}
	x.see("left 2")
	x.see("as before")
	x.see("ended by signal terminated")
}

// The first screen has all that the command overview prints of the flows.
func TestTUIOverview(t *testing.T) {
	program := testenv.Ackscope(t)
	for _, name := range []string{"reliable-loss10.client.pcap.gz", "u210_falseack.server.pcapng.gz"} {
		t.Run(name, func(t *testing.T) {
			path := testenv.Capture(t, name)
			out, err := exec.Command(program, "overview", "--color", "never", path).Output()
			if err != nil {
				t.Fatal(err)
			}
			x := newTerminal(t, "82", "70") // the command prints 80 columns
			x.run(program + " tui " + path)
			screen := x.see(`overview +[\d,]+ packets(?s:.*)code +[AB] `)
			_, want, _ := strings.Cut(string(out), "\n\n") // without the name of the file
			want, _, _ = strings.Cut(want, "\nnext\n")
			for line := range strings.Lines(want) {
				if line = strings.TrimSpace(line); !strings.Contains(screen, line) {
					t.Errorf("%q is missing in\n%s", line, screen)
				}
			}
			x.keys("j", "Enter")
			x.see(`▸ packets`)
			x.keys("q")
			x.see(`^ overview `)
			x.keys("q")
			x.see("ready>")
		})
	}
}
