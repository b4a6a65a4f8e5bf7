package gaffer

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/lab"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

var onSockets = labs.Protocol{
	Name:  "gaffer",
	Short: "Packets with acks, of any profile of the Gaffer family, and messages",
	Long: `Both sides send a packet a frame with the acks of what they received, as a game does,
and reliable messages where the profile's schema has some.`,
	Example: `  ackscope lab gaffer --loss 30% --delay 40ms --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope events run.client.pcapng

  ackscope lab gaffer --listen 10.0.0.2:40000 --truth server.truth.jsonl       # on one machine
  ackscope lab gaffer --relay 10.0.0.3:40001=10.0.0.2:40000 --loss 5%/40%      # on a second
  ackscope lab gaffer --connect 10.0.0.3:40001 --truth client.truth.jsonl      # on a third`,
	Scenario: true,
	Flags: func(p *pflag.FlagSet, f *labs.Flags) {
		p.StringVar(&f.Profile, "profile", wire.Reliable, "what the endpoints speak: a `NAME` that ackscope protocols gaffer lists, or yours of --profiles")
		p.StringVar(&f.Rate, "rate", "60", "packets a second, one each frame")
		p.StringVar(&f.Payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
		p.StringVar(&f.Refuse, "refuse", "0%", "share of packets that the receiving application refuses")
		p.StringVar(&f.First, "first", "0", "sequence of the first packet")
		p.BoolVar(&f.EventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
		p.Float64Var(&f.Messages, "messages", 0, "reliable messages a second that each side submits, of what the profile's schema has")
	},
	Remembered: []string{"profile", "first", "event-clock", "rate"},
	Kit:        gafferKit,
}

func gafferKit(a *app.App, f *labs.Flags) (lab.Kit, error) {
	f.Protocol = "gaffer:" + f.Profile
	profile, err := Simulated(a, f.Protocol)
	if err != nil {
		return nil, err
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--profile %s: expected a profile with acks", f.Profile)
	}
	if profile.HasCRC() && profile.ProtocolID == nil {
		profile = profile.WithProtocolID(0x12345678)
	}
	if f.Messages > 0 && profile.Messages.Form == wire.MessagesNone {
		return nil, fmt.Errorf("--messages: profile %s has no message section: give one of your own with --profiles", f.Profile)
	}
	kit := lab.Gaffer{Profile: profile, EventClock: f.EventTime, Count: f.Amount, Messages: f.Messages}
	kit.Message = func(rng *rand.Rand) (uint32, []byte, error) { return drawMessage(rng, &profile.Messages) }
	if kit.Rate, err = simulate.Pair(f.Rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }); err != nil {
		return nil, fmt.Errorf("--rate %q: expected packets a second", f.Rate)
	}
	if kit.First, err = simulate.Pair(f.First, func(text string) (uint32, error) {
		v, err := strconv.ParseUint(text, 10, 32)
		return uint32(v), err
	}); err != nil {
		return nil, fmt.Errorf("--first: %w", err)
	}
	if kit.Refuse, err = simulate.Pair(f.Refuse, simulate.ParseShare); err != nil {
		return nil, fmt.Errorf("--refuse: %w", err)
	}
	if kit.Least, kit.Most, err = simulate.ParseRange(f.Payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	return lab.NewGaffer(kit)
}
