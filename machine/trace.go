package machine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Trace is what a capture shows of one flow: what both applications asked for,
// when, and what the network did meanwhile. A driver of references needs it to
// run the flow again under other settings (trace-driven simulation).
//
// Every instant is in the time of the side that it belongs to. Datagrams of a
// far side passed the tap OneWay after they left, so their instants are earlier
// by OneWay.
type Trace struct {
	Sides      [2]TraceSide
	Start, End Instant
	OneWay     time.Duration // half of the shortest round trip that passed the tap
}

// TraceSide is one end of a Trace.
type TraceSide struct {
	Near     bool
	Sent     []Transit // in order of Left
	Messages []TraceMessage
	Frames   *Frames       // when its game's frames came, as its packets show; nil when it answers at once
	Tick     time.Duration // the time between frames; 0 if unknown
}

// Transit is one datagram of a side, and what the network did to it.
type Transit struct {
	Left      Instant
	Arrives   Instant // when Fate is Yes
	Duplicate Instant // when the network's second copy arrived; 0 if there is none
	Ref       Ref     // zero when it never passed the tap
	Last      Ref     // of a packet in fragments: the frame of the last one
	Number    int64   // of the packet, unwrapped; -1 when the protocol does not number what it sends
	Length    int     // bytes
	Purpose
	Fate      Answer    // whether it arrived
	Certainty Certainty // of Fate
}

// SendsMost returns how many datagrams a run of the trace may send. Some
// settings send many times what was captured: it allows 64 times that, and half
// a million more.
func (t *Trace) SendsMost() int {
	return 1<<19 + 64*(len(t.Sides[A].Sent)+len(t.Sides[B].Sent))
}

// Role is what a datagram means to its receiver.
type Role uint8

const (
	RolePlain      Role = iota // its receiver sends no answer to it alone
	RolePacket                 // it has a number (EventSent), or is a further fragment of the datagram before it
	RoleAsks                   // its receiver answers each copy with one datagram
	RoleAnswers                // it answers a datagram of role RoleAsks
	RoleConnection             // it opens, keeps or closes the connection; it carries no message and answers none
)

// Purpose is what a datagram is for. An answer has the ID and Kind of what it
// answers.
type Purpose struct {
	Role Role
	Also bool // of an answer: it also names other datagrams that have arrived
	Kind uint8
	ID   uint32
}

// TraceMessage is one message that an application submitted.
type TraceMessage struct {
	Mode      Mode
	Channel   int
	Order     int64 // its position among what its sender submitted on the channel
	Type      uint32
	Bits      int     // of the body
	Block     int     // bytes; 0 if there is none
	Asked     Instant // when it was submitted: when it or a later one was first sent
	First     Instant // the latest instant at which it can have been first sent
	Settled   Instant // when its sender learned that it had arrived; 0 if never
	Attempts  int
	Delivered Answer
	At        Instant       // of delivery
	Wait      time.Duration // head-of-line blocking: complete at the receiver, or kept by the sender
	Certainty Certainty
	Frames    [MessageFrames]Ref
}

// Parameter is a setting of a protocol that a run can change.
type Parameter struct {
	Name        string   // "resend"
	Doc         string   // one sentence
	Unit        []string // the units that it accepts, the usual one first: "ms", "rtt", "/s", or "" for a plain number
	Whole       bool     // it accepts whole numbers only
	Least, Most float64
}

// Setting is a value of a parameter.
type Setting struct {
	Name      string
	Value     float64 // in Unit
	Unit      string
	Certainty Certainty // Certain when the user has set it
	Why       string    // how it is known
}

// String returns "50 ms", "1.5 RTT", "30/s" or "64".
func (s *Setting) String() string {
	n := strconv.FormatFloat(s.Value, 'f', -1, 64)
	switch s.Unit {
	case "ms":
		return n + " ms"
	case "rtt":
		return n + " RTT"
	}
	return n + s.Unit
}

// Duration returns a setting in milliseconds as a duration.
func (s *Setting) Duration() time.Duration { return time.Duration(s.Value * float64(time.Millisecond)) }

// Read parses a value of the parameter: "50ms", "0.1s", "1.5rtt", "30" or "64".
// It returns an error that says what it expects.
func (p *Parameter) Read(text string) (Setting, error) {
	s := Setting{Name: p.Name, Certainty: Certain, Why: "as asked"}
	wrong := func() (Setting, error) {
		return s, fmt.Errorf("%s=%s: expected %s", p.Name, text, p.expects())
	}
	found := false
	for _, u := range p.Unit {
		n := text
		switch u {
		case "ms":
			d, err := time.ParseDuration(text)
			if err != nil {
				continue
			}
			s.Value, s.Unit, found = Milliseconds(d), u, true
		default:
			var cut bool
			if n, cut = strings.CutSuffix(n, u); !cut && u == "rtt" {
				continue
			}
			v, err := strconv.ParseFloat(n, 64)
			if err != nil {
				continue
			}
			s.Value, s.Unit, found = v, u, true
		}
		if found {
			break
		}
	}
	if !found || !(s.Value >= p.Least && s.Value <= p.Most) || p.Whole && s.Value != float64(int64(s.Value)) {
		return wrong()
	}
	return s, nil
}

