package gaffer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestUndecidedTypes: the test messages of yojimbo do not show how many types there are. Then no
// message has a type, and no unreliable one is certain. The ids of the reliable channel are proved.
// So each message of it has the life that it has with the run's own configuration.
func TestUndecidedTypes(t *testing.T) {
	for name, decided := range map[string]bool{
		"yojimbo-single-channel-type": false, "yojimbo-testmsgs-loss10": false, "yojimbo-server-kick": true,
	} {
		r := readYojimboRun(t, name)
		inferred, given := openRun(t, r, "client", nil)[0], openRun(t, r, "client", r.configuration(t))[0]
		type key struct {
			from machine.Side
			id   int64
		}
		truth := map[key]*machine.Message{}
		for i := range given.effects.Messages {
			if m := &given.effects.Messages[i]; m.Channel == 0 && m.Mode == machine.ModeReliable {
				truth[key{m.From, m.ID}] = m
			}
		}
		typed, certain, unreliable := 0, 0, 0
		for i := range inferred.effects.Messages {
			m := &inferred.effects.Messages[i]
			if !m.Untyped {
				typed++
			}
			if m.Certainty != machine.Certain {
				continue
			}
			if m.Mode != machine.ModeReliable {
				unreliable++
				continue
			}
			certain++
			is := truth[key{m.From, m.ID}]
			if is == nil || m.Channel != 0 || m.Attempts != is.Attempts || m.Frames != is.Frames ||
				m.Delivered != is.Delivered || m.DeliveredAt != is.DeliveredAt || m.Acked != is.Acked ||
				m.AckedAt != is.AckedAt || is.Certainty != machine.Certain {
				t.Errorf("%s: %+v\nexpected %+v", name, m, is)
			}
		}
		if certain < len(truth)*9/10 || len(truth) < 60 {
			t.Errorf("%s: %d of %d reliable messages are certain", name, certain, len(truth))
		}
		if all := len(inferred.effects.Messages); decided && (typed != all || unreliable == 0) {
			t.Errorf("%s: %d of %d messages typed, %d unreliable ones certain", name, typed, all, unreliable)
		}
		if !decided && typed+unreliable > 0 {
			t.Errorf("%s: types undecided; %d messages typed, %d unreliable ones certain", name, typed, unreliable)
		}
	}
}

// TestContradictedInference: once a packet contradicts an inferred configuration, neither that
// packet nor any message of its sender is certain.
func TestContradictedInference(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-single-channel-type")
	y := r.configuration(t)
	wrong := &wire.Yojimbo{Channels: y.Channels, MessageTypes: 1, Bodies: madeBodies{17}}
	if err := wrong.Validate(); err != nil {
		t.Fatal(err)
	}
	facts := openRun(t, r, "client", y)[0].tracker.Learned()
	facts.Settings = &yojimbo.Inference{Config: wrong}
	var since [2]machine.Instant
	malformed := 0
	f := runOnce(t, r, "client", nil, []machine.Facts{facts})[0]
	for _, a := range f.effects.Anomalies {
		if a.Rule != messages.MalformedConnection {
			continue
		}
		if malformed++; a.Certainty != machine.Likely {
			t.Fatalf("frame %d is malformed: %v", a.Ref.Frame(), a.Certainty)
		}
		if since[a.Side] == 0 {
			since[a.Side] = a.At
		}
	}
	certain := 0
	for _, e := range f.effects.Events {
		if from := e.Side.Other(); e.Kind == machine.EventDelivered && e.Certainty == machine.Certain {
			if certain++; since[from] != 0 && e.At > since[from] {
				t.Fatalf("message %d is delivered for certain, after a packet that contradicts the configuration", e.Sequence64)
			}
		}
	}
	if malformed < 100 {
		t.Errorf("%d packets are malformed, %d deliveries certain", malformed, certain)
	}
}

