package endpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// three is a game with three types of messages. They have 96 bits, 7 bits, and 5 bits
// plus 11 for each item that these count.
var three = gaffertest.Schema(`
messages:
  0: {name: Wide, fields: [{name: v, type: array, count: 3, item: {type: bits, bits: 32}}]}
  1: {name: Seven, fields: [{name: v, type: bits, bits: 7}]}
  2: {name: Many, fields: [{name: v, type: array, min: 0, max: 31, item: {type: bits, bits: 11}}]}
`)

func newTalker(t *testing.T, form wire.MessageForm, types *schema.Schema, m messages.Options) *endpoint.Endpoint {
	t.Helper()
	p := gaffertest.Builtin("article")
	p.Messages = wire.MessageSection{Form: form, Types: len(types.Messages), MaxPerPacket: 4, Bodies: types}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := endpoint.New(endpoint.Options{Profile: p, Rules: gaffer.RulesOf(p), EventClock: true, Messages: &m})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// do steps e. It returns the resulting datagram, if any, and the delivered messages as
// text.
func do(t *testing.T, e *endpoint.Endpoint, at time.Duration, in machine.Input) (datagram []byte, delivered string) {
	t.Helper()
	var out machine.Effects
	if err := e.Step(machine.Instant(at), in, &out); err != nil {
		t.Fatal(err)
	}
	for _, d := range out.Deliver {
		if d.Channel == messages.ChannelMessage {
			delivered += fmt.Sprintf("%d:%x ", d.ID, d.Payload)
		}
	}
	if len(out.Transmit) > 0 {
		datagram = out.Transmit[0].Bytes
	}
	return datagram, strings.TrimSpace(delivered)
}

func say(t *testing.T, e *endpoint.Endpoint, b byte) {
	t.Helper()
	do(t, e, 0, machine.Submit{Channel: messages.ChannelMessage, Payload: []byte{b}})
}

// ids returns the message ids of a datagram, decoded by hand:
//
//	[header 8 bytes][count 3 bits]{[id 16 bits][body 8 bits]}
func ids(datagram []byte) (out []uint64) {
	r := bits.NewReader(datagram[8:])
	n, _ := r.Bits(3)
	for range n {
		id, _ := r.Bits(16)
		r.Bits(8)
		out = append(out, id)
	}
	return out
}

// TestMessageBytes pins the section's bits, laid out by hand.
func TestMessageBytes(t *testing.T) {
	byID := newTalker(t, wire.MessagesByID, three, messages.Options{FirstID: 0xabcd})
	do(t, byID, 0, machine.Submit{Channel: messages.ChannelMessage, Type: 1, Payload: []byte{0x55}})
	got, _ := do(t, byID, 0, machine.Submit{Payload: []byte{0xee, 0xff}})
	// 28 bits, low first, padded to 32:
	//
	//	count 1 in 3 bits (0 to 4) | id abcd in 16 | type 1 in 2 (0 to 2) | body 55 in 7
	v := uint32(1) | 0xabcd<<3 | 1<<19 | 0x55<<21
	want := []byte{0, 0, 0xff, 0xff, 0, 0, 0, 0, byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), 0xee, 0xff}
	if fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want) {
		t.Errorf("by id: %x, expected %x", got, want)
	}
	simple := newTalker(t, wire.MessagesSimple, gaffertest.Tiny, messages.Options{FirstID: 7})
	say(t, simple, 0xaa)
	say(t, simple, 0xbb)
	got, _ = do(t, simple, 0, machine.Submit{})
	// The ack is 6: nothing was received, and the first id is 7. One type takes no bits.
	//
	//	ack 6 in 16 bits | count 2 in 3 | start 7 in 16 | body aa in 8 | body bb in 8
	v64 := uint64(6) | 2<<16 | 7<<19 | 0xaa<<35 | 0xbb<<43
	want = []byte{0, 0, 0xff, 0xff, 0, 0, 0, 0}
	for i := range 7 {
		want = append(want, byte(v64>>(8*i)))
	}
	if fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want) {
		t.Errorf("simple: %x, expected %x", got, want)
	}
}

