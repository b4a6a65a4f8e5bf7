package srdpcheck

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	dissector "github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// TestPartial takes parts of captures. They begin in the middle of a run, lack
// one frame in a hundred, or have one direction only. No correct endpoint may then diverge for certain. No
// certain event may be one that the log of the second endpoint denies, and no
// certain finding may accuse.
//
// Paths of less than a millisecond are left out. In a small part of a capture
// nothing shows that there is a network between two sides that answer so soon.
func TestPartial(t *testing.T) {
	sums := map[string]*partTally{}
	for _, seed := range seeds(12, 400) {
		s := draw(seed)
		if s.path.Delay < time.Millisecond {
			continue
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			o := s.simulate(t)
			rng := rand.New(rand.NewPCG(seed, 7))
			cut := rng.IntN(len(o.frames) - len(o.frames)/4)
			from := sim.Role(rng.IntN(2))
			for _, x := range []part{
				{name: "whole", strict: true, whole: true, keep: func(int) bool { return true }},
				{name: "cut", strict: true, whole: true, keep: func(n int) bool { return n >= cut }},
				{name: "drops", keep: func(int) bool { return rng.IntN(100) > 0 }},
				{name: oneWay, strict: true, whole: true, keep: func(n int) bool { return o.role(o.frames[n].from) == from }},
			} {
				if sums[x.name] == nil {
					sums[x.name] = &partTally{}
				}
				sums[x.name].add(o.holdPart(t, s, &x))
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[name]
		t.Logf("%s: %v", name, sum)
		if name != oneWay && sum.certain() < sum.parts*100 {
			t.Errorf("%s: %d events certain in %d parts of captures: expected a hundred each", name, sum.certain(), sum.parts)
		}
	}
}

const oneWay = "one direction"

// part is a choice of a capture's frames. Where a capture begins with its first
// frame and lacks nothing since, strict is set: what its events tell is of that
// time.
type part struct {
	name   string
	strict bool
	whole  bool // the file says that it lacks nothing
	// accusations is set where events are not compared, but only what accuses.
	accusations bool
	keep        func(n int) bool
}

// partTally counts events about second endpoints, by kind.
type partTally struct {
	parts, accused int
	events, sure   [srdppeer.Kinds]int
}

func (c *partTally) add(x partTally) {
	c.parts++
	c.accused += x.accused
	for kind := range c.events {
		c.events[kind] += x.events[kind]
		c.sure[kind] += x.sure[kind]
	}
}

func (c *partTally) certain() (n int) {
	for _, k := range c.sure {
		n += k
	}
	return n
}

// String lists the figures.
func (c *partTally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d parts, %d sides diverge, likely; certain", c.parts, c.accused)
	for kind, n := range c.events {
		if n > 0 {
			fmt.Fprintf(&b, "; %v: %d of %d", srdppeer.Kind(kind), c.sure[kind], n)
		}
	}
	return b.String()
}

// override says what the flows are, as a user says it with -d. Of one direction
// alone, nothing else does.
func (s *scenario) override() []analyze.DecodeAs {
	name := s.form.String()
	if s.little {
		name += "-le"
	}
	for _, x := range dissector.Protocol.Profiles {
		if x.Name == name {
			return []analyze.DecodeAs{{Transport: capture.UDP, Protocol: dissector.Protocol, Config: x.Config}}
		}
	}
	panic("no profile is named " + name)
}

// role returns the role of the end with an address.
func (o *outcome) role(at netip.AddrPort) sim.Role {
	for _, e := range o.ends {
		if e.addr == at {
			return e.role
		}
	}
	panic("no end has the address " + at.String())
}

// at reports whether the tap of a run is at an end.
func (s *scenario) at(e *end) bool {
	return s.tap == 0 && e.role == sim.Client || s.tap == 1 && e.role == sim.Server
}

// holdPart compares what Ackscope says of a part of a capture with the logs.
func (o *outcome) holdPart(t *testing.T, s *scenario, part *part) (c partTally) {
	t.Helper()
	tape, err := openTape(part.whole)
	if err != nil {
		t.Fatal(err)
	}
	for n, f := range o.frames {
		if part.keep(n) {
			tape.write(f.at, f.from, f.to, f.bytes)
		}
	}
	if err := tape.end(); err != nil {
		t.Fatal(err)
	}
	if len(tape.frames) == 0 {
		return c
	}
	var as []analyze.DecodeAs
	if part.name == oneWay {
		as = s.override()
	}
	x := tell(t, part.name, tape.to.Bytes(), as...)
	for _, r := range x.replayed.Results {
		d := r.Divergence
		if d != nil && r.Certainty() == machine.Certain {
			t.Errorf("%v, %s: %s diverges in frame %d, certain: %s: %s", s, part.name, r.Addr(), d.Ref.Frame(), d.Rule.ID,
				d.Because)
		} else if d != nil {
			c.accused++
		}
	}
	for _, a := range x.anomalies {
		if a.Certainty == machine.Certain && accuses[a.Rule] {
			t.Errorf("%v, %s: finding %s, certain, of %v in frame %d: no endpoint does that", s, part.name, a.Rule.ID,
				a.flow.Addr(a.Side), a.Ref.Frame())
		}
	}
	begin := tape.frames[0].at.Sub(o.epoch)
	log, second := map[fact]int{}, map[netip.AddrPort]bool{}
	for _, e := range o.ends {
		second[e.addr] = e.second
		since := begin - o.close
		if !s.at(e) {
			since -= s.path.Delay + s.path.Jitter // what was on its way then
		}
		for _, entry := range e.log {
			if entry.At >= since || !part.strict {
				log[fact{e.addr, entry.Peer, entry.Kind, entry.ID}]++
			}
		}
	}
	got, bad := map[fact]int{}, map[srdppeer.Kind][]string{}
	for i := range x.events {
		e := &x.events[i]
		kind, ok := words[e.Kind]
		if !ok || !second[e.of()] {
			continue
		}
		c.events[kind]++
		if e.Certainty != machine.Certain {
			continue
		}
		c.sure[kind]++
		k := fact{e.of(), e.peer(), kind, uint16(e.Sequence)}
		if got[k]++; got[k] > log[k] && !part.accusations {
			bad[kind] = append(bad[kind], fmt.Sprintf("id %d in frame %d", k.id, e.Ref.Frame()))
		}
	}
	for kind, list := range bad {
		t.Errorf("%v, %s: %d events %v, certain, did not happen, such as %s", s, part.name, len(list), kind, list[0])
	}
	return c
}
