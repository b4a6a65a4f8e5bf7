//go:build !linux

package app

// machineMemory returns the bytes of memory that this program can have; 0, since
// this system is not asked.
func machineMemory() int64 { return 0 }
