package endpoint_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestInterop compares a reference with a real endpoint. The reference receives what the real
// endpoint received, and its application sends what the real one's sent. All Acks must be the same,
// one by one. All messages must be the same byte for byte, with their sequences and the acks in
// notify headers.
//
// The wire does not show when within a tick the real endpoint read its socket, only that it read in
// order. So the test holds arrivals back, and reads as many as the next own message needs.
func TestInterop(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pcaps, "[ut]2*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	runs, acks, sends := 0, 0, 0
	for _, path := range paths {
		run, _, _ := strings.Cut(filepath.Base(path), ".")
		// Captures that begin in the middle, and a run of 66,100 messages.
		if strings.Contains(run, "midstream") || testing.Short() && strings.Contains(run, "rwrap") {
			continue
		}
		runs++
		t.Run(filepath.Base(path), func(t *testing.T) {
			l := readLog(t, filepath.Join(pcaps, run+".truth.jsonl.gz"))
			flows := nearFlows(t, path, l)
			if len(flows) == 0 {
				t.Fatal("no flow of the run's endpoints")
			}
			for _, f := range flows {
				r := relive(t, f, l.version[f.name], run[0] == 't', len(flows) > 1)
				acks += r.acks
				sends += r.sends
			}
		})
	}
	if !t.Failed() && (runs < 80 || acks < 10000 || sends < 10000) {
		t.Errorf("%d captures, %d Acks and %d messages: too few to prove anything", runs, acks, sends)
	}
	t.Logf("%d captures, %d Acks and %d messages, every one byte for byte", runs, acks, sends)
}

// relived is a reference that repeats what a real endpoint did.
type relived struct {
	t           *testing.T
	name        string
	e           *endpoint.Endpoint
	codec       wire.Codec
	server      bool
	stream      bool
	held        []passing
	answers     [][]byte // Acks that the reference has sent, and the capture not yet
	welcomes    [][]byte
	known       map[string]bool // reliable messages that were sent once
	announces   bool            // the server announces other clients: one connection cannot predict those messages
	out         machine.Effects
	acks, sends int
	failed      bool
}

