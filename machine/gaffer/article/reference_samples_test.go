package article_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// script returns the inputs of one host in a journal.
func script(j *sim.Journal, host int) (out []machinetest.Timed) {
	for _, e := range j.Entries {
		if e.Host == host {
			out = append(out, machinetest.Timed{At: e.At, In: e.In})
		}
	}
	return out
}

func newBlocks(t *testing.T, o article.BlockOptions) *article.Blocks {
	t.Helper()
	o.Profile = gaffertest.Builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
	b, err := article.NewBlocks(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBlocksSoak sends blocks both ways over bad networks. Each must arrive whole, in
// order and once.
func TestBlocksSoak(t *testing.T) {
	for seed := range uint64(60) {
		w := sim.New(seed)
		rng := w.Rand("test")
		const count = 12
		var sent, got [2][][]byte
		var ends [2]*article.Blocks
		var hosts [2]*sim.Host
		eventDriven := seed%2 == 0
		for i, name := range []string{"a", "b"} {
			ends[i] = newBlocks(t, article.BlockOptions{Side: machine.Side(i), First: 65530})
			app := func(f *sim.Frame) {
				if len(sent[i]) < count && f.Rand.IntN(20) == 0 {
					block := make([]byte, 1+f.Rand.IntN([]int{100, 1024, 32768}[f.Rand.IntN(3)]))
					for k := range block {
						block[k] = byte(f.Rand.Uint32())
					}
					sent[i] = append(sent[i], block)
					f.Do(machine.Submit{Channel: article.ChannelBlock, Payload: block})
				}
			}
			hosts[i] = w.AddHost(name, ends[i],
				sim.HostOptions{Frame: 16 * time.Millisecond, App: app, EventDriven: eventDriven})
		}
		path := sim.Path{
			Delay: time.Duration(rng.IntN(80)) * time.Millisecond, Jitter: time.Duration(rng.IntN(80)) * time.Millisecond,
			Loss: []float64{0, 0.1, 0.5}[rng.IntN(3)], Duplicate: 0.1,
		}
		w.Connect(hosts[0], hosts[1], path, path)
		w.Watch(func(s *sim.Step) {
			for _, d := range s.Out.Deliver {
				if want := uint64(65530 + len(got[s.Host.Index])); d.ID != want {
					t.Fatalf("seed %d: block %d delivered, expected %d", seed, d.ID, want)
				}
				got[s.Host.Index] = append(got[s.Host.Index], bytes.Clone(d.Payload))
			}
		})
		j := w.Record()
		for range 600 {
			if err := w.Run(w.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if len(sent[0]) == count && len(sent[1]) == count && ends[0].Idle() && ends[1].Idle() {
				break
			}
		}
		for i := range sent {
			if !slices.EqualFunc(sent[i], got[1-i], bytes.Equal) {
				t.Fatalf("seed %d: %d blocks sent, %d delivered, or not the same", seed, len(sent[i]), len(got[1-i]))
			}
		}
		if seed == 3 || seed == 4 {
			for i := range 2 {
				t.Run(fmt.Sprintf("laws of side %d, event driven %v", i, eventDriven), func(t *testing.T) {
					machinetest.Endpoint(t, func() machine.Endpoint {
						return newBlocks(t, article.BlockOptions{Side: machine.Side(i), First: 65530})
					}, script(j, i))
				})
			}
		}
	}
}

// TestBlocksInterop runs the reference as both ends of the recorded run of the series'
// sample. It must send every slice and every ack that the real end sent.
func TestBlocksInterop(t *testing.T) {
	const run = "article-chunks-loss25"
	lines := gaffertest.ReadLog(t, run)
	for _, side := range []string{"client", "server"} {
		path := gaffertest.Capture(t, run, side)
		for name, flow := range gaffertest.NearFlows(t, path, lines) {
			b := newBlocks(t, article.BlockOptions{Every: 1, AckEvery: 1, AsSample: true})
			p := gaffertest.Builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
			blocks := map[uint16][]byte{}
			var packet wire.Packet
			for i := range flow {
				if x := flow[i]; x.Own && p.Parse(x.Bytes, len(x.Bytes), &packet) == nil && packet.Kind == wire.KindSlice {
					size := 1024
					if blocks[packet.Chunk] == nil {
						blocks[packet.Chunk] = make([]byte, packet.SliceCount*size)
					}
					data := x.Bytes[packet.PayloadOffset : packet.PayloadOffset+packet.PayloadLen]
					copy(blocks[packet.Chunk][packet.SliceID*size:], data)
					if packet.SliceID == packet.SliceCount-1 {
						blocks[packet.Chunk] = blocks[packet.Chunk][:packet.SliceID*size+len(data)]
					}
				}
			}
			var out machine.Effects
			var pending []gaffertest.TappedDatagram
			submitted, compared := uint16(0), 0
			for _, x := range flow {
				if !x.Own {
					pending = append(pending, x)
					continue
				}
				if p.Parse(x.Bytes, len(x.Bytes), &packet) != nil {
					t.Fatalf("%s: frame %d is no packet of the sample", name, x.Frame)
				}
				if packet.Kind == wire.KindSlice && packet.Chunk == submitted {
					if err := b.Step(x.At, machine.Submit{Channel: article.ChannelBlock, Payload: blocks[submitted]},
						&out); err != nil {
						t.Fatal(err)
					}
					submitted++
				}
				// Arrivals are read in order: as many of them as make the reference send this
				// packet.
				for n := 0; ; n++ {
					c := b.Clone()
					out.Reset()
					if err := c.Step(x.At, machine.Wake{}, &out); err != nil {
						t.Fatal(err)
					}
					if len(out.Transmit) > 0 && bytes.Equal(out.Transmit[0].Bytes, x.Bytes) {
						b = c.(*article.Blocks)
						pending = pending[n:]
						compared++
						break
					}
					if n == len(pending) {
						t.Fatalf("%s: frame %d: %+v: nothing that arrived makes the reference send this", name, x.Frame, packet)
					}
					out.Reset()
					if err := b.Step(x.At, machine.Arrive{Bytes: pending[n].Bytes}, &out); err != nil {
						t.Fatal(err)
					}
				}
			}
			if compared < 40 {
				t.Errorf("%s: only %d packets compared", name, compared)
			}
		}
	}
}

func newConnection(t *testing.T, o article.ConnectOptions) *article.Connection {
	t.Helper()
	o.Profile = gaffertest.Builtin(wire.ArticleConnect).WithProtocolID(0x12341651)
	c, err := article.NewConnection(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConnection takes clients through a server over a bad network. They connect, stay
// connected and leave, and the server counts right.
func TestConnection(t *testing.T) {
	for seed := range uint64(40) {
		w := sim.New(seed)
		server := newConnection(t, article.ConnectOptions{Server: true, Side: machine.B, Seed: seed, Slots: 2})
		hs := w.AddHost("server", server, sim.HostOptions{Frame: 30 * time.Millisecond, EventDriven: seed%2 == 0})
		events := map[string][]machine.EventKind{}
		w.Watch(func(s *sim.Step) {
			for _, e := range s.Out.Events {
				events[s.Host.Name] = append(events[s.Host.Name], e.Kind)
			}
		})
		j := w.Record()
		var clients []*article.Connection
		for i := range 3 {
			c := newConnection(t, article.ConnectOptions{Seed: seed*10 + uint64(i)})
			clients = append(clients, c)
			app := func(f *sim.Frame) {
				if f.Number == 10+i*60 {
					f.Do(machine.Command{Kind: machine.Connect})
				}
				if i == 0 && f.Now > machine.Instant(20*time.Second) && c.Connected(0) {
					f.Do(machine.Command{Kind: machine.Disconnect})
				}
			}
			h := w.AddHost(fmt.Sprint("client ", i), c,
				sim.HostOptions{Frame: 30 * time.Millisecond, App: app, EventDriven: seed%2 == 0})
			path := sim.Path{Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.15, Duplicate: 0.1}
			w.Connect(h, hs, path, path)
		}
		if err := w.Run(machine.Instant(15 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, false} { // two slots
			if clients[i].Connected(0) != want || server.Connected(machine.Peer(i)) != want {
				t.Fatalf("seed %d: client %d connected: %v by its own word, %v by the server's, expected %v", seed, i,
					clients[i].Connected(0), server.Connected(machine.Peer(i)), want)
			}
		}
		if !slices.Equal(events["client 2"], []machine.EventKind{gaffer.EventRefused}) {
			t.Fatalf("seed %d: the third client's events: %v", seed, events["client 2"])
		}
		if err := w.Run(machine.Instant(25 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if clients[0].Connected(0) || server.Connected(0) || !server.Connected(1) {
			t.Fatalf("seed %d: after client 0 left: %v %v, and client 1 %v", seed, clients[0].Connected(0), server.Connected(0),
				server.Connected(1))
		}
		if seed < 2 {
			for i := range 2 {
				t.Run(fmt.Sprintf("laws %d of seed %d", i, seed), func(t *testing.T) {
					o := article.ConnectOptions{Server: true, Side: machine.B, Seed: seed, Slots: 2}
					if i == 1 {
						o = article.ConnectOptions{Seed: seed * 10}
					}
					machinetest.Endpoint(t, func() machine.Endpoint { return newConnection(t, o) }, script(j, i))
				})
			}
		}
	}
}

// TestConnectionTimeout: both ends give up on a silent peer.
func TestConnectionTimeout(t *testing.T) {
	w := sim.New(1)
	server := newConnection(t, article.ConnectOptions{Server: true, Side: machine.B, Timeout: 3 * time.Second})
	client := newConnection(t, article.ConnectOptions{Timeout: 3 * time.Second})
	hs := w.AddHost("server", server, sim.HostOptions{})
	hc := w.AddHost("client", client, sim.HostOptions{App: func(f *sim.Frame) {
		if f.Number == 0 {
			f.Do(machine.Command{Kind: machine.Connect})
		}
	}})
	dead := sim.Path{Outages: []sim.Outage{{From: machine.Instant(5 * time.Second), For: time.Hour}}}
	w.Connect(hc, hs, dead, dead)
	ended := map[string]machine.Instant{}
	w.Watch(func(s *sim.Step) {
		for _, e := range s.Out.Events {
			if e.Kind == gaffer.EventTimedOut {
				ended[s.Host.Name] = s.At
			}
		}
	})
	if err := w.Run(machine.Instant(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"client", "server"} {
		if at := ended[who].Sub(0); at < 7*time.Second || at > 8100*time.Millisecond {
			t.Errorf("%s gave up at %v, expected three seconds after the last packet before 5s", who, at)
		}
	}
}

// TestConnectionBytes compares the handshake with the recorded run of the series'
// sample. With the same salts every kind of packet has the same bytes. The reference's
// client completes the handshake with the real server's packets.
func TestConnectionBytes(t *testing.T) {
	const run = "article-connect"
	lines := gaffertest.ReadLog(t, run)
	path := gaffertest.Capture(t, run, "client")
	p := gaffertest.Builtin(wire.ArticleConnect).WithProtocolID(0x12341651)
	kinds := map[wire.HandshakeKind]int{}
	for name, flow := range gaffertest.NearFlows(t, path, lines) {
		for _, x := range flow {
			var packet wire.Packet
			if err := p.Parse(x.Bytes, len(x.Bytes), &packet); err != nil {
				t.Fatalf("%s: frame %d: %v", name, x.Frame, err)
			}
			var padding []byte
			if packet.Handshake == wire.ConnectRequest {
				padding = make([]byte, wire.RequestPadding)
			}
			if got := p.Append(nil, &packet, padding); !bytes.Equal(got, x.Bytes) {
				t.Fatalf("%s: frame %d: % x, written again % x", name, x.Frame, x.Bytes, got)
			}
			kinds[packet.Handshake]++
		}
	}
	for _, k := range []wire.HandshakeKind{
		wire.ConnectRequest, wire.ConnectChallenge, wire.ConnectResponse,
		wire.ConnectKeepAlive, wire.ConnectDisconnect,
	} {
		if kinds[k] == 0 {
			t.Errorf("no %v in the capture", k)
		}
	}
}