func (p *Parameter) expects() string {
	number := "a number"
	if p.Whole {
		number = "a whole number"
	}
	var forms []string
	for _, u := range p.Unit {
		var form string
		switch u {
		case "ms":
			form = "a time such as 50ms"
			if p.Whole {
				form = "a time in whole milliseconds such as 50ms"
			}
		case "rtt":
			form = "round trips such as 1.5rtt"
		case "/s":
			form, u = number+" a second such as 30", ""
		default:
			form = number
		}
		forms = append(forms, fmt.Sprintf("%s, from %g%s to %g%s", form, p.Least, u, p.Most, u))
	}
	return strings.Join(forms, "; or ")
}

// Usage returns an example of a setting: "resend=50ms".
func (p *Parameter) Usage() string {
	switch p.Unit[0] {
	case "ms":
		return p.Name + "=50ms"
	case "/s":
		return p.Name + "=30"
	}
	return fmt.Sprintf("%s=%g", p.Name, min(max(p.Least, 32), p.Most))
}

// Stage prepares runs of one captured flow under other settings.
type Stage interface {
	// Parameters lists the settings of this flow that a run can change.
	Parameters() []Parameter
	// Purpose returns what a datagram of the flow is for.
	Purpose(d *Datagram) Purpose
	// Order returns a message's position among what its sender submitted on its
	// channel.
	Order(m *Message) int64
	// Silence returns the longest time for which both endpoints can work and
	// send nothing. After a longer silence one of them has stopped, or the
	// capture has a gap.
	Silence() time.Duration
	// Prepare returns a run that has not started: two fresh references, and
	// what their applications ask for. Settings that are not in changed come
	// from the trace.
	Prepare(t *Trace, changed []Setting) (*Run, error)
}

// Opener is a Stage of a protocol whose connections begin with a message of
// their own.
type Opener interface {
	// Opens reports whether a datagram is such a message.
	Opens(d *Datagram) bool
}

// Run is one run of a flow before it starts: its two endpoints, and what their
// applications ask for.
type Run struct {
	Settings []Setting // all of them, changed or not
	Ends     [2]Endpoint
	Asks     [2][]Ask   // in order of At
	Frames   [2]*Frames // when each side's game reads its socket; nil: at once, and at deadlines
	// InFrames is set when the frames are not those of the capture. What was
	// submitted in a captured frame is then submitted in the next of these, and
	// latency starts there.
	InFrames bool
	Assumed  []string // the assumptions, as sentences for the reader
}

// Ask is one input from an application.
type Ask struct {
	At      Instant
	In      Input
	Message int // index in TraceSide.Messages; -1 if there is none
}

// Waiter is an Endpoint that measures head-of-line blocking: how long a
// delivered message had been complete while an earlier message held it.
type Waiter interface {
	// Waited returns that time for delivery n of the last step.
	Waited(n int) time.Duration
}

// OtherFramesAssume states what OtherFrames and Run.InFrames assume.
const OtherFramesAssume = "at another rate a message is submitted in the frames of that rate, and its latency counts " +
	"from there; how the frames of the two sides lie to each other changes, and comes to half a frame in the mean"

// Weigher is an Endpoint whose transmissions represent other packets on the
// wire.
type Weigher interface {
	// Weigh returns the size in bytes of the packet that b represents.
	Weigh(b []byte) int
}

// SpreadHeld estimates when messages were submitted that their protocol held
// back before it first sent them. A row of held messages lies between two
// messages that were not held. SpreadHeld spaces them evenly, from the
// submission of the one before the row to the first sending of the one after
// it. At the end of the list, the row ends with its own last message.
//
// messages are in the order of submission. SpreadHeld does not call held for
// the first one.
func SpreadHeld(messages []TraceMessage, held func(i int) bool) {
	for i := 0; i < len(messages); i++ {
		if i == 0 || !held(i) {
			continue
		}
		end := i
		for end < len(messages) && held(end) {
			end++
		}
		from, to := messages[i-1].Asked, messages[end-1].First
		if end < len(messages) {
			to = messages[end].First
		}
		n := Instant(end - i + 1)
		for k := i; k < end; k++ {
			messages[k].Asked = min(messages[k].First, from+(to-from)*Instant(k-i+1)/n)
		}
		i = end
	}
}
