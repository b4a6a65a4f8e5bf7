package article_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestSampleSlips plants endpoints whose times or counts are wrong. Each diverges at the tap
// by the rule that it breaks, and its right peer does not diverge.
func TestSampleSlips(t *testing.T) {
	net := sampleNet{
		seed: 3, frame: 5 * time.Millisecond, seconds: 20,
		path: sim.Path{Delay: 60 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.1},
	}
	blocks := gaffertest.Builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
	connect := gaffertest.Builtin(wire.ArticleConnect).WithProtocolID(0x12341651)
	send := func(f *sim.Frame) {
		if f.Rand.IntN(20) == 0 {
			f.Do(machine.Submit{Channel: article.ChannelBlock, Payload: make([]byte, 1+f.Rand.IntN(20000))})
		}
	}
	come := func(f *sim.Frame) {
		switch f.Number {
		case 1:
			f.Do(machine.Command{Kind: machine.Connect})
		case 1200:
			f.Do(machine.Command{Kind: machine.Disconnect})
		}
	}
	for _, x := range []struct {
		rule, behaviour string
		profile         *wire.Profile
		side            machine.Side // the one that slips
		ends            [2]machine.Endpoint
		apps            [2]sim.App
	}{
		{
			rule: "slice-resent-early", behaviour: "gaffer@article", profile: blocks, side: machine.A,
			ends: [2]machine.Endpoint{
				newBlocks(t, article.BlockOptions{Resend: 50 * time.Millisecond}),
				newBlocks(t, article.BlockOptions{Side: machine.B}),
			},
			apps: [2]sim.App{send, nil},
		},
		{
			// it waits, and goes on behind what it sent
			rule: "slice-order", behaviour: "gaffer@article-sample", profile: blocks, side: machine.A,
			ends: [2]machine.Endpoint{newBlocks(t, article.BlockOptions{}), newBlocks(t, article.BlockOptions{Side: machine.B})},
			apps: [2]sim.App{send, nil},
		},
		{
			rule: "ack-early", behaviour: "gaffer@article", profile: blocks, side: machine.B,
			ends: [2]machine.Endpoint{
				newBlocks(t, article.BlockOptions{}),
				newBlocks(t, article.BlockOptions{Side: machine.B, AckEvery: 40 * time.Millisecond}),
			},
			apps: [2]sim.App{send, nil},
		},
		{
			rule: "connect-early", behaviour: "gaffer@article", profile: connect, side: machine.A,
			ends: [2]machine.Endpoint{
				newConnection(t, article.ConnectOptions{Every: 40 * time.Millisecond}),
				newConnection(t, article.ConnectOptions{Side: machine.B, Server: true}),
			},
			apps: [2]sim.App{come, nil},
		},
		{
			rule: "connect-farewells", behaviour: "gaffer@article-sample", profile: connect, side: machine.A,
			ends: [2]machine.Endpoint{
				newConnection(t, article.ConnectOptions{Farewells: 3}),
				newConnection(t, article.ConnectOptions{Side: machine.B, Server: true}),
			},
			apps: [2]sim.App{come, nil},
		},
		{
			// nothing tells it that the client has gone
			rule: "connect-timeout", behaviour: "gaffer@article", profile: connect, side: machine.B,
			ends: [2]machine.Endpoint{
				newConnection(t, article.ConnectOptions{Timeout: time.Hour}),
				newConnection(t, article.ConnectOptions{Side: machine.B, Server: true, Timeout: time.Hour}),
			},
			apps: [2]sim.App{come, nil},
		},
	} {
		n := net
		if x.rule == "connect-timeout" {
			n.path.Outages = []sim.Outage{{From: machine.Instant(3 * time.Second), For: time.Hour}}
		}
		seen := n.run(t, x.ends, x.apps)
		for k, tap := range sampleTaps {
			j, err := article.NewJudge(x.profile, machine.Facts{Vantage: tap}, [2]string{x.behaviour, x.behaviour})
			if err != nil {
				t.Fatal(err)
			}
			for i := range seen[k] {
				j.Observe(&seen[k][i])
			}
			j.Finish()
			v := j.Opinion(x.side).Divergence
			switch {
			case !tap.Near(x.side) && v != nil:
				t.Errorf("%s, tap at %v: away from the side it is found in frame %d: %s: %s", x.rule, tap, v.Ref.Frame(),
					v.Rule, v.Because)
			case tap.Near(x.side) && v == nil:
				t.Errorf("%s, tap at %v: not found", x.rule, tap)
			case tap.Near(x.side) && v.Rule.ID != x.rule:
				t.Errorf("%s, tap at %v: frame %d: %s: %s", x.rule, tap, v.Ref.Frame(), v.Rule, v.Because)
			}
			if v := j.Opinion(x.side.Other()).Divergence; v != nil && x.rule != "connect-timeout" {
				t.Errorf("%s, tap at %v: the honest side diverges in frame %d: %s: %s", x.rule, tap, v.Ref.Frame(),
					v.Rule, v.Because)
			}
		}
	}
}

