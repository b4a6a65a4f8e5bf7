package live

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// capturing is a running `ackscope …` that captures on an interface.
type capturing struct {
	cmd         *exec.Cmd
	out, errors bytes.Buffer
	ended       chan error
}

// begin starts the program and waits until it captures.
func begin(t *testing.T, attributes *syscall.SysProcAttr, args ...string) *capturing {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.SysProcAttr = attributes
	return beginCommand(t, cmd)
}

// beginCommand is begin for a prepared command.
func beginCommand(t *testing.T, cmd *exec.Cmd) *capturing {
	t.Helper()
	c := &capturing{cmd: cmd, ended: make(chan error, 1)}
	c.cmd.Stdout = &c.out
	pipe, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			if text := lines.Text(); strings.HasPrefix(text, "capturing on ") || strings.HasPrefix(text, "recording live on ") {
				ready <- true
			}
			c.errors.WriteString(lines.Text() + "\n")
		}
		c.ended <- c.cmd.Wait()
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("ackscope %q ended before it captured:\n%s", cmd.Args[1:], c.errors.Bytes())
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("ackscope %q does not begin to capture", cmd.Args[1:])
	}
	return c
}

// end sends a signal and returns how the program ended.
func (c *capturing) end(t *testing.T, with os.Signal) error {
	t.Helper()
	if err := c.cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	return c.wait(t)
}

func (c *capturing) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(60 * time.Second):
		t.Fatal("ackscope does not end")
		return nil
	}
}

// game returns n numbered UDP frames to port 7777, of about size bytes.
func game(t *testing.T, n, size int) (frames [][]byte) {
	t.Helper()
	for i := range n {
		frame := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, 8, 0)
		payload := fmt.Appendf(nil, "%08d", i)
		frame, err := capture.AppendUDP(frame, capture.Envelope{
			Src: netip.MustParseAddrPort("10.9.0.1:6666"), Dst: netip.MustParseAddrPort("10.9.0.2:7777"),
		}, append(payload, make([]byte, max(0, size-42-len(payload)))...))
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame)
	}
	return frames
}

// totals is what `capture --json` prints.
type totals struct {
	Interface                   string
	Captured, Accepted, Dropped uint64
	Received                    uint64 `json:"interface_received"`
	Before                      uint64 `json:"interface_dropped"`
}

func (c *capturing) totals(t *testing.T) (v totals) {
	t.Helper()
	if err := json.Unmarshal(c.out.Bytes(), &v); err != nil {
		t.Fatalf("%v:\n%s", err, c.out.Bytes())
	}
	return v
}

