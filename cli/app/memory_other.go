//go:build !linux

package app

// machineMemory returns 0: the memory of this system is not known.
func machineMemory() int64 { return 0 }
