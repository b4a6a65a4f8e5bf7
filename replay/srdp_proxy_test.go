package replay_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/machine/srdp/judge"
	"github.com/ackscope/ackscope/sim"
	simsrdp "github.com/ackscope/ackscope/sim/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// proxied is a world in which a client and a server talk through a proxy.
type proxied struct {
	profile        wire.Profile
	client, server []machine.Datagram // what a tap at each of them sees; A is that end, B the proxy
}

var (
	proxyClient = netip.MustParseAddrPort("10.0.0.1:30000")
	proxyServer = netip.MustParseAddrPort("10.0.0.2:40000")
	proxyItself = netip.MustParseAddrPort("10.0.0.3:50000")
)

// throughProxy runs both ends for six seconds, the client with a fault.
func throughProxy(t *testing.T, via simsrdp.Via, seed uint64, fault *endpoint.Fault) *proxied {
	t.Helper()
	x := &proxied{profile: wire.Default().In(wire.Proxied)}
	flags, err := simsrdp.Services(&x.profile, "any")
	if err != nil {
		t.Fatal(err)
	}
	kit, err := simsrdp.New(simsrdp.Kit{
		Profile: &x.profile, Via: via, Server: proxyServer, First: [2]uint16{32700, 9},
		Rate: [2]float64{25, 25}, Least: 4, Most: 40, Flags: flags, Repeats: uint8(seed % 4),
		Timeout: 150 * time.Millisecond, Faults: [2]*endpoint.Fault{sim.Client: fault},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := sim.New(seed)
	hosts := map[sim.Role]*sim.Host{}
	for role, at := range map[sim.Role]netip.AddrPort{
		sim.Client: proxyClient, sim.Server: proxyServer,
		sim.Proxy: proxyItself,
	} {
		end, err := kit.End(role, 0, at)
		if err != nil {
			t.Fatal(err)
		}
		rhythm := kit.Rhythm(role)
		hosts[role] = w.AddHost(kit.Name(role, 0), end.Endpoint,
			sim.HostOptions{Frame: rhythm.Frame, EventDriven: rhythm.EventDriven, App: end.App})
	}
	path := sim.Path{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Duplicate: 0.03}
	w.Connect(hosts[sim.Server], hosts[sim.Proxy], path, path).Tap(0, func(s sim.Tapped) {
		x.server = append(x.server, seenAt(s, hosts[sim.Server], s.Bytes, len(x.server)))
	})
	if via == simsrdp.ViaUDP {
		w.Connect(hosts[sim.Client], hosts[sim.Proxy], path, path).Tap(0, func(s sim.Tapped) {
			x.client = append(x.client, seenAt(s, hosts[sim.Client], s.Bytes, len(x.client)))
		})
	} else {
		whole := sim.Path{Delay: 20 * time.Millisecond}
		rest := map[*sim.Host][]byte{}
		w.ConnectStream(hosts[sim.Client], hosts[sim.Proxy], whole, whole).Tap(0, func(s sim.Tapped) {
			if s.Kind != machine.SendBytes {
				return
			}
			b := append(rest[s.From], s.Bytes...)
			for {
				packet, left, ok, err := x.profile.NextFrame(b, wire.MaxCall)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				x.client = append(x.client, seenAt(s, hosts[sim.Client], slices.Clone(packet), len(x.client)))
				b = left
			}
			rest[s.From] = slices.Clone(b)
		})
	}
	if err := w.Run(machine.Instant(6 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return x
}

func seenAt(s sim.Tapped, a *sim.Host, b []byte, before int) machine.Datagram {
	d := machine.Datagram{At: s.At, Ref: machine.MakeRef(0, uint64(before+1)), From: machine.B, Bytes: b, Length: len(b)}
	if s.From == a {
		d.From = machine.A
	}
	return d
}

// judged judges a flow between an end and the proxy.
func (x *proxied) judged(t *testing.T, list []machine.Datagram, end netip.AddrPort, stream bool,
	vantage machine.Vantage,
) (own, proxy *machine.Opinion) {
	t.Helper()
	name := judge.Behaviours[0].Name
	config := model.Config{
		Profile: x.profile, MaxPayload: x.profile.MaxPayload(), Rules: model.DefaultRules(),
		Stream: stream,
	}
	ends := [2]netip.AddrPort{end, proxyItself}
	j, err := judge.New(config, machine.Facts{Vantage: vantage}, ends, [2]string{name, name})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		d := list[i]
		j.Observe(&d)
	}
	j.Finish()
	return j.Opinion(machine.A), j.Opinion(machine.B)
}

// TestSRDPBehindProxy: a correct client and a correct server conform, whatever
// proxy is between them. What the proxy sends for others is never proved.
func TestSRDPBehindProxy(t *testing.T) {
	for seed := range uint64(8) {
		for _, via := range []simsrdp.Via{simsrdp.ViaUDP, simsrdp.ViaTCP} {
			x := throughProxy(t, via, seed, nil)
			stream := via == simsrdp.ViaTCP
			vantages := []machine.Vantage{machine.VantageA}
			if stream { // the tap shows all of a stream, wherever it is
				vantages = append(vantages, machine.VantageUnknown)
			}
			hold := func(who string, own, proxy *machine.Opinion) {
				t.Helper()
				if own.Verdict() != "conforms" || own.Compared < 40 {
					t.Errorf("seed %d, proxy %v: the %s %s: %+v, divergence %+v", seed, via, who, own.Verdict(), own, own.Divergence)
				}
				if proxy.Verdict() != "consistent" {
					t.Errorf("seed %d, proxy %v: the proxy of the %s %s: %+v", seed, via, who, proxy.Verdict(), proxy.Divergence)
				}
			}
			for _, v := range vantages {
				own, proxy := x.judged(t, x.client, proxyClient, stream, v)
				hold("client", own, proxy)
			}
			own, proxy := x.judged(t, x.server, proxyServer, false, machine.VantageA)
			hold("server", own, proxy)
			if own, _ := x.judged(t, x.server, proxyServer, false, machine.VantageB); own.Verdict() != "consistent" {
				t.Errorf("seed %d, proxy %v: the server, far from the tap, %s", seed, via, own.Verdict())
			}
		}
	}
}

// TestSRDPFaultsBehindProxy: a fault of the client shows behind a UDP proxy too.
func TestSRDPFaultsBehindProxy(t *testing.T) {
	for _, name := range []string{
		"ack-missing", "ack-twice", "duplicate-unanswered", "ack-id-off-by-one",
		"ack-mark-missing", "ack-byte-order", "resend-renumbered", "resend-changed", "id-repeated", "order-ignored",
	} {
		fault := endpoint.LookupFault(name)
		if fault == nil {
			t.Fatalf("no fault %q", name)
		}
		x := throughProxy(t, simsrdp.ViaUDP, 3, fault)
		if own, _ := x.judged(t, x.client, proxyClient, false, machine.VantageA); own.Verdict() != "diverges" {
			t.Errorf("%s: the client %s", name, own.Verdict())
		}
	}
}

// TestSRDPStreamLies changes one packet that a client of a TCP proxy wrote. The
// judge must find it there, and must not find it in what the proxy wrote.
func TestSRDPStreamLies(t *testing.T) {
	x := throughProxy(t, simsrdp.ViaTCP, 1, nil)
	p := &x.profile
	var data [2][]int // the places of data, by side
	for i := range x.client {
		var pk wire.Packet
		if d := &x.client[i]; p.Fits(d.Bytes, d.Length, &pk) && !pk.Ack {
			data[d.From] = append(data[d.From], i)
		}
	}
	for _, c := range []struct {
		rule string
		make func(list []machine.Datagram, of []int) []machine.Datagram
	}{
		{"repeat-on-stream", func(list []machine.Datagram, of []int) []machine.Datagram {
			return slices.Insert(list, of[20], list[of[19]])
		}},
		{"sequence", func(list []machine.Datagram, of []int) []machine.Datagram {
			b := slices.Clone(list[of[20]].Bytes)
			var pk wire.Packet
			p.Fits(list[of[3]].Bytes, len(list[of[3]].Bytes), &pk)
			lie := pk
			p.Fits(b, len(b), &pk)
			pk.ID, pk.Flags = lie.ID, 0
			// An id that was skipped would be free: so leave the earlier packet out.
			list[of[20]].Bytes = p.Append(nil, &pk, b[pk.PayloadOffset:])
			return slices.Delete(list, of[3], of[3]+1)
		}},
	} {
		for _, side := range []machine.Side{machine.A, machine.B} {
			list := c.make(slices.Clone(x.client), data[side])
			own, proxy := x.judged(t, list, proxyClient, true, machine.VantageUnknown)
			switch d := own.Divergence; {
			case side == machine.A && (d == nil || d.Rule.ID != c.rule || d.Captured == ""):
				t.Errorf("%s: the client %s: %+v", c.rule, own.Verdict(), d)
			case side == machine.B && own.Verdict() != "conforms":
				t.Errorf("%s of the proxy: the client %s: %+v", c.rule, own.Verdict(), d)
			case proxy.Verdict() != "consistent":
				t.Errorf("%s of side %v: the proxy %s: %+v", c.rule, side, proxy.Verdict(), proxy.Divergence)
			}
		}
	}
	// Before the proxy has acknowledged anything, nothing tells which is the
	// client.
	early := slices.DeleteFunc(slices.Clone(x.client), func(d machine.Datagram) bool {
		var pk wire.Packet
		return p.Fits(d.Bytes, d.Length, &pk) && pk.Ack
	})
	if own, _ := x.judged(t, early, proxyClient, true, machine.VantageUnknown); own.Verdict() != "consistent" {
		t.Errorf("without an acknowledgement the client %s", own.Verdict())
	}
}
