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

// lock takes the file's lock without waiting: flock(2), which belongs to the open
// file, so that the end of a process by any means lets go of it. Where the file
// system has no locks there are none.
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

// openOld opens a file that is there, to lock it. Nothing is written to it.
func openOld(path string) (*os.File, error) {
	// O_NONBLOCK: whoever puts a FIFO there meanwhile must not make us wait.
	file, err := os.OpenFile(path, os.O_WRONLY|noFollow|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, linkError(path)
	}
	return file, err
}

// takeOld opens and locks the file that has a name. There is none where file and
// err are nil.
func takeOld(path string) (*os.File, error) {
	for range mostTries {
		file, err := openOld(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil //nolint:nilnil // no file is no trouble
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
		if err := file.Close(); err != nil { // another took its name before it was locked
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: others keep replacing it", path)
}

// notWritten refuses a file that another process writes, or that may not be written.
func notWritten(path string) error {
	old, err := takeOld(path)
	if old != nil {
		return old.Close()
	}
	return err
}

// renameOver replaces a file by another, unless a process writes it.
func renameOver(from, to string) error {
	for range mostTries {
		old, err := takeOld(to)
		if err != nil {
			return err
		}
		if old != nil {
			return errors.Join(os.Rename(from, to), old.Close())
		}
		// A stream may take the name at this moment: it must not lose it.
		if err := link(from, to); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("%s: others keep replacing it", to)
}

// replaceOpen puts a new, locked file in the place of one that is there. The old
// one is not emptied: it may have other names and other owners, and processes that
// opened it while they were allowed to.
func replaceOpen(path string, mode fs.FileMode, exact bool) (file *os.File, again bool, err error) {
	old, err := takeOld(path)
	if old == nil {
		return nil, err == nil, err
	}
	defer old.Close()
	temp := filepath.Join(filepath.Dir(path), "."+unguessable()+".part")
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

// descriptor reports whether a path names one of the process's own descriptors, and
// which.
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
	for _, folder := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/",
		fmt.Sprintf("/proc/%d/fd/", os.Getpid())} {
		if digits, found := strings.CutPrefix(path, folder); found {
			n, err := strconv.Atoi(digits)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// duplicate returns another descriptor of the same open file: it goes on where that
// stands, and needs no right to open the file anew.
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