// TestTypeWithoutBody: a profile without a schema gives the number of types. Then the type of
// the first message of each packet is read, and the others stay open. One type needs no bit.
func TestTypeWithoutBody(t *testing.T) {
	for name, all := range map[string]bool{"yojimbo-denied-full": false, "yojimbo-single-channel-type": true} {
		r := readYojimboRun(t, name)
		y := r.configuration(t)
		truth := map[[2]int64]uint32{}
		for _, m := range openRun(t, r, "client", y)[0].effects.Messages {
			if m.From == machine.A && m.ID >= 0 {
				truth[[2]int64{int64(m.Channel), m.ID}] = m.Type
			}
		}
		blind := &wire.Yojimbo{Channels: y.Channels, MessageTypes: y.MessageTypes, BlockTypes: y.BlockTypes}
		if err := blind.Validate(); err != nil {
			t.Fatal(err)
		}
		typed, untyped := 0, 0
		for _, m := range openRun(t, r, "client", blind)[0].effects.Messages {
			if m.From != machine.A || m.ID < 0 {
				continue
			}
			if m.Untyped {
				untyped++
				continue
			}
			if typed++; m.Type != truth[[2]int64{int64(m.Channel), m.ID}] {
				t.Errorf("%s channel %d message %d: type %d, with its body type %d", name, m.Channel, m.ID, m.Type,
					truth[[2]int64{int64(m.Channel), m.ID}])
			}
		}
		if typed == 0 || all != (untyped == 0) {
			t.Errorf("%s: %d messages have a type, %d have none", name, typed, untyped)
		}
	}
}

// TestInferLittle infers from few packets of each run, from its start, middle and end. If the
// number of types is decided, every packet must read as by the run's own configuration. What is
// stated of a channel must be right in any case.
func TestInferLittle(t *testing.T) {
	taps, sizes, places := []string{"client"}, []int{24, 128}, 2
	if testenv.Whole() {
		taps, sizes, places = []string{"client", "server"}, []int{24, 32, 48, 64, 96, 128, 192, 300, 500}, 3
	}
	decided, open := 0, 0
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		y := r.configuration(t)
		for _, at := range taps {
			flows := map[int][]openedPacket{}
			for _, p := range r.packets(t, at) {
				flows[p.flow] = append(flows[p.flow], p)
			}
			for flow, all := range flows {
				for _, n := range sizes {
					for k := range places {
						from := k * (len(all) - n) / max(places-1, 1)
						if from < 0 || len(all) < n {
							continue
						}
						s := &yojimbo.Sample{}
						for _, p := range all[from : from+n] {
							s.Add(p.from, int64(p.sequence), p.payload)
						}
						i := s.Infer()
						if i == nil {
							continue
						}
						checkInference(t, r, i)
						if t.Failed() {
							t.Fatalf("%s.%s flow %d: %d packets from %d on", name, at, flow, n, from)
						}
						if i.TypesMost == 0 {
							open++
							continue
						}
						decided++
						for _, p := range all[from : from+n] {
							if got, want := readAs(i.Config, p.payload), readAs(y, p.payload); !strings.HasPrefix(want, got) {
								t.Fatalf("%s.%s flow %d, %d packets from %d on: %d types at most; frame %d reads as\n%s, is\n%s", name,
									at, flow, n, from, i.TypesMost, p.ref.Frame(), got, want)
							}
						}
					}
				}
			}
		}
	}
	if decided < 8 || open < 8 {
		t.Errorf("%d samples decide the number of types, %d leave it open", decided, open)
	}
}

// readAs writes what a configuration reads in a connection packet, up to the first message
// that it does not read.
func readAs(y *wire.Yojimbo, payload []byte) string {
	var p wire.ConnectionPacket
	_ = y.Parse(payload, &p) // what was read before an error counts
	var b strings.Builder
	for i := range p.Entries {
		e := &p.Entries[i]
		fmt.Fprintf(&b, "channel %d:", e.Channel)
		if f := &e.Fragment; e.Block {
			fmt.Fprintf(&b, " block %d, %d of %d, %d bytes;", f.ID, f.Index, f.Count, f.Size)
			continue
		}
		all := p.Messages[e.First : e.First+e.Count]
		if y.Channels[e.Channel].Type == wire.ReliableOrdered {
			for _, m := range all {
				fmt.Fprintf(&b, " id %d", m.ID)
			}
		}
		for _, m := range all {
			if !m.Read {
				return b.String()
			}
			fmt.Fprintf(&b, " type %d to bit %d", m.Type, m.End)
		}
		b.WriteString(";")
	}
	return b.String()
}
