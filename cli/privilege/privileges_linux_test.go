package privilege

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/internal/testenv"
)

// TestReopeningFails gives up privileges like a capture, and then tries to open
// another socket.
func TestReopeningFails(t *testing.T) {
	if os.Getenv(insideReopen) == "" {
		if os.Geteuid() != 0 {
			testenv.Skip(t, "who gives up privileges must have had some: root is needed")
		}
		child := exec.Command(os.Args[0], "-test.run=^TestReopeningFails$", "-test.v")
		child.Env = append(os.Environ(), insideReopen+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	_, again := os.LookupEnv(inherited)
	list := []afpacket.Options{{Interface: "lo"}}
	if err := OpenWithLeast(list, &Options{User: "4711:4712"}); err != nil {
		t.Fatal(err)
	}
	if !again {
		t.Fatal("this process kept its privileges and continued")
	}
	if _, err := afpacket.Socket(list[0]); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a further socket: %v, expected that it is not permitted", err)
	}
	if err := unix.Mount("none", "/mnt", "tmpfs", 0, ""); !errors.Is(err, os.ErrPermission) {
		t.Errorf("mounting: %v, expected that it is not permitted", err)
	}
	if left, err := remaining(identity{UID: 4711, GID: 4712, groups: []int{4712}}); err != nil || len(left) > 0 {
		t.Errorf("left of its privileges: %v, %v; expected nothing", left, err)
	}
	if err := unix.Setresuid(0, 0, 0); !errors.Is(err, os.ErrPermission) {
		t.Errorf("becoming root again: %v, expected that it is not permitted", err)
	}
	g, err := afpacket.OpenGroup(list)
	if err != nil {
		t.Fatalf("the socket that was opened before: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// insideReopen is set in the child process of TestReopeningFails.
const insideReopen = "ACKSCOPE_TEST_REOPEN"