// TestResendTimes checks for each policy when a message is sent again.
func TestResendTimes(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		resend wire.Resend
		want   string // the 10 ms frames in which the message is sent
	}{
		{"fixed", wire.Resend{}, "0 100 200 300 400 500"},
		{
			"backoff",
			wire.Resend{Policy: wire.ResendBackoff, After: 50 * ms, Times: 2, Most: 200 * ms},
			"0 50 150 350 550",
		},
		{"rtt unknown", wire.Resend{Policy: wire.ResendRTT, After: 120 * ms, Times: 2}, "0 120 240 360 480"},
	} {
		e := newTalker(t, wire.MessagesByID, gaffertest.Tiny, messages.Options{Resend: c.resend})
		say(t, e, 1)
		var sent []string
		for at := 0 * ms; at < 600*ms; at += 10 * ms {
			if d, _ := do(t, e, at, machine.Submit{}); len(ids(d)) > 0 {
				sent = append(sent, fmt.Sprint(at.Milliseconds()))
			}
		}
		if got := strings.Join(sent, " "); got != c.want {
			t.Errorf("%s: sent at %s ms, expected %s", c.name, got, c.want)
		}
	}
	// A round trip of 40 ms makes 2.5 of them 100 ms.
	a := newTalker(t, wire.MessagesByID, gaffertest.Tiny,
		messages.Options{Resend: wire.Resend{Policy: wire.ResendRTT, After: time.Second, Times: 2.5}})
	b := newTalker(t, wire.MessagesByID, gaffertest.Tiny, messages.Options{})
	d, _ := do(t, a, 0, machine.Submit{})
	do(t, b, 20*ms, machine.Arrive{Bytes: d})
	d, _ = do(t, b, 20*ms, machine.Submit{})
	do(t, a, 40*ms, machine.Arrive{Bytes: d})
	say(t, a, 1)
	var sent []string
	for at := 40 * ms; at < 400*ms; at += 10 * ms {
		if d, _ := do(t, a, at, machine.Submit{}); len(ids(d)) > 0 {
			sent = append(sent, fmt.Sprint(at.Milliseconds()))
		}
	}
	if got := strings.Join(sent, " "); got != "40 140 240 340" {
		t.Errorf("2.5 round trips of 40 ms: sent at %s", got)
	}
}

// TestWindowRule: no id at or beyond the oldest unacked one plus the receiver's buffer
// is sent.
func TestWindowRule(t *testing.T) {
	e := newTalker(t, wire.MessagesByID, gaffertest.Tiny,
		messages.Options{ReceiveBuffer: 6, Resend: wire.Resend{After: time.Hour}})
	for i := range 10 {
		say(t, e, byte(i))
	}
	var got []uint64
	for range 5 {
		d, _ := do(t, e, 0, machine.Submit{})
		got = append(got, ids(d)...)
	}
	if fmt.Sprint(got) != "[0 1 2 3 4 5]" {
		t.Errorf("sent %v without an ack, expected 0 to 5", got)
	}
	// Packet 1 carried 4 and 5: its ack does not move the oldest. Packet 0 does.
	ack := gaffertest.Builtin("article").Append(nil, &wire.Packet{Header: wire.Header{Ack: 1, AckBits: 2 >> 1}}, []byte{0})
	do(t, e, 0, machine.Arrive{Bytes: ack})
	if d, _ := do(t, e, 0, machine.Submit{}); len(ids(d)) != 0 {
		t.Errorf("sent %v while 0 is unacked", ids(d))
	}
	ack = gaffertest.Builtin("article").Append(nil, &wire.Packet{Sequence: 1, Header: wire.Header{Ack: 1, AckBits: 3}},
		[]byte{0})
	do(t, e, 0, machine.Arrive{Bytes: ack})
	if d, _ := do(t, e, 0, machine.Submit{}); fmt.Sprint(ids(d)) != "[6 7 8 9]" {
		t.Errorf("sent %v once 0 to 5 are acked, expected 6 to 9", ids(d))
	}
}

