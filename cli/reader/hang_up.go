//go:build !js

package reader

import (
	"os"
	"os/signal"
	"syscall"
)

// hangUp passes SIGHUP to a channel too, unless nohup ignores it.
func hangUp(to chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(to, syscall.SIGHUP)
	}
}
