package endpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

func profile(f wire.Form) *wire.Profile {
	p := wire.Default().In(f)
	return &p
}

func address(s string) wire.Address {
	a, ok := wire.AddressOf(netip.MustParseAddrPort(s))
	if !ok {
		panic(s + " is not IPv4")
	}
	return a
}

// rig steps one endpoint by hand.
type rig struct {
	t   *testing.T
	e   machine.Endpoint
	now machine.Instant
	out machine.Effects
}

func newRig(t *testing.T, o Options) (*rig, *Endpoint) {
	t.Helper()
	if o.Profile == nil {
		o.Profile = profile(wire.Direct)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, e: e}, e
}

const millisecond = machine.Instant(time.Millisecond)

// at steps the endpoint at a time in milliseconds. It returns the effects as
// one line: transmissions as PEER:HEX, deliveries as PEER<ID, then events.
func (r *rig) at(ms int, in machine.Input) string {
	r.t.Helper()
	r.now = machine.Instant(ms) * millisecond
	r.out.Reset()
	if err := r.e.Step(r.now, in, &r.out); err != nil {
		return "error: " + err.Error()
	}
	var s []string
	for _, t := range r.out.Transmit {
		switch t.Kind {
		case machine.SendDatagram:
			s = append(s, fmt.Sprintf("%d:%x", t.To, t.Bytes))
		case machine.SendBytes:
			s = append(s, fmt.Sprintf("%d=%x", t.To, t.Bytes))
		case machine.OpenStream:
			s = append(s, fmt.Sprintf("open %d", t.To))
		case machine.CloseStream:
			s = append(s, fmt.Sprintf("close %d", t.To))
		}
	}
	for _, d := range r.out.Deliver {
		s = append(s, fmt.Sprintf("%d<%d(%s)", d.From, d.ID, d.Payload))
	}
	for _, e := range r.out.Events {
		word, own := srdp.EventNames[e.Kind]
		if !own {
			word = e.Kind.String()
		}
		line := fmt.Sprintf("%s %d", word, e.Sequence)
		if e.RTT >= 0 {
			line += fmt.Sprintf(" in %v", time.Duration(e.RTT))
		}
		s = append(s, line)
	}
	return strings.Join(s, " | ")
}

func (r *rig) is(ms int, in machine.Input, want string) {
	r.t.Helper()
	if got := r.at(ms, in); got != want {
		r.t.Errorf("at %d ms, %T: %s\nwant %s", ms, in, got, want)
	}
}

func (r *rig) deadline(ms int) {
	r.t.Helper()
	got, ok := r.e.Deadline()
	switch {
	case ms < 0 && ok:
		r.t.Errorf("a deadline at %v, want none", time.Duration(got))
	case ms >= 0 && (!ok || got != machine.Instant(ms)*millisecond):
		r.t.Errorf("deadline %v (%v), want %d ms", time.Duration(got), ok, ms)
	}
}

func arrive(from machine.Peer, hex string) machine.Input {
	var b []byte
	if _, err := fmt.Sscanf(strings.ReplaceAll(hex, " ", ""), "%x", &b); err != nil {
		panic(err)
	}
	return machine.Arrive{From: from, Bytes: b}
}

func send(to machine.Peer, bytes string, repeats uint8, timeout time.Duration, flags uint8) machine.Input {
	return srdp.Request{To: to, Bytes: []byte(bytes), Repeats: repeats, Timeout: timeout, Flags: flags}.Submit()
}

