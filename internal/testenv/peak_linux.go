package testenv

import (
	"os"
	"syscall"
)

// Peak returns the peak resident memory of an ended process in bytes, or 0 if
// the system does not report it.
func Peak(s *os.ProcessState) int64 {
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		return r.Maxrss << 10 // Linux counts KiB
	}
	return 0
}
