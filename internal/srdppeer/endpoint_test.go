package srdppeer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

var (
	own   = netip.MustParseAddrPort("192.0.2.1:7000")
	other = netip.MustParseAddrPort("192.0.2.2:7001")
)

const ms = time.Millisecond

// wired is an endpoint whose datagrams, deliveries and log a test reads.
type wired struct {
	*Endpoint
	sent      [][]byte
	delivered []string
	log       []Entry
}

func newWired(s Settings) *wired {
	w := &wired{}
	w.Endpoint = New(s, own, Hooks{
		Transmit: func(_ netip.AddrPort, b []byte) { w.sent = append(w.sent, bytes.Clone(b)) },
		Deliver:  func(_ netip.AddrPort, b []byte) { w.delivered = append(w.delivered, string(b)) },
		Log:      func(x Entry) { w.log = append(w.log, x) },
	})
	return w
}

func (w *wired) send(t *testing.T, at time.Duration, body string, want Service) {
	t.Helper()
	if err := w.Send(at, other, []byte(body), want); err != nil {
		t.Fatal(err)
	}
}

// count returns how many entries of a kind are in the log.
func (w *wired) count(k Kind) (n int) {
	for _, x := range w.log {
		if x.Kind == k {
			n++
		}
	}
	return n
}

// TestBytes compares packets with the document's layouts.
func TestBytes(t *testing.T) {
	data := packet{id: 0x1234, flags: 3, from: own, to: other, payload: []byte("hi")}
	ack := packet{id: 0x1234, ack: true, from: own, to: other}
	addresses := "\xc0\x00\x02\x01\x1b\x58\xc0\x00\x02\x02\x1b\x59"
	for _, c := range []struct {
		settings Settings
		p        packet
		want     string
	}{
		{Settings{}, data, "\x53\x12\x34\x03hi"},
		{Settings{}, ack, "\x41\x92\x34"},
		{Settings{LittleEndian: true}, ack, "\x41\x34\x92"},
		{Settings{Form: Proxied}, data, "\x53\x12\x34" + addresses + "\x03hi"},
		{Settings{Form: Proxied}, ack, "\x41\x92\x34" + addresses},
		{Settings{DataCommand: 1, AckCommand: 2}, ack, "\x02\x92\x34"},
	} {
		s := c.settings.withDefaults()
		b := s.write(nil, &c.p)
		if string(b) != c.want {
			t.Errorf("%+v: %x, expected %x", c.p, b, c.want)
		}
		got, ours, err := s.read(b)
		if !ours || err != nil || got.id != c.p.id || got.ack != c.p.ack || got.flags != c.p.flags && !c.p.ack ||
			string(got.payload) != string(c.p.payload) || s.Form == Proxied && (got.from != own || got.to != other) {
			t.Errorf("%x is read as %+v, %v, %v", b, got, ours, err)
		}
	}
}

// TestRefused checks what Send refuses.
func TestRefused(t *testing.T) {
	six := netip.MustParseAddrPort("[2001:db8::1]:7000")
	for _, c := range []struct {
		settings Settings
		to       netip.AddrPort
		size     int
		flags    byte
		want     error
	}{
		{Settings{}, other, 544, 3, nil},
		{Settings{}, other, 545, 0, ErrTooLarge},
		{Settings{Form: Proxied}, other, 532, 0, nil},
		{Settings{Form: Proxied}, other, 533, 0, ErrTooLarge},
		{Settings{}, other, 1, 4, ErrNotImplemented},
		{Settings{Order: 4}, other, 1, 4, nil},
		{Settings{}, six, 1, 0, nil},
		{Settings{Form: Proxied}, six, 1, 0, ErrAddress},
	} {
		err := newWired(c.settings).Send(0, c.to, make([]byte, c.size), Service{Flags: c.flags})
		if !errors.Is(err, c.want) {
			t.Errorf("%d bytes, flags %d, to %v: %v, expected %v", c.size, c.flags, c.to, err, c.want)
		}
	}
}

// TestRepeats checks the copies of a packet without an acknowledgement:
// three, at one interval, and then it is given up.
func TestRepeats(t *testing.T) {
	w := newWired(Settings{})
	w.send(t, 0, "a", Service{Repeats: 3, Timeout: 100 * ms})
	for at := time.Duration(0); at <= 1000*ms; at += 10 * ms {
		w.Expire(at)
	}
	var times []time.Duration
	for _, x := range w.log {
		times = append(times, x.At)
	}
	want := []time.Duration{0, 100 * ms, 200 * ms, 300 * ms}
	if !slices.Equal(times, want) || w.count(Resent) != 2 || w.count(GaveUp) != 1 {
		t.Errorf("the log is %+v", w.log)
	}
	if _, waits := w.Deadline(); waits {
		t.Error("it still waits")
	}
}

