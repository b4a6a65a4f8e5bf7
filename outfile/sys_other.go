//go:build !unix

package outfile

import (
	"errors"
	"io/fs"
	"os"
)

const noFollow = 0 // links are checked before, and are rare on these systems

// notWritten returns an error if another process writes a file, or if it may
// not be written.
func notWritten(path string) error {
	old, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := lock(old); err != nil {
		return errors.Join(lockError(path, err), old.Close())
	}
	return old.Close()
}

// renameOver replaces a file with another, unless a process writes it. These
// systems cannot replace an open file, so the lock is released before.
func renameOver(from, to string) error {
	if err := notWritten(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// replaceOpen empties an existing file, because these systems cannot replace an
// open one.
func replaceOpen(path string, _ fs.FileMode, _ bool) (file *os.File, again bool, err error) {
	file, err = os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := lock(file); err != nil {
		return nil, false, errors.Join(lockError(path, err), file.Close())
	}
	if err := file.Truncate(0); err != nil {
		return nil, false, errors.Join(err, file.Close())
	}
	return file, false, nil
}

// permit does nothing: on these systems files inherit their permissions from
// the folder.
func permit(*os.File, fs.FileMode) error { return nil }

func descriptor(string) (int, bool) { return 0, false }

func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
