package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Stage prepares runs of a flow with reliable messages under other settings.
// Packets leave when they left in the capture, or at another rate. They carry
// what the article's rules then make due.
//
// The capture gives when each packet left and its size beside its messages. It
// also gives when each message was first carried. Which packet carries a
// message again depends on the settings of the run.
type Stage struct {
	rules   *gaffer.Rules
	simple  bool // each packet carries all messages from the oldest unacked one on
	fixed   int  // bits of a message section without messages
	lanes   []lanePlan
	netcode *wire.Profile // of a netcode flow around it; nil if there is none
	known   bool          // the lanes have the game's own settings, not the usual ones
	resend  wire.Resend   // the policy that the profile sets, if it sets one
}

// New returns the stage of a flow whose profile has a message section. It
// returns an error when the profile has none.
func New(p *wire.Profile) (*Stage, error) {
	m := &p.Messages
	if m.Form == wire.MessagesNone || !p.HasAcks() {
		return nil, errors.New("its packets carry no messages that a profile describes, so nothing is sent again")
	}
	s := &Stage{rules: gaffer.RulesOf(p), simple: m.Form == wire.MessagesSimple, fixed: m.CountBits()}
	plan := lanePlan{
		channel: -1, sendQueue: orUsual(m.SendQueue), window: orUsual(m.ReceiveQueue), most: m.MaxPerPacket,
		budget: 8000, head: m.TypeBits(),
	}
	if s.simple {
		s.fixed += 2 * wire.MessageIDBits
	} else {
		plan.head += wire.MessageIDBits
	}
	plan.resend.After = wire.ResendUsual
	if s.resend = m.Resend; s.resend.IsSet() {
		plan.resend = s.resend
	}
	s.lanes = []lanePlan{plan}
	return s, nil
}

// NewYojimboStage returns the stage of a flow that can be decrypted. settings
// holds what an earlier run found out about the game's configuration.
func NewYojimboStage(l yojimbo.Layers, settings any) (*Stage, error) {
	config := l.Connection
	if i, ok := settings.(*yojimbo.Inference); ok && config == nil {
		config = i.Config
	}
	if config == nil {
		return nil, errors.New("how its packets carry messages is not known: no configuration was given, and none could be " +
			"inferred")
	}
	s := &Stage{rules: gaffer.RulesOf(l.Reliable), known: l.Connection != nil, netcode: l.Netcode}
	for i := range config.Channels {
		c := &config.Channels[i]
		if c.Type != wire.ReliableOrdered {
			continue
		}
		plan := lanePlan{
			channel: i, sendQueue: orUsual(c.SendQueue), window: orUsual(c.ReceiveQueue), most: c.MaxMessages,
			budget: 8 * c.PacketBudget,
			head:   8, first: wire.MessageIDBits, fragment: c.BlockFragmentSize,
			blockResend: seconds(c.BlockResendTime, 250*time.Millisecond),
		}
		if plan.most == 0 {
			plan.most = 256
		}
		if plan.budget == 0 {
			plan.budget = 8 * 8192
		}
		plan.resend.After = seconds(c.ResendTime, wire.ResendUsual)
		plan.window = min(plan.window, plan.sendQueue)
		s.lanes = append(s.lanes, plan)
	}
	if len(s.lanes) == 0 {
		return nil, errors.New("it has no reliable channel, so nothing is sent again")
	}
	return s, nil
}

func orUsual(n int) int {
	if n == 0 {
		return 1024
	}
	return n
}

func seconds(s float64, usual time.Duration) time.Duration {
	if s <= 0 {
		return usual
	}
	return time.Duration(s * float64(time.Second))
}

// Parameters are the settings that a run can change.
var Parameters = []machine.Parameter{
	{
		Name: "resend", Doc: "time from a message's last packet until it goes into another", Unit: []string{"ms", "rtt"},
		Least: 0.1, Most: 60000,
	},
	{
		Name: "window", Doc: "messages that a receiver can hold ahead of the next one: no message beyond goes out",
		Unit: []string{""}, Whole: true, Least: 1, Most: 1 << (wire.MessageIDBits - 1),
	},
	{
		Name: "acks", Doc: "packets that a header's ack_bits speak of, a multiple of 8", Unit: []string{""}, Whole: true,
		Least: 8, Most: 64,
	},
	{Name: "rate", Doc: "packets a second that each side sends", Unit: []string{"/s"}, Least: 0.1, Most: 10000},
}

// Parameters lists the settings that the flow has.
func (s *Stage) Parameters() []machine.Parameter {
	if s.simple {
		return Parameters[1:] // every packet carries all unacked messages
	}
	return Parameters
}

// Purpose distinguishes the family's packets from netcode's other datagrams.
// The family's packets have numbers, and headers report which of them arrived.
func (s *Stage) Purpose(d *machine.Datagram) machine.Purpose {
	if s.netcode == nil {
		return machine.Purpose{Role: machine.RolePacket}
	}
	var pk wire.Packet
	if s.netcode.Parse(d.Bytes, d.Length, &pk) != nil || pk.NetcodeType != wire.NetcodePayload {
		return machine.Purpose{Role: machine.RoleConnection}
	}
	return machine.Purpose{Role: machine.RolePacket}
}

