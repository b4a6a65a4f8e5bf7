package outfile

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the file's lock without waiting. It locks a byte beyond the end of
// any file, because Windows prevents others from reading locked bytes.
func lock(file *os.File) error {
	at := windows.Overlapped{Offset: math.MaxUint32 - 1, OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}