// TestNoWindow shows what the rule is for. Without it the receiver drops what it cannot
// buffer, but acks the packet. The message then never arrives.
func TestNoWindow(t *testing.T) {
	a := newTalker(t, wire.MessagesByID, gaffertest.Tiny,
		messages.Options{ReceiveBuffer: 4, NoWindow: true, Resend: wire.Resend{After: 50 * time.Millisecond}})
	b := newTalker(t, wire.MessagesByID, gaffertest.Tiny, messages.Options{ReceiveBuffer: 4})
	for i := range 8 {
		say(t, a, byte(i))
	}
	do(t, a, 0, machine.Submit{}) // 0 to 3: lost
	var all string
	for at := time.Millisecond; at < 300*time.Millisecond; at += time.Millisecond {
		d, _ := do(t, a, at, machine.Submit{})
		_, got := do(t, b, at, machine.Arrive{Bytes: d})
		all += got + " "
		d, _ = do(t, b, at, machine.Submit{})
		do(t, a, at, machine.Arrive{Bytes: d})
	}
	if got := strings.Join(strings.Fields(all), " "); got != "0:00 1:01 2:02 3:03" {
		t.Errorf("delivered %s, expected 0 to 3 and nothing after", got)
	}
	if !a.CanSubmit() {
		t.Error("the sender still waits for acks: it should think that all arrived")
	}
}

// TestMalformedMessages: a malformed packet is discarded whole, and so never acked.
func TestMalformedMessages(t *testing.T) {
	p := gaffertest.Builtin("article")
	for name, section := range map[string][]byte{
		"type 3 of 3":        {1 | 3<<3&0xf8, 0, 3 << 3, 0},
		"count 5 of 4":       {5, 0, 0, 0},
		"body cut":           {1, 0, 0},
		"padding not zero":   {0x80},
		"no section":         {},
		"id cut":             {1},
		"second message cut": {2, 0, 1 << 3, 0},
	} {
		e := newTalker(t, wire.MessagesByID, three, messages.Options{})
		do(t, e, 0, machine.Arrive{Bytes: p.Append(nil, &wire.Packet{}, section)})
		d, _ := do(t, e, 0, machine.Submit{})
		if d[2] != 0xff || d[4] != 0 {
			t.Errorf("%s: the packet was acked: % x", name, d)
		}
	}
	e := newTalker(t, wire.MessagesByID, three, messages.Options{})
	do(t, e, 0, machine.Arrive{Bytes: p.Append(nil, &wire.Packet{}, []byte{0})})
	if d, _ := do(t, e, 0, machine.Submit{}); d[2] != 0 || d[4] != 1 {
		t.Errorf("a sound packet was not acked: % x", d)
	}
}

func TestSubmitErrors(t *testing.T) {
	e := newTalker(t, wire.MessagesByID, three, messages.Options{SendBuffer: 2, Budget: 20})
	var out machine.Effects
	for _, c := range []struct {
		in   machine.Submit
		want string
	}{
		{machine.Submit{Channel: 1, Type: 3}, "type 3"},
		{machine.Submit{Channel: 1, Type: 0, Payload: []byte{1}}, "packet ends before"},
		{machine.Submit{Channel: 1, Type: 1, Payload: []byte{0x80}}, "7 bits and zero padding"},
		{machine.Submit{Channel: 1, Type: 2, Payload: append([]byte{31}, make([]byte, 43)...)}, "never fit"},
		{machine.Submit{Channel: 1, Type: 1, Payload: []byte{1}}, ""},
		{machine.Submit{Channel: 1, Type: 1, Payload: []byte{1}}, ""},
		{machine.Submit{Channel: 1, Type: 1, Payload: []byte{1}}, "full"},
		{machine.Submit{Channel: 9}, "channel 9"},
	} {
		err := e.Step(0, c.in, &out)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, expected %q", c.in, err, c.want)
		}
	}
	if err := e.Step(0, machine.Submit{Channel: 1, Type: 1, Payload: []byte{1}}, &out); !errors.Is(err,
		messages.ErrQueueFull) {
		t.Errorf("%v, expected ErrQueueFull", err)
	}
}
