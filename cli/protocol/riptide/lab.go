//go:build !js

package riptide

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/sim"
	description "github.com/ackscope/ackscope/sim/riptide"
)

var onSockets = labs.Protocol{
	Name:  "riptide",
	Short: "Clients and a server of any Riptide release, over UDP or TCP",
	Long: `Clients connect to the server, and all that are connected send each other messages
of every mode that the release has, updating every 10 ms. At the end of the run the
clients disconnect and the server stops. docs/lab-riptide.yaml is a schema of what
they say, for --schema.`,
	Example: `  ackscope lab riptide --loss 30% --clients 3 --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope messages --schema docs/lab-riptide.yaml run.client.pcapng

  ackscope lab riptide --clients 2 --decide "accept,reject:full" --decide-after 2s --duration 5s -w run.client.pcapng

  ackscope lab riptide:2.0:tcp --delay 30ms --loss 5% -w run.client.pcapng`,
	TCP:  true,
	Ways: map[string][]string{"tcp": {"--transport", "tcp"}},
	Begin: func(p *pflag.FlagSet, f *labs.Flags) func(*app.App) (sim.Kit, error) {
		o := &settings{of: f}
		p.StringVar(&o.profile, "profile", "2.2.1", "what the endpoints are: a release or a dialect, `"+
			strings.Join(riptide.FormNames(), "|")+"`")
		p.StringVar(&f.Rate, "rate", "15", "messages a second that each sends to each, in every mode")
		p.BoolVar(&o.limits, "quality-limits", false,
			"connections end for their quality, as in the library unless the game switches that off")
		p.BoolVar(&f.EventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once an update")
		p.IntVar(&f.Buffer, "socket-buffer", 0,
			"`BYTES` of each end's UDP socket buffers: the notes' default is 1048576, their least 262144; 0: the system's")
		p.DurationVar(&f.Poll, "poll", 0,
			"how often each end reads its UDP socket: 500ms by the notes; 0s: at once, as datagrams come")
		o.handler.register(p, "none", "lab")
		p.IntVar(&o.slots, "slots", 0, "clients that the server takes at a time; 0: all")
		return o.kit
	},
	Remembered: append([]string{"profile", "transport", "quality-limits", "event-clock"}, rememberedHandler...),
}

// settings are the lab's flags that only this protocol has.
type settings struct {
	of      *labs.Flags
	profile string
	limits  bool
	handler handlerFlags
	slots   int
}

func (o *settings) kit(*app.App) (sim.Kit, error) {
	version, bigEndian, ok := riptide.LookupForm(o.profile)
	if !ok {
		return nil, fmt.Errorf("--profile %q: expected one of %s", o.profile,
			strings.Join(riptide.FormNames(), ", "))
	}
	carrier, err := lab.ParseTransport(o.of.Transport)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if carrier == lab.TCP && (o.of.Poll > 0 || o.of.Buffer > 0) {
		return nil, errors.New("--poll, --socket-buffer: of UDP only")
	}
	k := description.Kit{
		Versions: [2]*riptide.Version{version, version}, BigEndian: bigEndian, Stream: carrier == lab.TCP,
		Count: o.of.Amount, Limits: o.limits,
		EventClock: o.of.EventTime,
		Seed:       o.of.Seed, Form: description.Form{Settings: true, GivenUp: "given_up", Attempts: true},
	}
	if err := o.handler.apply(&k, o.slots, 0); err != nil {
		return nil, err
	}
	if k.Rate, err = simulate.Pair(o.of.Rate, simulate.ParseNumber); err != nil {
		return nil, fmt.Errorf("--rate %q: expected messages a second", o.of.Rate)
	}
	return description.New(k)
}
