//go:build !js

package gaffer

import (
	"fmt"
	"math/rand/v2"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/simulate"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/sim/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

var onSockets = labs.Protocol{
	Name:  "gaffer",
	Short: "Packets with acks, of any profile of the Gaffer family, and messages",
	Long: `Both sides send one packet a frame, with the acks of what they received, as a game does. Where
the profile's schema has reliable messages, they send some. Three profiles run sample programs
of the articles: article-slices sends blocks, article-fragments sends packets in fragments, and
article-connect has clients that connect and leave.`,
	Example: `  ackscope lab gaffer --loss 30% --delay 40ms --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope events run.client.pcapng

  ackscope lab gaffer --listen 10.0.0.2:40000 --truth server.truth.jsonl       # on one machine
  ackscope lab gaffer --relay 10.0.0.3:40001=10.0.0.2:40000 --loss 5%/40%      # on a second
  ackscope lab gaffer --connect 10.0.0.3:40001 --truth client.truth.jsonl      # on a third`,
	Scenario: true,
	Begin: func(p *pflag.FlagSet, f *labs.Flags) func(*app.App) (sim.Kit, error) {
		o := &settings{of: f}
		o.samples.register(p, "")
		p.IntVar(&o.slots, "slots", article.UsualSlots, "article-connect: clients that the server takes at a time")
		p.StringVar(&o.profile, "profile", wire.Reliable,
			"what the endpoints speak: a `NAME` that ackscope protocols gaffer lists, or yours of --profiles")
		p.StringVar(&f.Rate, "rate", "60", "packets a second, one each frame")
		p.StringVar(&o.payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
		p.StringVar(&o.refuse, "refuse", "0%", "share of packets that the receiving application refuses")
		p.StringVar(&o.first, "first", "0", "sequence of the first packet")
		p.BoolVar(&f.EventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
		p.Float64Var(&o.messages, "messages", 0,
			"reliable messages a second that each side submits, of what the profile's schema has")
		p.StringVar(&o.resend, "resend", "", "when a message that is not acked goes out again, instead of the profile's: a "+
			"time such as `50ms`, 1.5rtt, or backoff(100ms, x2, 1s)")
		return o.kit
	},
	Remembered: append([]string{"profile", "first", "event-clock", "rate", "resend"}, sampleFlagNames...),
}

// settings are the lab flags that only this protocol has.
type settings struct {
	of       *labs.Flags
	profile  string
	payload  string
	refuse   string
	first    string
	messages float64
	resend   string
	samples  sampleFlags
	slots    int
}

// fastest bounds the packets a second that a host sends in real time.
const fastest = 10000

func (o *settings) kit(a *app.App) (sim.Kit, error) {
	profile, err := Simulated(a, "gaffer:"+o.profile)
	if err != nil {
		return nil, err
	}
	if model.IsSample(profile) {
		return o.samplesKit(profile)
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--profile %s: expected a profile with acks", o.profile)
	}
	if o.messages > 0 && profile.Messages.Form == wire.MessagesNone {
		return nil, fmt.Errorf("--messages: profile %s has no message section: give one of your own with --profiles",
			o.profile)
	}
	k := gaffer.Kit{Profile: identified(profile), EventClock: o.of.EventTime, Count: o.of.Amount, Messages: o.messages}
	k.Message = func(rng *rand.Rand) (uint32, []byte, error) { return drawMessage(rng, &profile.Messages) }
	if k.Rate, err = o.rates(); err != nil {
		return nil, err
	}
	if k.Resend, err = parseResend(o.resend); err != nil {
		return nil, err
	}
	if k.First, err = firsts(o.first); err != nil {
		return nil, err
	}
	if err := readTraffic(o.refuse, o.payload, &k); err != nil {
		return nil, err
	}
	return gaffer.New(k)
}

// rates reads --rate.
func (o *settings) rates() (rates [2]float64, err error) {
	if rates, err = simulate.Pair(o.of.Rate, simulate.ParseNumber); err != nil {
		return rates, fmt.Errorf("--rate %q: expected packets a second", o.of.Rate)
	}
	for _, rate := range rates {
		if !(rate > 0 && rate <= fastest) {
			return rates, fmt.Errorf("gaffer: rate %g: expected up to 10,000 packets a second", rate)
		}
	}
	return rates, nil
}

// samplesKit returns the kit of one of the series' programs without acks of packets.
func (o *settings) samplesKit(profile *wire.Profile) (sim.Kit, error) {
	if o.messages > 0 || o.refuse != "0%" || o.resend != "" {
		return nil, fmt.Errorf("--messages, --refuse, --resend: expected none of them with --profile %s, whose packets are "+
			"not acknowledged", o.profile)
	}
	k, err := o.samples.kit(profile, o.slots, o.payload, o.first)
	if err != nil {
		return nil, err
	}
	if k.Rate, err = o.rates(); err != nil {
		return nil, err
	}
	k.EventClock, k.Count, k.Seed = o.of.EventTime, o.of.Amount, o.of.Seed
	return gaffer.NewSamples(k)
}
