package live

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// strangeGroup is a supplementary group of the user who starts the program.
const strangeGroup = 4713

// way is a way to start a capture.
type way struct {
	name        string
	attributes  *syscall.SysProcAttr
	args        []string // in addition to those of a capture
	environment []string
	program     func(t *testing.T) string // nil for the program as built
	adopted     bool                      // descriptor 3 is a packet socket, and the environment names it
	uid         int                       // user as whom the capture continues; the owner of the files
	refused     bool                      // nothing is captured: exit code 2
}

// ways lists every way to start.
func ways() []way {
	as := func(uid, gid uint32, ambient ...uintptr) *syscall.SysProcAttr {
		return &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: uid, Gid: gid, Groups: []uint32{gid, strangeGroup}},
			AmbientCaps: ambient,
		}
	}
	root, user := as(0, 0), as(testenv.UserID, testenv.GroupID)
	z, keep := []string{"-Z", testenv.AsUser}, []string{"--keep-root"}
	sudo := []string{"SUDO_UID=4711", "SUDO_GID=4712"}
	ambient := as(testenv.UserID, testenv.GroupID, unix.CAP_NET_RAW)
	return []way{
		{name: "root", attributes: root, refused: true},
		{name: "root, `--keep-root`", attributes: root, args: keep},
		{name: "root, `-Z 4711:4712`", attributes: root, args: z, uid: testenv.UserID},
		{name: "root through sudo, called by 4711", attributes: root, environment: sudo, uid: testenv.UserID},
		{
			name: "root through sudo, called by root", attributes: root, environment: []string{"SUDO_UID=0", "SUDO_GID=0"},
			refused: true,
		},
		{name: "4711, file capability `cap_net_raw+ep`", attributes: user, program: withFileCapability, uid: testenv.UserID},
		{name: "4711, ambient `CAP_NET_RAW`, as systemd gives it", attributes: ambient, uid: testenv.UserID},
		{name: "4711, program that is set-user-ID root", attributes: user, program: setUserID, uid: testenv.UserID},
		{name: "4711, adopted socket", attributes: user, adopted: true, uid: testenv.UserID},
		{name: "root, adopted socket", attributes: root, adopted: true, refused: true},
		{name: "root, adopted socket, `--keep-root`", attributes: root, adopted: true, args: keep},
		{name: "root, adopted socket, `-Z 4711:4712`", attributes: root, adopted: true, args: z, uid: testenv.UserID},
		{
			name: "4711, adopted socket, program that is set-user-ID root, `SUDO_UID` set", attributes: user, adopted: true,
			environment: sudo,
			program:     setUserID, uid: testenv.UserID,
		},
	}
}

// TestWaysToStart starts a capture in every way, and reads from the running
// process the privileges of each thread. SECURITY.md has the table.
func TestWaysToStart(t *testing.T) {
	if !namespaced(t) {
		return
	}
	const head = "| started as | user | group | other groups | CapInh, CapPrm, CapEff, CapAmb | CapBnd | no_new_privs " +
		"|\n|---|---|---|---|---|---|---|\n"
	table := strings.Builder{}
	table.WriteString(head)
	for _, w := range ways() {
		cmd := w.command(t)
		if w.refused {
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "-Z USER") ||
				!strings.Contains(string(out), "--keep-root") {
				t.Errorf("%s: %v: %s\nexpected exit code 2 and what to give", w.name, err, out)
			}
			fmt.Fprintf(&table, "| %s | refused | | | | | |\n", w.name)
			continue
		}
		p := beginCommand(t, cmd)
		out := testnet.Inject(t, "veth1")
		out.Send(t, game(t, 150, 100)...)
		line := checkThreads(t, &w, p.cmd.Process.Pid)
		fmt.Fprintf(&table, "| %s | %s |\n", w.name, line)
		out.Send(t, game(t, 100, 100)...) // the next file begins after the privileges are given up
		if err := p.wait(t); err != nil {
			t.Errorf("%s: %v\n%s", w.name, err, p.errors.Bytes())
		}
		if warned := strings.Contains(p.errors.String(), "--keep-root: capturing as user 0"); warned != (w.uid == 0) {
			t.Errorf("%s: it says\n%s\nexpected a warning about root: %v", w.name, p.errors.Bytes(), w.uid == 0)
		}
		w.checkFiles(t, filepath.Dir(cmd.Args[slices.Index(cmd.Args, "-w")+1]))
	}
	t.Logf("read from /proc/PID/task/*/status:\n%s", table.String())
	document, err := os.ReadFile(filepath.Join(testenv.Module(t), "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), table.String()) {
		t.Errorf("SECURITY.md does not show this table, expected it as it is:\n%s", table.String())
	}
}

