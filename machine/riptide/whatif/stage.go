package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Stage runs a connection again with another resend time, another limit of attempts or another tick
// rate. A reference client and server submit what the captured applications submitted. They connect
// before the first captured message, over a network without faults.
type Stage struct {
	config   riptide.Config
	versions [2]*riptide.Version
	client   machine.Side
	roles    bool // client is known
	beats    riptide.BeatRoles
	m        wire.Message
}

// New returns the stage of a connection.
func New(c riptide.Config) *Stage { return &Stage{config: c} }

// chooseVersions finds the references that write what the two sides wrote.
func (s *Stage) chooseVersions() error {
	if s.config.Stream {
		return errors.New("it runs over TCP: the protocol sends nothing again there that was lost")
	}
	for i := range s.versions {
		sender := &s.config.Senders[i]
		b := riptide.BehaviourOf(sender.Codec.Dialect, sender.Builds)
		v, ok := riptide.LookupVersion(b.Name)
		if !ok || v.Build.Dialect != sender.Codec.Dialect {
			return fmt.Errorf("side %s: no reference writes its dialect, %s", machine.Side(i), sender.Codec.Dialect.Name)
		}
		if v.Behaviour.Limit == 0 {
			return fmt.Errorf("side %s: %s sends nothing again", machine.Side(i), b.Name)
		}
		s.versions[i] = v
	}
	if !s.roles {
		return errors.New("which side is the client is not known: the capture has no Connect and no heartbeat")
	}
	return nil
}

// Parameters are the settings that can change.
var Parameters = []machine.Parameter{
	{Name: "resend", Doc: "time between the copies of a message", Unit: []string{"ms", "rtt"}, Least: 0.1, Most: 60000},
	{
		Name: "attempts", Doc: "copies of a message until the connection, or the message, is given up", Unit: []string{""},
		Whole: true, Least: 1, Most: 1000,
	},
	{
		Name: "rate", Doc: "ticks a second at which each side reads, answers and sends again", Unit: []string{"/s"}, Least: 1,
		Most: 10000,
	},
}

// Parameters lists the settings that can change.
func (s *Stage) Parameters() []machine.Parameter { return Parameters }

// Kinds of exchanges.
const (
	exchangeReliable = iota
	exchangeHeartbeat
)

// Purpose distinguishes reliable messages and heartbeats from what answers them.
func (s *Stage) Purpose(d *machine.Datagram) machine.Purpose {
	m := &s.m
	if err := s.config.Senders[d.From].Codec.Parse(d.Bytes, max(d.Length, len(d.Bytes)), m); err != nil &&
		!errors.Is(err, base.ErrTrailing) {
		return machine.Purpose{Role: machine.RoleConnection}
	}
	beat := s.beats.Take(d.From, s.config.Senders[d.From].Codec.Dialect, m)
	if m.Type == wire.Connect || beat == riptide.BeatPing {
		s.client, s.roles = d.From, true
	}
	switch t := m.Type; {
	case t == wire.Ack || t == wire.AckExtra:
		return machine.Purpose{Role: machine.RoleAnswers, Kind: exchangeReliable, ID: uint32(m.Cause), Also: true}
	case t.Reliable():
		return machine.Purpose{Role: machine.RoleAsks, Kind: exchangeReliable, ID: uint32(m.Sequence)}
	case beat == riptide.BeatPing:
		return machine.Purpose{Role: machine.RoleAsks, Kind: exchangeHeartbeat, ID: uint32(m.Ping)}
	case beat == riptide.BeatAnswer:
		return machine.Purpose{Role: machine.RoleAnswers, Kind: exchangeHeartbeat, ID: uint32(m.Ping)}
	case t == wire.Unreliable || t == wire.Notify:
		return machine.Purpose{Role: machine.RolePlain}
	}
	return machine.Purpose{Role: machine.RoleConnection}
}

// Opens reports whether a datagram begins a connection.
func (s *Stage) Opens(d *machine.Datagram) bool {
	err := s.config.Senders[d.From].Codec.Parse(d.Bytes, max(d.Length, len(d.Bytes)), &s.m)
	return err == nil && (s.m.Type == wire.Connect || s.m.Type == wire.Welcome)
}

// Order returns a message's sequence.
func (s *Stage) Order(m *machine.Message) int64 { return m.Sequence64 }

// Silence is several times what a connection can be silent: each end sends a heartbeat per second.
func (s *Stage) Silence() time.Duration { return 10 * time.Second }

// warmUp is how long before the trace the two connect.
const warmUp = 3 * time.Second

