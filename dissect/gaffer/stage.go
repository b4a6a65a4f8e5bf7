package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/whatif"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// newStage returns a stage that runs a flow again with other settings.
func newStage(c *dissect.Config) (machine.Stage, error) {
	if k, ok := c.Profile.(*secured); ok {
		return staged(whatif.NewYojimboStage(k.layers, c.Facts.Settings))
	}
	p, ok := c.Profile.(*wire.Profile)
	if !ok || p.Form == wire.FormNetcode {
		return nil, fmt.Errorf("its packets are closed, as dialect %s has them: --keys opens those of which the key is known",
			c.Dialect)
	}
	return staged(whatif.New(p))
}

// staged keeps a nil stage from becoming an interface that is not nil.
func staged(s *whatif.Stage, err error) (machine.Stage, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
