package capture

import (
	"fmt"
	"io"
)

// Stored is a capture file that is read through a reader, such as an object of a store.
type Stored struct {
	Name string // as Input.FileName returns it
	// Size is how many bytes the file has, as it is stored. A reader that ends before is a failed
	// transport. Size is negative if it is not known: any end then counts as that of the file.
	Size int64
	// Reader returns the bytes from the first one on. A reader that also is an io.ReaderAt is read
	// at offsets, by one goroutine at a time, and no further than Size.
	Reader io.Reader
}

// TransportError says that the bytes of a file did not come, whatever the file holds. Another try
// may succeed.
type TransportError struct {
	File   string
	Offset int64 // how many bytes came
	Size   int64 // the stated size; negative if it is not known
	Err    error // of the reader
}

func (e *TransportError) Error() string {
	of := ""
	if e.Size >= 0 {
		of = fmt.Sprintf(" of %d", e.Size)
	}
	return fmt.Sprintf("%s: reading failed after %d%s bytes: %v", e.File, e.Offset, of, e.Err)
}

// Unwrap returns the error of the reader.
func (e *TransportError) Unwrap() error { return e.Err }
