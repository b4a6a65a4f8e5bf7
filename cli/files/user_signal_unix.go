//go:build unix && !js

package files

import (
	"os"
	"os/signal"
	"syscall"
)

const userSignals = true

// onUserSignal passes SIGUSR1 on.
func onUserSignal(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR1) }
