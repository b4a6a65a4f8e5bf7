package replay

import (
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestAssumed: a divergence that a limit without a measured margin decides is likely at most,
// in a file that counts what the tap dropped too. Here the capture joins a flow at packet 1000.
// A header of the side at the tap names packet 990, which no header named before. Up to the
// third header it may have lain in the socket; from the fourth on the limit joinedHeaders
// speaks against it. Packet 1008 did not pass at any time: it is further ahead of the first
// packet of the capture than a packet overtakes others.
func TestAssumed(t *testing.T) {
	profile, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	const joined, late, never = 1000, 990, 1008
	for name, c := range map[string]struct {
		named   uint32
		headers int // of the side, before the one that names it
		assumed bool
		want    machine.Certainty
	}{
		"in the socket":      {late, 1, false, machine.Unknown},
		"beyond the limit":   {late, 6, true, machine.Likely},
		"never at any time":  {never, 6, false, machine.Certain},
		"ahead of the limit": {never, 1, false, machine.Certain},
	} {
		facts := machine.Facts{Vantage: machine.VantageA}
		config := &dissect.Config{Dialect: wire.Reliable, Profile: profile, Facts: facts}
		judge, err := gaffer.Protocol.NewJudge(config, [2]string{"reliable@>=1.3", "reliable@>=1.3"})
		if err != nil {
			t.Fatal(err)
		}
		frame, next := 0, [2]uint32{machine.A: 500, machine.B: joined}
		send := func(from machine.Side, ack, bits uint32) {
			frame++
			sequence := next[from]
			next[from]++
			k := wire.Packet{Kind: wire.KindRegular, HasHeader: true, Sequence: sequence}
			k.Header = wire.Header{Sequence: sequence, Ack: ack, AckBits: uint64(bits)}
			b := profile.Append(nil, &k, []byte("payload"))
			at := machine.Instant(frame) * 10_000_000
			ref := machine.MakeRef(0, uint64(frame))
			judge.Observe(&machine.Datagram{Ref: ref, At: at, From: from, Bytes: b, Length: len(b)})
		}
		ack := uint32(joined)
		send(machine.B, 499, 1)
		for range c.headers {
			send(machine.A, ack, 1)
		}
		if c.named == never {
			// Its peer goes on. That number does not pass the tap.
			for ack < never+2 {
				if ack++; ack == never {
					next[machine.B]++
					continue
				}
				send(machine.B, 499, 1)
				send(machine.A, ack, bitsDown(ack, joined, never))
			}
		}
		send(machine.A, ack, bitsDown(ack, joined, never)|1<<(ack-c.named))
		judge.Finish()
		d := judge.Opinion(machine.A).Divergence
		r := Result{Side: machine.A, Flow: &analyze.Flow{}, Opinion: machine.Opinion{Divergence: d}, counted: true}
		if c.want == machine.Unknown {
			if d != nil {
				t.Errorf("%s: %s in frame %d, expected none", name, d.Rule.ID, d.Ref.Frame())
			}
			continue
		}
		if d == nil || d.Rule.ID != "ack-never-arrived" || d.Assumed != c.assumed {
			t.Errorf("%s: %+v, expected ack-never-arrived, assumed %v", name, d, c.assumed)
			continue
		}
		if got := r.Certainty(); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
}

// bitsDown returns the ack_bits that name all from ack down to first, but for one.
func bitsDown(ack, first, but uint32) (bits uint32) {
	for n := first; n <= ack; n++ {
		if n != but {
			bits |= 1 << (ack - n)
		}
	}
	return bits
}
