//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreSizeSignal ignores SIGXFSZ. A write beyond the shell's file size limit
// (ulimit -f) then fails like one to a full disk. Otherwise the signal would
// end the program before it removes unfinished files.
func ignoreSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
