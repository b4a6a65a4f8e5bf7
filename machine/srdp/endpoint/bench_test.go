package endpoint

import (
	"encoding/binary"
	"fmt"
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
// flight to each peer. Each peer has sent packets that must not be delivered
// twice, with the ids 0, 1, 2 and so on.
type crowd struct {
	e    *Endpoint
	form wire.Form
	out  machine.Effects
	now  machine.Instant
	data []byte
	ack  [3]byte
}

// self is the crowd's endpoint, and peerAddress one of its peers, in the proxied
// form.
var self = wire.Address{IP: [4]byte{10, 0, 0, 1}, Port: 1}

func peerAddress(p machine.Peer) wire.Address {
	return wire.Address{IP: [4]byte{10, 1, byte(p >> 8), byte(p)}, Port: 7}
}

// newCrowd returns a crowd of which each peer has sent so many packets.
func newCrowd(t testing.TB, form wire.Form, ids uint16) *crowd {
	t.Helper()
	p := profile(form)
	c := &crowd{form: form}
	e, err := New(Options{Profile: p, Self: self})
	if err != nil {
		t.Fatal(err)
	}
	c.e = e
	for i := range machine.Peer(manyPeers) {
		if form == wire.Proxied {
			c.do(t, Introduce(i, peerAddress(i)))
		}
		c.do(t, srdp.Request{To: i, Bytes: make([]byte, 32)}.Submit())
		for n := range ids {
			c.receive(t, i, n)
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

// receive delivers a data packet of a peer.
func (c *crowd) receive(t testing.TB, from machine.Peer, id uint16) {
	pk := wire.Packet{Command: 0x53, ID: id, Flags: 1}
	if c.form == wire.Proxied {
		pk.Source, pk.Destination = peerAddress(from), self
	}
	c.data = c.e.options.Profile.Append(c.data[:0], &pk, []byte("position"))
	c.do(t, machine.Arrive{From: from, Bytes: c.data})
}

// acknowledge delivers the acknowledgement of an id, in the direct form.
func (c *crowd) acknowledge(t testing.TB, from machine.Peer, id int64) {
	c.ack[0] = 0x41
	binary.BigEndian.PutUint16(c.ack[1:], uint16(id)|wire.AckMark)
	c.do(t, machine.Arrive{From: from, Bytes: c.ack[:]})
}

// peerMemory is the bytes a peer that docs/srdp.md states, to the nearest ten. It
// depends on how many ids the endpoint remembers of each: none, some, the whole
// list.
var peerMemory = []struct {
	form  wire.Form
	ids   uint16
	bytes float64
}{
	{wire.Direct, 0, 370},
	{wire.Direct, 10, 890},
	{wire.Direct, 64, 2430},
	{wire.Proxied, 0, 410},
	{wire.Proxied, 10, 930},
	{wire.Proxied, 64, 2460},
}

// measureCrowd returns a crowd, and the bytes a peer that it has on the heap.
func measureCrowd(t testing.TB, form wire.Form, ids uint16) (c *crowd, heap float64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c = newCrowd(t, form, ids)
	c.out = machine.Effects{}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return c, float64(after.HeapAlloc-before.HeapAlloc) / manyPeers
}

// BenchmarkPeerMemory measures the bytes a peer that docs/srdp.md states.
func BenchmarkPeerMemory(b *testing.B) {
	for _, m := range peerMemory {
		b.Run(fmt.Sprintf("%v/ids=%d", m.form, m.ids), func(b *testing.B) {
			var heap float64
			for b.Loop() {
				var c *crowd
				c, heap = measureCrowd(b, m.form, m.ids)
				runtime.KeepAlive(c)
			}
			b.ReportMetric(heap, "heap-B/peer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestPeerMemory holds the bytes a peer against docs/srdp.md. They must be within
// a tenth: a list or a timer for every peer would add more.
func TestPeerMemory(t *testing.T) {
	testenv.Long(t, "the memory of ten thousand peers")
	for _, m := range peerMemory {
		c, heap := measureCrowd(t, m.form, m.ids)
		own := float64(c.e.Size()) / manyPeers
		t.Logf("%v, %d ids: %.0f bytes a peer on the heap, %.0f by the endpoint's own count", m.form, m.ids, heap, own)
		if heap < m.bytes*0.9 || heap > m.bytes*1.1 {
			t.Errorf("%v, %d ids: %.0f bytes a peer, docs/srdp.md says %.0f", m.form, m.ids, heap, m.bytes)
		}
		if own < heap*3/4 || own > heap*5/4 {
			t.Errorf("%v, %d ids: Size says %.0f bytes a peer, the heap %.0f", m.form, m.ids, own, heap)
		}
		runtime.KeepAlive(c)
	}
}

// One endpoint has ten thousand peers, and one timer for all.
func TestManyPeers(t *testing.T) {
	testenv.Long(t, "ten thousand peers")
	for _, form := range []wire.Form{wire.Direct, wire.Proxied} {
		c := newCrowd(t, form, 1)
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
	c := newCrowd(b, wire.Direct, 10)
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
	c := newCrowd(b, wire.Direct, 10)
	b.ReportAllocs()
	for b.Loop() {
		c.now = c.now.Add(time.Second)
		c.out.Reset()
		if err := c.e.Step(c.now, machine.Wake{}, &c.out); err != nil || len(c.out.Transmit) != manyPeers {
			b.Fatalf("%d copies, %v", len(c.out.Transmit), err)
		}
	}
}
