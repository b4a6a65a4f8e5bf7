//go:build unix

package tui

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopProcess stops the program and what stands beside it in its pipeline, as the
// terminal does at Ctrl-Z, and returns when the shell goes on with it.
func stopProcess() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-goesOn:
	case <-time.After(200 * time.Millisecond): // without a shell that could go on with it nothing stops
	}
}
