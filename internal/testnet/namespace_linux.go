package testnet

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

const inside = "ACKSCOPE_TEST_NAMESPACE"

// Namespaced runs the test a second time in namespaces of its own, and returns
// true there. In its namespace the test is root.
func Namespaced(t *testing.T) bool {
	t.Helper()
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return rerun(t, attributes)
}

// NamespacedRoot is Namespaced for tests that must also be root on the host,
// and that mount file systems. Their mounts are private. environment is added
// in the second run.
func NamespacedRoot(t *testing.T, environment ...string) bool {
	t.Helper()
	if os.Getenv(inside) == "" && os.Geteuid() != 0 {
		testenv.Skip(t, "who gives up privileges must have had some: root is needed")
	}
	return rerun(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}, environment...)
}

// rerun runs the test in a child in new namespaces. In the child it configures
// them.
func rerun(t *testing.T, attributes *syscall.SysProcAttr, environment ...string) bool {
	t.Helper()
	ip := testenv.Need(t, "ip")
	if os.Getenv(inside) != "" {
		for _, args := range []string{
			"link set lo up", "link add veth0 type veth peer name veth1",
			"link set veth0 addrgenmode none", "link set veth1 addrgenmode none", // they send nothing
			"link set veth0 up", "link set veth1 up",
		} {
			if out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v\n%s", args, err, out)
			}
		}
		return true
	}
	timeout := "-test.timeout=120s"
	if os.Getenv("ACKSCOPE_SOAK") != "" {
		timeout = "-test.timeout=90m"
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", timeout)
	child.Env = append(append(os.Environ(), inside+"=1"), environment...)
	child.SysProcAttr = attributes
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	err := child.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		testenv.Skip(t, "no namespaces to be had here: "+err.Error())
	}
	if err != nil {
		t.Fatalf("in its namespace: %v\n%s", err, out.Bytes())
	}
	if testing.Verbose() {
		t.Logf("in its namespace:\n%s", out.Bytes())
	}
	return false
}
