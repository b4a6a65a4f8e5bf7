package riptide

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/judge"
)

// behaviours lists the behaviours of all versions of the library.
func behaviours() (list []machine.Behaviour) {
	for _, b := range model.Behaviours {
		list = append(list, machine.Behaviour{Name: b.Name, Doc: b.Doc})
	}
	return list
}

// behavioursOf returns the names of those that a sender of a flow can have.
func behavioursOf(c *dissect.Config, s machine.Side) (names []string, open int) {
	sender := speakers(c)[s]
	return judge.BehavioursOf(sender.Codec.Dialect, sender.Builds)
}

// newJudge returns a judge that compares a connection with references.
func newJudge(c *dissect.Config, names [2]string) (machine.Judge, error) {
	facts := c.Facts
	if facts.Vantage == machine.VantageUnknown && c.OneHost {
		facts.Vantage = machine.VantageBoth
	}
	return judge.New(trackerConfig(c), facts, names)
}

func trackerConfig(c *dissect.Config) model.Config {
	return model.Config{
		Senders: speakers(c), Stream: c.Stream, OneHost: c.OneHost, Values: settingsOf(c).valueFaults(),
	}
}
