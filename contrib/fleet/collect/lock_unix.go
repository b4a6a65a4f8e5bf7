//go:build unix

package collect

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a partition. The system gives it free when the process ends, however it ends.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrSecond
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}
