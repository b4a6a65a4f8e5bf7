package outfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is an output. A whole file appears under its name when it is committed.
type File struct {
	outputs *Outputs
	target  target
	file    *os.File
	temp    string // path of a whole file that is not committed; otherwise empty
	ended   bool
	durable bool
	made    os.FileInfo // of a durable file, once its bytes are on the disk
}

// Durable makes Commit wait until the bytes of a whole file and its name are on the disk.
func (f *File) Durable() { f.durable = true }

// Whole starts a file that replaces its target when it is committed. If path
// names a device, a FIFO or a descriptor, the bytes are written to it directly.
func (o *Outputs) Whole(path string, c Content) (*File, error) {
	f := &File{}
	if err := o.find(path, f); err != nil {
		return nil, err
	}
	var err error
	if f.target.folder == nil {
		err = f.openDirect()
	} else if err = notWritten(path); err == nil {
		err = f.openBeside(c)
	}
	if err != nil {
		o.release(f)
		return nil, err
	}
	return f, nil
}

// Unplaced starts a whole file whose path is decided once its bytes are known. Until CommitAs it is a
// temporary file in a folder of the same file system.
func (o *Outputs) Unplaced(folder string, c Content) (*File, error) {
	f := &File{}
	if err := o.find(filepath.Join(folder, Unguessable()), f); err != nil {
		return nil, err
	}
	if err := f.openBeside(c); err != nil {
		o.release(f)
		return nil, err
	}
	return f, nil
}

// CommitAs moves an unplaced file to a path. After an error the path is unchanged.
func (f *File) CommitAs(path string) error {
	t, err := examine(path)
	if err == nil && t.folder == nil {
		err = fmt.Errorf("%s: expected a regular file", path)
	}
	if err == nil {
		f.outputs.mu.Lock()
		if err = f.outputs.refuse(t); err == nil {
			f.target = t
		}
		f.outputs.mu.Unlock()
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}

// openDirect opens a target that is not a regular file.
func (f *File) openDirect() error {
	if f.target.direct != nil {
		f.file = f.target.direct
		return nil
	}
	file, err := os.OpenFile(f.target.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, f.target.info) {
		return errors.Join(fmt.Errorf("%s: was replaced while it was opened", f.target.path), err, file.Close())
	}
	f.file = file
	return nil
}

// mostName bounds the part of the target's name in the name of its temporary
// file. File systems accept names of 255 bytes.
const mostName = 100

// openBeside creates a temporary file in the target's folder, under a name that
// cannot be guessed.
func (f *File) openBeside(c Content) error {
	mode, exact := f.outputs.mode(c)
	name := f.target.name
	folder := filepath.Dir(f.target.path)
	temp := filepath.Join(folder, "."+strings.ToValidUTF8(name[:min(len(name), mostName)], "")+"."+Unguessable()+".part")
	file, err := createNew(temp, mode, exact)
	if err != nil {
		return fmt.Errorf("%s: it is written beside its place first: %w", f.target.path, err)
	}
	f.outputs.mu.Lock()
	defer f.outputs.mu.Unlock()
	f.file, f.temp = file, temp
	return nil
}

// Unguessable returns a part of a name that no other process can have used
// before.
func Unguessable() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// createNew creates a file with its permissions. It fails if the file exists.
func createNew(path string, mode fs.FileMode, exact bool) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, mode)
	if err != nil {
		return nil, err
	}
	if !exact {
		return file, nil
	}
	if err := permit(file, mode); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return file, nil
}

// Path returns the file's path. For a file of a row it may differ from the
// requested path.
func (f *File) Path() string { return f.target.path }

// Unfinished reports whether this is a whole file that was not committed. Abort
// then leaves the target unchanged.
func (f *File) Unfinished() bool { return f.temp != "" }

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.file.Write(p) }

// Seek implements io.Seeker. It fails on pipes.
func (f *File) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Commit moves a whole file to its target, and closes any other file. After an
// error the target is unchanged.
func (f *File) Commit() error { return Commit(f) }

// Commit ends several files. All bytes of all files are written before the
// first is moved to its target. So a full disk leaves every target unchanged.
func Commit(files ...*File) error {
	var err error
	for _, f := range files {
		if err == nil {
			err = f.finish()
		}
	}
	for _, f := range files {
		if err == nil {
			err = f.place()
		}
	}
	for _, f := range files {
		if abortErr := f.Abort(); err == nil {
			err = abortErr
		}
	}
	return err
}

// finish passes all bytes to the operating system. If the file replaces an old
// one or is durable, finish also syncs it to disk. After a crash of the machine, either the
// old or the new file exists.
func (f *File) finish() error {
	if f.temp == "" {
		return nil
	}
	if f.target.info != nil || f.durable {
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	var err error
	if f.durable {
		f.made, err = f.file.Stat()
	}
	err = errors.Join(err, f.file.Close())
	f.file = nil
	return err
}

// place renames a finished file to its target.
func (f *File) place() error {
	if f.temp == "" {
		return nil
	}
	var err error
	if f.outputs.NoClobber {
		err = renameNew(f.temp, f.target.path)
	} else {
		err = renameOver(f.temp, f.target.path)
	}
	if err != nil {
		return err
	}
	f.outputs.mu.Lock()
	f.temp = ""
	f.outputs.mu.Unlock()
	if f.durable {
		return syncFolder(filepath.Dir(f.target.path))
	}
	return nil
}

// syncFolder writes the names of a folder to the disk. Some file systems cannot, and need not: they say so.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // a folder that may be written but not read cannot be synced
	}
	_ = folder.Sync()
	return folder.Close()
}

// Abort leaves the target unchanged and removes the temporary file. It closes a
// stream, which keeps its contents. After Commit it does nothing.
func (f *File) Abort() error {
	if f.ended {
		return nil
	}
	f.ended = true
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	if f.temp != "" {
		if gone := os.Remove(f.temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	f.outputs.release(f)
	return err
}

// renameNew renames a file. It fails if the new name exists.
func renameNew(from, to string) error {
	if err := link(from, to); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return existsError(to)
}

// link renames a file with a hard link. It returns fs.ErrExist if the name to
// exists. On a file system without hard links, another process may take the
// name in between.
func link(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}
