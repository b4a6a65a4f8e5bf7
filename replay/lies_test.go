package replay_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sentHeader is a header of the side at the tap, with what a naive reading of
// the capture says of it.
type sentHeader struct {
	index  int // of the datagram
	packet wire.Packet
}

// lie changes one header; it gives false where the change would not be a lie
// that anybody could tell.
type lie struct {
	name string
	tell func(rng *rand.Rand, own []sentHeader, i int, came func(uint32) int) (wire.Header, bool)
}

var lies = []lie{
	{"bit cleared", func(rng *rand.Rand, own []sentHeader, i int, _ func(uint32) int) (wire.Header, bool) {
		// A packet that the header before and the one after name.
		h, before, after := own[i].packet.Header, own[i-1].packet.Header, own[i+1].packet.Header
		n := rng.IntN(32)
		q := (h.Ack - uint32(n)) & 0xffff
		h.AckBits &^= 1 << n
		return h, own[i].packet.Header.AckBits>>n&1 == 1 && names(before, q) && names(after, q)
	}},
	{"new packet left out", func(rng *rand.Rand, own []sentHeader, i int, came func(uint32) int) (wire.Header, bool) {
		// A packet that this header names first, though it also names a later one.
		h, before, after := own[i].packet.Header, own[i-1].packet.Header, own[i+1].packet.Header
		n := rng.IntN(3) + 1
		q := (h.Ack - uint32(n)) & 0xffff
		h.AckBits &^= 1 << n
		later := false // it came before another packet that is named first: so it was read before that
		for k := range uint32(32) {
			if x := (h.Ack - k) & 0xffff; names(h, x) && !names(before, x) && came(x) > came(q) {
				later = true
			}
		}
		return h, later && names(own[i].packet.Header, q) && !names(before, q) && int16(uint16(q)-uint16(before.Ack)) > 0 &&
			names(after, q)
	}},
	{"bit set", func(rng *rand.Rand, own []sentHeader, i int, came func(uint32) int) (wire.Header, bool) {
		h := own[i].packet.Header
		n := rng.IntN(32)
		h.AckBits |= 1 << n
		return h, own[i].packet.Header.AckBits>>n&1 == 0 && came((h.Ack-uint32(n))&0xffff) < 0
	}},
	{"ack ahead", func(rng *rand.Rand, own []sentHeader, i int, came func(uint32) int) (wire.Header, bool) {
		h := own[i].packet.Header
		h.Ack = (h.Ack + 1 + uint32(rng.IntN(500))) & 0xffff
		for n := range uint32(32) {
			if q := (h.Ack - n) & 0xffff; h.AckBits>>n&1 == 1 && came(q) < 0 {
				return h, true
			}
		}
		return h, false
	}},
	{"ack behind", func(rng *rand.Rand, own []sentHeader, i int, _ func(uint32) int) (wire.Header, bool) {
		h := own[i].packet.Header
		h.Ack = (h.Ack - 2 - uint32(rng.IntN(500))) & 0xffff
		return h, int16(uint16(own[i-1].packet.Header.Ack)-uint16(h.Ack)) > 0
	}},
	{"sequence skipped", func(rng *rand.Rand, own []sentHeader, i int, _ func(uint32) int) (wire.Header, bool) {
		h := own[i].packet.Header
		h.Sequence = (h.Sequence + 1 + uint32(rng.IntN(300))) & 0xffff
		return h, true
	}},
	{"sequence repeated", func(rng *rand.Rand, own []sentHeader, i int, _ func(uint32) int) (wire.Header, bool) {
		h := own[i].packet.Header
		h.Sequence = (h.Sequence - 1 - uint32(rng.IntN(300))) & 0xffff
		return h, true
	}},
}

func names(h wire.Header, q uint32) bool {
	n := (h.Ack - q) & 0xffff
	return n < 32 && h.AckBits>>n&1 == 1
}

// TestPlantedLies changes one header of the side at the tap in a real capture
// and expects the judge to find it at exactly its frame.
func TestPlantedLies(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	paths, err := filepath.Glob(filepath.Join(pcaps, "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]int{}
	for _, path := range paths {
		run, _, _ := strings.Cut(filepath.Base(path), ".")
		prefix, _, _ := strings.Cut(run, "-")
		switch prefix {
		case "reliable", "plain", "crc32", "oldreliable":
		default:
			continue
		}
		// Snapped payloads cannot be written again; the faulty run is a lie itself.
		if strings.Contains(run, "snap60") || strings.Contains(run, "stalebug") || testing.Short() &&
			strings.Contains(run, "wrap") {
			continue
		}
		list, flow := flowOf(t, path)
		p, ok := flow.Config().Profile.(*wire.Profile)
		if !ok {
			t.Fatalf("%s: %s", path, flow.Verdict.Reason)
		}
		side := machine.A
		if flow.Facts().Vantage.Near(machine.B) {
			side = machine.B
		}
		var own []sentHeader
		arrivals := map[uint32][]int{} // by sequence: the datagrams that brought it
		for i := range list {
			var k wire.Packet
			if p.Parse(list[i].Bytes, list[i].Length, &k) != nil {
				continue
			}
			if list[i].From != side {
				arrivals[k.Sequence] = append(arrivals[k.Sequence], i)
			} else if k.Kind == wire.KindRegular {
				own = append(own, sentHeader{i, k})
			}
		}
		facts := flow.Facts()
		behaviour := judge.BehavioursOf(p)[0]
		for _, l := range lies {
			for tries, done := 0, 0; done < 3 && tries < 300; tries++ {
				i := 40 + rng.IntN(max(1, len(own)-80))
				if i+1 >= len(own) {
					break
				}
				at := own[i].index
				came := func(q uint32) int {
					for _, k := range arrivals[q] {
						if k < at {
							return k
						}
					}
					return -1
				}
				h, ok := l.tell(rng, own, i, came)
				if !ok {
					continue
				}
				done++
				planted[l.name]++
				k := own[i].packet
				payload := list[at].Bytes[k.PayloadOffset : k.PayloadOffset+k.PayloadLen]
				k.Header, k.Sequence = h, h.Sequence
				b := p.Append(nil, &k, payload)
				j, err := judge.New(p, facts, [2]string{behaviour, behaviour})
				if err != nil {
					t.Fatal(err)
				}
				for n := range list {
					d := list[n]
					if n == at {
						d.Bytes, d.Length = b, len(b)
					}
					j.Observe(&d)
				}
				j.Finish()
				o := j.Opinion(side)
				switch d := o.Divergence; {
				case d == nil:
					t.Errorf("%s: %s in frame %d (%+v, was %+v): not found", path, l.name, list[at].Ref.Frame(), h,
						own[i].packet.Header)
				case d.Ref != list[at].Ref:
					t.Errorf("%s: %s in frame %d (%+v, was %+v): found at frame %d: %s", path, l.name, list[at].Ref.Frame(), h,
						own[i].packet.Header, d.Ref.Frame(), d.Because)
				case d.Field == "" || d.Expected == d.Got:
					t.Errorf("%s: %s in frame %d: %s expected %s, got %s", path, l.name, d.Ref.Frame(), d.Field, d.Expected, d.Got)
				}
			}
		}
	}
	t.Log(planted)
	for _, l := range lies {
		if planted[l.name] < 10 {
			t.Errorf("%s: planted %d times, expected more", l.name, planted[l.name])
		}
	}
}
