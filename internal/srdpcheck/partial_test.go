package srdpcheck

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// TestPartial takes captures that begin in the middle of a run, or lack one
// frame in a hundred. No correct endpoint may then diverge for certain, and no
// certain event may be one that the log of the second endpoint denies.
//
// Paths of less than a millisecond are left out. In a small part of a capture
// nothing shows that there is a network between two sides that answer so soon.
func TestPartial(t *testing.T) {
	runs := uint64(12)
	if testenv.Whole() {
		runs = 400
	}
	certain, parts := 0, 0
	for seed := uint64(1); seed <= runs; seed++ {
		s := draw(seed)
		if s.path.Delay < time.Millisecond {
			continue
		}
		parts += 2
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			o := s.simulate(t)
			rng := rand.New(rand.NewPCG(seed, 7))
			cut := rng.IntN(len(o.frames) - len(o.frames)/4)
			certain += o.holdPart(t, s, fmt.Sprintf("from frame %d on", cut+1), func(n int) bool { return n >= cut })
			certain += o.holdPart(t, s, "without 1 % of the frames", func(int) bool { return rng.IntN(100) > 0 })
		})
	}
	t.Logf("%d parts of captures: %d events certain", parts, certain)
	if certain < parts*100 {
		t.Errorf("%d events are certain in %d parts of captures: expected a hundred each", certain, parts)
	}
}

// holdPart compares what Ackscope says of a part of a capture with the logs. It
// returns how many events are certain.
func (o *outcome) holdPart(t *testing.T, s *scenario, what string, keep func(n int) bool) (certain int) {
	t.Helper()
	part, err := openTape(false)
	if err != nil {
		t.Fatal(err)
	}
	for n, f := range o.frames {
		if keep(n) {
			part.write(f.at, f.from, f.to, f.bytes)
		}
	}
	if err := part.end(); err != nil {
		t.Fatal(err)
	}
	x := tell(t, what, part.to.Bytes())
	for _, r := range x.replayed.Results {
		if d := r.Divergence; d != nil && r.Certainty() == machine.Certain {
			t.Errorf("%v, %s: %s diverges in frame %d, certain: %s: %s", s, what, r.Addr(), d.Ref.Frame(), d.Rule.ID, d.Because)
		}
	}
	// What the log has from before the part counts too: the first copy in a
	// capture is told as the packet's first.
	log, second := map[fact]int{}, map[netip.AddrPort]bool{}
	for _, e := range o.ends {
		second[e.addr] = e.second
		for _, entry := range e.log {
			k := fact{e.addr, entry.Peer, entry.Kind, entry.ID}
			log[k]++
		}
	}
	got, bad := map[fact]int{}, map[srdppeer.Kind]string{}
	for i := range x.events {
		e := &x.events[i]
		kind, ok := words[e.Kind]
		if !ok || e.Certainty != machine.Certain || !second[e.of()] {
			continue
		}
		certain++
		k := fact{e.of(), e.peer(), kind, uint16(e.Sequence)}
		if got[k]++; got[k] > log[k] {
			bad[kind] = fmt.Sprintf("id %d in frame %d", k.id, e.Ref.Frame())
		}
	}
	for kind, example := range bad {
		t.Errorf("%v, %s: events %v, certain, did not happen, such as %s", s, what, kind, example)
	}
	return certain
}
