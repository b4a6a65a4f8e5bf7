package cause

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Way is a direction between a player and the server.
type Way uint8

const (
	Down Way = iota // from the server
	Up              // to the server
	ways
)

// Flow is what one flow shows of trouble. The zero Event list and a Sent of 0 are unknown or
// none: neither speaks for a cause.
type Flow struct {
	ID         int
	Server     netip.AddrPort // unknown if it is not valid
	Client     netip.Addr
	Version    string // of the library; empty if unknown
	Interface  string // of the capture; empty if there is only one
	First      machine.Instant
	Last       machine.Instant
	AtServer   bool // the capture was taken at the server
	Pauses     [ways][]Event
	Rises      []Event // of the round trip
	Sent, Lost [ways]float64
}

// Event is a pause or a rise. Until is its end, or the time of the rise.
type Event struct {
	Until machine.Instant
	Took  int64 // nanoseconds; of a rise, how much longer the round trip became
	Frame machine.Ref
}

// lossLeast is how many packets a direction needs before its loss says something about the
// flow.
const lossLeast = 64

func newFlow(f *analyze.Flow, servers map[netip.AddrPort]int) Flow {
	facts := f.Facts()
	server, known := machine.B, true
	switch {
	case facts.Client[machine.A] != facts.Client[machine.B]:
		if facts.Client[machine.B] {
			server = machine.A
		}
	case servers[f.A] > servers[f.B]:
		server = machine.A
	case servers[f.A] == servers[f.B]:
		known = false // the side that did not send first is only a guess
	}
	x := Flow{
		ID: f.ID, Client: f.Addr(server.Other()).Addr(), First: f.First, Last: f.Last,
		AtServer:  facts.Vantage.Near(server),
		Interface: fmt.Sprintf("%d of file %d", f.Interface, f.FirstRef.File()+1),
	}
	if known {
		x.Server = f.Addr(server)
	}
	if v, ok := f.Versions(server.Other()); ok {
		x.Version = v.Short()
	}
	for i, side := range [ways]machine.Side{Down: server, Up: server.Other()} {
		way := Way(i)
		for _, p := range f.Pauses(side, nil) {
			x.Pauses[way] = append(x.Pauses[way], Event{p.Until, int64(p.Took), p.Frame})
		}
		if s, ok := f.Step(side); ok && len(x.Rises) == 0 {
			x.Rises = append(x.Rises, Event{Until: s.At, Took: int64(s.After - s.Before)})
		}
		n, ok := f.Network(side)
		if !ok || n.Share < 0 || n.Round && way == Up {
			continue
		}
		sum, _ := f.Summary(side)
		sent := float64(sum.Path.Settled)
		if sent == 0 || n.Tells {
			sent = float64(n.Loss.Sent)
		}
		if sent >= lossLeast {
			x.Sent[way], x.Lost[way] = sent, sent*n.Share
		}
	}
	return x
}

// Kind is what the flows of a group share.
type Kind uint8

const (
	None   Kind = iota // the troubles have nothing in common
	Server             // the server's address
	Prefix             // the players' network
	Version
	Interface
	Player // one flow
	All    // flows of every group: what they share is the capture, or lies before all servers
)

var kindWords = [...]string{"none", "server", "prefix", "version", "interface", "player", "all"}

func (k Kind) String() string { return kindWords[k] }

// group is a set of flows that share something.
type group struct {
	kind  Kind
	name  string
	flows []int32 // indexes
}

// Networks of players. A /24 is the smallest network that providers announce to each other, and
// a /48 is the usual one of a site.
// Source: definition, common cause: RFC 7454 and RFC 6177
const (
	prefix4 = 24
	prefix6 = 48
)

// groupLeast is the least number of flows of a group. Two flows come together by chance.
const groupLeast = 3

// groups returns all groups of at least three flows, in a fixed order.
func groups(flows []Flow) (list []group) {
	type key struct {
		kind Kind
		name string
	}
	found := map[key]*group{}
	put := func(i int, kind Kind, name string) {
		g := found[key{kind, name}]
		if g == nil {
			g = &group{kind: kind, name: name}
			found[key{kind, name}] = g
		}
		g.flows = append(g.flows, int32(i))
	}
	for i := range flows {
		f := &flows[i]
		if f.Server.IsValid() {
			put(i, Server, f.Server.String())
		}
		if network := network(f.Client); network.IsValid() {
			put(i, Prefix, network.String())
		}
		if f.Version != "" {
			put(i, Version, f.Version)
		}
		if f.Interface != "" {
			put(i, Interface, f.Interface)
		}
	}
	for _, g := range found {
		if len(g.flows) >= groupLeast {
			list = append(list, *g)
		}
	}
	slices.SortFunc(list, func(x, y group) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name))
	})
	return list
}

// network returns the network that an address lies in.
func network(a netip.Addr) netip.Prefix {
	bits := prefix6
	if a.Is4() {
		bits = prefix4
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address
	}
	return p
}
