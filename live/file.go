package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ackscope/ackscope/capture"
)

// File is a capture file that another program still writes, as a source. Where the file ends, Next
// waits for more, until Stop.
type File struct {
	*capture.Input
	tail *tail
}

// Follow opens a file that grows. It waits for the head of the file until the context is done.
func Follow(ctx context.Context, path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &tail{file: file, stopped: make(chan struct{})}
	defer context.AfterFunc(ctx, t.stop)()
	in, err := capture.Open([]string{"-"}, capture.Options{Stdin: t})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return &File{in, t}, nil
}

// Stop ends the waiting; any goroutine may call it. Next then returns what the file has, and
// io.EOF or a *capture.CutError after it.
func (f *File) Stop() { f.tail.stop() }

// Close closes the file.
func (f *File) Close() error { return errors.Join(f.Input.Close(), f.tail.file.Close()) }

// tail reads a file that grows.
type tail struct {
	file    *os.File
	at      int64
	once    sync.Once
	stopped chan struct{}
}

func (t *tail) stop() { t.once.Do(func() { close(t.stopped) }) }

// pollEvery is how often a file is asked for more.
// Source: choice, a tenth of the second after which writers flush
const pollEvery = 100 * time.Millisecond

// Read implements io.Reader. A file that became shorter is an error: it was written anew.
func (t *tail) Read(p []byte) (int, error) {
	for {
		over := false
		select {
		case <-t.stopped:
			over = true
		default:
		}
		n, err := t.file.Read(p)
		t.at += int64(n)
		if n > 0 || over || !errors.Is(err, io.EOF) {
			return n, err
		}
		if info, err := t.file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < t.at {
			return 0, fmt.Errorf("%s: expected a file that grows: it had %d bytes, and has %d", t.file.Name(), t.at,
				info.Size())
		}
		select {
		case <-t.stopped:
		case <-time.After(pollEvery):
		}
	}
}
