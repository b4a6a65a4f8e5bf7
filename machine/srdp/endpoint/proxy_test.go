package endpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

const (
	client1 = "0a000001 0001"
	client2 = "0a000002 0002"
	server1 = "0a000063 0063"
)

func packed(parts ...string) string {
	s := ""
	for _, p := range parts {
		for _, c := range p {
			if c != ' ' {
				s += string(c)
			}
		}
	}
	return s
}

func TestUDPProxy(t *testing.T) {
	p, err := NewUDPProxy(ProxyOptions{Profile: profile(wire.Proxied), Peers: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, e: p}
	data, ack := packed("530001", client1, server1, "00 61"), packed("418001", server1, client1)
	r.is(0, arrive(0, data), "") // the server is unknown
	r.is(1, Introduce(5, address("10.0.0.99:99")), "")
	r.is(2, arrive(0, data), "5:"+data)
	r.is(3, arrive(5, ack), "0:"+ack) // the client was learned
	r.is(4, arrive(1, data), "5:"+data)
	r.is(5, arrive(5, ack), "1:"+ack) // it has moved
	r.is(6, arrive(1, packed("530002", server1, client1, "00")), "1:"+packed("530002", server1, client1, "00"))
	r.is(7, arrive(0, data), "5:"+data) // an introduced address does not move
	r.is(8, arrive(0, packed("530003", client2, server1, "00")), "5:"+packed("530003", client2, server1, "00"))
	r.is(9, arrive(0, packed("530004 0a000003 0003", server1, "00")), "5:"+packed("530004 0a000003 0003", server1, "00"))
	// There is room for three addresses: the proxy forgets the client that it
	// learned first, until that sends again. Introduced addresses stay.
	r.is(10, arrive(5, ack), "")
	r.is(11, arrive(5, packed("418004", server1, "0a000003 0003")), "0:"+packed("418004", server1, "0a000003 0003"))
	r.is(12, arrive(1, data), "5:"+data)
	r.is(13, arrive(5, ack), "1:"+ack)
	r.is(14, arrive(0, "00"), "")
	if got := p.Counts(); got != (ProxyCounts{Forwarded: 11, Unknown: 2, Foreign: 1}) {
		t.Errorf("counts %+v", got)
	}
	open, err := NewUDPProxy(ProxyOptions{Profile: profile(wire.Proxied), Open: true})
	if err != nil {
		t.Fatal(err)
	}
	r = &rig{t: t, e: open}
	r.is(0, arrive(3, data), "4:"+data) // numbered by the proxy
	if a, ok := open.Address(4); !ok || a != address("10.0.0.99:99") || open.Next() != 5 {
		t.Errorf("peer 4 is %v, the next one %d", a, open.Next())
	}
	if _, err := NewUDPProxy(ProxyOptions{Profile: profile(wire.Direct)}); err == nil {
		t.Error("a proxy of the direct form was made")
	}
}

func bytesOf(from machine.Peer, hex string) machine.Input {
	return machine.Bytes{From: from, Bytes: arrive(0, hex).(machine.Arrive).Bytes}
}

func TestTCPProxy(t *testing.T) {
	p, err := NewTCPProxy(TCPProxyOptions{
		ProxyOptions: ProxyOptions{Profile: profile(wire.Proxied)}, Repeats: 2,
		Timeout: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, e: p}
	r.is(0, Introduce(5, address("10.0.0.99:99")), "")
	r.is(0, machine.Open{Peer: 0}, "")
	r.is(0, machine.Open{Peer: 1}, "")
	// The client's id is 0x111; the proxy uses its own ids.
	frame := packed("0011 530111", client1, server1, "00 61")
	r.is(1, bytesOf(0, frame[:20]), "")
	r.is(2, bytesOf(0, frame[20:]), "5:"+packed("530000", client1, server1, "00 61")+" | sent 0")
	r.deadline(102)
	r.is(102, machine.Wake{}, "5:"+packed("530000", client1, server1, "00 61")+" | resent 0")
	ack := packed("418000", server1, client1)
	r.is(110, arrive(5, ack), "0="+packed("000f 418111", server1, client1)+" | acked 0")
	r.is(111, arrive(5, ack), "acked_again 0")
	// Two packets in one piece; the destination of the first is unknown.
	r.is(112, bytesOf(1, packed("0010 530007", client2, client1, "00", "0010 530008", client2, server1, "02")),
		"5:"+packed("530001", client2, server1, "02")+" | sent 1")
	// The proxy acknowledges data for a client.
	data := packed("530044", server1, client2, "00 7a")
	r.is(113, arrive(5, data), "5:"+packed("418044", client2, server1)+" | 1="+packed("0011", data)+" | received 68")
	r.is(114, arrive(5, packed("530045", server1, "0a000009 0009", "00")), "") // for no client
	r.is(115, bytesOf(1, packed("000f 418044", client2, server1)), "")         // not needed
	// Refused: another source, another client's address, and an unknown
	// service.
	r.is(116, bytesOf(1, packed("0010 530009", client1, server1, "00", "0010 530009", client2, server1, "80")), "")
	// A client that has left gets no acknowledgements; what it sent still goes
	// out.
	r.is(117, machine.Close{Peer: 1}, "")
	r.is(118, arrive(5, data), "")
	r.is(119, arrive(5, packed("418001", server1, client2)), "acked 1 in 7ms")
	r.is(120, arrive(5, packed("418001", server1, client2)), "")
	// The address is free again.
	r.is(121, machine.Open{Peer: 1}, "")
	r.is(122, bytesOf(1, packed("0010 530001", client2, server1, "00")),
		"5:"+packed("530002", client2, server1, "00")+" | sent 2")
	r.is(222, machine.Wake{}, "5:"+packed("530002", client2, server1, "00")+" | resent 2")
	r.is(322, machine.Wake{}, "gave_up 2") // the client is not informed
	// A stream that cannot be framed is closed.
	r.is(400, bytesOf(0, "0225"), "close 0")
	r.is(401, bytesOf(0, frame), "")
	if got := p.Counts(); got != (ProxyCounts{Forwarded: 5, Unknown: 1, Refused: 2}) {
		t.Errorf("counts %+v", got)
	}
}

func TestStream(t *testing.T) {
	s, err := NewStream(StreamOptions{Profile: profile(wire.Proxied), First: 0x111, Self: address("10.0.0.1:1"), Proxy: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, e: s}
	r.is(0, Introduce(7, address("10.0.0.99:99")), "")
	r.is(0, send(7, "a", 0, 0, 0), "error: submit: no stream to the proxy")
	r.is(0, machine.Command{Kind: machine.Connect}, "open 3")
	r.is(1, machine.Open{Peer: 3}, "")
	r.is(2, send(7, "a", 0, 0, 1), "3="+packed("0011 530111", client1, server1, "01 61")+" | sent 273")
	r.is(3, send(8, "a", 0, 0, 1), "error: submit: unknown peer 8: expected one that was introduced")
	r.is(3, send(7, "a", 0, 0, 8), "error: submit: flags 0x08: service not implemented: expected none beside 0x03")
	r.deadline(-1)
	both := packed("000f 418111", server1, client1, "0011 530005", server1, client1, "00 62")
	r.is(4, bytesOf(3, both[:50]), "acked 273")
	r.is(5, bytesOf(3, both[50:]), "7<5(b) | received 5")
	r.is(6, bytesOf(3, packed("000f 418111", server1, client1)), "acked_again 273")
	r.is(7, bytesOf(3, packed("0011 530006 0a000042 0042", client1, "00 63")), "8<6(c) | received 6") // new peer
	r.is(8, bytesOf(3, packed("0011 530006", server1, client2, "00 63")), "")                         // for another client
	r.is(9, send(7, "d", 0, 0, 0), "3="+packed("0011 530112", client1, server1, "00 64")+" | sent 274")
	r.is(10, bytesOf(3, "ffff"), "close 3")
	r.is(11, send(7, "a", 0, 0, 0), "error: submit: no stream to the proxy")
	r.is(12, machine.Open{Peer: 3}, "")
	r.is(13, bytesOf(3, packed("000f 418112", server1, client1)), "acked_again 274") // of the stream before
	r.is(14, machine.Command{Kind: machine.Disconnect}, "close 3")
	for _, o := range []StreamOptions{
		{},
		{Profile: profile(wire.Direct)},
		{Profile: profile(wire.Proxied), First: 1 << 15},
	} {
		if _, err := NewStream(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// relayed is a world in which two clients and a server talk through a proxy.
type relayed struct {
	*meeting
	journal *sim.Journal
	proxy   *sim.Host
}

// Hosts 0 and 1 are the clients, host 2 is the server, host 3 is the proxy. The
// proxy's peers are numbered in the order of the links.
func newRelayed(t *testing.T, seed uint64, stream bool, path sim.Path) *relayed {
	t.Helper()
	name := fmt.Sprintf("seed %d, stream %v, %+v", seed, stream, path)
	r := &relayed{meeting: &meeting{world: sim.New(seed), ledger: newLedger(t, name)}}
	r.journal = r.world.Record()
	if stream {
		r.ledger.taken = func(p *promised) bool { return p.to < 2 }
	}
	addresses := []wire.Address{address("10.0.0.1:1"), address("10.0.0.2:2"), address("10.0.0.99:99")}
	p := profile(wire.Proxied)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	numbers := []map[int]machine.Peer{{2: 1}, {2: 1}, {0: 1, 1: 2}}
	var fresh []machine.Endpoint
	for i := range 2 {
		if stream {
			e, err := NewStream(StreamOptions{Profile: p, Self: addresses[i], First: uint16(30000 * i)})
			must(err)
			fresh = append(fresh, e)
			continue
		}
		e, err := New(Options{Profile: p, Self: addresses[i], ByProxy: true, First: uint16(30000 * i)})
		must(err)
		fresh = append(fresh, e)
	}
	server, err := New(Options{Profile: p, Self: addresses[2], ByProxy: true})
	must(err)
	fresh = append(fresh, server)
	var proxy machine.Endpoint
	if stream {
		proxy, err = NewTCPProxy(TCPProxyOptions{ProxyOptions: ProxyOptions{Profile: p}})
	} else {
		proxy, err = NewUDPProxy(ProxyOptions{Profile: p})
	}
	must(err)
	draw := func(rng *rand.Rand) (flags, repeats uint8, timeout time.Duration) {
		flags, repeats, timeout = anything(rng)
		if stream {
			repeats = 0 // the proxy decides
		}
		return flags, repeats, timeout
	}
	for i, e := range fresh {
		app := r.talk(i, numbers[i], 10, 5*time.Second, draw)
		self, greeted := i, false
		r.hosts = append(r.hosts,
			r.world.AddHost(fmt.Sprint("host ", i), e, sim.HostOptions{EventDriven: true, App: func(f *sim.Frame) {
				// The journal needs a time for each input: the other inputs
				// come a moment later.
				if f.Number == 0 {
					for to, peer := range numbers[self] {
						f.Do(Introduce(peer, addresses[to]))
					}
					if stream && self < 2 {
						f.Do(machine.Command{Kind: machine.Connect})
					}
				}
				s, over := f.Endpoint().(*Stream)
				// A proxy learns the address of a client from the client's
				// first packet.
				if over && s.Connected() && !greeted {
					greeted = true
					f.Do(srdp.Request{To: 1, Bytes: r.ledger.draw(f.Rand, self, 2, 0, 0, 60)}.Submit())
				}
				if f.Now > machine.Instant(time.Second) && (!over || s.Connected()) {
					app(f)
				}
			}}))
	}
	r.proxy = r.world.AddHost("proxy", proxy, sim.HostOptions{EventDriven: true, App: func(f *sim.Frame) {
		if f.Number == 0 {
			f.Do(Introduce(2, addresses[2]))
		}
	}})
	for i := range 3 {
		if stream && i < 2 {
			r.world.ConnectStream(r.hosts[i], r.proxy, path, path)
		} else {
			r.world.Connect(r.hosts[i], r.proxy, path, path)
		}
	}
	r.watch(p)
	return r
}

func TestByProxies(t *testing.T) {
	for seed := range uint64(soakSeeds(t, 10)) {
		for _, stream := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(seed, 9))
			r := newRelayed(t, seed, stream, sim.Path{
				Delay: time.Duration(rng.IntN(60)) * time.Millisecond, Jitter: time.Duration(rng.IntN(40)) * time.Millisecond,
				Loss: []float64{0, 0.05, 0.2}[rng.IntN(3)], Duplicate: []float64{0, 0.1}[rng.IntN(2)],
			})
			if err := r.world.Run(machine.Instant(3 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			r.ledger.end()
			if r.ledger.count < 40 {
				t.Errorf("%s: %d submissions", r.ledger.name, r.ledger.count)
			}
			if stream {
				for id, o := range r.proxy.Endpoint().(*TCPProxy).pending {
					t.Errorf("%s: submission %d is still under way: %+v", r.ledger.name, id, o)
				}
			}
		}
	}
}

// The tests of machinetest, with what the hosts of these worlds did.
func TestLaws(t *testing.T) {
	path := sim.Path{Delay: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.2, Duplicate: 0.1}
	for _, stream := range []bool{false, true} {
		r := newRelayed(t, 1, stream, path)
		fresh := map[int]machine.Endpoint{}
		for i, h := range r.world.Hosts() {
			fresh[i] = h.Endpoint().Clone()
		}
		if err := r.world.Run(machine.Instant(4 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"client", "client", "server", "proxy"} {
			if i == 1 {
				continue // like the other client
			}
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				machinetest.Endpoint(t, func() machine.Endpoint { return fresh[i].Clone() }, scriptOf(r.journal, i))
			})
		}
	}
	t.Run("direct", func(t *testing.T) {
		e, err := New(Options{
			Profile: profile(wire.Direct), First: 32760, Limit: 2 * time.Second,
			Rules: srdp.Rules{Recent: 5, Remember: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.New(5)
		m := &meeting{world: w, ledger: newLedger(t, "direct")}
		journal := w.Record()
		app := m.talk(0, map[int]machine.Peer{1: 0}, 40, 4*time.Second, anything)
		m.hosts = append(m.hosts, w.AddHost("host 0", e.Clone(), sim.HostOptions{EventDriven: true, App: func(f *sim.Frame) {
			app(f)
			if f.Number == 50 {
				f.Do(cancel(e.Submitted() + 20))
			}
			if f.Number == 120 {
				f.Do(machine.Command{Kind: machine.Disconnect, Peer: 0})
			}
		}}))
		m.hosts = append(m.hosts,
			w.AddHost("host 1", e.Clone(),
				sim.HostOptions{EventDriven: true, App: m.talk(1, map[int]machine.Peer{0: 0}, 40, 4*time.Second, anything)}))
		w.Connect(m.hosts[0], m.hosts[1], path, path)
		if err := w.Run(machine.Instant(6 * time.Second)); err != nil {
			t.Fatal(err)
		}
		machinetest.Endpoint(t, e.Clone, scriptOf(journal, 0))
	})
}

func scriptOf(j *sim.Journal, host int) (script []machinetest.Timed) {
	for _, e := range j.Entries {
		if e.Host == host {
			script = append(script, machinetest.Timed{At: e.At, In: e.In})
		}
	}
	return script
}

// Any bytes, as datagrams or as a stream, in pieces of any size.
func FuzzProxies(f *testing.F) {
	f.Add([]byte{0, 17, 0x53, 1, 17, 10, 0, 0, 1, 0, 1, 10, 0, 0, 99, 0, 99, 0, 'a'}, uint8(3))
	f.Add([]byte{0x53, 1, 17, 10, 0, 0, 1, 0, 1, 10, 0, 0, 99, 0, 99, 0, 'a'}, uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		p := profile(wire.Proxied)
		udp, _ := NewUDPProxy(ProxyOptions{Profile: p, Open: true, Peers: 4})
		tcp, _ := NewTCPProxy(TCPProxyOptions{ProxyOptions: ProxyOptions{Profile: p, Open: true, Peers: 4}, Repeats: 1})
		stream, _ := NewStream(StreamOptions{Profile: p, Self: address("10.0.0.99:99"), Peers: 4})
		server, _ := New(Options{Profile: p, Self: address("10.0.0.99:99"), Peers: 4})
		var out machine.Effects
		for _, e := range []machine.Endpoint{udp, tcp, stream, server} {
			for i := range 3 {
				ins := []machine.Input{machine.Arrive{From: machine.Peer(i), Bytes: b}}
				switch e.(type) {
				case *TCPProxy:
					at := min(int(cut), len(b))
					ins = append(ins, machine.Open{Peer: machine.Peer(i)}, machine.Bytes{From: machine.Peer(i), Bytes: b[:at]},
						machine.Bytes{From: machine.Peer(i), Bytes: b[at:]})
				case *Stream:
					at := min(int(cut), len(b))
					ins = []machine.Input{machine.Open{}, machine.Bytes{Bytes: b[:at]}, machine.Bytes{Bytes: b[at:]}}
				}
				for _, in := range append(ins, machine.Wake{}) {
					out.Reset()
					if err := e.Step(machine.Instant(i)*machine.Instant(time.Hour), in, &out); err != nil {
						t.Fatalf("%T refused %T: %v", e, in, err)
					}
				}
			}
		}
	})
}
