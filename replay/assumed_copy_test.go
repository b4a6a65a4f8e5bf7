package replay

import (
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// TestAssumedCopy: a message that is sent again under the next number shows when that number
// comes again with other contents. Which message it is a copy of rests on likeSpan and
// likeTime, which no test measures. So the divergence is likely at most.
func TestAssumedCopy(t *testing.T) {
	codec := wire.Codec{Dialect: wire.V21}
	var config *dissect.Config
	for _, p := range riptide.Protocol.Profiles {
		if c := *p.Config; p.Name == "2.1" {
			c.Facts = machine.Facts{Vantage: machine.VantageA}
			config = &c
		}
	}
	if config == nil {
		t.Fatal("no built-in profile 2.1 of riptide")
	}
	const behaviour = "riptide@2.1.1-2.2.1"
	judge, err := riptide.Protocol.NewJudge(config, [2]string{behaviour, behaviour})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range []struct {
		sequence uint16
		body     byte
	}{{10, 1}, {11, 2}, {12, 1}, {12, 3}} { // the third is the first again, but for its number
		m := wire.Message{Type: wire.Reliable, Sequence: x.sequence, MessageID: 7}
		b, err := codec.Append(nil, &m, []byte{x.body, 0, 0, 0}, 32)
		if err != nil {
			t.Fatal(err)
		}
		ref, at := machine.MakeRef(0, uint64(i+1)), machine.Instant(i)*50_000_000
		judge.Observe(&machine.Datagram{Ref: ref, At: at, From: machine.A, Bytes: b, Length: len(b)})
	}
	judge.Finish()
	d := judge.Opinion(machine.A).Divergence
	if d == nil || d.Rule.ID != "sequence" || d.Ref.Frame() != 3 || d.RestsOn != machine.RestsOnOwn || !d.Assumed {
		t.Fatalf("%+v, expected sequence in frame 3, of its own packets, assumed", d)
	}
	r := Result{Side: machine.A, Opinion: machine.Opinion{Divergence: d}, counted: true}
	if got := r.Certainty(); got != machine.Likely {
		t.Errorf("%s, expected likely", got)
	}
}