// TestTimeout checks the interval that the endpoint chooses: by the longest
// delay of packets that were sent once.
func TestTimeout(t *testing.T) {
	w := newWired(Settings{StartTimeout: 250 * ms})
	wait := func(at time.Duration) time.Duration {
		w.send(t, at, "a", Service{})
		return w.log[len(w.log)-1].Wait
	}
	if got := wait(0); got != 250*ms {
		t.Errorf("%v at first, expected 250 ms", got)
	}
	w.Receive(80*ms, other, []byte{0x41, 0x80, 1})
	if got := wait(100 * ms); got != 100*ms {
		t.Errorf("%v after a delay of 80 ms, expected a quarter more", got)
	}
	w.Expire(200 * ms)
	w.Receive(900*ms, other, []byte{0x41, 0x80, 2})
	if got := wait(1000 * ms); got != 100*ms {
		t.Errorf("%v: an acknowledgement of two copies counted", got)
	}
}

// TestOrder checks that one ordered packet is in flight, that others do not
// wait for it, and which ids they have.
func TestOrder(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWired(Settings{NumberLate: late})
		w.send(t, 0, "a", Service{Flags: 2})
		w.send(t, 0, "b", Service{Flags: 2})
		w.send(t, 0, "c", Service{})
		w.Receive(0, other, []byte{0x41, 0x80, 1})
		var got []byte
		for _, b := range w.sent {
			got = append(got, b[4], b[2])
		}
		want := []byte{'a', 1, 'c', 3, 'b', 2}
		if late {
			want = []byte{'a', 1, 'c', 2, 'b', 3}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("late %v: sent %q, expected %q", late, got, want)
		}
	}
}

// TestReceived checks what is acknowledged and what is delivered.
func TestReceived(t *testing.T) {
	w := newWired(Settings{Remembered: 2})
	for _, datagram := range []string{
		"\x53\x00\x01\x00a", "\x53\x00\x01\x00a", // every copy, without a flag
		"\x53\x00\x02\x01b", "\x53\x00\x02\x01b", // the first copy
		"\x53\x00\x03\x01c", "\x53\x00\x04\x01d", "\x53\x00\x02\x01b", // id 2 has left the list
		"\x41\x00\x05\x00e",                 // the id decides, not the command
		"\x53\x80\x05",                      // so this is an acknowledgement, of nothing
		"", "GET /", "\x53", "\x53\x00\x06", // other protocols, and less than a packet
	} {
		w.Receive(0, other, []byte(datagram))
	}
	if got := len(w.sent); got != 8 {
		t.Errorf("%d acknowledgements, expected one for each of 8 copies", got)
	}
	if want := []string{"a", "a", "b", "c", "d", "b", "e"}; !slices.Equal(w.delivered, want) {
		t.Errorf("delivered %q, expected %q", w.delivered, want)
	}
	if w.count(Foreign) != 2 || w.count(Malformed) != 2 || w.count(AckUnknown) != 1 || w.count(Duplicate) != 1 {
		t.Errorf("the log is %+v", w.log)
	}
}

// TestAckOfAnother checks that only the receiver's acknowledgement counts.
func TestAckOfAnother(t *testing.T) {
	w := newWired(Settings{})
	w.send(t, 0, "a", Service{})
	w.Receive(1, own, []byte{0x41, 0x80, 1})
	if _, waits := w.Deadline(); !waits || w.count(AckUnknown) != 1 {
		t.Errorf("the log is %+v", w.log)
	}
}

// TestWrap sends more packets than there are ids, while one of them waits.
func TestWrap(t *testing.T) {
	w := newWired(Settings{Counter: idMask})
	w.send(t, 0, "stays", Service{Timeout: time.Hour})
	for n := range 2 * ackMark {
		w.send(t, 0, "", Service{Timeout: time.Hour})
		id := w.log[len(w.log)-1].ID
		if id == 0 {
			t.Fatalf("packet %d has the id of the one that waits", n)
		}
		w.Receive(0, other, []byte{0x41, 0x80 | byte(id>>8), byte(id)})
	}
	if w.count(Acked) != 2*ackMark {
		t.Errorf("%d acknowledged, expected all of %d", w.count(Acked), 2*ackMark)
	}
}

// TestFull sends packets until no id is left.
func TestFull(t *testing.T) {
	w := newWired(Settings{})
	for range ackMark {
		w.send(t, 0, "", Service{})
	}
	if err := w.Send(0, other, nil, Service{}); !errors.Is(err, ErrIDsInUse) {
		t.Errorf("%v, expected %v", err, ErrIDsInUse)
	}
}

// TestHostile passes noise to an endpoint: nothing of it may panic.
func TestHostile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, form := range []Form{Direct, Proxied} {
		w := newWired(Settings{Form: form})
		for range 20000 {
			b := make([]byte, rng.IntN(24))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if len(b) > 0 && rng.IntN(4) > 0 {
				b[0] = []byte{0x53, 0x41}[rng.IntN(2)]
			}
			w.Receive(0, other, b)
		}
		if w.count(Delivered) == 0 || w.count(Malformed) == 0 {
			t.Errorf("form %d: %d delivered, %d malformed", form, w.count(Delivered), w.count(Malformed))
		}
	}
}
