package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	tracker "github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// newStage runs a flow again under other settings.
func newStage(c *dissect.Config) (machine.Stage, error) {
	if k, ok := c.Profile.(*secured); ok {
		return staged(tracker.NewYojimboStage(k.layers, c.Facts.Settings))
	}
	p, ok := c.Profile.(*wire.Profile)
	if !ok || p.Form == wire.FormNetcode {
		return nil, fmt.Errorf("its packets are closed, as dialect %s has them: --keys opens those of which the key is known", c.Dialect)
	}
	return staged(tracker.NewStage(p))
}

// staged keeps a nil stage from becoming an interface that is not nil.
func staged(s *tracker.Stage, err error) (machine.Stage, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
