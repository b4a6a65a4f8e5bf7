package endpoint

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// DefaultPeers is the most peers of an endpoint or a proxy, unless its options
// set another limit.
const DefaultPeers = 1 << 16

// Introduce returns the input that gives an endpoint or a proxy the address of
// a peer. In the proxied form an endpoint needs it to send to a peer. In the
// direct form it makes peers with one IP address share their observed delays.
// Packets that arrive by another route do not change an introduced address.
func Introduce(peer machine.Peer, address wire.Address) machine.Command {
	return machine.Command{Peer: peer, Kind: machine.Connect, Payload: []byte(address.String())}
}

func introduced(in machine.Command) (wire.Address, error) {
	a, err := netip.ParseAddrPort(string(in.Payload))
	if err != nil {
		return wire.Address{}, fmt.Errorf("connect: expected an address such as 192.0.2.1:7777: %w", err)
	}
	address, ok := wire.AddressOf(a)
	if !ok {
		return wire.Address{}, fmt.Errorf("connect: expected an IPv4 address, found %v", a)
	}
	return address, nil
}

// book finds the driver's peer that leads to an address.
type book struct {
	limit  int
	routes map[wire.Address]route
	names  map[machine.Peer]wire.Address // as introduced; the last one of each peer
	next   machine.Peer                  // above all peer numbers so far
	order  []wire.Address                // in the order of learning, oldest first; may contain forgotten addresses
}

type route struct {
	peer  machine.Peer
	fixed bool // introduced, not learned
}

func newBook(limit int) book {
	if limit <= 0 {
		limit = DefaultPeers
	}
	return book{limit: limit, routes: map[wire.Address]route{}, names: map[machine.Peer]wire.Address{}}
}

// met records a number that the driver uses.
func (b *book) met(p machine.Peer) { b.next = max(b.next, p+1) }

// introduce records an address that the driver gives.
func (b *book) introduce(p machine.Peer, a wire.Address) error {
	b.met(p)
	if _, had := b.routes[a]; !had && len(b.routes) >= b.limit {
		return fmt.Errorf("connect: %w: %d are known already", srdp.ErrFull, len(b.routes))
	}
	b.routes[a], b.names[p] = route{p, true}, a
	return nil
}

// learn records that a packet from a came by p. When the book is full, it
// forgets the address that it learned first. A peer that is still there is
// learned again.
func (b *book) learn(a wire.Address, p machine.Peer) {
	b.met(p)
	r, had := b.routes[a]
	if had && r.fixed {
		return
	}
	for !had && len(b.routes) >= b.limit {
		if len(b.order) == 0 {
			return // all were introduced
		}
		if old, ok := b.routes[b.order[0]]; ok && !old.fixed {
			delete(b.routes, b.order[0])
		}
		b.order = b.order[1:]
	}
	if !had {
		b.order = append(b.order, a)
	}
	b.routes[a] = route{peer: p}
}

// find returns the peer that leads to an address. It returns false when the
// book does not have the address.
func (b *book) find(a wire.Address) (machine.Peer, bool) {
	r, ok := b.routes[a]
	return r.peer, ok
}

// number returns the peer that leads to an address. It gives a new address the
// next number; the driver then sends to that number by the address.
func (b *book) number(a wire.Address) (machine.Peer, bool) {
	if p, ok := b.find(a); ok {
		return p, true
	}
	p := b.next
	return p, b.introduce(p, a) == nil
}

// address returns the address that a peer was introduced with.
func (b *book) address(p machine.Peer) (wire.Address, bool) {
	a, ok := b.names[p]
	return a, ok
}

func less(a, b wire.Address) bool {
	return slices.Compare(a.IP[:], b.IP[:]) < 0 || a.IP == b.IP && a.Port < b.Port
}

// sorted returns all addresses in ascending order.
func (b *book) sorted() []wire.Address {
	return slices.SortedFunc(maps.Keys(b.routes), func(x, y wire.Address) int {
		switch {
		case less(x, y):
			return -1
		case less(y, x):
			return 1
		}
		return 0
	})
}

func (b *book) clone() book {
	c := *b
	c.routes, c.names, c.order = maps.Clone(b.routes), maps.Clone(b.names), slices.Clone(b.order)
	return c
}
