package endpoint

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

const manyPeers = 10000

// crowd is one endpoint with ten thousand peers. One packet of 32 bytes is in
// flight to each peer. Each peer has sent ten packets that must not be
// delivered twice.
type crowd struct {
	e    *Endpoint
	out  machine.Effects
	now  machine.Instant
	data []byte
	ack  [3]byte
}

func newCrowd(t testing.TB, form wire.Form) *crowd {
	t.Helper()
	p := profile(form)
	c := &crowd{}
	e, err := New(Options{Profile: p, Self: wire.Address{IP: [4]byte{10, 0, 0, 1}, Port: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c.e = e
	for i := range machine.Peer(manyPeers) {
		if form == wire.Proxied {
			c.do(t, Introduce(i, wire.Address{IP: [4]byte{10, 1, byte(i >> 8), byte(i)}, Port: 7}))
		}
		c.do(t, srdp.Request{To: i, Bytes: make([]byte, 32)}.Submit())
		if form == wire.Direct {
			for n := range uint16(10) {
				c.receive(t, i, n)
			}
		}
	}
	return c
}

func (c *crowd) do(t testing.TB, in machine.Input) {
	c.now++
	c.out.Reset()
	if err := c.e.Step(c.now, in, &c.out); err != nil {
		t.Fatal(err)
	}
}

// receive delivers a data packet of a peer, in the direct form.
func (c *crowd) receive(t testing.TB, from machine.Peer, id uint16) {
	pk := wire.Packet{Command: 0x53, ID: id, Flags: 1}
	c.data = c.e.options.Profile.Append(c.data[:0], &pk, []byte("position"))
	c.do(t, machine.Arrive{From: from, Bytes: c.data})
}

// acknowledge delivers the acknowledgement of an id, in the direct form.
func (c *crowd) acknowledge(t testing.TB, from machine.Peer, id int64) {
	c.ack[0] = 0x41
	binary.BigEndian.PutUint16(c.ack[1:], uint16(id)|wire.AckMark)
	c.do(t, machine.Arrive{From: from, Bytes: c.ack[:]})
}

// One endpoint has ten thousand peers: one timer for all, and a bound on the
// memory of each.
func TestManyPeers(t *testing.T) {
	testenv.Long(t, "the memory of ten thousand peers")
	for _, form := range []wire.Form{wire.Direct, wire.Proxied} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := newCrowd(t, form)
		c.out = machine.Effects{}
		runtime.GC()
		runtime.ReadMemStats(&after)
		heap := float64(after.HeapAlloc-before.HeapAlloc) / manyPeers
		own := float64(c.e.Size()) / manyPeers
		t.Logf("%v: %.0f bytes a peer on the heap, %.0f by the endpoint's own count", form, heap, own)
		// The bound is half again above both figures. A list or a timer for
		// every peer would break it.
		if heap > 1200 {
			t.Errorf("%v: %.0f bytes a peer", form, heap)
		}
		if own < heap/2 || own > heap*3/2 {
			t.Errorf("%v: Size says %.0f bytes a peer, the heap %.0f", form, own, heap)
		}
		if c.e.queue.Len() != manyPeers {
			t.Fatalf("%d packets under way", c.e.queue.Len())
		}
		// The single timer wakes the endpoint for all packets that are due, and
		// no others.
		at, ok := c.e.Deadline()
		if first := c.e.queue.Head(); !ok || first.ID64 != 0 || at != first.FirstAt.Add(500*time.Millisecond) {
			t.Errorf("deadline %v, %v: the head is %+v", at, ok, first)
		}
		c.out.Reset()
		half := c.e.queue.RetryAt(c.e.queue.Find(5000))
		if err := c.e.Step(half, machine.Wake{}, &c.out); err != nil || len(c.out.Transmit) != 5001 {
			t.Errorf("%d copies at the retry time of the 5001st packet, %v", len(c.out.Transmit), err)
		}
		if next, _ := c.e.Deadline(); next <= half {
			t.Errorf("the next deadline is %v", next)
		}
		runtime.KeepAlive(c)
	}
}

// A warm endpoint allocates nothing for a packet. BenchmarkPeers allocates only
// to convert its inputs to the interface machine.Input.
func TestNoAllocations(t *testing.T) {
	e, err := New(Options{Profile: profile(wire.Direct)})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 400
	submit := srdp.Request{Bytes: make([]byte, 32), Flags: 1}.Submit()
	var script [][]machine.Input
	for i := range uint16(2 * runs) {
		data := binary.BigEndian.AppendUint16([]byte{0x53}, i/2) // each packet comes twice
		ack := binary.BigEndian.AppendUint16([]byte{0x41}, i|wire.AckMark)
		script = append(script, []machine.Input{
			submit,
			machine.Wake{},
			machine.Arrive{Bytes: append(data, 1, 'x')},
			machine.Arrive{Bytes: ack},
		})
	}
	var out machine.Effects
	n, now := 0, machine.Instant(0)
	run := func() {
		for _, in := range script[n] {
			now = now.Add(time.Second)
			out.Reset()
			if err := e.Step(now, in, &out); err != nil {
				t.Fatal(err)
			}
		}
		n++
	}
	for range runs - 1 {
		run()
	}
	if got := testing.AllocsPerRun(runs, run); got != 0 {
		t.Errorf("%v allocations for a packet sent, sent again, acknowledged, and one received", got)
	}
	if c := e.Counts(); c.Acked != uint64(n) || c.Resends != uint64(n) || c.Duplicates != uint64(n/2) {
		t.Errorf("after %d rounds: %+v", n, c)
	}
}

// BenchmarkPeers takes an acknowledgement, a data packet and the next
// submission, for each of ten thousand peers in turn.
func BenchmarkPeers(b *testing.B) {
	c := newCrowd(b, wire.Direct)
	bytes := make([]byte, 32)
	i, round := int64(0), uint16(10)
	b.ReportAllocs()
	for b.Loop() {
		peer := machine.Peer(i % manyPeers)
		if peer == 0 {
			round++
		}
		c.acknowledge(b, peer, i)
		c.receive(b, peer, round)
		c.do(b, srdp.Request{To: peer, Bytes: bytes}.Submit())
		i++
	}
	b.ReportMetric(float64(c.e.Size())/manyPeers, "bytes/peer")
	if c.e.queue.Len() != manyPeers {
		b.Fatalf("%d packets under way", c.e.queue.Len())
	}
}

// BenchmarkWake sends ten thousand packets again that are due at once.
func BenchmarkWake(b *testing.B) {
	c := newCrowd(b, wire.Direct)
	b.ReportAllocs()
	for b.Loop() {
		c.now = c.now.Add(time.Second)
		c.out.Reset()
		if err := c.e.Step(c.now, machine.Wake{}, &c.out); err != nil || len(c.out.Transmit) != manyPeers {
			b.Fatalf("%d copies, %v", len(c.out.Transmit), err)
		}
	}
}