// Prepare returns the references and what they are asked for.
func (s *Stage) Prepare(t *machine.Trace, changed []machine.Setting) (*machine.Run, error) {
	if err := s.chooseVersions(); err != nil {
		return nil, err
	}
	c := &machine.Run{Settings: s.settings(t)}
	var resend endpoint.Resend
	if v := &c.Settings[0]; v.Unit == "ms" {
		resend.After = v.Duration()
	}
	var limits endpoint.Limits
	rate := 0.0
	for _, v := range changed {
		k := slices.IndexFunc(c.Settings, func(o machine.Setting) bool { return o.Name == v.Name })
		c.Settings[k] = v
		switch {
		case v.Name == "resend" && v.Unit == "rtt":
			resend = endpoint.Resend{Times: v.Value}
		case v.Name == "resend":
			resend.After = v.Duration()
		case v.Name == "attempts":
			limits.Attempts = int(v.Value)
		case v.Name == "rate":
			rate = v.Value
		}
	}
	begin := t.Start.Add(-warmUp)
	for i := range c.Ends {
		side := machine.Side(i)
		o := endpoint.Options{
			Version: s.versions[i], Side: side, Codec: s.config.Senders[i].Codec, Resend: resend,
			Limits: limits, Slots: 1,
		}
		var err error
		if c.Ends[i], err = endpoint.NewEndpoint(o, side != s.client); err != nil {
			return nil, err
		}
		x := &t.Sides[i]
		c.Frames[i] = s.frames(x, begin, t.End, rate, side)
		c.Asks[i] = s.asks(x)
		if side == s.client {
			c.Asks[i] = append([]machine.Ask{{At: begin, In: machine.Command{Kind: machine.Connect}, Message: -1}}, c.Asks[i]...)
		}
	}
	c.Assumed = []string{
		"a message was submitted when it or a later one was first sent",
		"of a copy that nobody answered, or its answer, one was lost: both are taken alike",
		"the connection existed from the start; nothing is sent again within half a round trip, as the library has it",
	}
	if rate > 0 {
		c.InFrames, c.Assumed = true, append(c.Assumed, machine.OtherFramesAssume)
	}
	return c, nil
}

// frames returns a side's ticks, including those before the trace.
func (s *Stage) frames(x *machine.TraceSide, begin, end machine.Instant, rate float64,
	side machine.Side,
) *machine.Frames {
	if rate > 0 {
		return machine.OtherFrames(begin, end, rate, side)
	}
	n := x.Frames.Len()
	if n == 0 {
		return machine.EvenFrames(begin, end, float64(time.Second)/float64(riptide.UsualTick))
	}
	frames := machine.EvenFrames(begin, x.Frames.At(0).Add(-x.Tick/2), float64(time.Second)/float64(x.Tick))
	frames.Extend(x.Frames)
	frames.Extend(machine.EvenFrames(x.Frames.At(n-1).Add(x.Tick), end, float64(time.Second)/float64(x.Tick)))
	return frames
}

// asks returns what a side's application submitted.
func (s *Stage) asks(x *machine.TraceSide) (asks []machine.Ask) {
	most := 0
	for i := range x.Messages {
		most = max(most, (x.Messages[i].Bits+7)/8)
	}
	zeros := make([]byte, most)
	channels := map[machine.Mode]uint8{
		machine.ModeUnreliable: riptide.ChannelUnreliable,
		machine.ModeReliable:   riptide.ChannelReliable, machine.ModeNotify: riptide.ChannelNotify,
	}
	for i := range x.Messages {
		m := &x.Messages[i]
		channel, ok := channels[m.Mode]
		if !ok {
			continue
		}
		bits := max(m.Bits, 0)
		id := uint32(1) // the real id takes the same space, except in the newest dialects
		asks = append(asks,
			machine.Ask{
				At: m.Asked,
				In: machine.Submit{
					Channel: channel, Type: id | uint32(-bits&7)<<endpoint.TypeBits,
					Payload: zeros[:(bits+7)/8],
				},
				Message: i,
			})
	}
	slices.SortStableFunc(asks, func(a, b machine.Ask) int { return cmp.Compare(a.At, b.At) })
	return asks
}

// settings returns the settings of the captured connection: the library's.
func (s *Stage) settings(t *machine.Trace) []machine.Setting {
	near := 0
	if !t.Sides[0].Near {
		near = 1
	}
	b := s.versions[near].Behaviour
	rate := machine.Setting{
		Name: "rate", Unit: "/s", Value: math.Round(float64(time.Second) / float64(riptide.UsualTick)),
		Certainty: machine.Possible, Why: "the usual: its packets do not show it",
	}
	if tick := t.Sides[near].Tick; tick > 0 {
		rate.Value, rate.Certainty, rate.Why = math.Round(10*float64(time.Second)/float64(tick))/10, machine.Likely,
			"as its packets show"
	}
	return []machine.Setting{
		resendOf(&t.Sides[near], t.OneWay),
		{Name: "attempts", Value: float64(b.Limit), Certainty: machine.Likely, Why: "the library's"},
		rate,
	}
}

// resendOf returns the resend time: the library's, unless copies show another.
func resendOf(x *machine.TraceSide, oneWay time.Duration) machine.Setting {
	v := machine.Setting{
		Name: "resend", Unit: "rtt", Value: 1.2, Certainty: machine.Likely,
		Why: "the library's, of the smoothed round trip; 50 ms before that is known",
	}
	left := make(map[machine.Ref]machine.Instant, len(x.Sent))
	for i := range x.Sent {
		left[x.Sent[i].Ref] = x.Sent[i].Left
	}
	var steps []time.Duration
	for i := range x.Messages {
		m := &x.Messages[i]
		for n := 1; m.Mode == machine.ModeReliable && n < min(m.Attempts, machine.MessageFrames); n++ {
			steps = append(steps, left[m.Frames[n]].Sub(left[m.Frames[n-1]]))
		}
	}
	if len(steps) < 8 {
		return v
	}
	slices.Sort(steps)
	usual := steps[len(steps)/2]
	tick := max(x.Tick, riptide.UsualTick)
	// The smoothed round trip is that of the path and up to two ticks of waiting.
	low, high := riptide.ResendAfter(int(2*oneWay/time.Millisecond))-tick,
		riptide.ResendAfter(int((2*oneWay+2*tick)/time.Millisecond))+2*tick
	if usual >= low && usual <= high {
		return v
	}
	v.Unit, v.Value, v.Certainty, v.Why = "ms", math.Round(machine.Milliseconds(usual-x.Tick/2)), machine.Possible,
		"the time between its copies; the library's would be another"
	return v
}
