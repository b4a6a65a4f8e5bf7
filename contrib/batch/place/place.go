// Package place reads and writes files by Beam's file systems: of this machine, and of object stores.
//
//	r, size, err := place.Open(ctx, "gs://bucket/captures/17.pcapng")
package place

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"   // gs://; Beam links it in any case
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local" // paths
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"    // s3://

	"github.com/ackscope/ackscope/batch"
)

// systems are the file systems that this process uses, by scheme. Each has connections and
// credentials, which all captures share.
var systems = struct {
	sync.Mutex
	byScheme map[string]filesystem.Interface
}{byScheme: map[string]filesystem.Interface{}}

// system returns the file system of an address or path.
func system(address string) (fs filesystem.Interface, err error) {
	scheme := ""
	if batch.IsAddress(address) {
		scheme, _, _ = strings.Cut(address, "://")
	}
	systems.Lock()
	defer systems.Unlock()
	if fs := systems.byScheme[scheme]; fs != nil {
		return fs, nil
	}
	defer func() {
		if fault := recover(); fault != nil { // of a store without valid settings
			err = fmt.Errorf("%s: %v", address, fault)
		}
	}()
	if fs, err = filesystem.New(context.Background(), address); err != nil {
		return nil, err
	}
	if urls[scheme] {
		fs = literal{fs}
	}
	systems.byScheme[scheme] = fs
	return fs, nil
}

// Open opens a file, and returns its size. A file of this machine is an *os.File.
func Open(ctx context.Context, address string) (io.ReadCloser, int64, error) {
	fs, err := system(address)
	if err != nil {
		return nil, 0, err
	}
	r, err := fs.OpenRead(ctx, address)
	if err != nil {
		return nil, 0, named(address, err)
	}
	var size int64
	if file, ok := r.(*os.File); ok {
		var info os.FileInfo
		if info, err = file.Stat(); err == nil {
			if size = info.Size(); !info.Mode().IsRegular() {
				err = fmt.Errorf("%s: expected a file that can be read again", address)
			}
		}
	} else {
		size, err = fs.Size(ctx, address)
	}
	if err != nil {
		_ = r.Close() // it was only opened
		return nil, 0, named(address, err)
	}
	return r, size, nil
}

// named returns an error that names the file, or nil.
func named(address string, err error) error {
	if err == nil || strings.Contains(err.Error(), address) {
		return err
	}
	return fmt.Errorf("%s: %w", address, err)
}

// Size returns the size of a file, or 0 if it is not known.
func Size(ctx context.Context, address string) int64 {
	if r, size, err := Open(ctx, address); err == nil {
		_ = r.Close() // nothing was read
		return size
	}
	return 0
}

// Read reads a small file.
func Read(ctx context.Context, address string, most int64) ([]byte, error) {
	r, size, err := Open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was read
	if size > most {
		return nil, fmt.Errorf("%s: has %d bytes: expected %d at most", address, size, most)
	}
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) != size {
		err = fmt.Errorf("%s: %d of %d bytes came", address, len(b), size)
	}
	return b, err
}

// Join returns the address of a file below a folder. elements are harmless names.
func Join(folder string, elements ...string) string {
	return strings.TrimRight(folder, "/") + "/" + strings.Join(elements, "/")
}
