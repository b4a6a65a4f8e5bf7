package gaffer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// headsAtOdds compares what an inferred configuration without message types reads at certain with
// what the game wrote. It returns the first difference, "" for none.
func headsAtOdds(found, truth *wire.Yojimbo, payload []byte) string {
	var got, want wire.ConnectionPacket
	if err := truth.Parse(payload, &want); err != nil {
		return "the game's own configuration: " + err.Error()
	}
	if err := found.Parse(payload, &got); err != nil && !errors.Is(err, wire.ErrOpaque) {
		return "" // the tracker doubts all lanes from here on
	}
	for i := range got.Entries {
		e := &got.Entries[i]
		if found.Channels[e.Channel].Doubtful {
			continue
		}
		if i >= len(want.Entries) || want.Entries[i].Channel != e.Channel || want.Entries[i].Block != e.Block {
			return fmt.Sprintf("entry %d: channel %d", i, e.Channel)
		}
		w := &want.Entries[i]
		if e.Block && (e.Fragment.ID != w.Fragment.ID || e.Fragment.Index != w.Fragment.Index ||
			e.Fragment.Count != w.Fragment.Count || e.Fragment.Size != w.Fragment.Size) {
			return fmt.Sprintf("entry %d: fragment %+v, expected %+v", i, e.Fragment, w.Fragment)
		}
		if e.Count != w.Count {
			return fmt.Sprintf("entry %d: %d messages, expected %d", i, e.Count, w.Count)
		}
		for k := range e.Count {
			if id, is := got.Messages[e.First+k].ID, want.Messages[w.First+k].ID; id != is {
				return fmt.Sprintf("entry %d: message %d, expected %d", i, id, is)
			}
		}
	}
	return ""
}

// shown returns how many channels of a configuration have facts that are certain.
func shown(y *wire.Yojimbo) (n int) {
	for i := range y.Channels {
		if !y.Channels[i].Doubtful {
			n++
		}
	}
	return n
}

// TestProvedHeads infers games made at random, and parts of the recorded runs. Where the number of
// message types is undecided, the channels that are not doubtful must read as the game wrote them.
// In some games an unreliable channel looks like a reliable one: its messages begin with a number
// that rises.
func TestProvedHeads(t *testing.T) {
	seeds := uint64(testenv.Rounds(40, 80, 600)) // 600 take five minutes
	undecided, proved := 0, 0
	for seed := range seeds {
		g := newMadeGame(t, seed)
		if seed%3 == 0 {
			for kind := range g.widths { // all types begin with a number that rises
				g.widths[kind], g.content[kind] = g.widths[kind]+16, 2
			}
		}
		s := &yojimbo.Sample{}
		var packets [][]byte
		for n := range 30 + g.random.IntN(400) {
			packets = append(packets, g.packet(n%2))
			s.Add(machine.Side(n%2), int64(n/2), packets[n])
		}
		i := s.Infer()
		if i == nil || !i.Config.TypesUnknown {
			continue
		}
		undecided++
		if shown(i.Config) > 0 {
			proved++
		}
		for n, p := range packets {
			if odds := headsAtOdds(i.Config, g.config, p); odds != "" {
				t.Errorf("seed %d, packet %d of %d: %s", seed, n, len(packets), odds)
				break
			}
		}
	}
	t.Logf("of %d games that leave the number of types open, %d prove a channel", undecided, proved)
	if proved < int(seeds)/20 {
		t.Errorf("of %d games that leave the number of types open, %d prove a channel", undecided, proved)
	}
}

// TestProvedHeadsRecorded is TestProvedHeads over parts of the recorded runs.
func TestProvedHeadsRecorded(t *testing.T) {
	taps, sizes, places := []string{"client"}, []int{96, 500}, 1
	if testenv.Soak() {
		taps, sizes, places = []string{"client", "server"}, []int{24, 48, 64, 96, 128, 192, 256, 300, 400, 500, 800, 1e6}, 5
	}
	undecided, proved := 0, 0
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
					n = min(n, len(all))
					for k := range places {
						part := all[k*(len(all)-n)/max(places-1, 1):][:n]
						s := &yojimbo.Sample{}
						for _, p := range part {
							s.Add(p.from, int64(p.sequence), p.payload)
						}
						i := s.Infer()
						if i == nil || !i.Config.TypesUnknown {
							continue
						}
						undecided++
						if shown(i.Config) > 0 {
							proved++
						}
						for _, p := range part {
							if odds := headsAtOdds(i.Config, y, p.payload); odds != "" {
								t.Fatalf("%s.%s flow %d, %d packets, part %d, frame %d: %s", name, at, flow, n, k, p.ref.Frame(), odds)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("of %d parts that leave the number of types open, %d prove a channel", undecided, proved)
	if proved < 4 {
		t.Errorf("of %d parts that leave the number of types open, %d prove a channel", undecided, proved)
	}
}
