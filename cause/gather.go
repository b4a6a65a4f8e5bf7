package cause

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
)

// Again is how long after one comparison of a capture that still grows the next one may begin.
// A comparison of 10,000 flows takes a second of one core, so it takes one part in ten at most.
const Again = 10 * time.Second

// New compares the flows of a session. The session must not go on meanwhile.
func New(session *analyze.Session) *Report {
	g := Gather(session)
	g.Take(math.MaxInt)
	return g.Compare()
}

// Gathering collects the flows of a session that may go on. For example, a screen that is drawn
// many times a second takes some flows at a time, and lets the session go on between them.
type Gathering struct {
	flows      []*analyze.Flow
	servers    map[netip.AddrPort]int
	counted    int // flows whose addresses are counted
	known      int // of them, those of a known protocol
	taken      int
	list       []Flow
	more       int
	interfaces map[string]bool
	dropped    bool
}

// Gather begins to collect the flows that a session has now.
func Gather(session *analyze.Session) *Gathering {
	return &Gathering{
		flows: slices.Clone(session.Flows()), servers: map[netip.AddrPort]int{}, interfaces: map[string]bool{},
		dropped: session.Dropped() > 0,
	}
}

// Take reads up to most flows. The session must not go on during the call. It returns false
// when there are no more.
func (g *Gathering) Take(most int) (left bool) {
	for ; g.counted < len(g.flows) && most > 0; most-- {
		if f := g.flows[g.counted]; f.Protocol != nil {
			g.servers[f.A]++
			g.servers[f.B]++
			g.known++
		}
		g.counted++
	}
	for ; g.taken < len(g.flows) && most > 0; most-- {
		g.add(g.flows[g.taken])
		g.taken++
	}
	return g.taken < len(g.flows)
}

// flowsMost bounds the flows that are compared. Further ones are counted and left out.
// Source: bound, memory and time of a verdict on many flows
const flowsMost = 100_000

func (g *Gathering) add(f *analyze.Flow) {
	switch {
	case f.Protocol == nil:
		return
	case len(g.list) == flowsMost:
		g.more++
		return
	}
	if g.list == nil { // in one piece: there may be very many
		g.list = make([]Flow, 0, min(g.known, flowsMost))
	}
	x := newFlow(f, g.servers)
	g.interfaces[x.Interface] = true
	g.list = append(g.list, x)
}

// Compare compares the flows that were collected. The session may go on meanwhile.
func (g *Gathering) Compare() *Report {
	if len(g.interfaces) < 2 {
		for i := range g.list {
			g.list[i].Interface = ""
		}
	}
	r := Compare(g.list, g.dropped)
	r.More = g.more
	return r
}
