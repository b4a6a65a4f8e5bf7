package replay_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestOneLiar changes one header of an honest side, at a tap at the side and at one away from it.
// That header is named. None of those behind it is: their acks do not go back, take nothing back,
// and do not show that the capture lacks packets.
func TestOneLiar(t *testing.T) {
	p, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	lies := map[string]func(h *wire.Header){
		"ack is 256 too large":  func(h *wire.Header) { h.Ack = (h.Ack + 256) & 0xffff },
		"its bytes are swapped": func(h *wire.Header) { h.Ack = h.Ack>>8 | h.Ack&0xff<<8 },
		"all bits are set":      func(h *wire.Header) { h.AckBits = 0xffffffff },
	}
	for _, name := range []string{"clean3.client", "clean3.server"} {
		path := realBuild(name)
		frames := framesOf(t, path)
		list, _ := flowOf(t, path)
		for lie, do := range lies {
			if lie == "all bits are set" && name == "clean3.server" {
				continue // away from the side, packets that passed may or may not have reached it
			}
			for at := 200; at < 800; at += 150 {
				i := at
				var k wire.Packet
				for ; ; i++ { // a header that lacks a packet
					if d := &list[i]; d.From == machine.A && p.Parse(d.Bytes, d.Length, &k) == nil && k.HasHeader &&
						k.Header.AckBits&0xffff0000 != 0xffff0000 {
						break
					}
				}
				d := &list[i]
				do(&k.Header)
				number := int(d.Ref.Frame())
				changed, ok := splice(frames[number-1], d.Bytes, p.Append(nil, &k, d.Bytes[k.PayloadOffset:]))
				if !ok {
					t.Fatalf("%s: frame %d: its datagram is not found", name, number)
				}
				lying := slices.Clone(frames)
				lying[number-1] = changed
				list := findingsOf(t, lying, analyze.Options{Registry: registry()})
				holdLiar(t, fmt.Sprintf("%s: frame %d: %s", name, number, lie), list, uint64(number))
			}
		}
	}
}

// holdLiar fails where a finding that is an error, or that says that the capture lacks packets, is
// not of that frame of side A.
func holdLiar(t *testing.T, name string, list []*analyze.Finding, frame uint64) {
	t.Helper()
	named := false
	for _, x := range list {
		if x.Rule.Severity != machine.Error && !x.Rule.CaptureLoss {
			continue
		}
		named = true
		for _, ref := range x.Refs {
			if ref.Frame() != frame || x.Side != machine.A || x.Rule.CaptureLoss {
				t.Errorf("%s: %s of %s in frame %d (%v)", name, x.Rule.ID, x.Side, ref.Frame(), x.Figures)
			}
		}
	}
	if !named {
		t.Errorf("%s: no finding names it", name)
	}
}
