package testenv

import (
	"os"
	"syscall"
)

// Peak returns the most memory that an ended process had resident, in bytes; 0
// where the system does not tell.
func Peak(s *os.ProcessState) int64 {
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		return r.Maxrss << 10 // Linux counts KiB
	}
	return 0
}
