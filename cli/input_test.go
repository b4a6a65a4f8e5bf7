package cli

import (
	"compress/gzip"
	"io"
	"os"
)

// unzipped reads a file, and unpacks it if its name ends in .gz.
func unzipped(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
