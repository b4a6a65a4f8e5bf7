package capture

import (
	"fmt"
	"strconv"
)

// FormatError says that a file cannot be read as a capture from its start. No
// frame of it was returned.
type FormatError struct {
	File     string
	Offset   int64 // in the decompressed file
	Expected string
	Found    string
	Err      error // the underlying cause, if there is one
}

func (e *FormatError) Error() string {
	s := fmt.Sprintf("%s: not a readable capture: at byte %d expected %s, found %s", e.File, e.Offset, e.Expected, e.Found)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause, such as the decompressor's error.
func (e *FormatError) Unwrap() error { return e.Err }

// CutError says that a file ends in the middle of a record. Every whole record
// before it has been returned.
type CutError struct {
	File    string
	What    string // the record that is cut: "packet record 12", "interface description block"
	Offset  int64  // where that record begins, in the decompressed file
	End     int64  // where the file ends
	Missing int64  // bytes that the record lacks; -1 if a compressed stream is cut and the length is not known
	Frames  uint64 // returned before the cut
	Err     error  // the decompressor's error, if the compressed stream itself is cut
}

func (e *CutError) Error() string {
	missing := "an unknown number of its bytes is missing"
	switch {
	case e.Missing == 1:
		missing = "1 of its bytes is missing"
	case e.Missing > 1:
		missing = strconv.FormatInt(e.Missing, 10) + " of its bytes are missing"
	}
	s := fmt.Sprintf("%s: cut short: ends at byte %d inside %s, which begins at byte %d: %s (%s read before it)",
		e.File, e.End, e.What, e.Offset, missing, frames(e.Frames))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause, such as the decompressor's error.
func (e *CutError) Unwrap() error { return e.Err }

// DamageError says that a file cannot be read beyond some record, though it
// does not end there. Every whole record before it has been returned. The rest
// is lost, because nothing shows where the next record begins.
type DamageError struct {
	File     string
	What     string // the record that is damaged
	Offset   int64  // where that record begins, in the decompressed file
	Expected string
	Found    string
	Frames   uint64 // returned before the damage
	Lost     int64  // bytes from Offset to the end of the file; -1 if that is not known
	Err      error  // the underlying cause, if there is one
}

func (e *DamageError) Error() string {
	s := fmt.Sprintf("%s: damaged: %s at byte %d: expected %s, found %s; %s read before it, ",
		e.File, e.What, e.Offset, e.Expected, e.Found, frames(e.Frames))
	if e.Lost >= 0 {
		s += fmt.Sprintf("%d bytes from there on are lost", e.Lost)
	} else {
		s += "everything from there on is lost"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause, such as the decompressor's error.
func (e *DamageError) Unwrap() error { return e.Err }

func frames(n uint64) string {
	if n == 1 {
		return "1 frame"
	}
	return strconv.FormatUint(n, 10) + " frames"
}
