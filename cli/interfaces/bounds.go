package interfaces

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
)

// Bounds limit what an analysis without end remembers.
type Bounds struct {
	flows int
	idle  time.Duration
}

// Register adds the flags. flows and idle are added to what their help says.
func (b *Bounds) Register(c *cobra.Command, flows, idle string) {
	f := c.Flags()
	f.IntVar(&b.flows, "max-flows", 0,
		fmt.Sprintf("remember at most `N` flows (live: %d)%s", analyze.LiveLimits.Flows, flows))
	f.DurationVar(&b.idle, "flow-idle", 0, "end flows that are silent for so `long`"+idle)
}

// ErrBounds refuses bounds below 0.
var ErrBounds = errors.New("--max-flows, --flow-idle, --every: expected something above 0")

// Apply sets the limits of an analysis by the flags.
func (b *Bounds) Apply(l *analyze.Limits) error {
	if b.flows < 0 || b.idle < 0 {
		return ErrBounds
	}
	if b.flows > 0 || b.idle > 0 {
		l.Room = false // like endless traffic
	}
	if b.flows > 0 {
		l.Flows = b.flows
	}
	if b.idle > 0 {
		l.Idle = b.idle
	}
	return nil
}
