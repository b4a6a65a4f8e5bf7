package gaffer

import (
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	machinenetcode "github.com/ackscope/ackscope/machine/gaffer/netcode"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	"github.com/ackscope/ackscope/machine/machinetest"
)

// TestYojimboTrackerLaws: the laws of trackers hold for decrypted flows. Trackers are
// deterministic, clones are independent, and no borrowed bytes are kept.
func TestYojimboTrackerLaws(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-blocks-loss30")
	config := r.configuration(t)
	var flow []machine.Datagram
	for _, d := range r.tap(t, "client")[:600] {
		flow = append(flow, d.Datagram)
	}
	keys, layers := r.keys(t), layersOf(t, config)
	facts := machine.Facts{Vantage: machine.VantageA}
	machinetest.Tracker(t, func() machine.Tracker {
		return yojimbo.NewTracker(layers, netcode.NewDecryptor(keys), facts)
	}, flow)
	machinetest.Tracker(t, func() machine.Tracker {
		return machinenetcode.NewTracker(layers.Netcode, facts)
	}, flow)
}

// TestDissectDecrypted: every datagram of every run dissects without a problem. Its
// fields lie within it, and connection packets have theirs.
func TestDissectDecrypted(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		keys := r.keys(t)
		set := newProfileSet(nil, keys)
		config := set.secure(Yojimbo, r.configuration(t))
		var d dissect.Dissection
		seen := map[string]int{}
		for _, dg := range r.tap(t, "server") {
			d.Reset()
			ctx := dissect.Context{Config: config, From: dg.From}
			Dissect(ctx, &dg.Datagram, &d)
			if d.Problem != nil {
				t.Errorf("%s frame %d: %v", name, dg.Ref.Frame(), d.Problem)
			}
			for _, f := range d.Fields {
				seen[f.Spec.Name]++
				if int(f.Bit+f.Bits) > dg.Length*8 {
					t.Errorf("%s frame %d: %s at bit %d of %d bits lies outside %d bytes", name, dg.Ref.Frame(), f.Spec.Name, f.Bit,
						f.Bits, dg.Length)
				}
			}
			if len(Info(ctx, &dg.Datagram, nil)) == 0 {
				t.Errorf("%s frame %d: no line", name, dg.Ref.Frame())
			}
		}
		for _, want := range []string{
			"gaffer.sequence", "gaffer.ack_bits", "gaffer.yojimbo.entries", "gaffer.message.type",
			"gaffer.netcode.token.client_id",
		} {
			if seen[want] == 0 {
				t.Errorf("%s: no field %s", name, want)
			}
		}
	}
}
