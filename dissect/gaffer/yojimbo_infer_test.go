package gaffer

import (
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sampleOf returns the connection packets of one flow of a capture.
func sampleOf(t testing.TB, r *yojimboRun, at string, flow int) (s *yojimbo.Sample, n int) {
	t.Helper()
	s = &yojimbo.Sample{}
	for _, p := range r.packets(t, at) {
		if p.flow == flow {
			s.Add(p.from, int64(p.sequence), p.payload)
			n++
		}
	}
	return s, n
}

// checkInference compares what was inferred with the run's own configuration. A stated
// value must be right, and a range must contain the truth.
func checkInference(t *testing.T, r *yojimboRun, i *yojimbo.Inference) {
	t.Helper()
	y := r.configuration(t)
	if len(i.Config.Channels) != len(y.Channels) {
		t.Errorf("%d channels, expected %d", len(i.Config.Channels), len(y.Channels))
		return
	}
	if i.TypesMost > 0 && (y.MessageTypes < i.TypesLeast || y.MessageTypes > i.TypesMost) {
		t.Errorf("%d to %d message types, expected %d", i.TypesLeast, i.TypesMost, y.MessageTypes)
	}
	for n, c := range i.Channels {
		want, got := &y.Channels[n], &i.Config.Channels[n]
		if c.Undecided {
			continue
		}
		if got.Type != want.Type {
			t.Errorf("channel %d is %v, expected %v", n, got.Type, want.Type)
		}
		if c.MessagesMost > 0 && (want.MaxMessages < c.MessagesLeast || want.MaxMessages > c.MessagesMost) {
			t.Errorf("channel %d has at most %d to %d messages a packet, expected %d", n, c.MessagesLeast, c.MessagesMost,
				want.MaxMessages)
		}
		if c.FragmentSize > 0 && c.FragmentSize != want.BlockFragmentSize ||
			c.FragmentsMost > 0 && (want.MaxFragments() < c.FragmentsLeast || want.MaxFragments() > c.FragmentsMost) {
			t.Errorf("channel %d has block fragments of %d bytes, at most %d to %d of a block; expected %d and %d", n,
				c.FragmentSize, c.FragmentsLeast, c.FragmentsMost, want.BlockFragmentSize, want.MaxFragments())
		}
	}
}

// checkWhole is checkInference of a whole capture, which shows all that there is to know.
func checkWhole(t *testing.T, r *yojimboRun, i *yojimbo.Inference) {
	t.Helper()
	checkInference(t, r, i)
	for n, c := range i.Channels {
		if c.Blocks > 0 && (c.FragmentSize == 0 || c.FragmentsMost == 0) {
			t.Errorf("channel %d: %d block fragments, and their size is open", n, c.Blocks)
		}
	}
	if i.Wrong*100 > i.Packets {
		t.Errorf("%d of %d packets are at odds with the configuration", i.Wrong, i.Packets)
	}
}

// TestInferConfiguration starts with nothing but the keys. It finds channels, their
// types and limits, blocks, and the number of types. Bodies of the game's messages are
// fixed widths, strings and blocks, which packets show. The library's own test messages
// have widths that depend on their contents, so their types stay open.
func TestInferConfiguration(t *testing.T) {
	testenv.Grid(t, "a search over every recorded configuration")
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		for flow := range r.client {
			s, n := sampleOf(t, r, "server", flow)
			i := s.Infer()
			if n < 100 {
				if i != nil {
					t.Errorf("%s flow %d: %d packets are taken for enough", name, flow, n)
				}
				continue
			}
			if i == nil {
				t.Errorf("%s flow %d: nothing inferred from %d packets", name, flow, n)
				continue
			}
			checkWhole(t, r, i)
			if game := r.config.Schema == "game"; game != (i.TypesMost == 8) || game && i.Read != i.Packets {
				t.Errorf("%s flow %d: %d to %d types, %d of %d packets read", name, flow, i.TypesLeast, i.TypesMost,
					i.Read, i.Packets)
			}
			t.Logf("%s flow %d: %d channels, %d to %d types, %+v; %d packets, %d read, %d opaque, %d wrong", name, flow,
				len(i.Channels), i.TypesLeast, i.TypesMost, i.Channels, i.Packets, i.Read, i.Opaque, i.Wrong)
		}
	}
}

// TestInferWithMessages: with the messages known, as a schema has them, every packet of
// every run reads to the last bit.
func TestInferWithMessages(t *testing.T) {
	testenv.Grid(t, "a search over every recorded configuration")
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		known := &wire.Yojimbo{
			MessageTypes: r.config.Types, Bodies: bodiesOf(r.config.Schema),
			BlockTypes: blockTypes(r.config.Schema),
		}
		for flow := range r.client {
			s, n := sampleOf(t, r, "client", flow)
			if n < 100 {
				continue
			}
			i := s.InferWith(known)
			if i == nil {
				t.Errorf("%s flow %d: nothing inferred from %d packets", name, flow, n)
				continue
			}
			checkWhole(t, r, i)
			if i.Read != i.Packets || i.TypesMost == 0 {
				t.Errorf("%s flow %d: %d of %d packets read, %d to %d types", name, flow, i.Read, i.Packets,
					i.TypesLeast, i.TypesMost)
			}
		}
	}
}

// TestInferLike: what one flow showed serves the next flow of the same game, and no
// other.
func TestInferLike(t *testing.T) {
	game, other := readYojimboRun(t, "yojimbo-server-kick"), readYojimboRun(t, "yojimbo-denied-full")
	s, _ := sampleOf(t, game, "client", 0)
	found := s.Infer()
	again, n := sampleOf(t, readYojimboRun(t, "yojimbo-two-clients"), "client", 1)
	if i := again.InferLike(found); i == nil || i.Read != n {
		t.Errorf("another flow of the same game: %+v", i)
	}
	foreign, _ := sampleOf(t, other, "client", 0)
	if i := foreign.InferLike(found); i != nil {
		t.Errorf("a flow of another game: %+v", i)
	}
}

// TestMessagesByInference: messages followed with an inferred configuration are those
// of the log, ids and sizes of bodies included. The given configuration yields the
// same.
func TestMessagesByInference(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-blocks-loss30")
	given, found := openRun(t, r, "client", r.configuration(t)), openRun(t, r, "client", nil)
	for i := range given {
		a, b := given[i].effects.Messages, found[i].effects.Messages
		if len(a) != len(b) || len(a) < 500 {
			t.Fatalf("flow %d: %d messages by the configuration given, %d by the one found", i, len(a), len(b))
		}
		for k := range a {
			x, y := &a[k], &b[k]
			if x.ID != y.ID || x.Channel != y.Channel || x.Type != y.Type || x.Bits != y.Bits || x.Block != y.Block ||
				x.Delivered != y.Delivered || x.DeliveredAt != y.DeliveredAt || x.Attempts != y.Attempts {
				t.Fatalf("flow %d message %d: by the configuration given\n%+v, by the one found\n%+v", i, k, x, y)
			}
		}
	}
}
