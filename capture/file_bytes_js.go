package capture

import (
	"fmt"
	"io"
	"os"
	"syscall/js"
)

// bytesOf returns what reads an open file. In the page, that is one copy from what the worker keeps
// of the file (web/src/fs.ts). The way of package os makes a new array of JavaScript for each read,
// and waits for an answer. Under Node there is only that way.
func bytesOf(f *os.File) fileBytes {
	fs := js.Global().Get("fs")
	if fs.Get("view").Type() != js.TypeFunction {
		return f
	}
	return &viewed{f, fs}
}

// viewed reads an open file of the page.
type viewed struct {
	file *os.File
	fs   js.Value
}

// Read implements io.Reader. It keeps the position of the file, which others move.
func (v *viewed) Read(p []byte) (int, error) {
	at, err := v.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	n, err := v.some(p, at)
	if err != nil {
		return 0, err
	}
	_, err = v.file.Seek(int64(n), io.SeekCurrent)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (v *viewed) ReadAt(p []byte, at int64) (done int, err error) {
	for done < len(p) && err == nil {
		var n int
		n, err = v.some(p[done:], at+int64(done))
		done += n
	}
	return done, err
}

// some reads what is at hand at an offset, one byte at least. The worker answers with bytes, with a
// text that says why there are none, or with null where it has yet to receive them. To read a byte of
// them waits for that.
func (v *viewed) some(p []byte, at int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	view := v.fs.Call("view", v.file.Fd(), at, len(p))
	for view.IsNull() {
		_, _ = v.file.ReadAt(p[:1], at) // the next view says what is wrong
		view = v.fs.Call("view", v.file.Fd(), at, len(p))
	}
	if view.Type() == js.TypeString {
		return 0, fmt.Errorf("%s: %s", v.file.Name(), view.String())
	}
	n := js.CopyBytesToGo(p, view)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