func relive(t *testing.T, f *nearFlow, version string, tcp, several bool) *relived {
	t.Helper()
	v, ok := riptide.LookupVersion(version)
	if !ok {
		t.Fatalf("version %q of %s", version, f.name)
	}
	server := f.name == "server"
	o := endpoint.Options{Version: v, Stream: tcp, Limits: endpoint.Limits{Off: true}, Ask: true}
	build := endpoint.NewClient
	if server {
		build = endpoint.NewServer
	}
	e, err := build(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &relived{
		t: t, name: f.name, e: e, codec: wire.Codec{Dialect: v.Build.Dialect}, server: server, stream: tcp,
		known: map[string]bool{},
	}
	r.announces = server && several
	// The server sends its announcements of other clients by other connections.
	for _, p := range f.passed {
		var m wire.Message
		if r.codec.Parse(p.bytes, len(p.bytes), &m) == nil && p.own &&
			(m.Type == wire.ClientConnected || m.Type == wire.ClientDisconnected) {
			r.announces = true
		}
	}
	for i := range f.passed {
		if r.failed || !r.pass(&f.passed[i]) {
			break
		}
	}
	return r
}

// step gives an input to the reference and sorts what it sends.
func (r *relived) step(at machine.Instant, in machine.Input) {
	r.t.Helper()
	r.out.Reset()
	if err := r.e.Step(at, in, &r.out); err != nil {
		r.fail("%T: %v", in, err)
		return
	}
	for _, tr := range r.out.Transmit {
		b := r.unframed(tr)
		var m wire.Message
		if b == nil || r.codec.Parse(b, len(b), &m) != nil {
			continue
		}
		switch m.Type {
		case wire.Ack, wire.AckExtra:
			r.answers = append(r.answers, bytes.Clone(b))
		case wire.Welcome:
			r.welcomes = append(r.welcomes, bytes.Clone(b))
		}
	}
}

func (r *relived) unframed(tr machine.Transmission) []byte {
	switch {
	case tr.Kind == machine.SendDatagram:
		return tr.Bytes
	case tr.Kind == machine.SendBytes && len(tr.Bytes) > r.codec.Dialect.Prefixes[0]:
		return tr.Bytes[r.codec.Dialect.Prefixes[0]:]
	}
	return nil
}

func (r *relived) fail(format string, args ...any) {
	r.t.Helper()
	r.failed = true
	r.t.Errorf("%s: "+format, append([]any{r.name}, args...)...)
}

// plain reports whether reading a message changes what the reference sends only through its timers.
func (r *relived) plain(b []byte) bool {
	var m wire.Message
	return r.codec.Parse(b, len(b), &m) == nil &&
		(m.Type == wire.Ack || m.Type == wire.AckExtra || m.Type == wire.Unreliable)
}

// read makes the reference read the oldest message that it has not read.
func (r *relived) read() bool {
	if len(r.held) == 0 {
		return false
	}
	p := r.held[0]
	r.held = r.held[1:]
	if !r.stream {
		r.step(p.at, machine.Arrive{Bytes: p.bytes})
		return true
	}
	framed, err := r.codec.AppendFrame(nil, r.codec.Dialect.Prefixes[0], len(p.bytes))
	if err != nil {
		r.t.Fatal(err)
	}
	r.step(p.at, machine.Bytes{Bytes: append(framed, p.bytes...)})
	return true
}

// pass processes the next message at the tap. It returns false where the connection is over.
func (r *relived) pass(p *passing) bool {
	r.t.Helper()
	if !p.own {
		if r.stream && r.server && len(r.known) == 0 && len(r.held) == 0 && r.acks == 0 {
			r.step(p.at, machine.Open{}) // the reference ignores a second Open of the same stream
		}
		r.held = append(r.held, *p)
		for len(r.held) > 0 && r.plain(r.held[0].bytes) && r.read() {
		}
		return true
	}
	var m wire.Message
	if err := r.codec.Parse(p.bytes, len(p.bytes), &m); err != nil {
		r.fail("frame %d: %v", p.frame, err)
		return false
	}
	body := bodyOf(p.bytes, &m)
	switch m.Type {
	case wire.Connect:
		if r.server {
			for r.read() {
			}
		} else if len(r.known) == 0 {
			r.known["connect"] = true
			r.step(p.at, machine.Command{Kind: machine.Connect, Payload: body})
			if r.stream {
				r.step(p.at, machine.Open{})
			}
		}
	case wire.Reject:
		return false
	case wire.Disconnect:
		return false
	case wire.Ack, wire.AckExtra:
		for len(r.answers) == 0 && r.read() {
		}
		r.same(p, &r.answers, "Ack")
		r.acks++
	case wire.Welcome:
		if r.known[string(p.bytes)] {
			return true
		}
		r.known[string(p.bytes)] = true
		for len(r.welcomes) == 0 && r.read() {
		}
		if r.server && len(r.e.Pending()) > 0 {
			r.welcome(p, &m)
			return !r.failed
		}
		r.same(p, &r.welcomes, "Welcome")
	case wire.Unreliable, wire.Reliable, wire.Notify:
		r.user(p, &m, body)
	}
	return !r.failed
}

// welcome makes the application accept, with the id that the real server chose.
func (r *relived) welcome(p *passing, m *wire.Message) {
	r.step(p.at, machine.Command{Kind: machine.Accept})
	if len(r.welcomes) == 0 {
		r.fail("frame %d: no Welcome", p.frame)
		return
	}
	var own wire.Message
	b := r.welcomes[0]
	r.welcomes = r.welcomes[1:]
	if err := r.codec.Parse(b, len(b), &own); err != nil || own.Sequence != m.Sequence || len(b) != len(p.bytes) {
		r.fail("frame %d: Welcome %x, expected %x but for the client id", p.frame, b, p.bytes)
	}
}

// same compares a message with the next one that the reference has sent.
func (r *relived) same(p *passing, queue *[][]byte, what string) {
	r.t.Helper()
	if len(*queue) == 0 {
		r.fail("frame %d: no %s, expected %x", p.frame, what, p.bytes)
		return
	}
	if got := (*queue)[0]; !bytes.Equal(got, p.bytes) {
		r.fail("frame %d: %s %x, expected %x", p.frame, what, got, p.bytes)
	}
	*queue = (*queue)[1:]
}

// user makes the application send a message, if it has not.
func (r *relived) user(p *passing, m *wire.Message, body []byte) {
	r.t.Helper()
	in := machine.Submit{Channel: riptide.ChannelUnreliable, Type: uint32(m.MessageID), Payload: body}
	switch m.Type {
	case wire.Reliable:
		if r.announces || r.known[string(p.bytes)] {
			return
		}
		r.known[string(p.bytes)] = true
		in.Channel = riptide.ChannelReliable
	case wire.Notify:
		in.Channel = riptide.ChannelNotify
	}
	for r.server && !r.e.Connected(0) && r.read() {
	}
	// The wire has whole bytes. It does not show which of the last bits are padding, and they are
	// zero.
	if spare := 8*len(body) - m.BodyBits; spare > 0 {
		in.Type |= uint32(spare) << 16
	}
	for m.Type == wire.Notify {
		c := r.e.Clone()
		r.out.Reset()
		if err := c.Step(p.at, in, &r.out); err != nil {
			r.fail("frame %d: %v", p.frame, err)
			return
		}
		got := r.unframed(r.out.Transmit[0])
		if bytes.Equal(got, p.bytes) {
			break
		}
		if !r.read() {
			r.fail("frame %d: Notify %x, expected %x", p.frame, got, p.bytes)
			return
		}
	}
	r.step(p.at, in)
	r.sends++
	if got := r.unframed(r.out.Transmit[0]); !r.failed && !bytes.Equal(got, p.bytes) {
		r.fail("frame %d: %s %x, expected %x", p.frame, m.Type, got, p.bytes)
	}
}

// bodyOf returns the body, shifted to begin at a byte.
func bodyOf(b []byte, m *wire.Message) []byte {
	if m.BodyBits <= 0 {
		return nil
	}
	from, shift := m.BodyBit/8, uint(m.BodyBit%8)
	out := make([]byte, 0, len(b))
	for i := range (m.BodyBits + 7) / 8 {
		v := uint16(b[from+i])
		if from+i+1 < len(b) {
			v |= uint16(b[from+i+1]) << 8
		}
		out = append(out, byte(v>>shift))
	}
	return out
}
