package riptide

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// narrower goes on with what the classifier began: it narrows down the builds that the ends of a flow can
// be. For example, a client that is met in the middle shows after three heartbeats whether it is Pytide.
type narrower struct {
	weigher
	codecs [2]wire.Codec
	sides  [2]sender
}

// newNarrower returns a narrower of a flow, or nil where nothing that ends send can narrow it further.
func newNarrower(senders *[2]model.Speaker) model.Narrower {
	n := &narrower{weigher: weigher{seed: hashSeed}}
	open := false
	for i := range senders {
		s := &senders[i]
		n.codecs[i], n.sides[i].builds = s.Codec, s.Builds
		open = open || s.Builds.Mixed(func(b *wire.Build) bool { return b.PingStays }) ||
			s.Builds.Mixed(func(b *wire.Build) bool { return b.Cause == wire.CauseAlways })
	}
	if !open {
		return nil
	}
	return n
}

// Observe weighs the next datagram, or message of a stream.
func (n *narrower) Observe(d *machine.Datagram) {
	codec := n.codecs[d.From]
	if codec.Fits(d.Bytes, d.Length, &n.m) {
		n.weigh(codec, &n.sides[d.From], &n.sides[d.From.Other()], d)
	}
}

// Builds returns the builds that each side can be by what it has sent so far.
func (n *narrower) Builds() [2]wire.BuildSet {
	return [2]wire.BuildSet{n.sides[0].builds, n.sides[1].builds}
}

// Clone returns an independent copy.
func (n *narrower) Clone() model.Narrower {
	c := *n
	return &c
}

// speakers returns what both ends speak, by the first datagrams and by what an earlier run learned.
func speakers(c *dissect.Config) (list [2]model.Speaker) {
	learned := tracker.Builds(&c.Facts)
	for i, sender := range settingsOf(c).Senders {
		list[i] = model.Speaker{Codec: sender.Codec, Builds: sender.Builds}
		if both := sender.Builds & learned[i]; both != 0 {
			list[i].Builds = both
		}
	}
	return list
}