// Silence is the time-out of the article, and yojimbo's default: a working side
// sends a packet in each frame.
func (s *Stage) Silence() time.Duration { return 10 * time.Second }

// Order returns a message's id.
func (s *Stage) Order(m *machine.Message) int64 { return m.ID }

// Prepare returns a run that has not started: see machine.Stage.
func (s *Stage) Prepare(t *machine.Trace, changed []machine.Setting) (*machine.Run, error) {
	run := &machine.Run{}
	rules, lanes := *s.rules, slices.Clone(s.lanes)
	extra := 0
	rate := 0.0
	settings, err := s.settings(t, changed)
	if err != nil {
		return nil, err
	}
	run.Settings = settings
	own := s.lanes[0].resend.After // the resend time of the capture
	if v := s.resendOf(t); v.Unit == "ms" {
		own = v.Duration()
	}
	for i := range run.Settings {
		v := &run.Settings[i]
		switch v.Name {
		case "resend":
			changes := slices.ContainsFunc(changed, func(c machine.Setting) bool { return c.Name == v.Name })
			if s.resend.IsSet() && !changes {
				continue // the lanes have it
			}
			for k := range lanes {
				lanes[k].resend = wire.Resend{After: v.Duration()}
				if v.Unit == "rtt" {
					lanes[k].resend = wire.Resend{Policy: wire.ResendRTT, After: wire.ResendUsual, Times: v.Value}
				}
			}
		case "window":
			for k := range lanes {
				lanes[k].window = int(v.Value)
				lanes[k].sendQueue = max(lanes[k].sendQueue, lanes[k].window)
			}
		case "acks":
			if int(v.Value) != rules.AckBits {
				extra = (int(v.Value) - rules.AckBits) / 8
				rules.AckBits = int(v.Value)
			}
		case "rate":
			if v.Certainty == machine.Certain {
				rate = v.Value
			}
		}
	}
	for i := range t.Sides {
		x := &t.Sides[i]
		rest := s.beside(x)
		if n := len(x.Sent); rate > 0 && n > 0 {
			// A run cannot send more than this: count before making the frames.
			most := float64(t.SendsMost())
			if seconds := x.Sent[n-1].Left.Sub(x.Sent[0].Left).Seconds(); seconds*rate > most {
				return nil, fmt.Errorf("at rate=%g a side would send more than %.0f packets in %.0f s: choose a lower rate, or "+
					"cut a part of the capture out", rate, most, seconds)
			}
		}
		asks := s.packets(x, rest, rate, machine.Side(i))
		run.Frames[i] = &machine.Frames{}
		for k := range asks {
			run.Frames[i].Add(asks[k].At)
		}
		run.Asks[i] = append(asks, s.messages(t, machine.Side(i), own)...)
		// A frame's packet goes last, so that it carries what was submitted in
		// the frame.
		slices.SortStableFunc(run.Asks[i], func(a, b machine.Ask) int {
			if a.At != b.At {
				return cmp.Compare(a.At, b.At)
			}
			return boolOrder(a.Message < 0, b.Message < 0)
		})
		run.Ends[i] = newSizeEndpoint(machine.Side(i), &rules, lanes, s.simple, s.fixed, extra)
	}
	run.Assumed = append(run.Assumed,
		"a message was submitted when it or a later one was first sent, unless the window held it")
	if !s.known {
		run.Assumed = append(run.Assumed, "queues and packet budgets are the usual ones where no profile says otherwise")
	}
	if rate > 0 {
		run.InFrames, run.Assumed = true, append(run.Assumed, machine.OtherFramesAssume)
	}
	return run, nil
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// settings returns all settings of a run, with the changed ones in place.
func (s *Stage) settings(t *machine.Trace, changed []machine.Setting) (all []machine.Setting, err error) {
	for _, p := range s.Parameters() {
		k := slices.IndexFunc(changed, func(c machine.Setting) bool { return c.Name == p.Name })
		if k >= 0 {
			if p.Name == "acks" && int(changed[k].Value)%8 != 0 {
				return nil, fmt.Errorf("acks=%g: expected a multiple of 8", changed[k].Value)
			}
			all = append(all, changed[k])
			continue
		}
		v := machine.Setting{Name: p.Name, Unit: p.Unit[0], Certainty: machine.Possible, Why: "the usual"}
		switch p.Name {
		case "resend":
			v = s.resendOf(t)
		case "window":
			v.Value = float64(s.lanes[0].window)
		case "acks":
			v.Value, v.Certainty, v.Why = float64(s.rules.AckBits), machine.Likely, "as its headers are"
		case "rate":
			v.Value, v.Certainty, v.Why = math.Round(10*rateOf(&t.Sides[0]))/10, machine.Likely, "as side a sent"
		}
		all = append(all, v)
	}
	return all, nil
}

// beside returns the size in bytes of each packet without its messages.
func (s *Stage) beside(x *machine.TraceSide) []int {
	bits := make([]int, len(x.Sent))
	first := make([]bool, len(x.Sent))
	index := make(map[machine.Ref]int, len(x.Sent))
	for i := range x.Sent {
		index[x.Sent[i].Ref] = i
		if last := x.Sent[i].Last; last != 0 {
			index[last] = i
		}
	}
	for k := range x.Messages {
		m := &x.Messages[k]
		l := s.lane(m.Channel)
		if l == nil {
			continue
		}
		for n := range min(m.Attempts, machine.MessageFrames) {
			i, ok := index[m.Frames[n]]
			if !ok || m.Frames[n] == 0 {
				continue
			}
			if !first[i] {
				first[i] = true
				bits[i] += l.first
			}
			if m.Block > 0 {
				bits[i] += l.head + 8*min(m.Block, l.fragment)
			} else {
				bits[i] += l.head + max(m.Bits, 0)
			}
		}
	}
	rest := make([]int, len(x.Sent))
	usual := 0
	for i := range x.Sent {
		if x.Sent[i].Ref != 0 {
			usual = max(0, x.Sent[i].Length-(s.fixed+bits[i]+7)/8)
		}
		rest[i] = usual // a packet that was lost before the tap has the size of the one before it
	}
	// The trace does not list every packet that carried a fragment of a block.
	if slices.ContainsFunc(x.Messages, func(m machine.TraceMessage) bool {
		return m.Block > 0 &&
			m.Attempts > machine.MessageFrames
	}) {
		sorted := slices.Sorted(slices.Values(rest))
		for i := range rest {
			rest[i] = min(rest[i], 2*sorted[len(sorted)/2])
		}
	}
	return rest
}

func (s *Stage) lane(channel int) *lanePlan {
	for i := range s.lanes {
		if s.lanes[i].channel == channel {
			return &s.lanes[i]
		}
	}
	return nil
}

// packets returns the requests to send packets, when they left or at a rate.
func (s *Stage) packets(x *machine.TraceSide, rest []int, rate float64, side machine.Side) (asks []machine.Ask) {
	most := 0
	for _, n := range rest {
		most = max(most, n)
	}
	zeros := make([]byte, most)
	ask := func(at machine.Instant, i int) {
		asks = append(asks, machine.Ask{
			At: at, In: machine.Submit{Channel: messages.ChannelPacket, Payload: zeros[:rest[i]]},
			Message: -1,
		})
	}
	if rate <= 0 || len(x.Sent) == 0 {
		for i := range x.Sent {
			ask(x.Sent[i].Left, i)
		}
		return asks
	}
	i := 0
	frames := machine.OtherFrames(x.Sent[0].Left, x.Sent[len(x.Sent)-1].Left, rate, side)
	asks = make([]machine.Ask, 0, frames.Len())
	for k := range frames.Len() {
		at := frames.At(k)
		for i+1 < len(x.Sent) && x.Sent[i+1].Left <= at {
			i++
		}
		ask(at, i)
	}
	return asks
}

// messages returns the submissions of a side's messages.
func (s *Stage) messages(t *machine.Trace, side machine.Side, resend time.Duration) (asks []machine.Ask) {
	x := &t.Sides[side]
	for lane := range s.lanes {
		l := &s.lanes[lane]
		var own []machine.TraceMessage
		var index []int
		for k := range x.Messages {
			if m := &x.Messages[k]; m.Mode == machine.ModeReliable && m.Channel == l.channel {
				own, index = append(own, *m), append(index, k)
			}
		}
		if !x.Near && !s.simple && resend > 0 {
			placeUnseen(own, x, resend)
		}
		machine.SpreadHeld(own, l.heldBack(own, x.Sent))
		for k := range own {
			m := &own[k]
			x.Messages[index[k]].Asked = m.Asked
			in := machine.Submit{Channel: uint8(lane + 1), Type: uint32(max(m.Bits, 0))}
			if m.Block > 0 {
				in.Payload = make([]byte, min(m.Block, messages.TransferMost))
			}
			asks = append(asks, machine.Ask{At: m.Asked, In: in, Message: index[k]})
		}
	}
	return asks
}

// heldBack returns a function that reports whether the window held a message
// back. It held the message when the packet before the message's first one
// left, if the message one window earlier was not settled yet.
func (l *lanePlan) heldBack(own []machine.TraceMessage, sent []machine.Transit) func(int) bool {
	settled := make([]machine.Instant, len(own)) // when all messages up to this one were settled
	var latest machine.Instant
	for i := range own {
		at := own[i].Settled
		if at == 0 {
			at = math.MaxInt64
		}
		latest = max(latest, at)
		settled[i] = latest
	}
	return func(i int) bool {
		if i < l.window {
			return false
		}
		k, _ := slices.BinarySearchFunc(sent,
			own[i].Asked, func(s machine.Transit, at machine.Instant) int { return cmp.Compare(s.Left, at) })
		return k > 0 && settled[i-l.window] > sent[k-1].Left
	}
}
