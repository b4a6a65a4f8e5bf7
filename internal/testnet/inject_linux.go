package testnet

import (
	"net"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Injector sends frames unchanged from one end of the pair, many in one call.
type Injector struct {
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

// Inject opens an Injector on an interface.
func Inject(t testing.TB, name string) *Injector {
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
	return &Injector{fd: fd, address: unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Ifindex: int32(i.Index)}}
}

// Send sends frames, in order.
func (i *Injector) Send(t testing.TB, frames ...[]byte) {
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
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(i.fd), uintptr(unsafe.Pointer(&i.messages[at])),
			uintptr(len(frames)-at), 0, 0, 0)
		switch errno {
		case 0:
			at += int(n)
		case unix.EINTR, unix.ENOBUFS:
		default:
			t.Fatal(os.NewSyscallError("sendmmsg", errno))
		}
	}
}
