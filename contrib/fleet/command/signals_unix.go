//go:build unix

package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// hangUps returns a channel that receives each SIGHUP.
func hangUps() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

func timed(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
