package cli

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/lab"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

var labGaffer = labProtocol{
	name:  "gaffer",
	short: "Packets with acks, of any profile of the Gaffer family, and messages",
	long: `Both sides send a packet a frame with the acks of what they received, as a game does,
and reliable messages where the profile's schema has some.`,
	example: `  ackscope lab gaffer --loss 30% --delay 40ms --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope events run.client.pcapng

  ackscope lab gaffer --listen 10.0.0.2:40000 --truth server.truth.jsonl       # on one machine
  ackscope lab gaffer --relay 10.0.0.3:40001=10.0.0.2:40000 --loss 5%/40%      # on a second
  ackscope lab gaffer --connect 10.0.0.3:40001 --truth client.truth.jsonl      # on a third`,
	scenario: true,
	flags: func(p *pflag.FlagSet, f *labFlags) {
		p.StringVar(&f.profile, "profile", wire.Reliable, "what the endpoints speak: a `NAME` that ackscope protocols gaffer lists, or yours of --profiles")
		p.StringVar(&f.rate, "rate", "60", "packets a second, one each frame")
		p.StringVar(&f.payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
		p.StringVar(&f.refuse, "refuse", "0%", "share of packets that the receiving application refuses")
		p.StringVar(&f.first, "first", "0", "sequence of the first packet")
		p.BoolVar(&f.eventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
		p.Float64Var(&f.messages, "messages", 0, "reliable messages a second that each side submits, of what the profile's schema has")
	},
	remembered: []string{"profile", "first", "event-clock", "rate"},
	kit:        gafferKit,
}

func gafferKit(a *app, f *labFlags) (lab.Kit, error) {
	f.protocol = "gaffer:" + f.profile
	profile, err := a.simulated(f.protocol)
	if err != nil {
		return nil, err
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--profile %s: expected a profile with acks", f.profile)
	}
	if profile.HasCRC() && profile.ProtocolID == nil {
		profile = profile.WithProtocolID(0x12345678)
	}
	if f.messages > 0 && profile.Messages.Form == wire.MessagesNone {
		return nil, fmt.Errorf("--messages: profile %s has no message section: give one of your own with --profiles", f.profile)
	}
	kit := lab.Gaffer{Profile: profile, EventClock: f.eventTime, Count: f.amount, Messages: f.messages}
	kit.Message = func(rng *rand.Rand) (uint32, []byte, error) { return drawMessage(rng, &profile.Messages) }
	if kit.Rate, err = pair(f.rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }); err != nil {
		return nil, fmt.Errorf("--rate %q: expected packets a second", f.rate)
	}
	if kit.First, err = pair(f.first, func(text string) (uint32, error) {
		v, err := strconv.ParseUint(text, 10, 32)
		return uint32(v), err
	}); err != nil {
		return nil, fmt.Errorf("--first: %w", err)
	}
	if kit.Refuse, err = pair(f.refuse, parseShare); err != nil {
		return nil, fmt.Errorf("--refuse: %w", err)
	}
	if kit.Least, kit.Most, err = parseRange(f.payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	return lab.NewGaffer(kit)
}
