package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// behavioursOf returns the names of the behaviours that a flow can be compared with.
func behavioursOf(c *dissect.Config, side machine.Side) (names []string, open int) {
	p, _ := c.Profile.(*wire.Profile)
	if p != nil && model.IsSample(p) {
		return article.Behaviours(p, c.Facts, side)
	}
	if k, ok := c.Profile.(*secured); ok {
		p = k.layers.Reliable
	}
	return judge.BehavioursOf(p), 1
}

// newJudge returns a judge that compares a flow with references.
func newJudge(c *dissect.Config, behaviours [2]string) (machine.Judge, error) {
	if k, ok := c.Profile.(*secured); ok {
		return judge.NewYojimbo(k.layers, netcode.NewDecryptor(k.keys), c.Facts, behaviours)
	}
	p, ok := c.Profile.(*wire.Profile)
	switch {
	case ok && model.IsSample(p):
		return article.NewJudge(p, c.Facts, behaviours)
	case !ok || !p.HasAcks():
		return nil, fmt.Errorf("dialect %s: no packet of it can be held against a reference", c.Dialect)
	case p.Messages.Form != wire.MessagesNone:
		return judge.NewConversation(p, c.Facts, behaviours)
	}
	return judge.New(p, c.Facts, behaviours)
}
