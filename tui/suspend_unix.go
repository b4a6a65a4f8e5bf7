//go:build unix

package tui

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopProcess stops the process group, as the terminal does at Ctrl-Z. It
// returns when the shell continues the group.
func stopProcess() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-goesOn:
	case <-time.After(200 * time.Millisecond): // without a shell to continue it, the group does not stop
	}
}
