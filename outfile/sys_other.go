//go:build !unix

package outfile

import (
	"errors"
	"io/fs"
	"os"
)

const noFollow = 0 // links are looked for before, and rare here

// notWritten refuses a file that another process writes, or that may not be written.
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

// renameOver replaces a file by another, unless a process writes it. A file that
// is open cannot be replaced here, so the lock is gone by then.
func renameOver(from, to string) error {
	if err := notWritten(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// replaceOpen empties a file that is there: one that is open cannot be replaced.
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

// permit leaves permissions to the folder, from which files inherit them here.
func permit(*os.File, fs.FileMode) error { return nil }

func descriptor(string) (int, bool) { return 0, false }

func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