// flood sends packets for a time, at a rate in packets a second or what the
// machine can send. It returns their number.
func flood(t *testing.T, out *testnet.Injector, rate int, during time.Duration) (sent uint64) {
	t.Helper()
	frames := game(t, 64, 100)
	begun := time.Now()
	for {
		passed := time.Since(begun)
		if passed >= during {
			return sent
		}
		if due := uint64(passed.Seconds() * float64(rate)); sent >= due {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		out.Send(t, frames...)
		sent += uint64(len(frames))
	}
}

// TestNoDropUncounted sends 200,000 small packets a second. The packets that
// the interface received are the captured ones plus those counted as dropped,
// to the packet.
func TestNoDropUncounted(t *testing.T) {
	testenv.Grid(t, "floods of some seconds")
	during := 2 * time.Second
	if os.Getenv("ACKSCOPE_SOAK") != "" {
		during = 10 * time.Second
	}
	if !namespaced(t) {
		return
	}
	file := filepath.Join(testenv.UserDir(t), "rate.pcapng")
	c := begin(t, nil, "capture", "-Z", testenv.AsUser, "-i", "veth0", "-w", file, "--json", "-B", "64")
	sent := flood(t, testnet.Inject(t, "veth1"), 200_000, during)
	time.Sleep(200 * time.Millisecond)
	if err := c.end(t, os.Interrupt); err != nil {
		t.Fatalf("%v\n%s", err, c.errors.Bytes())
	}
	v := c.totals(t)
	t.Logf("%.0f packets a second: %d sent, %+v", float64(sent)/during.Seconds(), sent, v)
	if v.Received+v.Before != sent || v.Captured+v.Dropped != v.Received || v.Captured == 0 {
		t.Errorf("%d sent, %+v: expected captured and dropped to be what the interface received, and that, with what it "+
			"dropped, what was sent", sent, v)
	}
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	read := uint64(0)
	for f := (capture.Frame{}); in.Next(&f) == nil; {
		read++
	}
	st := in.Interfaces(0)[0].Statistics
	if read != v.Captured || st == nil || st.OSDropped != v.Dropped || st.Received != v.Received {
		t.Errorf("the file has %d frames and says %+v, expected %+v", read, st, v)
	}
}

// TestKilled kills a rotating capture at random moments. tshark reads every
// file, all but the last to its end.
func TestKilled(t *testing.T) {
	testenv.Grid(t, "captures that are killed on the way")
	tshark := testenv.Need(t, "tshark")
	if !namespaced(t) {
		return
	}
	for round := range 2 {
		dir := testenv.UserDir(t)
		c := begin(t, nil, "capture", "-Z", testenv.AsUser, "-i", "veth0", "-w", filepath.Join(dir, "c.pcapng"), "-b",
			"filesize:100kB", "-b", "files:4")
		out := testnet.Inject(t, "veth1")
		frames := game(t, 1200+500*round, 300)
		for at := 0; at < len(frames); at += 20 {
			out.Send(t, frames[at:min(at+20, len(frames))]...)
			time.Sleep(300 * time.Microsecond)
		}
		last := fmt.Appendf(nil, "%08d", len(frames)-1)
		if round > 0 { // the reader has caught up and waits: its packets are on the disk
			waitFor(t, "the last packet in a file", func() bool { return inFiles(t, dir, last) })
		}
		if err := c.end(t, syscall.SIGKILL); err == nil {
			t.Fatal("the program was not killed")
		}
		files, err := filepath.Glob(filepath.Join(dir, "c_*.pcapng"))
		if err != nil || len(files) == 0 || len(files) > 4 {
			t.Fatalf("files %v, %v: expected 1 to 4", files, err)
		}
		slices.Sort(files)
		var seen []string
		for i, file := range files {
			var complaint bytes.Buffer
			cmd := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "udp.payload")
			cmd.Stderr = &complaint
			text, err := cmd.Output()
			// If the last block is cut, tshark says so and exits with 2.
			if err != nil && (i < len(files)-1 || !bytes.Contains(complaint.Bytes(), []byte("cut short"))) {
				t.Errorf("round %d, %s: %v\n%s", round, filepath.Base(file), err, complaint.Bytes())
			}
			seen = append(seen, strings.Fields(string(text))...)
		}
		if round > 0 && (len(seen) == 0 || !strings.HasPrefix(seen[len(seen)-1], fmt.Sprintf("%x", last))) {
			t.Errorf("round %d: tshark does not find the last packet before the kill (it finds %d)", round, len(seen))
		}
	}
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 20 s: no %s", what)
		}
	}
}

// inFiles reports whether a payload is in one of the captures of a folder.
func inFiles(t *testing.T, dir string, payload []byte) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, payload) { // it may have been deleted
			return true
		}
	}
	return false
}

// TestDiskFull saves to a file system of 1 MB. A command that also analyses
// goes on.
func TestDiskFull(t *testing.T) {
	mount, umount := testenv.Need(t, "mount"), testenv.Need(t, "umount")
	if !namespaced(t) {
		return
	}
	dir := testenv.UserDir(t)
	t.Cleanup(func() { // before the directory is removed
		if out, err := exec.Command(umount, dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	for _, args := range [][]string{{"--make-rprivate", "/"}, {"-t", "tmpfs", "-o", "size=1m", "small", dir}} {
		if out, err := exec.Command(mount, args...).CombinedOutput(); err != nil {
			t.Fatalf("mount %q: %v\n%s", args, err, out)
		}
	}
	// Under nohup the program would ignore SIGHUP. A signal that is caught here
	// is not ignored in the child.
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	const n = 6000
	for _, k := range []struct {
		command []string
		goesOn  string // printed for all packets; empty if the command only saves
	}{
		{[]string{"flows"}, fmt.Sprintf(`"packets_a":%d,`, n)},
		{[]string{"capture"}, ""},
		{[]string{"capture", "--alert", "error"}, fmt.Sprintf(`"captured":%d,`, n)},
	} {
		command, file := strings.Join(k.command, " "), filepath.Join(dir, "full.pcapng")
		c := begin(t, nil, append(k.command, "-Z", testenv.AsUser, "-i", "veth0", "-f", "udp port 7777", "-w", file,
			"--json")...)
		out := testnet.Inject(t, "veth1")
		frames := game(t, n, 300)
		for at := 0; at < n; at += 50 {
			out.Send(t, frames[at:at+50]...)
			time.Sleep(300 * time.Microsecond)
		}
		var err error
		if k.goesOn != "" {
			time.Sleep(300 * time.Millisecond)
			err = c.end(t, syscall.SIGHUP) // like a closed terminal
		} else {
			err = c.wait(t)
		}
		if err == nil || c.cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: %v, expected exit code 2", command, err)
		}
		if !strings.Contains(c.errors.String(), "no space left on device") {
			t.Errorf("%s says:\n%s\nexpected that there is no space left", command, c.errors.Bytes())
		}
		if !strings.Contains(c.out.String(), k.goesOn) {
			t.Errorf("%s: the analysis did not go on over all %d packets:\n%s", command, n, c.out.Bytes())
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