// The document's pseudo-code, step by step.
func TestSending(t *testing.T) {
	r, e := newRig(t, Options{First: 32766})
	r.deadline(-1)
	r.is(0, send(0, "a", 0, 100*time.Millisecond, 0), "0:537ffe0061 | sent 32766")
	r.deadline(100)
	r.is(10, send(1, "b", 2, 50*time.Millisecond, 0), "1:537fff0062 | sent 32767")
	r.deadline(60)
	r.is(20, send(0, "c", 1, 300*time.Millisecond, 0), "0:5300000063 | sent 0")
	r.is(60, machine.Wake{}, "1:537fff0062 | resent 32767")
	r.deadline(100)
	r.is(99, machine.Wake{}, "")
	r.is(105, machine.Wake{}, "0:537ffe0061 | resent 32766") // requeued from the present time
	r.deadline(110)
	r.is(110, machine.Wake{}, "gave_up 32767")
	if got := e.Settled(); len(got) != 1 ||
		got[0] != (srdp.Settlement{Submission: 2, Peer: 1, ID64: 32767, Outcome: srdp.Expired, Copies: 2}) {
		t.Errorf("settled %+v", got)
	}
	r.deadline(205)
	r.is(120, arrive(1, "41 fffe"), "acked_again 32766") // not from the peer that it was sent to
	r.is(130, arrive(0, "41 fffe"), "acked 32766")       // of two copies: no sample
	r.is(130, arrive(0, "41 8000"), "acked 0 in 110ms")
	r.is(131, arrive(0, "41 8000"), "acked_again 0")
	r.deadline(-1)
	if e.Submitted() != 3 {
		t.Errorf("%d submissions", e.Submitted())
	}
}

// Packets that are due at once are sent in the order of their retry times.
func TestLateTimer(t *testing.T) {
	r, _ := newRig(t, Options{})
	r.at(0, send(0, "a", 0, 300*time.Millisecond, 0))
	r.at(0, send(0, "b", 0, 100*time.Millisecond, 0))
	r.at(0, send(0, "c", 0, 200*time.Millisecond, 0))
	r.is(250, machine.Wake{}, "0:5300010062 | 0:5300020063 | resent 1 | resent 2")
	r.deadline(300)
}

func TestReceiving(t *testing.T) {
	r, e := newRig(t, Options{})
	r.is(0, arrive(0, "53 0005 00 61"), "0:418005 | 0<5(a) | received 5")
	r.is(1, arrive(0, "53 0005 00 61"), "0:418005 | 0<5(a) | received 5") // no promise
	r.is(2, arrive(0, "53 0006 01 62"), "0:418006 | 0<6(b) | received 6") // don't duplicate
	r.is(3, arrive(0, "53 0006 01 62"), "0:418006 | duplicate 6")         // acknowledged nevertheless
	r.is(4, arrive(1, "53 0006 01 62"), "1:418006 | 1<6(b) | received 6") // another source
	r.is(5, arrive(0, "53 0006 01 63"), "0:418006 | 0<6(c) | received 6") // another packet
	r.is(6, arrive(0, "53 0007 84 64"), "0:418007 | 0<7(d) | received 7") // unknown flags do no harm
	r.is(7, arrive(0, "41 0008 00 65"), "0:418008 | 0<8(e) | received 8") // the top bit decides
	r.is(8, arrive(0, "00 0000 00 00"), "")                               // foreign
	r.is(9, arrive(0, "53 00"), "")                                       // cut
	r.is(10, arrive(0, "53 7fff 02 66"), "0:41ffff | 0<32767(f) | received 32767")
	r.is(11, arrive(0, "53 0000 02 67"), "0:418000 | 0<0(g) | received 0") // ids wrap
	r.is(12, arrive(0, "53 7fff 02 66"), "0:41ffff | duplicate 32767")     // ordered, after a later one was handed over
	r.is(13, arrive(0, "53 0000 02 67"), "0:418000 | 0<0(g) | received 0") // in order again
	if got := e.Counts(); got.Foreign != 2 || got.Duplicates != 2 || got.Received != 10 {
		t.Errorf("counts %+v", got)
	}
}

func TestUnwrapping(t *testing.T) {
	r, _ := newRig(t, Options{First: 32767})
	r.at(0, send(0, "a", 0, time.Second, 0))
	r.at(0, send(0, "b", 0, time.Second, 0))
	if e := r.out.Events[0]; e.Sequence != 0 || e.Sequence64 != 32768 {
		t.Errorf("the id after 32767 is %d, unwrapped %d", e.Sequence, e.Sequence64)
	}
	r.at(1, arrive(0, "53 7ffe 00"))
	for i, c := range []struct {
		hex  string
		want int64
	}{{"53 7fff 00", 32767}, {"53 0001 00", 32769}, {"53 7fff 00", 32767}} {
		r.at(2+i, arrive(0, c.hex))
		if got := r.out.Events[0].Sequence64; got != c.want {
			t.Errorf("%s is %d, want %d", c.hex, got, c.want)
		}
	}
}

