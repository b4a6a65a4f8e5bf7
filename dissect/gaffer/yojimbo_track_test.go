package gaffer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// flowRun is the result of tracking one flow.
type flowRun struct {
	tracker machine.Tracker
	effects machine.Effects
	facts   machine.Facts
}

// openRun tracks every flow of a capture, twice as the analyzer does.
func openRun(t testing.TB, r *yojimboRun, at string, config *wire.Yojimbo) []*flowRun {
	t.Helper()
	first := runOnce(t, r, at, config, nil)
	var facts []machine.Facts
	for _, f := range first {
		facts = append(facts, f.tracker.Learned())
	}
	return runOnce(t, r, at, config, facts)
}

func layersOf(t testing.TB, config *wire.Yojimbo) yojimbo.Layers {
	t.Helper()
	reliable, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	return yojimbo.Layers{Netcode: netcodeProfile(t), Reliable: reliable, Connection: config}
}

func runOnce(t testing.TB, r *yojimboRun, at string, config *wire.Yojimbo, facts []machine.Facts) (flows []*flowRun) {
	t.Helper()
	keys, layers := r.keys(t), layersOf(t, config)
	var out machine.Effects
	keep := func(e *machine.Effects) {
		e.Events = append(e.Events, out.Events...)
		e.Anomalies = append(e.Anomalies, out.Anomalies...)
		e.Messages = append(e.Messages, out.Messages...)
	}
	for _, d := range r.tap(t, at) {
		if d.flow == len(flows) {
			f := &flowRun{}
			if facts != nil {
				f.facts = facts[d.flow]
			}
			f.tracker = yojimbo.NewTracker(layers, netcode.NewDecryptor(keys), f.facts)
			flows = append(flows, f)
		}
		f := flows[d.flow]
		out.Reset()
		f.tracker.Observe(&d.Datagram, &out)
		if out.NewSession {
			t.Fatalf("%s.%s frame %d: taken for a new session", r.name, at, d.Ref.Frame())
		}
		keep(&f.effects)
	}
	for _, f := range flows {
		out.Reset()
		f.tracker.Finish(&out)
		keep(&f.effects)
	}
	return flows
}

// nearSide returns the side at the tap. A sends first, and A is the client.
func nearSide(at string) machine.Side {
	if at == "client" {
		return machine.A
	}
	return machine.B
}

// logged returns the lines of one event at an endpoint's connection.
func (r *yojimboRun) logged(at string, conn int, event string) (out []logLine) {
	for _, l := range r.lines {
		if l.Endpoint == at && l.Conn == conn && l.Event == event {
			out = append(out, l)
		}
	}
	return out
}

// TestInnerPacketsEqualLog: the packets inside that were sent, received and acked are
// exactly those in the log of the endpoint at the tap.
func TestInnerPacketsEqualLog(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		for _, at := range []string{"client", "server"} {
			near := nearSide(at)
			for i, f := range openRun(t, r, at, r.configuration(t)) {
				if len(r.logged(at, r.connOf(at, i), "sent")) == 0 || r.silent(at, i) {
					continue
				}
				if v := f.facts.Vantage; !v.Near(near) {
					t.Errorf("%s.%s flow %d: the tap is at %v (%s)", name, at, i, v, f.facts.VantageReason)
				}
				for kind, event := range map[machine.EventKind]string{
					machine.EventSent: "sent", machine.EventReceived: "received",
					machine.EventAcked: "acked",
				} {
					var got, want []int
					for _, e := range f.effects.Events {
						if e.Kind == kind && e.Side == near {
							got = append(got, int(e.Sequence))
						}
					}
					last := r.lastSent(at, r.connOf(at, i))
					for _, l := range r.logged(at, r.connOf(at, i), event) {
						// What was read after the last header shows nowhere.
						if event == "sent" || l.T <= last || slices.Contains(got, l.Seq) {
							want = append(want, l.Seq)
						} else if l.T > last+2/r.config.TickHz {
							t.Errorf("%s.%s flow %d: %s %d is left open %.3f s after the last header", name, at, i, event, l.Seq, l.T-last)
						}
					}
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						t.Errorf("%s.%s flow %d: %s %d packets, logged %d; %s", name, at, i, event, len(got), len(want),
							difference(got, want))
					}
				}
			}
		}
	}
}

// silent reports whether a flow never became a connection.
func (r *yojimboRun) silent(at string, flow int) bool {
	return r.name == "yojimbo-wrong-key" && flow == 0 || r.name == "yojimbo-denied-full" &&
		len(r.logged(at, r.connOf(at, flow), "received")) == 0
}

func difference(got, want []int) string {
	var more, less []int
	for _, g := range got {
		if !slices.Contains(want, g) {
			more = append(more, g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			less = append(less, w)
		}
	}
	return fmt.Sprintf("only found %v, only logged %v", more[:min(len(more), 20)], less[:min(len(less), 20)])
}

// TestMessagesReceivedEqualLog: the messages delivered to the endpoint at the tap are
// those that it logged, in each channel's order, with types, bodies and blocks.
func TestMessagesReceivedEqualLog(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		y, bodies := r.configuration(t), bodiesOf(r.config.Schema)
		for _, at := range []string{"client", "server"} {
			near := nearSide(at)
			compared := 0
			for i, f := range openRun(t, r, at, y) {
				want := map[int][]string{}
				for _, l := range r.logged(at, r.connOf(at, i), "msg_received") {
					want[l.Channel] = append(want[l.Channel], fmt.Sprintf("%d type %d %s", l.ID, l.Type, loggedText(t, l.Body)))
				}
				got := map[int][]string{}
				for _, m := range deliveredTo(f, near) {
					var br bits.Reader
					br.Reset(m.Body, int(m.BodyBit))
					v, err := bodies(m.Type, &br)
					if err != nil {
						t.Errorf("%s.%s flow %d: body of %+v: %v", name, at, i, m, err)
						continue
					}
					id, block := m.ID, m.Data
					if m.Mode == machine.ModeUnreliable {
						id = int64(m.Sequence)
					}
					if m.Block == 0 {
						block = nil
					}
					got[m.Channel] = append(got[m.Channel], fmt.Sprintf("%d type %d %s", uint16(id), m.Type, bodyText(t, v, block)))
				}
				for channel := range y.Channels {
					compared += len(want[channel])
					if !slices.Equal(got[channel], want[channel]) {
						k := 0
						for k < min(len(got[channel]), len(want[channel])) && got[channel][k] == want[channel][k] {
							k++
						}
						t.Errorf("%s.%s flow %d channel %d: %d messages, logged %d; from %d on %.300q, logged %.300q", name,
							at, i, channel,
							len(got[channel]), len(want[channel]), k, got[channel][k:min(k+2, len(got[channel]))],
							want[channel][k:min(k+2, len(want[channel]))])
					}
				}
			}
			if compared == 0 {
				t.Errorf("%s.%s: nothing was compared", name, at)
			}
			t.Logf("%s.%s: %d messages", name, at, compared)
		}
	}
}

// deliveredTo returns the messages that were delivered to a side, in order.
func deliveredTo(f *flowRun, side machine.Side) (out []machine.Message) {
	for _, m := range f.effects.Messages {
		if m.From != side && m.Delivered == machine.Yes {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b machine.Message) int {
		if a.Mode == machine.ModeReliable && b.Mode == machine.ModeReliable && a.Channel == b.Channel {
			return int(a.ID - b.ID)
		}
		return int(a.DeliveredAt - b.DeliveredAt)
	})
	return out
}
