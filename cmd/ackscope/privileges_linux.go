package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture/afpacket"
)

// A capture needs a privilege for one call: to open its socket. A Go program has
// many threads, each with capabilities of its own, and those of a running one
// cannot all be reached (not with cgo). So the program opens the sockets, gives
// up on one thread all that it may do, and executes itself again on it: the
// kernel ends the other threads, and what runs then never had a privilege. The
// sockets stay open across it.
const inherited = "ACKSCOPE_CAPTURE_SOCKETS"

// openWithLeast fills in the sockets of a capture. A process that has privileges
// does not return from it: it begins again without, where the sockets are found
// opened.
func openWithLeast(list []afpacket.Options, name string) error {
	if text, ok := os.LookupEnv(inherited); ok {
		if err := os.Unsetenv(inherited); err != nil {
			return err
		}
		return adopt(list, text)
	}
	who, err := successor(name)
	if err != nil {
		return err
	}
	powers, err := permitted()
	if err != nil {
		return err
	}
	if powers == 0 && who == nil {
		return nil // Open says what is lacking
	}
	var numbers []string
	for i := range list {
		f, err := afpacket.Socket(list[i])
		if err != nil {
			return err
		}
		fd := int(f.Fd())
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil { // stays open across exec
			return os.NewSyscallError("fcntl", err)
		}
		list[i].Socket = f
		numbers = append(numbers, strconv.Itoa(fd))
	}
	runtime.LockOSThread()
	if err := relinquish(who, powers); err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	environment := append(os.Environ(), inherited+"="+strings.Join(numbers, ","))
	path, err := os.Executable()
	if err != nil {
		path = "/proc/self/exe"
	}
	err = unix.Exec(path, os.Args, environment)
	return fmt.Errorf("beginning again without privileges: %w", os.NewSyscallError("execve", err))
}

// adopt takes sockets that were opened before.
func adopt(list []afpacket.Options, text string) error {
	numbers := strings.Split(text, ",")
	if len(numbers) != len(list) {
		return fmt.Errorf("%s=%s: expected %d sockets", inherited, text, len(list))
	}
	for i, n := range numbers {
		fd, err := strconv.Atoi(n)
		if err == nil {
			var domain int
			domain, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
			if err == nil && domain != unix.AF_PACKET {
				err = errors.New("no packet socket")
			}
		}
		if err != nil {
			return fmt.Errorf("%s=%s: expected open packet sockets: %w", inherited, text, err)
		}
		unix.CloseOnExec(fd)
		list[i].Socket = os.NewFile(uintptr(fd), "AF_PACKET")
	}
	return nil
}

// identity is a user to go on as.
type identity struct {
	uid, gid int
	groups   []int
}

// successor tells who goes on: the user that was asked for, who called sudo, or
// who called a program that is set to another's id; nil for who runs now.
func successor(name string) (*identity, error) {
	var u *user.User
	var err error
	switch {
	case name != "":
		if u, err = user.Lookup(name); err != nil {
			return nil, fmt.Errorf("-Z: %w", err)
		}
	case os.Geteuid() == 0 && os.Getuid() == 0 && os.Getenv("SUDO_UID") != "":
		if u, err = user.LookupId(os.Getenv("SUDO_UID")); err != nil {
			return nil, fmt.Errorf("the user who called sudo: %w", err)
		}
	case os.Getuid() != os.Geteuid():
		return &identity{uid: os.Getuid(), gid: os.Getgid()}, nil
	default:
		return nil, nil
	}
	who := &identity{}
	var errs [2]error
	who.uid, errs[0] = strconv.Atoi(u.Uid)
	who.gid, errs[1] = strconv.Atoi(u.Gid)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if who.uid == os.Getuid() && who.uid == os.Geteuid() {
		return nil, nil
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if n, err := strconv.Atoi(g); err == nil {
			who.groups = append(who.groups, n)
		}
	}
	return who, nil
}

// permitted gives the capabilities that this thread may use.
func permitted() (powers uint64, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, os.NewSyscallError("capget", err)
	}
	return uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32, nil
}

// relinquish leaves this thread, and what it executes, without any capability
// and without a way to one; the other threads are ended by the execution.
func relinquish(who *identity, powers uint64) error {
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
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // before Linux 4.3
		return os.NewSyscallError("prctl PR_CAP_AMBIENT", err)
	}
	if who != nil {
		if powers&(1<<unix.CAP_SETGID) != 0 {
			if err := unix.Setgroups(who.groups); err != nil {
				return os.NewSyscallError("setgroups", err)
			}
		}
		if err := unix.Setresgid(who.gid, who.gid, who.gid); err != nil {
			return os.NewSyscallError("setresgid", err)
		}
		if err := unix.Setresuid(who.uid, who.uid, who.uid); err != nil {
			return os.NewSyscallError("setresuid", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}
