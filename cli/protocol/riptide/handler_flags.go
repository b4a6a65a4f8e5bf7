package riptide

import (
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
	slots  int
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
	p.IntVar(&h.slots, "slots", 0, "riptide: clients that the server takes at a time; 0: all")
	p.StringVar(&h.hello, "hello", hello, "riptide: the `TEXT` that a client sends with its Connect")
}

// apply sets a kit's handler. clients is the usual number of slots.
func (h *handlerFlags) apply(k *description.Kit, clients int) (err error) {
	if k.Handler, k.Ask, err = description.ParseHandler(h.decide); err != nil {
		return fmt.Errorf("--decide %w", err)
	}
	if h.after < 0 {
		return fmt.Errorf("--decide-after %v: expected a time such as 1500ms", h.after)
	}
	if h.slots < 0 || h.slots > 1000 {
		return fmt.Errorf("--slots %d: expected 1 to 1000, or 0 for all clients", h.slots)
	}
	if len(h.hello) > 200 {
		return fmt.Errorf("--hello: %d bytes, expected at most 200", len(h.hello))
	}
	k.Handler.After, k.Hello, k.Slots = h.after, h.hello, h.slots
	if k.Slots == 0 {
		k.Slots = clients
	}
	return nil
}
