package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// The versions of what writes reliable's form. Nothing on the wire tells the first two apart:
// they differ in what they do with the second copy of a packet.
var (
	reliableOld = dissect.Release{Name: "up to 1.2", Behaviour: judge.ReliableBefore13}
	reliableNew = dissect.Release{Name: "from 1.3", Behaviour: judge.ReliableFrom13}
	relyPort    = dissect.Release{Name: "rely", Port: true, Behaviour: judge.Rely}
)

// versionsOf returns the versions that a side can be. learned is what a run over the flow found out.
func versionsOf(c *dissect.Config, learned *machine.Facts, s machine.Side) dissect.Versions {
	p, _ := c.Profile.(*wire.Profile)
	within := ""
	if k, ok := c.Profile.(*secured); ok {
		p, within = k.layers.Reliable, "yojimbo over netcode 1.02, with reliable"
	}
	switch {
	case p == nil:
		return dissect.Versions{Library: c.Dialect}
	case c.Dialect == wire.Netcode:
		return dissect.Versions{Library: "netcode", Open: []dissect.Release{{Name: "1.02"}}}
	case p.Form == wire.FormReliable:
		v := reliableVersions(p, &learned.Readings, s)
		if within != "" {
			v.Library = within
		}
		return v
	case c.Dialect == wire.Reliable2017:
		return dissect.Versions{
			Library: "reliable",
			Open:    []dissect.Release{{Name: "of May 2017", Behaviour: judge.Reliable2017}},
		}
	case model.IsSample(p):
		return dissect.Versions{Library: "the articles' sample programs"}
	}
	return dissect.Versions{Library: "the article's header"}
}

// reliableVersions returns the versions of a side that writes reliable's form.
func reliableVersions(p *wire.Profile, e *machine.Readings, s machine.Side) dissect.Versions {
	v := dissect.Versions{Library: "reliable"}
	put := func(r dissect.Release, open bool) {
		if open {
			v.Open = append(v.Open, r)
		} else {
			v.Closed = append(v.Closed, r)
		}
	}
	asRely, asReliable := e.Broken[s][0], e.Broken[s][1] // headers that no reliable writes, and no rely
	rely := p.ZeroedAckBits != 0
	put(reliableOld, !rely && p.Duplicates != wire.Refused)
	put(reliableNew, !rely && p.Duplicates != wire.Delivered)
	put(relyPort, rely || asReliable <= asRely && p.Duplicates == wire.RuleUnknown)
	v.Mixed = asRely > 0 && asReliable > 0
	switch {
	case rely && asRely > 0:
		v.Proof = fmt.Sprintf("%d of its headers leave bits 8 to 15 of ack_bits at 0", asRely)
	case !rely && asReliable > asRely:
		v.Proof = fmt.Sprintf("%d of its headers set some of bits 8 to 15 of ack_bits and not all, which rely never does",
			asReliable)
	case rely || p.Duplicates != wire.RuleUnknown:
		v.Proof = "the profile says so"
	}
	return v
}
