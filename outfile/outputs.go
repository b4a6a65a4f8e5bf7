// Package outfile opens every file that ackscope writes, so that all commands
// treat existing files, links and second writers alike. For example:
//
//	var o outfile.Outputs
//	o.Reads("the capture to be read", "match.pcapng")
//	f, err := o.Whole("report.html", outfile.Text)
//	...
//	err = f.Commit() // or f.Abort(): report.html stays what it was
//
// There are two kinds of output:
//
//   - A whole file (a report, a table, a reduced capture) is written beside its
//     target and renamed at the end. A failure leaves the old file unchanged.
//   - A stream (a live capture, the log of a running lab) takes its name at
//     once. It is locked while it is being written.
//
// Links, locks and renames concern regular files only. A device, a FIFO,
// /dev/stdout and /dev/fd/N are opened directly.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Content is what a file holds. It decides who may read the file.
type Content uint8

const (
	// Text is results of the analysis, in words and figures. The permissions
	// follow the umask.
	Text Content = iota
	// Payload is a file that may hold bytes of packets or values of messages. Only
	// its owner may read it (0600).
	Payload
)

// Permissions of new files, before the umask.
const (
	textMode    fs.FileMode = 0o666
	payloadMode fs.FileMode = 0o600
)

// Outputs are the files that one run of the program writes. It knows what the
// run reads, so that no input is overwritten. It knows what else the run
// writes, so that no two outputs share a file. The zero value is ready to use.
// It is safe for concurrent use.
type Outputs struct {
	// NoClobber refuses a target that exists already.
	NoClobber bool
	// Mode sets the permissions of all files of the run. If it is nil, the content
	// of a file decides.
	Mode *fs.FileMode

	mu       sync.Mutex
	inputs   []input
	standard []os.FileInfo
	open     []*File
}

// input is a file that the run reads.
type input struct {
	role string // "the capture to be read"
	info os.FileInfo
}

// Reads registers a file that the run reads. role names it in errors. A path
// that does not exist is ignored, because reading it reports the error.
func (o *Outputs) Reads(role, path string) {
	if info, err := os.Stat(path); err == nil {
		o.ReadsFile(role, info)
	}
}

// ReadsFile registers an open file that the run reads.
func (o *Outputs) ReadsFile(role string, info os.FileInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.ContainsFunc(o.inputs, func(in input) bool { return os.SameFile(in.info, info) }) {
		o.inputs = append(o.inputs, input{role, info})
	}
}

// RefuseInput returns an error if the run reads an open file, which must then
// not be written. The error calls the file name. Otherwise it returns nil.
func (o *Outputs) RefuseInput(name string, info os.FileInfo) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refuseInput(name, info)
}

func (o *Outputs) refuseInput(name string, info os.FileInfo) error {
	if info.Mode()&(fs.ModeCharDevice|fs.ModeSocket) != 0 {
		return nil // a terminal, /dev/null, a connection: written bytes cannot be read back
	}
	for _, in := range o.inputs {
		if os.SameFile(in.info, info) {
			return fmt.Errorf("%s: that is %s: expected another file", name, in.role)
		}
	}
	return nil
}

// Standard registers the destination of a standard stream of the process. A
// file that the shell opened for it must not be the target of another output.
func (o *Outputs) Standard(info os.FileInfo) {
	if info.Mode().IsRegular() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.standard = append(o.standard, info)
	}
}

// Abandon aborts all whole files that were not committed, and closes the
// streams. A run calls it at its end, whether it succeeded or not.
func (o *Outputs) Abandon() {
	o.mu.Lock()
	list := slices.Clone(o.open)
	o.mu.Unlock()
	for _, f := range list {
		_ = f.Abort() // the run returns an error of its own
	}
}

// RemoveUnfinished deletes the temporary files of whole files that were not
// committed, without closing them. It serves a signal handler that ends the
// program while other goroutines may still write.
func (o *Outputs) RemoveUnfinished() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.open {
		if f.temp != "" {
			_ = os.Remove(f.temp) // there is nowhere left to report an error
		}
	}
}

// mode returns the permissions to create a file with, and whether they are
// exact or subject to the umask.
func (o *Outputs) mode(c Content) (mode fs.FileMode, exact bool) {
	switch {
	case o.Mode != nil:
		return *o.Mode, true
	case c == Payload:
		return payloadMode, true
	}
	return textMode, false
}

// target is a path to write to, and what it names.
type target struct {
	path   string
	info   os.FileInfo // of the existing file; nil if there is none
	folder os.FileInfo // nil if the path is opened directly
	name   string      // in the folder
	direct *os.File    // a descriptor, device or FIFO, opened directly
}

// find examines a path, refuses it if it must not be written, and reserves it
// for f until f is closed.
func (o *Outputs) find(path string, f *File) error {
	t, err := examine(path)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refuse(t); err != nil {
		return err
	}
	f.target, f.outputs = t, o
	o.open = append(o.open, f)
	return nil
}

// examine determines what a path names, without opening or changing it.
func examine(path string) (t target, err error) {
	t.path = path
	if n, ok := descriptor(path); ok {
		if t.direct, err = duplicate(n, path); err != nil {
			return t, err
		}
		if t.info, err = t.direct.Stat(); err != nil {
			return t, errors.Join(err, t.direct.Close())
		}
		return t, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return t, fmt.Errorf("%s: expected a file to write, found a directory", path)
	case err == nil && !info.Mode().IsRegular():
		t.info = info
		return t, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return t, err
	}
	own, err := os.Lstat(path)
	switch {
	case err == nil && own.Mode()&fs.ModeSymlink != 0:
		return t, linkError(path)
	case err == nil:
		t.info = own
	case !errors.Is(err, fs.ErrNotExist):
		return t, err
	}
	folder := filepath.Dir(path)
	if t.folder, err = os.Stat(folder); err != nil {
		return t, fmt.Errorf("%s: expected a folder that exists: %w", path, err)
	}
	t.name = filepath.Base(path)
	return t, nil
}

func linkError(path string) error {
	to, err := os.Readlink(path)
	if err != nil {
		to = "another file"
	}
	return fmt.Errorf("%s: is a symbolic link to %s, and links are not followed: expected the file itself", path, to)
}

// refuse returns an error if a target must not be written. The caller holds the
// lock.
func (o *Outputs) refuse(t target) error {
	if t.info != nil {
		if err := o.refuseInput(t.path, t.info); err != nil {
			return err
		}
		if t.folder != nil && slices.ContainsFunc(o.standard, func(s os.FileInfo) bool { return os.SameFile(s, t.info) }) {
			return fmt.Errorf("%s: standard output goes there already: expected another file", t.path)
		}
	}
	for _, other := range o.open {
		if other.target.same(&t) {
			return fmt.Errorf("%s: this run writes %s already: expected another file", t.path, other.target.path)
		}
	}
	if o.NoClobber && t.folder != nil && t.info != nil {
		return existsError(t.path)
	}
	return nil
}

func existsError(path string) error {
	return fmt.Errorf("%s: there is such a file already, and --no-clobber keeps it: expected a new name", path)
}

// same reports whether two targets are one file, or will be.
func (t *target) same(x *target) bool {
	if t.info != nil && x.info != nil && t.info.Mode()&fs.ModeCharDevice == 0 && os.SameFile(t.info, x.info) {
		return true
	}
	return t.folder != nil && x.folder != nil && t.name == x.name && os.SameFile(t.folder, x.folder)
}

// release frees what find reserved.
func (o *Outputs) release(f *File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.open, f); i >= 0 {
		o.open = slices.Delete(o.open, i, i+1)
	}
}