// One ordered packet is in flight per receiver; other packets do not wait for
// it.
func TestOrder(t *testing.T) {
	r, e := newRig(t, Options{})
	r.is(0, send(0, "a", 2, 100*time.Millisecond, 2), "0:5300000261 | sent 0")
	r.is(1, send(0, "b", 2, 100*time.Millisecond, 3), "")
	r.is(2, send(0, "c", 2, 100*time.Millisecond, 2), "")
	r.is(3, send(1, "d", 2, 100*time.Millisecond, 2), "1:5300010264 | sent 1")
	r.is(4, send(0, "e", 2, 100*time.Millisecond, 1), "0:5300020165 | sent 2")
	r.is(5, arrive(0, "41 8000"), "0:5300030362 | acked 0 in 5ms | sent 3")
	r.is(105, machine.Wake{}, "1:5300010264 | 0:5300020165 | 0:5300030362 | resent 1 | resent 2 | resent 3")
	r.is(204, machine.Wake{}, "") // 105 + 100 is later
	r.is(205, machine.Wake{}, "0:5300040263 | gave_up 1 | gave_up 2 | gave_up 3 | sent 4")
	if got := e.Settled(); len(got) != 3 || got[2].Submission != 2 {
		t.Errorf("settled %+v", got)
	}
	r.is(206, send(0, "f", 1, 0, 2), "")
	r.is(207, arrive(0, "41 8004"), "0:5300050266 | acked 4 in 2ms | sent 5")
}