// command prepares a way: a capture of 250 packets to three files.
func (w *way) command(t *testing.T) *exec.Cmd {
	t.Helper()
	path, dir := program(t), testenv.UserDir(t)
	if w.program != nil {
		path = w.program(t)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil { // any user may execute it
		t.Fatal(err)
	}
	if err := os.Chown(dir, w.uid, -1); err != nil { // root without capabilities can write only where root may
		t.Fatal(err)
	}
	args := []string{"capture", "-i", "veth0", "-f", "udp port 7777", "-b", "packets:100", "-a", "packets:250"}
	args = append(args, "-w", filepath.Join(dir, "c.pcapng"))
	cmd := exec.Command(path, append(args, w.args...)...)
	cmd.SysProcAttr = w.attributes
	cmd.Env = append(os.Environ(), w.environment...)
	if w.adopted {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "AF_PACKET")
		t.Cleanup(func() { _ = file.Close() })
		cmd.ExtraFiles = []*os.File{file}
		cmd.Env = append(cmd.Env, "ACKSCOPE_CAPTURE_SOCKETS=3")
	}
	return cmd
}

// checkFiles checks that the files of the row belong to the user.
func (w *way) checkFiles(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "c_*.pcapng"))
	if err != nil || len(files) != 3 {
		t.Errorf("%s: files %v, %v: expected 3 for 250 packets, 100 each", w.name, files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != w.uid {
			t.Errorf("%s: %s belongs to %d, expected %d", w.name, filepath.Base(f), owner, w.uid)
		}
	}
}

// copied returns a copy of the program in a folder that every user can enter.
func copied(t *testing.T, mode os.FileMode) string {
	t.Helper()
	from, err := os.Open(program(t))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(testenv.UserDir(t), "ackscope")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func setUserID(t *testing.T) string { return copied(t, 0o755|os.ModeSetuid) }

// withFileCapability does the same as `setcap cap_net_raw+ep`.
func withFileCapability(t *testing.T) string {
	t.Helper()
	const revision2, effective = 0x02000000, 1 // linux/capability.h: VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE
	path := copied(t, 0o755)
	value := make([]byte, 20) // the revision, then permitted and inheritable in two halves of 32
	binary.LittleEndian.PutUint32(value, revision2|effective)
	binary.LittleEndian.PutUint32(value[4:], 1<<unix.CAP_NET_RAW)
	if err := unix.Setxattr(path, "security.capability", value, 0); err != nil {
		t.Fatal(os.NewSyscallError("setxattr", err))
	}
	return path
}

// status reads a status file of /proc. It returns nil if the thread has ended.
func status(file string) map[string]string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	said := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			said[key] = strings.TrimSpace(value)
		}
	}
	return said
}

