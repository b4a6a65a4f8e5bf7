package collect

import (
	"errors"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// openFile opens a file of Parquet. The caller closes the file.
func openFile(path string) (*os.File, *parquet.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	opened, err := parquet.OpenFile(f, info.Size()) // NewGenericReader would panic for what is no such file
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

// ReadFile calls f for each row of a file, in their order. It has so many rows in memory at once. f may change its row,
// and keep it until it returns.
func ReadFile[R any](path string, atOnce int, f func(*R) error) error {
	file, opened, err := openFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := parquet.NewGenericReader[R](opened)
	defer func() { _ = r.Close() }() // it was read
	for rows := make([]R, atOnce); ; {
		clear(rows)
		n, err := r.Read(rows)
		for i := range rows[:n] {
			if err := f(&rows[i]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
