package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/machine/riptide"
)

var labRiptide = labProtocol{
	name:  "riptide",
	short: "Clients and a server of any Riptide release, over UDP or TCP",
	long: `Clients connect to the server, and all that are connected send each other messages
of every mode that the release has, updating every 10 ms. At the end of the run the
clients disconnect and the server stops. docs/lab-riptide.yaml is a schema of what
they say, for --schema.`,
	example: `  ackscope lab riptide --loss 30% --clients 3 --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope messages --schema docs/lab-riptide.yaml run.client.pcapng

  ackscope lab riptide --transport tcp --profile 2.0 --delay 30ms --loss 5% -w run.client.pcapng`,
	tcp: true,
	flags: func(p *pflag.FlagSet, f *labFlags) {
		p.StringVar(&f.profile, "profile", "2.2.1", "what the endpoints are: a release or a dialect, `"+strings.Join(riptide.VersionNames(), "|")+"`")
		p.StringVar(&f.rate, "rate", "15", "messages a second that each sends to each, in every mode")
		p.BoolVar(&f.limits, "quality-limits", false, "connections end for their quality, as in the library unless the game switches that off")
		p.BoolVar(&f.eventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once an update")
	},
	remembered: []string{"profile", "transport", "quality-limits", "event-clock"},
	kit:        riptideKit,
}

func riptideKit(_ *app, f *labFlags) (lab.Kit, error) {
	version, ok := riptide.LookupVersion(f.profile)
	if !ok {
		return nil, fmt.Errorf("--profile %q: expected one of %s", f.profile, strings.Join(riptide.VersionNames(), ", "))
	}
	carrier, err := lab.ParseTransport(f.transport)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	kit := lab.Riptide{Version: version, Transport: carrier, Count: f.amount, Limits: f.limits, EventClock: f.eventTime, Seed: f.seed}
	if kit.Rate, err = pair(f.rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }); err != nil {
		return nil, fmt.Errorf("--rate %q: expected messages a second", f.rate)
	}
	return lab.NewRiptide(kit)
}
