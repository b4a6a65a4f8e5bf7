package whatif

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Stage prepares runs of a flow with other times between copies and other
// limits of copies. Two reference endpoints submit what the captured ones
// submitted.
type Stage struct {
	profile wire.Profile
	pk      wire.Packet
}

// New returns the stage of a flow.
func New(c srdp.Config) *Stage { return &Stage{profile: c.Profile} }

// Parameters are the settings that a run can change.
var Parameters = []machine.Parameter{
	{Name: "resend", Doc: "time between the copies of a packet", Unit: []string{"ms"}, Whole: true, Least: 1, Most: 60000},
	{
		Name: "repeats", Doc: "copies of a packet at most; 0 until it is acknowledged", Unit: []string{""}, Whole: true,
		Least: 0, Most: 255,
	},
}

// Parameters lists the settings that a run can change.
func (s *Stage) Parameters() []machine.Parameter { return Parameters }

// Purpose distinguishes data from acknowledgements, and both from other
// datagrams.
func (s *Stage) Purpose(d *machine.Datagram) machine.Purpose {
	switch {
	case !s.profile.Fits(d.Bytes, max(d.Length, len(d.Bytes)), &s.pk):
		return machine.Purpose{Role: machine.RoleConnection}
	case s.pk.Ack:
		return machine.Purpose{Role: machine.RoleAnswers, ID: uint32(s.pk.ID)}
	}
	return machine.Purpose{Role: machine.RoleAsks, ID: uint32(s.pk.ID)}
}

// Order returns a message's packet id.
func (s *Stage) Order(m *machine.Message) int64 { return m.ID }

// Silence is longer than any time between two copies that a setting allows: an
// endpoint sends nothing else on its own.
func (s *Stage) Silence() time.Duration { return 2 * time.Minute }

// stageTimes is what one side's copies show of its settings.
type stageTimes struct {
	usual   time.Duration // between copies; 0 if nothing was sent again
	adapts  bool          // the library chooses it from packet to packet
	repeats int
}

// Prepare returns a run that has not started: see machine.Stage.
func (s *Stage) Prepare(t *machine.Trace, changed []machine.Setting) (*machine.Run, error) {
	run := &machine.Run{}
	var times [2]stageTimes
	for i := range times {
		times[i] = timesOf(&t.Sides[i])
	}
	near := 0
	if !t.Sides[0].Near {
		near = 1
	}
	run.Settings = []machine.Setting{resendSetting(&times[near]), repeatsSetting(&times[near])}
	for _, v := range changed {
		k := slices.IndexFunc(run.Settings, func(o machine.Setting) bool { return o.Name == v.Name })
		run.Settings[k] = v
		for i := range times {
			switch v.Name {
			case "resend":
				times[i].usual, times[i].adapts = v.Duration(), false
			case "repeats":
				times[i].repeats = int(v.Value)
			}
		}
	}
	self := [2]wire.Address{{IP: [4]byte{10, 0, 0, 1}, Port: 1}, {IP: [4]byte{10, 0, 0, 2}, Port: 2}}
	for i := range run.Ends {
		x := &t.Sides[i]
		o := endpoint.Options{Profile: &s.profile, Side: machine.Side(i), Self: self[i]}
		e, err := endpoint.New(o)
		if err != nil {
			return nil, err
		}
		if s.profile.Form == wire.Proxied {
			if err := e.Introduce(0, self[1-i]); err != nil {
				return nil, err
			}
		}
		run.Ends[i], run.Frames[i] = e, x.Frames
		run.Asks[i] = s.asks(x, &times[i])
	}
	run.Assumed = []string{
		"a packet was submitted when it or a later one was first sent; one that had to wait for the order, evenly between " +
			"its neighbours",
		"of a copy that nobody answered, or its answer, one was lost: both are taken alike",
	}
	return run, nil
}