// checkThreads reads what the kernel reports of every thread, which is the same
// for each, and returns it as the cells of a row.
func checkThreads(t *testing.T, w *way, pid int) (row string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) < 2 {
		t.Fatalf("%s: threads %v, %v: expected some", w.name, threads, err)
	}
	bounding := status("/proc/self/status")["CapBnd"]
	for _, file := range threads {
		said := status(file)
		if said == nil {
			continue
		}
		for _, set := range []string{"CapEff", "CapPrm", "CapInh", "CapAmb"} {
			if strings.Trim(said[set], "0") != "" {
				t.Errorf("%s: %s has %s %s, expected none", w.name, file, set, said[set])
			}
		}
		if said["NoNewPrivs"] != "1" {
			t.Errorf("%s: %s has NoNewPrivs %q, expected 1", w.name, file, said["NoNewPrivs"])
		}
		for _, id := range []string{"Uid", "Gid"} { // real, effective, saved, of the file system
			if list := strings.Fields(said[id]); len(list) != 4 || len(slices.Compact(list)) != 1 {
				t.Errorf("%s: %s runs as %s %q, expected the same four times", w.name, file, id, said[id])
			}
		}
		if uid := strings.Fields(said["Uid"])[0]; uid != fmt.Sprint(w.uid) {
			t.Errorf("%s: %s runs as user %s, expected %d", w.name, file, uid, w.uid)
		}
		bound := "as before"
		switch {
		case strings.Trim(said["CapBnd"], "0") == "":
			bound = "empty"
		case said["CapBnd"] != bounding:
			bound = said["CapBnd"]
		}
		gid := strings.Fields(said["Gid"])[0]
		others := slices.DeleteFunc(strings.Fields(said["Groups"]), func(g string) bool { return g == gid })
		if len(others) == 0 {
			others = []string{"none"}
		}
		line := fmt.Sprintf("%s | %s | %s | empty | %s | set", strings.Fields(said["Uid"])[0], gid,
			strings.Join(others, ", "), bound)
		if row != "" && line != row {
			t.Errorf("%s: %s is %q, another thread %q", w.name, file, line, row)
		}
		row = line
	}
	return row
}

// TestEveryCommandDrops captures with each command that can. Every thread
// belongs to the user.
func TestEveryCommandDrops(t *testing.T) {
	if !namespaced(t) {
		return
	}
	dir := testenv.UserDir(t)
	for _, line := range []string{
		"capture -i veth0", "flows -i veth0", "packets -i any", "events -i veth0 -i lo", "findings -i veth0",
		"lab gaffer --duration 1s --linger 1ms --recorder live -w " + filepath.Join(dir, "lab.pcapng"),
	} {
		p := begin(t, nil, append(strings.Fields(line), "-Z", testenv.AsUser)...)
		checkThreads(t, &way{name: line, uid: testenv.UserID}, p.cmd.Process.Pid)
		ended := p.wait
		if !strings.HasPrefix(line, "lab") {
			ended = func(t *testing.T) error { return p.end(t, os.Interrupt) }
		}
		if err := ended(t); err != nil {
			t.Errorf("%s: %v\n%s", line, err, p.errors.Bytes())
		}
	}
}

// TestScreenDrops checks the process of the terminal UI.
func TestScreenDrops(t *testing.T) {
	script := testenv.Need(t, "script")
	if !namespaced(t) {
		return
	}
	shown := filepath.Join(t.TempDir(), "screen")
	cmd := exec.Command(script, "-qfec", "exec "+program(t)+" tui -i veth0 -Z "+testenv.AsUser, shown)
	cmd.Env = append(os.Environ(), "TERM=xterm", "SHELL=/bin/sh")
	cmd.Stdin = strings.NewReader("")
	start(t, cmd)
	screen := 0
	waitFor(t, "screen of tui", func() bool {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		if err != nil || len(strings.Fields(string(list))) == 0 {
			return false
		}
		if _, err := fmt.Sscan(string(list), &screen); err != nil {
			return false
		}
		drawn, err := os.ReadFile(shown)
		return err == nil && strings.Contains(string(drawn), "\x1b[?1049h") // the terminal's alternate screen
	})
	checkThreads(t, &way{name: "tui", uid: testenv.UserID}, screen)
	if err := syscall.Kill(screen, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // the test has killed it
}
