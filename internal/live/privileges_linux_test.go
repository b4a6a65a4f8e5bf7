package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/internal/testnet"
)

const nobody = 65534

// TestLeastPrivilege captures as somebody who has CAP_NET_RAW and nothing else,
// and as root: no thread has a capability left, nor a way to one, and the files
// of the row are the user's.
func TestLeastPrivilege(t *testing.T) {
	if !namespaced(t) {
		return
	}
	alone := &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true},
		AmbientCaps: []uintptr{unix.CAP_NET_RAW},
	}
	for _, c := range []struct {
		name       string
		attributes *syscall.SysProcAttr
		user       string
		uid        int
	}{
		{"CAP_NET_RAW alone", alone, "", nobody},
		{"root going on as nobody", nil, "nobody", nobody},
		{"root", nil, "", 0},
	} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		reachable(t, program(t))
		args := []string{"capture", "-i", "veth0", "-w", filepath.Join(dir, "c.pcapng"), "-b", "packets:100"}
		if c.user != "" {
			args = append(args, "-Z", c.user)
		}
		p := begin(t, c.attributes, args...)
		out := testnet.Inject(t, "veth1")
		out.Send(t, game(t, 150, 100)...)
		time.Sleep(50 * time.Millisecond)
		checkThreads(t, c.name, p.cmd.Process.Pid, c.uid)
		out.Send(t, game(t, 100, 100)...) // the next file begins when all is given up
		time.Sleep(50 * time.Millisecond)
		if err := p.end(t, os.Interrupt); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, p.errors.Bytes())
		}
		files, err := filepath.Glob(filepath.Join(dir, "c_*.pcapng"))
		if err != nil || len(files) != 3 {
			t.Errorf("%s: files %v, %v: expected 3 for 250 packets, 100 each", c.name, files, err)
		}
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != c.uid {
				t.Errorf("%s: %s belongs to %d, expected %d", c.name, filepath.Base(f), owner, c.uid)
			}
		}
	}
}

// reachable lets everybody execute the program that the tests have built.
func reachable(t *testing.T, path string) {
	t.Helper()
	for _, path := range []string{path, filepath.Dir(path)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// checkThreads reads what the kernel says of every thread.
func checkThreads(t *testing.T, name string, pid, uid int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) < 2 {
		t.Fatalf("%s: threads %v, %v: expected some", name, threads, err)
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		said := map[string]string{}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok {
				said[key] = strings.TrimSpace(value)
			}
		}
		for _, set := range []string{"CapEff", "CapPrm", "CapInh", "CapAmb"} {
			if strings.Trim(said[set], "0") != "" {
				t.Errorf("%s: %s has %s %s, expected none", name, file, set, said[set])
			}
		}
		if said["NoNewPrivs"] != "1" {
			t.Errorf("%s: %s has NoNewPrivs %q, expected 1", name, file, said["NoNewPrivs"])
		}
		want := fmt.Sprintf("%d\t%d\t%d\t%d", uid, uid, uid, uid)
		if said["Uid"] != want {
			t.Errorf("%s: %s runs as %q, expected %q", name, file, said["Uid"], want)
		}
	}
}