func TestRefusals(t *testing.T) {
	r, _ := newRig(t, Options{Outstanding: 2, Waiting: 1, Peers: 3})
	for _, c := range []struct {
		in   machine.Input
		kind error
		want string
	}{
		{
			send(0, "a", 0, 0, 4), srdp.ErrNotImplemented,
			"submit: flags 0x04: service not implemented: expected none beside 0x03",
		},
		{
			send(0, strings.Repeat("a", 545), 0, 0, 0), srdp.ErrTooLarge,
			"submit: too many bytes for one packet: 545, expected at most 544 in the direct form",
		},
		{send(3, "a", 0, 0, 0), srdp.ErrUnknownPeer, "submit: unknown peer 3: expected one that was introduced"},
		{send(0, "a", 0, 0, 2), nil, ""},
		{send(0, "b", 0, 0, 2), nil, ""},
		{send(0, "c", 0, 0, 2), srdp.ErrFull, "submit: too many packets wait already: 1 for peer 0 behind an ordered one"},
		{send(0, strings.Repeat("a", 544), 0, 0, 0), nil, ""},
		{send(0, "d", 0, 0, 0), srdp.ErrFull, "submit: too many packets wait already: 2 in the sent queue"},
		{machine.Command{Kind: machine.Kick}, nil, "command kick: expected connect, cancel, disconnect or stop"},
		{
			machine.Command{Kind: machine.Cancel, Payload: []byte{1}},
			nil,
			"cancel: a submission's number has 4 bytes, found 1",
		},
		{
			machine.Command{Kind: machine.Connect, Payload: []byte("[::1]:9")},
			nil,
			"connect: expected an IPv4 address, found [::1]:9",
		},
		{machine.Open{}, nil, "step: machine.Open, expected a datagram, a submission, a command or a wake"},
	} {
		r.out.Reset()
		err := r.e.Step(0, c.in, &r.out)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != c.want || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := r.e.Step(0, machine.Command{Kind: machine.Connect, Payload: []byte("nowhere")}, &r.out); err == nil {
		t.Error("an address that is none was taken")
	}
	proxied, _ := newRig(t, Options{Profile: profile(wire.Proxied)})
	if got := proxied.at(0,
		send(0, "a", 0, 0, 0)); got != "error: submit: unknown peer 0: expected one that was introduced" {
		t.Error(got)
	}
	if err := proxied.e.Step(0, Introduce(0, address("10.0.0.2:2")), &proxied.out); err != nil {
		t.Error(err)
	}
	if got := proxied.at(0, send(0, strings.Repeat("a", 533), 0, 0, 0)); !strings.Contains(got,
		"533, expected at most 532 in the proxied form") {
		t.Error(got)
	}
	for _, o := range []Options{
		{},
		{Profile: profile(7)},
		{Profile: profile(wire.Direct), ByProxy: true},
		{Profile: profile(wire.Direct), First: 1 << 15},
		{Profile: profile(wire.Proxied), ByProxy: true, Proxy: 5, Peers: 5},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// cancel returns the command that makes an endpoint give up a submission.
func cancel(submission uint32) machine.Command {
	return machine.Command{Kind: machine.Cancel, Payload: binary.BigEndian.AppendUint32(nil, submission)}
}

func TestCancel(t *testing.T) {
	r, e := newRig(t, Options{})
	r.at(0, send(0, "a", 0, 100*time.Millisecond, 2))
	r.at(0, send(0, "b", 0, 100*time.Millisecond, 2))
	r.at(0, send(0, "c", 0, 100*time.Millisecond, 2))
	r.at(0, send(1, "d", 0, 100*time.Millisecond, 0))
	r.is(1, cancel(2), "") // a submission that waits
	if got := e.Settled(); !slices.Equal(got, []srdp.Settlement{{Submission: 2, ID64: -1, Outcome: srdp.Cancelled}}) {
		t.Errorf("settled %+v", got)
	}
	r.is(2, cancel(1), "0:5300020263 | gave_up 0 | sent 2")
	r.is(3, cancel(99), "")
	r.is(4, machine.Command{Kind: machine.Disconnect, Peer: 0}, "gave_up 2")
	r.deadline(100)
	r.is(5, machine.Command{Kind: machine.Stop}, "gave_up 1")
	r.deadline(-1)
	r.is(6, machine.Command{Kind: machine.Disconnect, Peer: 77}, "")
}

// A packet without an end is given up when the endpoint's limit is over.
func TestLimit(t *testing.T) {
	r, _ := newRig(t, Options{Limit: 250 * time.Millisecond})
	r.at(0, send(0, "a", 0, 100*time.Millisecond, 0))
	r.at(0, send(1, "b", 9, 400*time.Millisecond, 0))
	r.is(100, machine.Wake{}, "0:5300000061 | resent 0")
	r.is(200, machine.Wake{}, "0:5300000061 | resent 0")
	r.deadline(250)
	r.is(250, machine.Wake{}, "gave_up 0")
	r.deadline(400)
}

// The documented choice of timeouts: the start value, then one and a half times
// the longest delay, doubled while nothing can be measured.
func TestDelays(t *testing.T) {
	r, e := newRig(t, Options{})
	is := func(to machine.Peer, want time.Duration) {
		t.Helper()
		if got := e.Timeout(to); got != want {
			t.Errorf("timeout %v, want %v", got, want)
		}
	}
	is(0, 500*time.Millisecond)
	r.at(0, send(0, "a", 0, 0, 0))
	r.deadline(500)
	r.at(100, arrive(0, "41 8000"))
	is(0, 150*time.Millisecond)
	is(1, 500*time.Millisecond)
	r.at(100, send(0, "b", 0, 0, 0))
	r.at(140, arrive(0, "41 8001")) // shorter: the longest delay stays
	is(0, 150*time.Millisecond)
	// A lost packet gives no sample.
	r.at(150, send(0, "x", 0, 0, 0))
	r.at(300, machine.Wake{})
	r.at(320, arrive(0, "41 8002"))
	is(0, 150*time.Millisecond)
	// The path becomes slower than the timeout. Two packets are sent twice and
	// acknowledged twice, which doubles the timeout once.
	r.at(400, send(0, "c", 0, 0, 0))
	r.at(400, send(0, "d", 0, 0, 0))
	r.at(550, machine.Wake{})
	for _, hex := range []string{"41 8003", "41 8004", "41 8003", "41 8004"} {
		r.at(600, arrive(0, hex))
	}
	is(0, 300*time.Millisecond)
	r.at(610, arrive(0, "41 8004")) // counted already
	r.at(610, arrive(0, "41 8001")) // of one copy: the network duplicated the acknowledgement
	is(0, 300*time.Millisecond)
	r.at(1000, send(0, "e", 0, 0, 0))
	r.at(1200, arrive(0, "41 8005"))
	is(0, 300*time.Millisecond) // measured: 200 ms
	// Acknowledgements of packets that were given up double it up to the
	// maximum.
	ms := 2000
	for i := range 9 {
		r.at(ms, send(1, "f", 1, 0, 0))
		at, _ := e.Deadline()
		ms = int(at / millisecond)
		r.at(ms, machine.Wake{})
		r.at(ms+1, arrive(1, fmt.Sprintf("41 80%02x", 6+i)))
	}
	is(1, 10*time.Second)
	// A timeout that the caller chose does not change the endpoint's choice.
	r.at(ms, send(2, "g", 1, time.Millisecond, 0))
	r.at(ms+1, machine.Wake{})
	r.at(ms+2, arrive(2, "41 800f"))
	is(2, 500*time.Millisecond)
	// Peers with one IP address share their delays.
	r.at(ms+2, Introduce(0, address("10.0.0.2:1")))
	r.at(ms+2, Introduce(3, address("10.0.0.2:2")))
	is(3, 300*time.Millisecond)
	r.at(ms+2, Introduce(4, address("10.0.0.3:2")))
	is(4, 500*time.Millisecond)
}

func TestRequests(t *testing.T) {
	for _, c := range []struct{ in, want srdp.Request }{
		{srdp.Request{}, srdp.Request{}},
		{
			srdp.Request{To: 3, Repeats: 255, Timeout: 1500 * time.Millisecond, Flags: 3},
			srdp.Request{To: 3, Repeats: 255, Timeout: 1500 * time.Millisecond, Flags: 3},
		},
		{srdp.Request{Timeout: time.Microsecond}, srdp.Request{Timeout: time.Millisecond}},
		{srdp.Request{Timeout: -1}, srdp.Request{}},
		{srdp.Request{Timeout: 24 * time.Hour}, srdp.Request{Timeout: srdp.MaxTimeout}},
	} {
		if got := srdp.RequestOf(c.in.Submit()); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v travels as %+v", c.in, got)
		}
	}
	for o, want := range map[srdp.Outcome]string{
		srdp.Acknowledged: "acknowledged", srdp.Expired: "expired",
		srdp.Cancelled: "cancelled", 9: "unknown",
	} {
		if o.String() != want {
			t.Error(o)
		}
	}
}

// Without proxies the proxied form is the direct form with addresses.
func TestProxiedForm(t *testing.T) {
	a, b := address("10.0.0.1:1"), address("10.0.0.2:2")
	r, _ := newRig(t, Options{Profile: profile(wire.Proxied), Self: a})
	r.is(0, Introduce(0, b), "")
	r.is(1, send(0, "x", 0, 0, 1), "0:5300000a00000100010a00000200020178 | sent 0")
	r.is(2, arrive(0, "418000 0a000002 0002 0a000001 0001"), "acked 0 in 1ms")
	r.is(3, arrive(0, "530009 0a000002 0002 0a000001 0001 00 79"),
		"0:4180090a00000100010a0000020002 | 0<9(y) | received 9")
	// for another endpoint
	r.is(4, arrive(0, "530009 0a000002 0002 0a000009 0001 00 79"), "")
	// of a stranger
	r.is(5, arrive(7, "53000a 0a000003 0003 0a000001 0001 00 7a"),
		"7:41800a0a00000100010a0000030003 | 7<10(z) | received 10")
	// another one, by the same route
	r.is(6, arrive(7, "53000a 0a000004 0003 0a000001 0001 00 7a"),
		"7:41800a0a00000100010a0000040003 | 8<10(z) | received 10")
	// acknowledges something that a stranger never got
	r.is(7, arrive(7, "41800a 0a000005 0003 0a000001 0001"), "")
	r.is(8, send(8, "w", 1, 0, 0), "7:5300010a00000100010a00000400030077 | sent 1")
	// A forgotten peer leaves its number to the next one.
	r.is(9, machine.Command{Kind: machine.Disconnect, Peer: 8}, "gave_up 1")
	r.is(10, send(8, "w", 1, 0, 0), "error: submit: unknown peer 8: expected one that was introduced")
	r.is(11, arrive(7, "53000b 0a000006 0003 0a000001 0001 00 7a"),
		"7:41800b0a00000100010a0000060003 | 8<11(z) | received 11")
	r.is(12, arrive(7, "53000a 0a000004 0003 0a000001 0001 00 7a"),
		"7:41800a0a00000100010a0000040003 | 9<10(z) | received 10")
}
