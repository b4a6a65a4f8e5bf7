//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreSizeSignal makes a write beyond the file size that the shell allows
// (ulimit -f) fail as one to a full disk does, rather than end the program at once:
// unfinished files are removed then.
func ignoreSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
