package replay_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/machine/srdp/judge"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// srdpRun is what a tap at a sees of two right endpoints.
func srdpRun(t *testing.T, p *wire.Profile, ends [2]netip.AddrPort, seed uint64) (list []machine.Datagram) {
	t.Helper()
	w := sim.New(seed)
	var self [2]wire.Address
	for i := range self {
		self[i], _ = wire.AddressOf(ends[i])
	}
	var hosts [2]*sim.Host
	for i := range hosts {
		e, err := endpoint.New(endpoint.Options{Profile: p, Side: machine.Side(i), Self: self[i], First: uint16(32700 * i)})
		if err != nil {
			t.Fatal(err)
		}
		play := func(f *sim.Frame) {
			if f.Number == 0 && p.Form == wire.Proxied {
				f.Do(endpoint.Introduce(0, self[1-i]))
			}
			if f.Now < machine.Instant(6*time.Second) {
				body := make([]byte, 8+f.Rand.IntN(40))
				for k := range body {
					body[k] = byte(f.Rand.Uint32())
				}
				f.Do(model.Request{
					Bytes: body, Repeats: uint8(f.Rand.IntN(4)), Timeout: 150 * time.Millisecond,
					Flags: uint8(f.Rand.IntN(4)),
				}.Submit())
			}
		}
		hosts[i] = w.AddHost([]string{"a", "b"}[i], e,
			sim.HostOptions{Frame: 20 * time.Millisecond, Phase: time.Duration(i) * 7 * time.Millisecond, App: play})
	}
	path := sim.Path{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Duplicate: 0.03}
	w.Connect(hosts[0], hosts[1], path, path).Tap(0, func(seen sim.Tapped) {
		list = append(list, machine.Datagram{
			At: seen.At, Ref: machine.Ref(len(list) + 1), From: machine.Side(seen.From.Index), Bytes: seen.Bytes,
			Length: len(seen.Bytes),
		})
	})
	if err := w.Run(machine.Instant(7 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSRDPLies changes one header of the side at the tap, and expects the judge to
// find it at its frame. What a sender may choose is no lie: an id that is further
// on, the flags of a packet's first copy, its bytes.
func TestSRDPLies(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}
	behaviours := [2]string{judge.Behaviours[0].Name, judge.Behaviours[0].Name}
	planted := map[string]int{}
	for seed := range uint64(4) {
		p := wire.Default().In([]wire.Form{wire.Direct, wire.Proxied}[seed%2])
		p.LittleEndian = seed >= 2
		config := model.Config{Profile: p, MaxPayload: p.MaxPayload(), Rules: model.DefaultRules()}
		list := srdpRun(t, &p, ends, seed)
		judged := func(at int, b []byte) *machine.Opinion {
			j, err := judge.New(config, machine.Facts{Vantage: machine.VantageA}, ends, behaviours)
			if err != nil {
				t.Fatal(err)
			}
			for n := range list {
				d := list[n]
				if n == at {
					d.Bytes, d.Length = b, len(b)
				}
				j.Observe(&d)
			}
			j.Finish()
			if o := j.Opinion(machine.B); o.Divergence != nil {
				t.Errorf("seed %d: the other side diverges: %s at frame %d", seed, o.Divergence.Rule, o.Divergence.Ref.Frame())
			}
			return j.Opinion(machine.A)
		}
		if o := judged(-1, nil); o.Divergence != nil {
			t.Fatalf("seed %d: the right side diverges: %+v", seed, o.Divergence)
		}
		sent := map[uint16]bool{}
		for at := range list {
			var pk wire.Packet
			if list[at].From != machine.A || !p.Fits(list[at].Bytes, list[at].Length, &pk) {
				continue
			}
			copied, payload := sent[pk.ID], list[at].Bytes[pk.PayloadOffset:]
			if !pk.Ack {
				sent[pk.ID] = true
			}
			if at < 30 || rng.IntN(8) > 0 {
				continue
			}
			lie, name := pk, ""
			switch {
			case pk.Ack && rng.IntN(3) == 0:
				lie.ID, name = (pk.ID+uint16(1+rng.IntN(200)))&0x7fff, "acked another id"
			case pk.Ack && rng.IntN(2) == 0:
				name = "no mark"
			case pk.Ack:
				lie.ID, name = (pk.ID-uint16(1+rng.IntN(200)))&0x7fff, "acked an id before"
			case copied && rng.IntN(2) == 0:
				lie.Flags, name = pk.Flags^uint8(1+rng.IntN(3)), "flags of a copy"
			case copied || pk.ID > 20 && pk.Flags&p.Order == 0:
				lie.ID, name = pk.ID-uint16(1+rng.IntN(10)), "id of another packet"
			default:
				continue
			}
			b := p.Append(nil, &lie, payload)
			if name == "no mark" {
				if p.LittleEndian {
					b[2] &^= 0x80
				} else {
					b[1] &^= 0x80
				}
			}
			planted[name]++
			switch d := judged(at, b).Divergence; {
			case d == nil:
				t.Errorf("seed %d: %s in frame %d (%+v): not found", seed, name, at+1, pk)
			case d.Ref != list[at].Ref:
				t.Errorf("seed %d: %s in frame %d (%+v): found at frame %d: %s: %s", seed, name, at+1, pk, d.Ref.Frame(),
					d.Rule, d.Because)
			case d.Field == "" || d.Expected == d.Got:
				t.Errorf("seed %d: %s in frame %d: %s expected %s, got %s", seed, name, at+1, d.Field, d.Expected, d.Got)
			}
		}
	}
	t.Log(planted)
	for _, name := range []string{
		"acked another id", "acked an id before", "no mark", "flags of a copy",
		"id of another packet",
	} {
		if planted[name] < 5 {
			t.Errorf("%s: planted %d times", name, planted[name])
		}
	}
}
