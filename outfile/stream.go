package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Stream starts a file that appears under its name at once and grows. It
// replaces an existing file, unless another process writes that file. The
// stream is locked until it is closed.
func (o *Outputs) Stream(path string, c Content) (*File, error) {
	f := &File{}
	if err := o.find(path, f); err != nil {
		return nil, err
	}
	var err error
	if f.target.folder == nil {
		err = f.openDirect()
	} else {
		mode, exact := o.mode(c)
		f.file, err = claim(path, mode, exact, o.NoClobber)
	}
	if err != nil {
		o.release(f)
		return nil, err
	}
	return f, nil
}

// mostTries bounds how often a name is tried that other processes change
// meanwhile. Each try means that another process was faster.
const mostTries = 16

// claim creates a locked, empty file with this name.
func claim(path string, mode fs.FileMode, exact, noClobber bool) (*os.File, error) {
	for range mostTries {
		file, err := createNew(path, mode, exact)
		if err == nil {
			held, err := lockCreated(file, path)
			if err != nil {
				return nil, err
			}
			if held {
				return file, nil
			}
			continue
		}
		switch {
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case noClobber:
			return nil, existsError(path)
		}
		file, again, err := replaceOpen(path, mode, exact)
		if !again {
			return file, err
		}
	}
	return nil, fmt.Errorf("%s: others keep replacing it", path)
}

// lockCreated locks a file that was just created. Another process may have
// replaced it before the lock. lockCreated then closes it and returns false.
func lockCreated(file *os.File, path string) (held bool, err error) {
	if err := lock(file); err != nil {
		return false, errors.Join(lockError(path, err), file.Close())
	}
	own, err := file.Stat()
	if err != nil {
		return false, errors.Join(err, file.Close())
	}
	if now, err := os.Lstat(path); err == nil && os.SameFile(now, own) {
		return true, nil
	}
	return false, file.Close()
}

// errLocked says that another process holds the lock.
var errLocked = errors.New("another process writes it")

func lockError(path string, err error) error {
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%s: another process writes this file: expected another name, or that process to end", path)
	}
	return fmt.Errorf("%s: locking it: %w", path, err)
}

// Row starts the next file of a row. It never replaces a file: if the name
// exists, it adds a part that cannot be guessed. Path returns the name.
func (o *Outputs) Row(path string, c Content) (*File, error) {
	mode, exact := o.mode(c)
	extension := filepath.Ext(path)
	name := path
	for range mostTries {
		file, err := createNew(name, mode, exact)
		if errors.Is(err, fs.ErrExist) {
			name = strings.TrimSuffix(path, extension) + "_" + Unguessable() + extension
			continue
		}
		if err != nil {
			return nil, err
		}
		if held, err := lockCreated(file, name); err != nil {
			return nil, err
		} else if !held {
			continue
		}
		f := &File{outputs: o, file: file, target: target{path: name}}
		if f.target.info, err = file.Stat(); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.open = append(o.open, f)
		return f, nil
	}
	return nil, fmt.Errorf("%s: no free name found in this folder", path)
}

// Made is a file that this run has created.
type Made struct {
	path string
	info os.FileInfo
}

// Made identifies a file of a row, or a durable file that was committed. Remove can then delete it
// when there is no room for it.
func (f *File) Made() Made {
	if f.made != nil {
		return Made{f.target.path, f.made}
	}
	return Made{f.target.path, f.target.info}
}

// Remove deletes the file, unless another file has its name by now.
func (m Made) Remove() error {
	info, err := os.Lstat(m.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, m.info) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(m.path)
}

// Existing identifies a regular file that an earlier run has created, for Remove.
func Existing(path string) (Made, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return Made{}, err
	case !info.Mode().IsRegular():
		return Made{}, fmt.Errorf("%s: expected a regular file", path)
	}
	return Made{path, info}, nil
}