// TestSampleHostile: packets whose fields are anything, in any order, from either
// side, do not bring a judge or a tracker down.
func TestSampleHostile(t *testing.T) {
	flows := 400
	if testing.Short() {
		flows = 60
	}
	for flow := range uint64(flows) {
		rng := sim.Rand(flow, "hostile")
		p := gaffertest.Builtin([]string{
			wire.ArticleSlices, wire.ArticleSlices256, wire.ArticleFragments,
			wire.ArticleConnect,
		}[flow%4]).WithProtocolID(7)
		j, err := article.NewJudge(p, machine.Facts{Vantage: machine.Vantage(rng.IntN(5))},
			[2]string{"gaffer@article", "gaffer@article-sample"})
		if err != nil {
			t.Fatal(err)
		}
		tr := article.NewTracker(p, machine.Facts{})
		var out machine.Effects
		now, most := machine.Instant(0), max(p.Slices, 2)
		span := []int{3, 40, 1 << 16}[rng.IntN(3)]
		for n := range 400 {
			now = now.Add(time.Duration(rng.IntN(int(200 * time.Millisecond))))
			if rng.IntN(100) == 0 {
				now = now.Add(5 * time.Second)
			}
			k := wire.Packet{
				Sequence: uint32(rng.IntN(span)), Chunk: uint16(rng.IntN(span)), ClientSalt: uint64(rng.IntN(3)),
				ChallengeSalt: uint64(rng.IntN(3)),
			}
			k.Header.Sequence = k.Sequence
			var payload []byte
			switch {
			case p.Handshake:
				k.Kind, k.Type = wire.KindHandshake, uint32(rng.IntN(6))
				if k.Handshake = wire.HandshakeKind(k.Type); k.Handshake == wire.ConnectRequest {
					payload = make([]byte, wire.RequestPadding)
				}
			case p.Slices > 0 && rng.IntN(2) == 0:
				k.Kind, k.Type, k.SliceCount = wire.KindSliceAck, 1, 1+rng.IntN(most)
				for i := range k.SliceCount {
					k.SliceAcked[i/64] |= rng.Uint64() & (1 << (i % 64))
				}
			case p.Slices > 0:
				k.Kind, k.SliceCount = wire.KindSlice, 1+rng.IntN(most)
				k.SliceID = rng.IntN(k.SliceCount)
				payload = make([]byte, 1024)
				if k.SliceID == k.SliceCount-1 {
					payload = payload[:1+rng.IntN(1024)]
				}
			case rng.IntN(2) == 0:
				k.Kind, k.Type, payload = wire.KindRegular, 1, make([]byte, 1+rng.IntN(1200))
			default:
				k.Kind, k.FragmentCount, payload = wire.KindFragment, 1+rng.IntN(255), make([]byte, 1024)
				k.FragmentID = rng.IntN(k.FragmentCount)
			}
			b := p.Append(nil, &k, payload)
			length := len(b)
			switch rng.IntN(12) {
			case 0:
				b = b[:rng.IntN(len(b)+1)]
				length -= rng.IntN(2) * (length - len(b)) // cut by the snap length, or by its sender
			case 1:
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
			d := machine.Datagram{
				At: now, Ref: machine.MakeRef(0, uint64(n+1)), From: machine.Side(rng.IntN(2)), Bytes: b,
				Length: length,
			}
			j.Observe(&d)
			tr.Observe(&d, &out)
		}
		j.Finish()
		tr.Learned()
		for _, s := range []machine.Side{machine.A, machine.B} {
			if o := j.Opinion(s); o.Undecided > o.Compared+400 || o.Divergence != nil &&
				(o.Divergence.Rule == nil || o.Divergence.RestsOn == 0 || o.Divergence.Field == "" ||
					o.Divergence.Expected == o.Divergence.Got) {
				t.Fatalf("flow %d: %v: %+v, %+v", flow, s, o, o.Divergence)
			}
		}
	}
}
