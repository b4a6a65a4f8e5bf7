package machine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Trace is what a capture shows of one flow as a driver of references needs it
// who runs the flow again under other settings (trace-driven simulation): what
// the applications asked for and when, and what the network did meanwhile. Every
// instant is the named side's own: what passed the tap of a far side is put back
// by OneWay.
type Trace struct {
	Sides      [2]TraceSide
	Start, End Instant
	OneWay     time.Duration // half of the shortest round trip that passed the tap
}

// TraceSide is one end of a Trace.
type TraceSide struct {
	Near     bool
	Sent     []Transit // by Left
	Messages []TraceMessage
	Frames   *Frames       // when its game's frames came, as its packets show; nil where it answers at once
	Tick     time.Duration // the time between them; 0 unknown
}

// Transit is one datagram of a side and what the network made of it.
type Transit struct {
	Left    Instant
	Arrives Instant // where Fate is Yes
	Again   Instant // when a copy that the network made arrived; 0 for none
	Ref     Ref     // zero where it never passed the tap
	Last    Ref     // of one that travelled in pieces: the frame of the last
	Number  int64   // of the packet, unwrapped; -1 where the protocol does not number what it sends
	Length  int     // bytes
	Purpose
	Fate      Answer    // whether it arrived
	Certainty Certainty // of Fate
}

// SendsMost bounds what a run of the trace may send, with room for settings that
// send many times what was captured: 64 times, and half a million beside.
func (t *Trace) SendsMost() int {
	return 1<<19 + 64*(len(t.Sides[A].Sent)+len(t.Sides[B].Sent))
}

// Role says what a datagram is to the one that receives it.
type Role uint8

const (
	RolePlain      Role = iota // nobody answers it by itself
	RolePacket                 // it has a number (EventSent), or is a further piece of the one before it that has
	RoleAsks                   // its receiver answers every copy by one datagram
	RoleAnswers                // it is such an answer
	RoleConnection             // of the connection's own life: no message, and no answer to one
)

// Purpose is what a protocol tells of a datagram. An answer has the ID and Kind of
// what it answers.
type Purpose struct {
	Role Role
	Also bool // of an answer: it names what else has arrived, too
	Kind uint8
	ID   uint32
}

// TraceMessage is one message that an application submitted.
type TraceMessage struct {
	Mode      Mode
	Channel   int
	Order     int64 // its place among what its sender submitted on the channel
	Type      uint32
	Bits      int     // of the body
	Block     int     // bytes; 0 for none
	Asked     Instant // when it was submitted: when it or a later one was first sent
	First     Instant // when it was first sent, at the latest
	Settled   Instant // when its sender learned that it had arrived; 0 for never
	Attempts  int
	Delivered Answer
	At        Instant       // of delivery
	Wait      time.Duration // head-of-line: complete at the receiver, or kept by the sender
	Certainty Certainty
	Frames    [MessageFrames]Ref
}

// Parameter is something of a protocol that can be set otherwise.
type Parameter struct {
	Name        string   // "resend"
	Doc         string   // one sentence
	Unit        []string // those that it takes, the usual one first: "ms", "rtt", "/s", "" for a plain number
	Whole       bool     // it takes whole numbers only
	Least, Most float64
}

// Setting is a value of a parameter.
type Setting struct {
	Name      string
	Value     float64 // in Unit
	Unit      string
	Certainty Certainty // Certain where the user has set it
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

// Duration returns a setting in ms as a time.
func (s *Setting) Duration() time.Duration { return time.Duration(s.Value * float64(time.Millisecond)) }

// Read reads a value for the parameter: "50ms", "0.1s", "1.5rtt", "30" or "64".
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

// Usage returns the form of a setting: "resend=50ms".
func (p *Parameter) Usage() string {
	switch p.Unit[0] {
	case "ms":
		return p.Name + "=50ms"
	case "/s":
		return p.Name + "=30"
	}
	return fmt.Sprintf("%s=%g", p.Name, min(max(p.Least, 32), p.Most))
}

// Stage lets references act out a Trace again.
type Stage interface {
	// Parameters lists what can be set otherwise for this flow.
	Parameters() []Parameter
	// Purpose tells what a datagram of the flow is to its receiver.
	Purpose(d *Datagram) Purpose
	// Order returns a message's place among what its sender submitted on its channel.
	Order(m *Message) int64
	// Silence returns the longest time for which a flow can be silent while both of
	// its endpoints are at work: beyond it one of them has stopped, or the capture has
	// a gap.
	Silence() time.Duration
	// Prepare returns two fresh references and what their applications ask for, with
	// the changed settings; what is not changed is as the trace shows it.
	Prepare(t *Trace, changed []Setting) (*Run, error)
}

// Opener is a Stage of a protocol whose connections begin with a message of their own.
type Opener interface {
	// Opens reports whether a datagram is such a one.
	Opens(d *Datagram) bool
}

// Run is what a Stage puts on.
type Run struct {
	Settings []Setting // all, the changed ones too
	Ends     [2]Endpoint
	Asks     [2][]Ask   // by At
	Frames   [2]*Frames // when each side's game looks at its socket; nil: at once, and at deadlines
	// InFrames is set where the frames are not the captured ones: what was submitted
	// in a captured frame is submitted in one of these, and latency counts from there.
	InFrames bool
	Assumed  []string // what had to be taken for granted, in words
}

// Ask is one input that an application gives.
type Ask struct {
	At      Instant
	In      Input
	Message int // of TraceSide.Messages; -1 for none
}

// Waiter is an Endpoint that can tell how long what it delivered in its last
// step had lain complete, held by an earlier message.
type Waiter interface {
	// Waited returns it for delivery n of the last step.
	Waited(n int) time.Duration
}

// OtherFramesAssume says what OtherFrames and Run.InFrames take for granted.
const OtherFramesAssume = "at another rate a message is submitted in the frames of that rate, and its latency counts " +
	"from there; how the frames of the two sides lie to each other changes, and comes to half a frame in the mean"

// Weigher is an Endpoint whose transmissions stand for others on the wire.
type Weigher interface {
	// Weigh returns the bytes that one stands for.
	Weigh(b []byte) int
}

// SpreadHeld gives messages that their protocol held back a time of submission:
// they were submitted before they were first sent, and evenly, for all that is
// known, between the last one before them that was not held and the next one
// after them. Of messages in the order of submission; held is not asked of the
// first one.
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
