package yojimbo

import (
	"math"

	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// withBodies tries every width of the type that fits the schema's types. For unreliable
// channels it also tries every width of count and block size.
func (t *trial) withBodies(known *wire.Yojimbo) *Inference {
	i := &Inference{}
	try := func(kinds int) bool {
		if t.tries++; t.tries > mostTries {
			return false
		}
		y, err := t.config(kinds, known.Bodies, known.BlockTypes)
		if err != nil {
			return false
		}
		var got Inference
		if t.score(y, &got, i.bar()); i.Config != nil && got.merit() <= i.merit() {
			return false
		}
		*i = got
		i.TypesLeast, i.TypesMost = typeRange(kinds, known.MessageTypes)
		return true
	}
	for w := bits.Required(0, uint64(max(known.MessageTypes, 1)-1)); w <= mostKinds; w++ {
		try(max(known.MessageTypes, 1<<w/2+1, 1))
	}
	if i.Config == nil {
		return nil
	}
	kinds := i.Config.MessageTypes
	for c := range t.messages {
		g := &t.messages[c]
		if g.kind != wire.UnreliableUnordered || g.seen == 0 || i.Read == i.Packets {
			continue
		}
		right := *g
		for count := 0; count <= mostCount; count++ {
			for block := 0; block <= mostBlock && i.Read < i.Packets; block++ {
				if g.count, g.blockBits = count, block; try(kinds) {
					right = *g
				}
				if len(known.BlockTypes) == 0 {
					break
				}
			}
		}
		*g = right
	}
	t.describe(i)
	return i
}

// typeRange returns how many types there may be. The number of bits limits both ends,
// and there are at least as many as were seen or as a schema has.
func typeRange(kinds, least int) (low, high int) {
	w := bits.Required(0, uint64(kinds-1))
	low = 1
	if w > 0 {
		low = 1<<(w-1) + 1
	}
	return max(low, least), 1 << w
}

// withoutBodies learns bodies for each width of the type. It keeps the width with which
// most packets read whole.
func (t *trial) withoutBodies() *Inference {
	var best, second *Inference
	rival := 0 // the most packets of several messages that another width reads
	for w := 0; w <= mostKinds; w++ {
		i := t.learn(w)
		switch {
		case i == nil:
		case best == nil || i.merit() > best.merit():
			if best != nil {
				rival = max(rival, best.several)
			}
			best, second = i, best
		default:
			rival = max(rival, i.several)
			if second == nil || i.merit() > second.merit() {
				second = i
			}
		}
	}
	if best == nil {
		return nil
	}
	// Packets of one message read with many widths. Only packets of several messages
	// distinguish the widths. If they do not, the width stays open.
	if best.doubtful(rival) {
		if i := t.opaque(); i != nil {
			best = i
		}
	} else if l, ok := best.Config.Bodies.(*learned); !ok || best.Read-t.empty() < inferLeast || l.known() == 0 ||
		second != nil && second.Read*50 >= best.Read*49 {
		if i := t.opaque(); i != nil &&
			(second == nil || second.Read*50 >= best.Read*49 || best.Read-t.empty() < inferLeast) {
			best = i
		}
	}
	if best.TypesMost > 0 {
		best.TypesMost = min(best.TypesMost<<t.zeros(best.Config), 1<<mostKinds)
	}
	t.describe(best)
	return best
}

// zeros counts the bits behind the type that are 0 in every message. They may be part of
// the type, which is then wider.
func (t *trial) zeros(y *wire.Yojimbo) int {
	most := mostKinds
	var r bits.Reader
	for p := range t.packets {
		payload := t.packets[p].payload
		_ = y.Parse(payload, &t.entry) // what was read before an error counts
		count := func(body, end int) {
			r.Reset(payload, body)
			for n := range min(most, end-body) {
				if bit, _ := r.Bits(1); bit != 0 {
					most = n
				}
			}
			most = min(most, end-body)
		}
		for i := range t.entry.Messages {
			if m := &t.entry.Messages[i]; m.Read {
				count(m.Body, m.End)
			}
		}
		for i := range t.entry.Entries {
			if f := &t.entry.Entries[i].Fragment; t.entry.Entries[i].Block && f.Read {
				count(f.Body, f.End)
			}
		}
	}
	return most
}

// doubtful reports whether the width of the type is not proved although packets of several
// messages were read. Those are the proof. It is too weak if as many packets hold messages
// that are not known, or if a rival width reads half as many.
func (i *Inference) doubtful(rival int) bool {
	return i.Opaque > 0 && (i.several < max(inferLeast, i.Opaque) || 2*rival > i.several)
}

// empty counts the packets that carry nothing. Any configuration reads them.
func (t *trial) empty() (n int) {
	for i := range t.packets {
		if len(t.packets[i].payload) <= 1 {
			n++
		}
	}
	return n
}

// opaque returns the configuration with the messages' types and bodies left open.
func (t *trial) opaque() *Inference {
	t.standard()
	y, err := t.config(1, nil, nil)
	if err != nil {
		return nil
	}
	y.TypesUnknown = true
	for c := range y.Channels {
		y.Channels[c].Doubtful = true // prove asks whether their ids are proved
	}
	i := &Inference{}
	t.score(y, i, math.MinInt)
	return i
}
