// Package srdp dissects SRDP, the Scalable Reliable Datagram Protocol. It holds
// the descriptor for the registry, the classifier, and the fields of both
// forms. It also frames packets in the TCP stream to a proxy.
//
//	datagram, or packet of a stream ──> classifier ──> Settings (form, byte order, commands)
//	                                └─> Dissect    ──> fields, or what is foreign
//
// The classifier accepts a flow only when acknowledgements answer data. SRDP is
// made to share its port: another datagram of the flow is foreign, which is no
// fault.
//
// Package wire/srdp defines the bytes and the two forms.
package srdp

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/judge"
	"github.com/ackscope/ackscope/machine/srdp/tracker"
	"github.com/ackscope/ackscope/machine/srdp/whatif"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// protocolName is the protocol's name on command lines and in records.
const protocolName = "srdp"

// Protocol describes SRDP to the registry.
var Protocol = newProtocol(nil)

// WithProfiles returns a descriptor that also tries a user's profiles on every
// flow. Each Config must come from Protocol.DoneProfile.
func WithProfiles(extra []dissect.Profile) *dissect.Protocol { return newProtocol(extra) }

// extend adds a user's profiles.
func extend(a dissect.Additions) (*dissect.Protocol, error) {
	return WithProfiles(a.Profiles[protocolName]), nil
}

func newProtocol(extra []dissect.Profile) *dissect.Protocol {
	known := append(builtin(), extra...)
	return &dissect.Protocol{
		Name:     protocolName,
		Title:    "SRDP (Scalable Reliable Datagram Protocol)",
		Fields:   allFields,
		Rules:    model.Findings,
		Profiles: known,

		EventNames: model.EventNames,

		NewProfile:  newFileSettings,
		DoneProfile: doneFileSettings,
		Extend:      extend,
		SettingDocs: settingDocs,

		Framings: framings(known),
		Classify: func() dissect.Classifier { return newClassifier(known) },
		Dissect:  Dissect,
		Account:  account,
		Resends:  true,
		Info:     Info,
		Message:  describe,

		NewTracker: newTracker,

		Behaviours: judge.Behaviours,
		BehavioursOf: func(*dissect.Config, machine.Side) ([]string, int) {
			return []string{judge.Behaviours[0].Name}, 1
		},
		Versions: func(*dissect.Config, *machine.Facts, machine.Side) dissect.Versions {
			return dissect.Versions{
				Library: "SRDP",
				Open:    []dissect.Release{{Name: "of 1995", Behaviour: judge.Behaviours[0].Name}},
			}
		},
		NewJudge: func(c *dissect.Config, behaviours [2]string) (machine.Judge, error) {
			config, facts := trackerConfig(c)
			return judge.New(config, facts, c.Ends, behaviours)
		},

		DivergenceRules: judge.Rules,
		Parameters:      whatif.Parameters,
		NewStage: func(c *dissect.Config) (machine.Stage, error) {
			config, _ := trackerConfig(c)
			return whatif.New(config), nil
		},

		NewScope: func(c *dissect.Config) machine.Scope { return tracker.NewCounter(&settingsOf(c).Wire) },
	}
}

func newTracker(c *dissect.Config) machine.Tracker {
	config, facts := trackerConfig(c)
	return tracker.New(config, facts)
}

func trackerConfig(c *dissect.Config) (model.Config, machine.Facts) {
	s, facts := settingsOf(c), c.Facts
	if facts.Vantage == machine.VantageUnknown && c.OneHost {
		facts.Vantage, facts.VantageReason = machine.VantageBoth, "both ends have the same address"
	}
	return model.Config{Profile: s.Wire, MaxPayload: s.MaxPayload, Rules: s.Rules, Stream: c.Stream}, facts
}

// describe names a packet by the promises that it asks for.
func describe(c *dissect.Config, m *machine.Message) (string, dissect.Values) {
	return nameOf(&settingsOf(c).Wire, uint8(m.Type)), nil
}

func nameOf(p *wire.Profile, flags uint8) string {
	switch order, once := flags&p.Order != 0, flags&p.DontDuplicate != 0; {
	case order && once:
		return "ordered, once"
	case order:
		return "ordered"
	case once:
		return "once"
	}
	return "plain"
}
