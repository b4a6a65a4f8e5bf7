//go:build !js

package riptide

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	description "github.com/ackscope/ackscope/sim/riptide"
)

// handlerFlags are the flags of simulate and of the lab about how a connection begins.
type handlerFlags struct {
	decide string
	after  time.Duration
	hello  string
}

// rememberedHandler lists those that an endpoint depends on: a journal keeps them.
var rememberedHandler = []string{"decide", "slots"}

// register adds the flags. decide and hello are the defaults of two of them.
func (h *handlerFlags) register(p *pflag.FlagSet, decide, hello string) {
	p.StringVar(&h.decide, "decide", decide, "riptide: what the server's application decides on each client: `"+
		strings.Join([]string{"accept", "reject", "reject:TEXT", "never"}, "|")+
		"`, with commas between, the last for all others; or none: it has no connection handler")
	p.DurationVar(&h.after, "decide-after", 0, "riptide: how long it takes for that; the connection is pending meanwhile")
	p.StringVar(&h.hello, "hello", hello, "riptide: the `TEXT` that a client sends with its Connect")
}

// apply sets a kit's handler. slots is that of --slots, and clients what 0 is for.
func (h *handlerFlags) apply(k *description.Kit, slots, clients int) (err error) {
	if k.Handler, k.Ask, err = description.ParseHandler(h.decide); err != nil {
		return fmt.Errorf("--decide %w", err)
	}
	if h.after < 0 {
		return fmt.Errorf("--decide-after %v: expected a time such as 1500ms", h.after)
	}
	if slots < 0 || slots > 1000 {
		return fmt.Errorf("--slots %d: expected 1 to 1000, or 0 for all clients", slots)
	}
	if len(h.hello) > 200 {
		return fmt.Errorf("--hello: %d bytes, expected at most 200", len(h.hello))
	}
	k.Handler.After, k.Hello, k.Slots = h.after, h.hello, cmp.Or(slots, clients)
	return nil
}
