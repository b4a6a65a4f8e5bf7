package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	tracker "github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// behavioursOf names the behaviours that a flow can be held against.
func behavioursOf(c *dissect.Config, side machine.Side) (names []string, open int) {
	p, _ := c.Profile.(*wire.Profile)
	if p != nil && tracker.IsSample(p) {
		return tracker.SampleBehaviours(p, c.Facts, side)
	}
	if k, ok := c.Profile.(*secured); ok {
		p = k.layers.Reliable
	}
	return tracker.BehavioursOf(p), 1
}

// newJudge holds a flow against references.
func newJudge(c *dissect.Config, behaviours [2]string) (machine.Judge, error) {
	if k, ok := c.Profile.(*secured); ok {
		return tracker.NewYojimboJudge(k.layers, NewDecryptor(k.keys), c.Facts, behaviours)
	}
	p, ok := c.Profile.(*wire.Profile)
	switch {
	case ok && tracker.IsSample(p):
		return tracker.NewSampleJudge(p, c.Facts, behaviours)
	case !ok || !p.HasAcks():
		return nil, fmt.Errorf("dialect %s: no packet of it can be held against a reference", c.Dialect)
	case p.Messages.Form != wire.MessagesNone:
		return tracker.NewConversationJudge(p, c.Facts, behaviours)
	}
	return tracker.NewJudge(p, c.Facts, behaviours)
}
