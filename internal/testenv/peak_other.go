//go:build !linux

package testenv

import "os"

// Peak returns 0: this system does not report the peak memory of a process.
func Peak(*os.ProcessState) int64 { return 0 }
