package gaffer

import (
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// tamperingOpener decrypts as another Opener does, and changes one packet.
type tamperingOpener struct {
	yojimbo.Opener
	at  machine.Ref
	lie []byte
}

func (o *tamperingOpener) Open(d *machine.Datagram, pk *wire.Packet) ([]byte, error) {
	plain, err := o.Opener.Open(d, pk)
	if err == nil && d.Ref == o.at {
		return o.lie, nil
	}
	return plain, err
}

func (o *tamperingOpener) Clone() yojimbo.Opener {
	c := *o
	c.Opener = o.Opener.Clone()
	return &c
}

// TestYojimboTampered changes one header of the side at the tap, behind its encryption.
// The judge must find it at its frame.
func TestYojimboTampered(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	planted := map[string]int{}
	behaviour := [2]string{"reliable@>=1.3", "reliable@>=1.3"}
	for n, name := range yojimboRuns {
		if testing.Short() && n%4 > 0 {
			continue
		}
		r := readYojimboRun(t, name)
		keys, config := r.keys(t), r.configuration(t)
		layers := layersOf(t, config)
		facts := openRun(t, r, "client", config)[0].tracker.Learned()
		facts.Vantage = machine.VantageA
		// The side's packets in the clear.
		var list []machine.Datagram
		type sent struct {
			at    int
			plain []byte
			k     wire.Packet
		}
		var own []sent
		o := netcode.NewDecryptor(keys)
		for _, d := range r.tap(t, "client") {
			if d.flow != 0 {
				continue
			}
			list = append(list, d.Datagram)
			var pk wire.Packet
			switch {
			case layers.Netcode.Parse(d.Bytes, d.Length, &pk) != nil:
			case pk.NetcodeType == wire.NetcodeRequestType:
				_ = o.Request(&d.Datagram) // as the judge does
			case pk.NetcodeType == wire.NetcodePayload:
				plain, err := o.Open(&d.Datagram, &pk)
				x := sent{at: len(list) - 1, plain: append([]byte(nil), plain...)}
				if err == nil && d.From == machine.A && layers.Reliable.Parse(x.plain, len(x.plain), &x.k) == nil && x.k.HasHeader {
					own = append(own, x)
				}
			}
		}
		if len(own) < 100 {
			continue
		}
		for range 6 {
			i := 50 + rng.IntN(len(own)-60)
			x, was := &own[i], own[i-1].k.Header
			h, what := x.k.Header, ""
			switch rng.IntN(4) {
			case 0:
				h.Ack, what = (h.Ack+uint32(100+rng.IntN(1000)))&0xffff, "ack ahead"
			case 1:
				h.Ack, what = (h.Ack-uint32(40+rng.IntN(100)))&0xffff, "ack behind"
			case 2:
				if moved := (h.Ack - was.Ack) & 0xffff; was.AckBits != 0 && moved < 20 && was.AckBits&1 == 1 {
					h.AckBits &^= 1 << moved
					what = "bit cleared"
				}
			case 3:
				h.Sequence, what = (h.Sequence+uint32(1+rng.IntN(30)))&0xffff, "sequence skipped"
			}
			k := x.k
			k.Header, k.Sequence = h, h.Sequence
			lie := layers.Reliable.Append(nil, &k, x.plain[k.PayloadOffset:k.PayloadOffset+k.PayloadLen])
			if what == "" || x.k.Kind != wire.KindRegular {
				continue
			}
			planted[what]++
			ref := list[x.at].Ref
			j, err := judge.NewYojimbo(layers, &tamperingOpener{netcode.NewDecryptor(keys), ref, lie}, facts, behaviour)
			if err != nil {
				t.Fatal(err)
			}
			for n := range list {
				j.Observe(&list[n])
			}
			j.Finish()
			switch d := j.Opinion(machine.A).Divergence; {
			case d == nil:
				t.Errorf("%s: %s in frame %d: not found", name, what, ref.Frame())
			case d.Ref != ref:
				t.Errorf("%s: %s in frame %d: found at frame %d: %s: %s", name, what, ref.Frame(), d.Ref.Frame(), d.Rule, d.Because)
			}
		}
	}
	t.Log(planted)
	for _, what := range []string{"ack ahead", "ack behind", "bit cleared", "sequence skipped"} {
		if planted[what] < 2 && !testing.Short() {
			t.Errorf("%s: planted %d times", what, planted[what])
		}
	}
}