// asks returns what a side's application submitted.
func (s *Stage) asks(x *machine.TraceSide, times *stageTimes) (asks []machine.Ask) {
	s.spread(x)
	most := 0
	for i := range x.Messages {
		most = max(most, x.Messages[i].Bits/8)
	}
	zeros := make([]byte, most)
	for i := range x.Messages {
		m := &x.Messages[i]
		r := srdp.Request{
			Bytes: zeros[:max(m.Bits, 0)/8], Flags: uint8(m.Type) & (s.profile.Order | s.profile.DontDuplicate),
			Repeats: uint8(times.repeats),
		}
		if !times.adapts {
			r.Timeout = times.usual
		}
		asks = append(asks, machine.Ask{At: m.Asked, In: r.Submit(), Message: i})
	}
	slices.SortStableFunc(asks, func(a, b machine.Ask) int { return int(min(max(a.At-b.At, -1), 1)) })
	return asks
}

// spread estimates when ordered packets were submitted that left as soon as the
// packet before them was settled: they had waited for it.
func (s *Stage) spread(x *machine.TraceSide) {
	var own []machine.TraceMessage
	var index []int
	for i := range x.Messages {
		if m := &x.Messages[i]; uint8(m.Type)&s.profile.Order != 0 {
			own, index = append(own, *m), append(index, i)
		}
	}
	machine.SpreadHeld(own, func(i int) bool {
		before := &own[i-1]
		since := own[i].First.Sub(before.Settled)
		return before.Settled != 0 && since >= -orderSlack && since < orderSlack+x.Tick &&
			own[i].First.Sub(before.First) > x.Tick
	})
	for k, i := range index {
		m := &x.Messages[i]
		m.Asked, m.Wait = own[k].Asked, own[k].First.Sub(own[k].Asked)
	}
}

// orderSlack is how soon after the acknowledgement of the one before it a packet
// leaves that waited for that.
const orderSlack = 3 * time.Millisecond

// timesOf estimates a side's settings from its copies.
func timesOf(x *machine.TraceSide) (s stageTimes) {
	left := make(map[machine.Ref]machine.Instant, len(x.Sent))
	for i := range x.Sent {
		left[x.Sent[i].Ref] = x.Sent[i].Left
	}
	var steps []time.Duration
	ends := map[int]int{}
	for i := range x.Messages {
		m := &x.Messages[i]
		for n := 1; n < min(m.Attempts, machine.MessageFrames); n++ {
			steps = append(steps, left[m.Frames[n]].Sub(left[m.Frames[n-1]]))
		}
		if m.Settled == 0 && m.Delivered != machine.Yes {
			ends[m.Attempts]++
		}
	}
	for n, count := range ends {
		if count > max(1, len(x.Messages)/100) &&
			(s.repeats == 0 || count > ends[s.repeats] || count == ends[s.repeats] && n > s.repeats) {
			s.repeats = min(n, 255)
		}
	}
	if len(steps) == 0 {
		return s
	}
	slices.Sort(steps)
	// Copies may be lost before the tap. Steps twice as long then include a
	// lost copy.
	sum, n := time.Duration(0), 0
	for ; n < len(steps) && steps[n] <= steps[len(steps)/4]*7/4; n++ {
		sum += steps[n]
	}
	s.usual = sum / time.Duration(max(n, 1))
	if s.usual > x.Tick {
		s.usual -= x.Tick / 2 // the timeout ended somewhere in the frame before: half a frame earlier on average
	}
	low, high := steps[len(steps)/10], steps[len(steps)/2]
	s.adapts = high-low > max(34*time.Millisecond, s.usual/4)
	return s
}

func resendSetting(s *stageTimes) machine.Setting {
	v := machine.Setting{
		Name: "resend", Unit: "ms", Value: math.Round(machine.Milliseconds(s.usual)),
		Certainty: machine.Likely, Why: "the time between its copies",
	}
	switch {
	case s.usual == 0:
		v.Value, v.Certainty, v.Why = 500, machine.Possible, "the reference's own choice: nothing was sent again"
	case s.adapts:
		v.Certainty, v.Why = machine.Possible,
			"about: its library chooses it from packet to packet, and so does the reference"
	}
	return v
}

func repeatsSetting(s *stageTimes) machine.Setting {
	v := machine.Setting{
		Name: "repeats", Value: float64(s.repeats), Certainty: machine.Possible,
		Why: "no packet was given up",
	}
	if s.repeats > 0 {
		v.Certainty, v.Why = machine.Likely, fmt.Sprintf("packets that nobody acknowledged were sent %d times", s.repeats)
	}
	return v
}
