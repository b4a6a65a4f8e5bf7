//go:build unix

package command

import (
	"os"
	"os/signal"
	"syscall"
)

// hangUps returns a channel that receives each SIGHUP.
func hangUps() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
