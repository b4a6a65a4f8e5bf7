package gaffer_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestSampleSlips: an endpoint whose times or counts are not the reference's
// diverges at the tap by the rule that it breaks, and its honest peer nowhere.
func TestSampleSlips(t *testing.T) {
	net := sampleNet{seed: 3, frame: 5 * time.Millisecond, seconds: 20, path: sim.Path{Delay: 60 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.1}}
	blocks := builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
	connect := builtin(wire.ArticleConnect).WithProtocolID(0x12341651)
	send := func(f *sim.Frame) {
		if f.Rand.IntN(20) == 0 {
			f.Do(machine.Submit{Channel: gaffer.ChannelBlock, Payload: make([]byte, 1+f.Rand.IntN(20000))})
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
			"slice-resent-early", "gaffer@article", blocks, machine.A,
			[2]machine.Endpoint{newBlocks(t, gaffer.BlockOptions{Resend: 50 * time.Millisecond}), newBlocks(t, gaffer.BlockOptions{Side: machine.B})}, [2]sim.App{send, nil},
		},
		{
			"slice-order", "gaffer@article-sample", blocks, machine.A, // it waits, and goes on behind what it sent
			[2]machine.Endpoint{newBlocks(t, gaffer.BlockOptions{}), newBlocks(t, gaffer.BlockOptions{Side: machine.B})}, [2]sim.App{send, nil},
		},
		{
			"ack-early", "gaffer@article", blocks, machine.B,
			[2]machine.Endpoint{newBlocks(t, gaffer.BlockOptions{}), newBlocks(t, gaffer.BlockOptions{Side: machine.B, AckEvery: 40 * time.Millisecond})}, [2]sim.App{send, nil},
		},
		{
			"connect-early", "gaffer@article", connect, machine.A,
			[2]machine.Endpoint{newConnection(t, gaffer.ConnectOptions{Every: 40 * time.Millisecond}), newConnection(t, gaffer.ConnectOptions{Side: machine.B, Server: true})}, [2]sim.App{come, nil},
		},
		{
			"connect-farewells", "gaffer@article-sample", connect, machine.A,
			[2]machine.Endpoint{newConnection(t, gaffer.ConnectOptions{Farewells: 3}), newConnection(t, gaffer.ConnectOptions{Side: machine.B, Server: true})}, [2]sim.App{come, nil},
		},
		{
			"connect-timeout", "gaffer@article", connect, machine.B, // nothing tells it that the client has gone
			[2]machine.Endpoint{newConnection(t, gaffer.ConnectOptions{Timeout: time.Hour}), newConnection(t, gaffer.ConnectOptions{Side: machine.B, Server: true, Timeout: time.Hour})},
			[2]sim.App{come, nil},
		},
	} {
		n := net
		if x.rule == "connect-timeout" {
			n.path.Outages = []sim.Outage{{From: machine.Instant(3 * time.Second), For: time.Hour}}
		}
		seen := n.run(t, x.ends, x.apps)
		for k, tap := range sampleTaps {
			j, err := gaffer.NewSampleJudge(x.profile, machine.Facts{Vantage: tap}, [2]string{x.behaviour, x.behaviour})
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
				t.Errorf("%s, tap at %v: away from the side it is found in frame %d: %s: %s", x.rule, tap, v.Ref.Frame(), v.Rule, v.Because)
			case tap.Near(x.side) && v == nil:
				t.Errorf("%s, tap at %v: not found", x.rule, tap)
			case tap.Near(x.side) && v.Rule != x.rule:
				t.Errorf("%s, tap at %v: frame %d: %s: %s", x.rule, tap, v.Ref.Frame(), v.Rule, v.Because)
			}
			if v := j.Opinion(x.side.Other()).Divergence; v != nil && x.rule != "connect-timeout" {
				t.Errorf("%s, tap at %v: the honest side diverges in frame %d: %s: %s", x.rule, tap, v.Ref.Frame(), v.Rule, v.Because)
			}
		}
	}
}
