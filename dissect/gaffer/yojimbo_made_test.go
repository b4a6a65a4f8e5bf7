package gaffer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// madeBodies are bodies of fixed widths, in bits, by type.
type madeBodies []int

// Skip moves r over a body.
func (b madeBodies) Skip(kind uint32, r *bits.Reader) error {
	for n := b[kind]; n > 0; n -= 64 {
		if _, ok := r.Bits(min(n, 64)); !ok {
			return wire.ErrOpaque
		}
	}
	return nil
}

// madeGame writes the packets of a game that no capture has. Its channels, message types and
// bodies are random. Some types are more common than others, and some are never sent.
type madeGame struct {
	random  *rand.Rand
	config  *wire.Yojimbo
	widths  madeBodies
	content []int    // by type: any bits, small numbers, or a counter
	kinds   []uint32 // types to choose from, each as often as it is common
	busy    float64  // how likely a channel is in a packet
	counter uint64
	sent    [2][]madeChannel
}

// madeChannel is what one side sent on a channel: message i has type kinds[i] and value
// values[i]. Those below acked are settled.
type madeChannel struct {
	acked  int
	kinds  []uint32
	values []uint64
}

func newMadeGame(t *testing.T, seed uint64) *madeGame {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a repeatable test
	g := &madeGame{random: r, config: &wire.Yojimbo{MessageTypes: 1 + r.IntN(6)}, busy: 0.2 + r.Float64()}
	most := []int{8, 32, 64, 256, 256, 256, 1000}
	for n := range 1 + r.IntN(3) {
		c := wire.YojimboChannel{DisableBlocks: true, MaxMessages: most[r.IntN(len(most))]}
		if n > 0 && r.IntN(2) == 0 {
			c.Type = wire.UnreliableUnordered
		}
		g.config.Channels = append(g.config.Channels, c)
	}
	for kind := range g.config.MessageTypes {
		g.widths, g.content = append(g.widths, r.IntN(120)), append(g.content, r.IntN(3))
		for range 3 * r.IntN(3) {
			g.kinds = append(g.kinds, uint32(kind))
		}
	}
	g.kinds = append(g.kinds, 0)
	g.config.Bodies = g.widths
	g.sent = [2][]madeChannel{make([]madeChannel, len(g.config.Channels)), make([]madeChannel, len(g.config.Channels))}
	if err := g.config.Validate(); err != nil {
		t.Fatal(err)
	}
	return g
}

// message chooses a message.
func (g *madeGame) message() (kind uint32, value uint64) {
	kind = g.kinds[g.random.IntN(len(g.kinds))]
	g.counter++
	switch g.content[kind] {
	case 1:
		return kind, g.random.Uint64N(10)
	case 2:
		return kind, g.counter
	}
	return kind, g.random.Uint64()
}

// packet returns a side's next connection packet.
func (g *madeGame) packet(side int) []byte {
	var p wire.ConnectionPacket
	w := bits.NewWriter(nil)
	put := func(id uint16, kind uint32, value uint64) {
		m := wire.ConnectionMessage{ID: id, Type: kind, Body: w.Pos(), Read: true}
		for left := g.widths[kind]; left > 0; left -= 32 {
			w.Bits(value&(1<<min(left, 32)-1), min(left, 32))
		}
		m.End = w.Pos()
		p.Messages = append(p.Messages, m)
	}
	for n := range g.config.Channels {
		if g.random.Float64() > g.busy {
			continue
		}
		e := wire.ChannelEntry{Channel: n, First: len(p.Messages)}
		if g.config.Channels[n].Type == wire.ReliableOrdered {
			g.reliable(&g.sent[side][n], put)
		} else {
			for range g.random.IntN(4) {
				kind, value := g.message()
				put(0, kind, value)
			}
		}
		if e.Count = len(p.Messages) - e.First; e.Count > 0 {
			p.Entries = append(p.Entries, e)
		}
	}
	w.Align()
	return g.config.Append(nil, &p, append(w.Data(), make([]byte, 8)...))
}

// reliable puts up to four messages that have no ack yet.
func (g *madeGame) reliable(c *madeChannel, put func(id uint16, kind uint32, value uint64)) {
	if g.random.IntN(3) > 0 {
		c.acked = min(len(c.kinds), c.acked+g.random.IntN(4))
	}
	for range g.random.IntN(3) {
		kind, value := g.message()
		c.kinds, c.values = append(c.kinds, kind), append(c.values, value)
	}
	count := 0
	for id := c.acked; id < len(c.kinds) && count < 4; id++ {
		if g.random.IntN(4) > 0 {
			put(uint16(id), c.kinds[id], c.values[id])
			count++
		}
	}
}

// TestInferMade infers the configurations of games made at random. If the number of types is
// decided, messages are certain: each packet holds the ids that the game wrote, by channel. The
// number itself is likely: at least nine of ten are right.
func TestInferMade(t *testing.T) {
	seeds := uint64(testenv.Rounds(50, 100, 600)) // 600 take five minutes
	decided, wrong := 0, 0
	for seed := range seeds {
		g := newMadeGame(t, seed)
		s := &yojimbo.Sample{}
		var packets [][]byte
		for n := range 30 + g.random.IntN(400) {
			packets = append(packets, g.packet(n%2))
			s.Add(machine.Side(n%2), int64(n/2), packets[n])
		}
		i := s.Infer()
		if i == nil || i.TypesMost == 0 {
			continue
		}
		decided++
		if n := g.config.MessageTypes; n < i.TypesLeast || n > i.TypesMost {
			t.Logf("seed %d: %d to %d types, expected %d", seed, i.TypesLeast, i.TypesMost, n)
			wrong++
		}
		for n, p := range packets {
			if got, want := idsIn(i.Config, p), idsIn(g.config, p); !strings.HasPrefix(want, got) {
				t.Errorf("seed %d: packet %d of %d holds\n%s, expected\n%s", seed, n, len(packets), got, want)
				break
			}
		}
	}
	t.Logf("%d of %d games show how many types they have, %d of them wrong", decided, seeds, wrong)
	if decided < int(seeds)/20 || 10*wrong > decided {
		t.Errorf("%d of %d games show how many types they have, %d of them wrong", decided, seeds, wrong)
	}
}

// idsIn writes the messages of a connection packet by channel: their ids, or how many they are.
func idsIn(y *wire.Yojimbo, payload []byte) string {
	var p wire.ConnectionPacket
	_ = y.Parse(payload, &p) // what was read before an error counts
	var b strings.Builder
	for i := range p.Entries {
		e := &p.Entries[i]
		all := p.Messages[e.First : e.First+e.Count]
		fmt.Fprintf(&b, "channel %d:", e.Channel)
		if y.Channels[e.Channel].Type == wire.ReliableOrdered {
			for _, m := range all {
				fmt.Fprintf(&b, " %d", m.ID)
			}
		}
		if e.Count > 0 && !all[e.Count-1].Read {
			break
		}
		fmt.Fprintf(&b, " (%d);", e.Count)
	}
	return b.String()
}
