//go:build unix

package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// lock takes the file's lock without waiting. It uses flock(2): the lock
// belongs to the open file, so the end of the process always releases it. On a
// file system without locks, lock does nothing.
func lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil, errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		case !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("flock", err)
		}
	}
}

// openOld opens an existing file, to lock it. Nothing is written to it.
func openOld(path string) (*os.File, error) {
	// O_NONBLOCK: a FIFO that another process puts there must not block us.
	file, err := os.OpenFile(path, os.O_WRONLY|noFollow|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, linkError(path)
	}
	return file, err
}

// takeOld opens and locks the existing file of a name. Without such a file,
// both results are nil.
func takeOld(path string) (*os.File, error) {
	for range mostTries {
		file, err := openOld(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil //nolint:nilnil // a missing file is not an error
		}
		if err != nil {
			return nil, err
		}
		if err := lock(file); err != nil {
			return nil, errors.Join(lockError(path, err), file.Close())
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		now, err := os.Lstat(path)
		switch {
		case err == nil && os.SameFile(now, info) && info.Mode().IsRegular():
			return file, nil
		case err == nil && os.SameFile(now, info):
			return nil, errors.Join(fmt.Errorf("%s: expected a regular file", path), file.Close())
		}
		if err := file.Close(); err != nil { // another file took the name before the lock
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: others keep replacing it", path)
}

// notWritten returns an error if another process writes a file, or if it may
// not be written.
func notWritten(path string) error {
	old, err := takeOld(path)
	if old != nil {
		return old.Close()
	}
	return err
}

// renameOver replaces a file with another, unless a process writes it.
func renameOver(from, to string) error {
	for range mostTries {
		old, err := takeOld(to)
		if err != nil {
			return err
		}
		if old != nil {
			return errors.Join(os.Rename(from, to), old.Close())
		}
		// A stream may take the name at this moment, and must keep it.
		if err := link(from, to); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("%s: others keep replacing it", to)
}

// replaceOpen replaces an existing file with a new, locked one. It does not
// empty the old file. That one may have other names and owners, and processes
// that opened it while they were allowed to.
func replaceOpen(path string, mode fs.FileMode, exact bool) (file *os.File, again bool, err error) {
	old, err := takeOld(path)
	if old == nil {
		return nil, err == nil, err
	}
	defer old.Close()
	temp := filepath.Join(filepath.Dir(path), "."+Unguessable()+".part")
	if file, err = createNew(temp, mode, exact); err != nil {
		return nil, false, fmt.Errorf("%s: it is replaced by a new file: %w", path, err)
	}
	if err = lock(file); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, false, errors.Join(err, file.Close(), os.Remove(temp))
	}
	return file, false, nil
}

// permit sets the permissions, whatever the umask is.
func permit(file *os.File, mode fs.FileMode) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is := info.Mode().Perm()
	if is == mode {
		return nil
	}
	if err := file.Chmod(mode); err != nil {
		return fmt.Errorf("expected permissions %04o, but the file system gives %04o (--mode %04o takes that): %w",
			mode, is, is, err)
	}
	return nil
}

// descriptor reports whether a path names a descriptor of this process, and
// which one.
func descriptor(path string) (n int, ok bool) {
	path = filepath.Clean(path)
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, folder := range []string{
		"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/",
		fmt.Sprintf("/proc/%d/fd/", os.Getpid()),
	} {
		if digits, found := strings.CutPrefix(path, folder); found {
			n, err := strconv.Atoi(digits)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// duplicate returns a second descriptor of the same open file. It shares the
// position of that file, and needs no permission to open it again.
func duplicate(n int, path string) (*os.File, error) {
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: expected an open descriptor: %w", path, err)
	}
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		return nil, fmt.Errorf("%s: expected a descriptor to write to, found one that is open for reading only", path)
	}
	fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, os.NewSyscallError("fcntl", err))
	}
	return os.NewFile(uintptr(fd), path), nil
}
