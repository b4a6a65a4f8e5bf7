package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// newStage runs a flow again under other settings.
func newStage(c *dissect.Config) (machine.Stage, error) {
	if k, ok := c.Profile.(*secured); ok {
		return staged(model.NewYojimboStage(k.layers, c.Facts.Settings))
	}
	p, ok := c.Profile.(*wire.Profile)
	if !ok || p.Form == wire.FormNetcode {
		return nil, fmt.Errorf("its packets are closed, as dialect %s has them: --keys opens those of which the key is known", c.Dialect)
	}
	return staged(model.NewStage(p))
}

// staged keeps a nil stage from becoming an interface that is not nil.
func staged(s *model.Stage, err error) (machine.Stage, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
