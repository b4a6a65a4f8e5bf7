package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// outputFile is a file that is there whole or not at all: it is written beside its
// place under another name, and takes its own when it is done. Standard output,
// and what is no regular file, is written as it comes.
type outputFile struct {
	*bufio.Writer
	path    string
	file    *os.File // nil for standard output
	temp    string   // its name for now; empty where it is written in place
	signals chan os.Signal
}

// create begins the file at path, "-" for standard output. A file that is there
// already is replaced only by force, and what is being read never.
func (a *app) create(path string, force bool, reads []string) (*outputFile, error) {
	if path == "-" {
		return &outputFile{Writer: a.writer(), path: path}, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("-o: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("-o %s: expected a file to write, found a directory", path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("-o: %w", err)
		}
		return &outputFile{Writer: bufio.NewWriterSize(f, 64<<10), path: path, file: f}, nil
	default:
		for _, r := range reads {
			if other, err := os.Stat(r); err == nil && os.SameFile(info, other) {
				return nil, fmt.Errorf("-o %s: that is the capture to be read", path)
			}
		}
		if !force {
			return nil, fmt.Errorf("-o %s: there is such a file already (--force replaces it)", path)
		}
	}
	part := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.part", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("-o %s: %w", path, err)
	}
	o := &outputFile{Writer: bufio.NewWriterSize(f, 64<<10), path: path, file: f, temp: part, signals: make(chan os.Signal, 1)}
	signal.Notify(o.signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-o.signals; ok {
			_ = os.Remove(o.temp)
			os.Exit(exitFailed)
		}
	}()
	return o, nil
}

// end finishes the file where all went well, and removes it where err says that
// it did not. It gives err, or why the file could not be finished.
func (o *outputFile) end(err error) error {
	if o.file == nil {
		return err // run flushes standard output
	}
	if err == nil {
		err = o.Flush()
	}
	if o.temp == "" {
		return errors.Join(err, o.file.Close())
	}
	if closeErr := o.file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(o.temp, o.path)
	}
	if err != nil {
		_ = os.Remove(o.temp)
	}
	signal.Stop(o.signals)
	close(o.signals)
	return err
}

// saveFile writes a file by fill.
func (a *app) saveFile(path string, force bool, reads []string, fill func(w io.Writer) error) error {
	o, err := a.create(path, force, reads)
	if err != nil {
		return err
	}
	return o.end(fill(o))
}
