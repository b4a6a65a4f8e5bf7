package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/capture/paths"
)

// Stores finds captures in object stores, for batch.NewPlan.
type Stores struct{}

var _ batch.Elsewhere = Stores{}

// mostDepth is how many levels of folders are searched in a store that has no pattern for any depth.
// Source: bound, each level is a listing of all objects below the folder
const mostDepth = 8

// Find implements batch.Elsewhere. Captures below a folder are known by their names.
func (Stores) Find(address string) ([]string, error) {
	ctx := context.Background()
	if strings.ContainsAny(address, "*?[") {
		found, err := list(ctx, address)
		if err == nil && len(found) == 0 {
			err = errors.New("matches nothing")
		}
		return found, named(address, err)
	}
	if !strings.HasSuffix(address, "/") {
		if found, err := list(ctx, address); err != nil || len(found) > 0 {
			return found, named(address, err)
		}
	}
	below, err := Below(ctx, address)
	if err != nil {
		return nil, err
	}
	below = slices.DeleteFunc(below, func(one string) bool { return !paths.IsCapture(path.Base(one)) })
	if len(below) == 0 {
		return nil, fmt.Errorf("%s: no capture", address)
	}
	return below, nil
}

// Below returns all objects below a folder of a store, sorted.
func Below(ctx context.Context, folder string) (all []string, err error) {
	if strings.HasPrefix(folder, "gs://") {
		return list(ctx, Join(folder, "**"))
	}
	pattern := strings.TrimRight(folder, "/")
	for range mostDepth {
		pattern += "/*"
		found, err := list(ctx, pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// list returns what a pattern matches, sorted.
func list(ctx context.Context, pattern string) ([]string, error) {
	fs, err := system(pattern)
	if err != nil {
		return nil, err
	}
	found, err := fs.List(ctx, pattern)
	if err != nil {
		return nil, named(pattern, err)
	}
	slices.Sort(found)
	return found, nil
}

// Open implements batch.Elsewhere.
func (Stores) Open(address string) (_ *os.File, err error) {
	r, size, err := Open(context.Background(), address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was read
	file, err := Temporary()
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(file, r)
	if err == nil && n != size {
		err = fmt.Errorf("%s: %d of %d bytes came", address, n, size)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Temporary creates a file without a name. Its bytes go when it is closed, or when the process ends.
func Temporary() (*os.File, error) {
	file, err := os.CreateTemp("", "ackscope-beam-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // fails on Windows, where the system's own rules remove it
	return file, nil
}
