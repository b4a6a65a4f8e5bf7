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
	dissector "github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/lab"
	wire "github.com/ackscope/ackscope/wire/srdp"
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
	Flags: func(p *pflag.FlagSet, f *labs.Flags) {
		p.StringVar(&f.Profile, "profile", "", "what the endpoints speak: a `NAME` that ackscope protocols srdp lists, or yours of --profiles (default direct, proxied with a proxy)")
		p.StringVar(&f.Proxy, "proxy", "none", "`none|udp|tcp`: the proxy that packets go through")
		p.StringVar(&f.Forward, "forward", "", "run a proxy: `LISTEN=TARGET`")
		p.StringVar(&f.To, "to", "", "the server's `ADDR` as packets name it (default: where it listens, or is reached)")
		p.StringVar(&f.Rate, "rate", "20", "messages a second that each sends to each peer")
		p.StringVar(&f.Payload, "payload", "16-200", "bytes of a message: `LEAST-MOST`")
		p.StringVar(&f.Services, "services", "any", "what messages ask for: `none|dont-duplicate|order|both|any`")
		p.StringVar(&f.Repeats, "repeats", "0", "how often a message is sent at most, 0 until it is acknowledged")
		p.StringVar(&f.Timeout, "timeout", "0s", "time between its copies, 0s for the library's choice")
		p.DurationVar(&f.GiveUp, "give-up", 10*time.Second, "how long a message without a limit is sent again; 0 for no end")
	},
	Remembered: []string{"profile", "proxy", "to", "repeats", "timeout", "give-up"},
	Kit:        srdpKit,
}

func srdpKit(a *app.App, f *labs.Flags) (lab.Kit, error) {
	var err error
	if f.Via, err = lab.ParseVia(f.Proxy); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if f.Forward != "" && f.Via == lab.Straight {
		return nil, fmt.Errorf("--forward: expected --proxy udp or --proxy tcp with it")
	}
	profile, err := srdpProfile(a, f)
	if err != nil {
		return nil, err
	}
	k := lab.SRDP{Profile: profile, Via: f.Via, Count: f.Amount, Limit: f.GiveUp}
	if f.To != "" {
		if k.Server, err = labs.ParseAddr(f.To); err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
	}
	if k.Rate, err = simulate.Pair(f.Rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }); err != nil {
		return nil, fmt.Errorf("--rate %q: expected messages a second", f.Rate)
	}
	if k.Least, k.Most, err = simulate.ParseRange(f.Payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	once, order := profile.DontDuplicate, profile.Order
	known := map[string][]uint8{
		"none": {0}, "dont-duplicate": {once}, "order": {order}, "both": {once | order}, "any": {0, once, order, once | order},
	}
	var ok bool
	if k.Flags, ok = known[f.Services]; !ok {
		return nil, fmt.Errorf("--services %q: expected none, dont-duplicate, order, both or any", f.Services)
	}
	repeats, err := strconv.ParseUint(f.Repeats, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("--repeats %q: expected 0 to 255 copies", f.Repeats)
	}
	k.Repeats = uint8(repeats)
	if k.Timeout, err = simulate.ParseDelay(f.Timeout); err != nil {
		return nil, fmt.Errorf("--timeout: %w", err)
	}
	return lab.NewSRDP(k)
}

// srdpProfile gives the profile that the flags name.
func srdpProfile(a *app.App, f *labs.Flags) (*wire.Profile, error) {
	name := f.Profile
	if name == "" {
		if name = wire.Direct.String(); f.Via != lab.Straight {
			name = wire.Proxied.String()
		}
	}
	protocol, ok := a.Registry.Lookup("srdp")
	if !ok {
		return nil, fmt.Errorf("--profile %q: srdp is not built in", name)
	}
	var names []string
	for i := range protocol.Profiles {
		x := &protocol.Profiles[i]
		names = append(names, x.Name)
		if s, ok := x.Config.Profile.(*dissector.Settings); ok && x.Name == name {
			return &s.Wire, nil
		}
	}
	return nil, fmt.Errorf("--profile %q: expected one of %s", name, strings.Join(names, ", "))
}
