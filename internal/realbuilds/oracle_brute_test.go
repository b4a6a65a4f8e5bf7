package realbuilds

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestOracle compares the oracle with an enumeration of all that a correct endpoint
// can do. It does so in small random conversations, for all orders and subsets of
// what passed, and all refusals.
func TestOracle(t *testing.T) {
	conversations := 3000
	if testenv.Whole() {
		conversations = 30000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	broken := 0
	for i := range conversations {
		near := i%2 == 0
		list := small(rng, near)
		got, why := impossible(list, sideAddr, near)
		want := enumerate(list, near)
		if got != want {
			t.Fatalf("conversation %d, near %v: the oracle names frame %d (%s), the enumeration %d\n%s", i, near, got, why, want,
				talk(list))
		}
		if want > 0 {
			broken++
		}
	}
	if broken < conversations/20 || broken > conversations*19/20 {
		t.Errorf("%d of %d conversations have an impossible header: they test little", broken, conversations)
	}
}

var (
	sideAddr = netip.MustParseAddrPort("10.0.0.1:1")
	peerAddr = netip.MustParseAddrPort("10.0.0.2:2")
)

func talk(list []datagram) (text string) {
	for _, d := range list {
		h, _ := parse(d.b)
		text += fmt.Sprintf("  %d own %v: seq %d ack %d bits %#x fragment %d of %d\n", d.frame, d.from == sideAddr,
			h.sequence, int16(h.ack), h.bits, h.id, h.count)
	}
	return text
}

// small draws a conversation of few datagrams. Packets of the peer are 0 to 4, and
// some have two fragments. About half of the headers were altered.
func small(rng *rand.Rand, near bool) (list []datagram) {
	var inbox []header // what the peer sends, in order of the tap
	e := world{newest: int64(rng.IntN(3)) - 1}
	read, sequence := 0, 0
	alter := rng.IntN(2) == 0
	for size := 6 + rng.IntN(6); len(list) < size; {
		d := datagram{frame: uint64(len(list) + 1), from: peerAddr, to: sideAddr}
		if rng.IntN(5) < 2 {
			for read < len(inbox) && rng.IntN(4) > 0 {
				next := read
				if !near {
					next = rng.IntN(len(inbox))
				}
				e = e.reads(&inbox[next], rng.IntN(4) == 0)
				read++
			}
			d.from, d.to = sideAddr, peerAddr
			h := header{sequence: uint16(sequence), tells: true, ack: uint16(e.newest), bits: e.bits()}
			if alter && rng.IntN(3) == 0 {
				if h.bits ^= 1 << rng.IntN(3); rng.IntN(3) == 0 {
					h.ack += uint16(rng.IntN(3)) - 1
				}
			}
			sequence++
			d.b = write(&h)
		} else {
			h := header{sequence: uint16(rng.IntN(1 + rng.IntN(5))), count: 1, tells: true}
			if h.sequence%2 == 0 {
				h = header{sequence: h.sequence, fragment: true, id: rng.IntN(2), count: 2}
			}
			inbox = append(inbox, h)
			d.b = write(&h)
		}
		list = append(list, d)
	}
	if !near { // headers overtake each other behind the endpoint
		for i := range list {
			if j := rng.IntN(len(list)); list[i].from == list[j].from && list[i].from == sideAddr && i < j {
				list[i].b, list[j].b = list[j].b, list[i].b
			}
		}
	}
	return list
}

// write writes a header in its canonical form, with a byte of data.
func write(h *header) []byte {
	if h.fragment && h.id > 0 {
		return []byte{1, byte(h.sequence), byte(h.sequence >> 8), byte(h.id), byte(h.count - 1), 0}
	}
	prefix, tail := byte(0), []byte(nil)
	if behind := h.sequence - h.ack; behind <= 255 {
		prefix, tail = 0x20, []byte{byte(behind)}
	} else {
		tail = binary.LittleEndian.AppendUint16(nil, h.ack)
	}
	for i := range 4 {
		if b := byte(h.bits >> (8 * i)); b != 0xff {
			prefix |= 2 << i
			tail = append(tail, b)
		}
	}
	b := append([]byte{prefix, byte(h.sequence), byte(h.sequence >> 8)}, tail...)
	if h.fragment {
		b = append([]byte{1, byte(h.sequence), byte(h.sequence >> 8), 0, byte(h.count - 1)}, b...)
	}
	return append(b, 0)
}

// world is what an endpoint may be in: packets 0 to 7 of its peer.
type world struct {
	newest   int64
	accepted uint8
	parts    [8]uint8 // bit n: fragment n of the packet has arrived
	read     int      // near: datagrams of its socket
}

func (w world) bits() (b uint32) {
	for s := range int64(8) {
		if w.accepted>>s&1 == 1 && s <= w.newest {
			b |= 1 << (w.newest - s)
		}
	}
	return b
}

// reads returns the world after a datagram was read.
func (w world) reads(h *header, refuse bool) world {
	s := int64(h.sequence)
	if w.accepted>>s&1 == 1 {
		return w
	}
	if h.fragment {
		if w.parts[s] == 0 {
			w.newest = max(w.newest, s)
		}
		if w.parts[s] |= 1 << h.id; w.parts[s] != 1<<h.count-1 {
			return w
		}
		w.parts[s] = 0
	}
	if !refuse {
		w.accepted |= 1 << s
		w.newest = max(w.newest, s)
	}
	return w
}

// enumerate returns the first frame whose header no correct endpoint can have sent,
// by following every world that an endpoint can be in.
func enumerate(list []datagram, near bool) uint64 {
	for n := range list {
		if list[n].from == sideAddr && !possible(list[:n+1], near) {
			return list[n].frame
		}
	}
	return 0
}

// possible reports whether some correct endpoint sends all headers of a list.
func possible(list []datagram, near bool) bool {
	worlds := map[world]bool{}
	for first := int64(-3); first < 8; first++ { // the window may begin anywhere
		worlds[world{newest: first}] = true
	}
	var inbox, own []int // positions
	for i := range list {
		if list[i].from == sideAddr {
			own = append(own, i)
		} else {
			inbox = append(inbox, i)
		}
	}
	heads := make([]header, len(list))
	for i := range list {
		heads[i], _ = parse(list[i].b)
	}
	for next := 0; ; next++ { // by sequence; behind a network some are missing
		at, later, until := -1, false, len(list)
		for _, i := range own {
			switch s := int(heads[i].sequence); {
			case s == next:
				at = i
				until = min(until, i)
			case s > next:
				later = true
				until = min(until, i)
			}
		}
		if at < 0 && !later {
			return true
		}
		if at < 0 {
			continue
		}
		worlds = reachable(worlds, heads, inbox, until, near)
		for w := range worlds {
			if uint16(w.newest) != heads[at].ack || w.bits() != heads[at].bits {
				delete(worlds, w)
			}
		}
		if len(worlds) == 0 {
			return false
		}
	}
}

// reachable returns the worlds that follow when the endpoint reads any of the
// datagrams that passed before position until. At its own tap it reads them in their
// order. Elsewhere it reads them in any order, as often as the network doubles them.
func reachable(from map[world]bool, heads []header, inbox []int, until int, near bool) map[world]bool {
	to := map[world]bool{}
	var open []world
	add := func(w world) {
		if !to[w] {
			to[w] = true
			open = append(open, w)
		}
	}
	for w := range from {
		add(w)
	}
	for len(open) > 0 {
		w := open[len(open)-1]
		open = open[:len(open)-1]
		for k, i := range inbox {
			if i >= until || near && k != w.read {
				continue
			}
			for _, refuse := range []bool{false, true} {
				x := w.reads(&heads[i], refuse)
				if near {
					x.read = k + 1
				}
				add(x)
			}
		}
	}
	return to
}
