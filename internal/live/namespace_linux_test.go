package live

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	inside = "ACKSCOPE_TEST_NAMESPACE"
	built  = "ACKSCOPE_TEST_PROGRAM" // that the first run has built
)

func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(built); path != "" {
		return path
	}
	return testenv.Ackscope(t)
}

// namespaced runs the test again, as root, in network and mount namespaces of
// its own, with loopback and the pair veth0-veth1 up; true in that second run.
func namespaced(t *testing.T) bool {
	t.Helper()
	ip := testenv.Need(t, "ip")
	if os.Getenv(inside) != "" {
		for _, args := range []string{
			"link set lo up", "link add veth0 type veth peer name veth1",
			"link set veth0 addrgenmode none", "link set veth1 addrgenmode none", // silent
			"link set veth0 up", "link set veth1 up",
		} {
			if out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v\n%s", args, err, out)
			}
		}
		return true
	}
	if os.Geteuid() != 0 {
		testenv.Skip(t, "who gives up privileges must have had some: root is needed")
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=120s")
	child.Env = append(os.Environ(), inside+"=1", built+"="+program(t))
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
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

// injector sends frames as they are, out of one end of the pair, many at a call.
type injector struct {
	fd       int
	vectors  []unix.Iovec
	messages []message
	address  unix.RawSockaddrLinklayer
}

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
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
	return &injector{fd: fd, address: unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Ifindex: int32(i.Index)}}
}

// send sends the frames, in order.
func (i *injector) send(t *testing.T, frames [][]byte) {
	t.Helper()
	i.vectors, i.messages = i.vectors[:0], i.messages[:0]
	for _, f := range frames {
		v := unix.Iovec{Base: &f[0]}
		v.SetLen(len(f))
		i.vectors = append(i.vectors, v)
	}
	for n := range frames {
		m := message{}
		m.header.Iov = &i.vectors[n]
		m.header.SetIovlen(1)
		m.header.Name, m.header.Namelen = (*byte)(unsafe.Pointer(&i.address)), uint32(unsafe.Sizeof(i.address))
		i.messages = append(i.messages, m)
	}
	for at := 0; at < len(frames); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(i.fd), uintptr(unsafe.Pointer(&i.messages[at])), uintptr(len(frames)-at), 0, 0, 0)
		switch errno {
		case 0:
			at += int(n)
		case unix.EINTR, unix.ENOBUFS:
		default:
			t.Fatal(os.NewSyscallError("sendmmsg", errno))
		}
	}
}
