package hostcauses

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/internal/testenv"
)

// The network of a run: addresses of both ends.
var (
	serverAt = unix.SockaddrInet4{Port: 40000, Addr: [4]byte{10, 9, 1, 1}}
	clientAt = unix.SockaddrInet4{Port: 50000, Addr: [4]byte{10, 9, 2, 2}}
)

// namespace is a network namespace that a sleeping process holds.
type namespace struct{ pid string }

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	cmd := exec.Command(testenv.Need(t, "sleep"), "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		testenv.Skip(t, "no namespaces to be had here: "+err.Error())
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	return &namespace{strconv.Itoa(cmd.Process.Pid)}
}

// run runs a program in the namespace; n may be nil for the test's own.
func (n *namespace) run(t *testing.T, command string) {
	t.Helper()
	args := strings.Fields(command)
	if n != nil {
		args = append([]string{testenv.Need(t, "nsenter"), "-t", n.pid, "-n"}, args...)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// do runs a function in the namespace. Sockets that it opens stay there.
func (n *namespace) do(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		file, err := os.Open("/proc/" + n.pid + "/ns/net")
		if err == nil {
			if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
				f()
			}
			_ = file.Close()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// network connects the test's own namespace with another one, by a router.
func network(t *testing.T) (router, peer *namespace) {
	t.Helper()
	router, peer = newNamespace(t), newNamespace(t)
	var host *namespace
	host.run(t, "ip link set veth1 netns "+router.pid)
	host.run(t, "ip addr add 10.9.1.1/24 dev veth0")
	host.run(t, "ip link set veth0 up")
	router.run(t, "ip link add vethr type veth peer name vethp")
	router.run(t, "ip link set vethp netns "+peer.pid)
	for _, command := range []string{
		"ip addr add 10.9.1.254/24 dev veth1", "ip link set veth1 up", "ip addr add 10.9.2.254/24 dev vethr",
		"ip link set vethr up", "ip link set lo up",
	} {
		router.run(t, command)
	}
	router.do(t, func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
			t.Error(err)
		}
	})
	for _, command := range []string{
		"ip addr add 10.9.2.2/24 dev vethp", "ip link set vethp up", "ip link set lo up",
		"ip route add default via 10.9.2.254",
	} {
		peer.run(t, command)
	}
	host.run(t, "ip route add default via 10.9.1.254")
	return router, peer
}

// socket is a UDP socket that is read without waiting.
type socket struct {
	fd     int
	closed bool
}

func open(t *testing.T, at *unix.SockaddrInet4, options ...[3]int) *socket {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, at)
	}
	for _, o := range options {
		if err == nil {
			err = unix.SetsockoptInt(fd, o[0], o[1], o[2])
		}
	}
	if err != nil {
		t.Error(err)
	}
	s := &socket{fd: fd}
	t.Cleanup(s.close)
	return s
}

func (s *socket) close() {
	if !s.closed {
		s.closed = true
		_ = unix.Close(s.fd)
	}
}

// read returns the next datagram, or false if there is none.
func (s *socket) read(buf []byte) (int, bool) {
	for {
		n, _, err := unix.Recvfrom(s.fd, buf, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR, err == unix.ECONNREFUSED, err == unix.EMSGSIZE: // an ICMP error
			continue
		case err != nil:
			return 0, false
		}
		return n, true
	}
}

// write sends a datagram. Errors of ICMP come back here, and are of no interest.
func (s *socket) write(b []byte, to *unix.SockaddrInet4) { _ = unix.Sendto(s.fd, b, 0, to) }
