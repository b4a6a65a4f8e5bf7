package privilege

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture/afpacket"
)

// inherited is the environment variable that names the open sockets of a
// capture.
//
// A capture needs a privilege for one call: to open its socket. A Go program
// has many threads, each with capabilities of its own, and without cgo it
// cannot change those of all threads. So the program works in four steps:
//
//  1. It opens the sockets.
//  2. One thread gives up all its privileges.
//  3. That thread executes the program again. The kernel ends the other
//     threads, and the sockets stay open.
//  4. The new program finds the sockets by this variable. It never had a
//     privilege.
//
// Any user can set the variable. So it names sockets and nothing else: the
// program always checks its own credentials and gives them up.
const inherited = "ACKSCOPE_CAPTURE_SOCKETS"

// OpenWithLeast fills in the sockets of a capture. If the process has
// privileges to give up, OpenWithLeast does not return: it executes the program
// again, and there the sockets are open.
func OpenWithLeast(list []afpacket.Options, flags *Options) error {
	text := os.Getenv(inherited)
	adopted := text != ""
	if err := os.Unsetenv(inherited); err != nil {
		return err
	}
	now := current()
	who, err := flags.successor(now)
	if err != nil {
		return err
	}
	if adopted {
		if err := adopt(list, text); err != nil {
			return err
		}
	}
	left, err := remaining(who)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		showName()
		return nil
	}
	powers, err := permitted()
	if err != nil {
		return err
	}
	if !adopted {
		if powers == 0 && now.uid.real != 0 {
			return nil // Open reports the missing privilege
		}
		for i := range list {
			if list[i].Socket, err = afpacket.Socket(list[i]); err != nil {
				return err
			}
		}
	}
	return reexecute(list, who, powers)
}

// reexecute executes the program again as the user who, and passes it only the
// sockets. It returns only if that fails.
func reexecute(list []afpacket.Options, who identity, powers uint64) error {
	var numbers []string
	for i := range list {
		fd := int(list[i].Socket.Fd())
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil { // stays open across exec
			return os.NewSyscallError("fcntl", err)
		}
		numbers = append(numbers, strconv.Itoa(fd))
	}
	runtime.LockOSThread()
	if err := relinquish(who, powers); err != nil {
		return fmt.Errorf("giving up privileges for user %d, group %d: %w", who.UID, who.GID, err)
	}
	environment := append(os.Environ(), inherited+"="+strings.Join(numbers, ","))
	// This path is the same file even if another file has replaced the program.
	// The user need not have access to its folder.
	err := os.NewSyscallError("execve", unix.Exec("/proc/self/exe", os.Args, environment))
	return fmt.Errorf("beginning again as user %d, who must be able to execute the program: %w", who.UID, err)
}

// showName names the process after the program, for ps and pkill. Otherwise it
// would be named "exe", after the path of the execution. A failure loses only
// the name.
func showName() {
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
}

// adopt uses the sockets that were opened before the execution.
func adopt(list []afpacket.Options, text string) error {
	numbers := strings.Split(text, ",")
	if len(numbers) != len(list) {
		return fmt.Errorf("%s=%q: expected the descriptors of %d sockets", inherited, text, len(list))
	}
	for i, n := range numbers {
		fd, err := strconv.Atoi(n)
		switch {
		case err != nil:
		case fd <= unix.Stderr:
			err = errors.New("that is a standard stream")
		case slices.Contains(numbers[:i], n):
			err = errors.New("expected each once")
		default:
			err = packetSocket(fd)
		}
		if err != nil {
			return fmt.Errorf("%s=%q: expected open packet sockets: %w", inherited, text, err)
		}
		unix.CloseOnExec(fd)
		list[i].Socket = os.NewFile(uintptr(fd), "AF_PACKET")
	}
	return nil
}

// packetSocket returns an error if a descriptor is not a packet socket.
func packetSocket(fd int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_DOMAIN", err)
	}
	if domain != unix.AF_PACKET {
		return fmt.Errorf("found a socket of family %d", domain)
	}
	return nil
}

// current returns the credentials of this thread.
func current() (c credentials) {
	c.uid.real, c.uid.effective, c.uid.saved = unix.Getresuid()
	c.gid.real, c.gid.effective, c.gid.saved = unix.Getresgid()
	c.sudoUID, c.sudoGID = sudoIDs()
	return c
}

// remaining lists the privileges of this thread beyond those of the user who.
// It ignores the bounding set, which cannot be emptied without CAP_SETPCAP.
// With no_new_privs that set grants nothing.
func remaining(who identity) (left []string, err error) {
	now := current()
	if !now.uid.all(who.UID) {
		left = append(left, fmt.Sprintf("user ids %v", now.uid))
	}
	if !now.gid.all(who.GID) {
		left = append(left, fmt.Sprintf("group ids %v", now.gid))
	}
	if who.groups != nil {
		groups, err := unix.Getgroups()
		if err != nil {
			return nil, os.NewSyscallError("getgroups", err)
		}
		for _, g := range groups {
			if !slices.Contains(who.groups, g) {
				left = append(left, fmt.Sprintf("group %d", g))
			}
		}
	}
	sets, err := capabilities()
	if err != nil {
		return nil, err
	}
	for _, s := range sets {
		if s.Effective|s.Permitted|s.Inheritable != 0 { // the ambient set is a part of them
			left = append(left, "capabilities")
			break
		}
	}
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return nil, os.NewSyscallError("prctl PR_GET_NO_NEW_PRIVS", err)
	}
	if set != 1 {
		left = append(left, "ways to new privileges")
	}
	return left, nil
}

// capabilities returns the capabilities of this thread, in two halves of 32.
func capabilities() (sets [2]unix.CapUserData, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err = os.NewSyscallError("capget", unix.Capget(&header, &sets[0]))
	return sets, err
}

// permitted returns the capabilities that this thread may use.
func permitted() (powers uint64, err error) {
	sets, err := capabilities()
	return uint64(sets[0].Permitted) | uint64(sets[1].Permitted)<<32, err
}

// relinquish removes every capability from this thread and from what it
// executes, and every way to regain one. The execution ends the other threads.
func relinquish(who identity, powers uint64) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl PR_SET_NO_NEW_PRIVS", err)
	}
	if powers&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c < 64; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
				break // the kernel has no more
			} else if err != nil {
				return os.NewSyscallError("prctl PR_CAPBSET_DROP", err)
			}
		}
	}
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) { // before Linux 4.3
		return os.NewSyscallError("prctl PR_CAP_AMBIENT", err)
	}
	if who.groups != nil {
		if err := unix.Setgroups(who.groups); err != nil {
			return os.NewSyscallError("setgroups (which takes CAP_SETGID)", err)
		}
	}
	if err := unix.Setresgid(who.GID, who.GID, who.GID); err != nil {
		return os.NewSyscallError("setresgid (which takes CAP_SETGID)", err)
	}
	if err := unix.Setresuid(who.UID, who.UID, who.UID); err != nil {
		return os.NewSyscallError("setresuid (which takes CAP_SETUID)", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	// Each call has reported success. The kernel is asked once more, since a
	// privilege that is left here stays for good.
	left, err := remaining(who)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the kernel still tells of %s", strings.Join(left, ", "))
	}
	return err
}
