package afpacket

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/internal/testenv"
)

const inside = "ACKSCOPE_TEST_NAMESPACE"

// namespaced runs the test again in a network namespace of its own, as root
// there, with loopback and the pair veth0-veth1 up; true in that second run.
func namespaced(t *testing.T) bool {
	t.Helper()
	ip := testenv.Need(t, "ip")
	if os.Getenv(inside) != "" {
		for _, args := range []string{
			"link set lo up",
			"link add veth0 type veth peer name veth1",
			"link set veth0 up", "link set veth1 up",
		} {
			if out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v\n%s", args, err, out)
			}
		}
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	child.Env = append(os.Environ(), inside+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	err := child.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		testenv.Skip(t, "no network namespace to be had here: "+err.Error())
	}
	if err != nil {
		t.Fatalf("in its namespace: %v\n%s", err, out.Bytes())
	}
	return false
}

// injector sends frames as they are, out of one end of the pair.
type injector struct {
	fd int
	to unix.SockaddrLinklayer
}

func inject(t *testing.T, name string) *injector {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &injector{fd: fd, to: unix.SockaddrLinklayer{Ifindex: i.Index}}
}

func (i *injector) send(t *testing.T, frame []byte) {
	t.Helper()
	if err := unix.Sendto(i.fd, frame, 0, &i.to); err != nil {
		t.Fatal(err)
	}
}
