//go:build !js

package srdp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/sim"
	description "github.com/ackscope/ackscope/sim/srdp"
)

var onSockets = labs.Protocol{
	Name:  "srdp",
	Short: "Messages sent until they are acknowledged, straight or through the document's proxies",
	Long: `Clients send messages to the server, and the server to every client that it has
heard of; each is sent again until its acknowledgement comes. With --proxy udp the
packets go through a proxy that forwards them; with --proxy tcp clients speak to
the proxy by a stream, and it does the sending. The relay then stands between
the proxy and the server; apart, --forward LISTEN=TARGET is the proxy.`,
	Example: `  ackscope lab srdp --loss 30% --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope messages run.client.pcapng

  ackscope lab srdp --proxy tcp --clients 3 --services any --loss 20% -w run.client.pcapng

  ackscope lab srdp --proxy udp --listen 10.0.0.2:40000                                      # on one machine
  ackscope lab srdp --proxy udp --forward 10.0.0.3:40001=10.0.0.2:40000                      # on a second
  ackscope lab srdp --proxy udp --connect 10.0.0.3:40001 --to 10.0.0.2:40000                 # on a third`,
	Scenario: true,
	Proxy:    true,
	Ways:     map[string][]string{"proxy": {"--proxy", "udp"}, "tcp": {"--proxy", "tcp"}},
	Begin: func(p *pflag.FlagSet, f *labs.Flags) func(*app.App) (sim.Kit, error) {
		o := &settings{of: f}
		p.StringVar(&o.profile, "profile", "",
			"what the endpoints speak: a `NAME` that ackscope protocols srdp lists, or yours of --profiles (default direct, "+
				"proxied with a proxy)")
		p.StringVar(&o.proxy, "proxy", "none", "`none|udp|tcp`: the proxy that packets go through")
		p.StringVar(&o.to, "to", "", "the server's `ADDR` as packets name it (default: where it listens, or is reached)")
		p.StringVar(&f.Rate, "rate", "20", "messages a second that each sends to each peer")
		p.StringVar(&o.payload, "payload", "16-200", "bytes of a message: `LEAST-MOST`")
		p.StringVar(&o.services, "services", "any", "what messages ask for: `none|dont-duplicate|order|both|any`")
		p.StringVar(&o.repeats, "repeats", "0", "how often a message is sent at most, 0 until it is acknowledged")
		p.StringVar(&o.timeout, "timeout", "0s", "time between its copies, 0s for the library's choice")
		p.DurationVar(&o.giveUp, "give-up", 10*time.Second, "how long a message without a limit is sent again; 0 for no end")
		return o.kit
	},
	Remembered: []string{"profile", "proxy", "to", "repeats", "timeout", "give-up"},
}

// settings are the flags of lab that only this protocol has.
type settings struct {
	of       *labs.Flags
	profile  string
	proxy    string
	to       string
	payload  string
	services string
	repeats  string
	timeout  string
	giveUp   time.Duration
}

func (o *settings) kit(a *app.App) (sim.Kit, error) {
	via, err := description.ParseVia(o.proxy)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if o.of.Forward != "" && via == description.Straight {
		return nil, fmt.Errorf("--forward: expected --proxy udp or --proxy tcp with it")
	}
	name := o.profile
	if name == "" {
		name = usual(via)
	}
	profile, names, err := profileOf(a, name)
	if err != nil {
		return nil, fmt.Errorf("--profile %q: %w", name, err)
	}
	if profile == nil {
		return nil, fmt.Errorf("--profile %q: expected one of %s", name, strings.Join(names, ", "))
	}
	k := description.Kit{
		Profile: profile, Via: via, Count: o.of.Amount, Limit: o.giveUp,
		Form: description.Form{Sockets: true},
	}
	if o.to != "" {
		if k.Server, err = labs.ParseAddr(o.to); err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
	}
	if k.Rate, err = simulate.Pair(o.of.Rate, simulate.ParseNumber); err != nil {
		return nil, fmt.Errorf("--rate %q: expected messages a second", o.of.Rate)
	}
	if k.Least, k.Most, err = simulate.ParseRange(o.payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	if k.Flags, err = description.Services(profile, o.services); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	repeats, err := strconv.ParseUint(o.repeats, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("--repeats %q: expected 0 to 255 copies", o.repeats)
	}
	k.Repeats = uint8(repeats)
	if k.Timeout, err = simulate.ParseDelay(o.timeout); err != nil {
		return nil, fmt.Errorf("--timeout: %w", err)
	}
	return description.New(k)
}
