// Package riptide dissects Riptide Networking. It has these parts:
//
//   - a descriptor for the registry (protocol.go);
//
//   - a classifier that finds a flow's dialects and releases from its packets (classify.go);
//
//   - the fields of every message (fields.go, dissect.go);
//
//   - the framing of messages in TCP streams (framing.go).
//
//     datagram, or message of a stream ──> classifier ──> Settings (dialect and builds of each side)
//     └─> Dissect    ──> fields
//
// Package wire/riptide knows what the bytes mean. Package layers is for users of gopacket.
package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/judge"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	"github.com/ackscope/ackscope/machine/riptide/whatif"
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// protocolName is the protocol's name on command lines and in records.
const protocolName = "riptide"

// Protocol describes Riptide to the registry.
var Protocol = newProtocol(nil)

// With returns a descriptor with a user's schema and profiles. The schema reads the values of
// messages (see bodies); nil means none. A profile applies to a flow of its dialect. Each Config
// must come from Protocol.DoneProfile. The error is a *schema.Error.
func With(extra []dissect.Profile, s *schema.Schema) (*dissect.Protocol, error) {
	k := &knowledge{extra: extra}
	if s != nil {
		var err error
		if k.bodies, err = newBodies(s); err != nil {
			return nil, err
		}
	}
	return newProtocol(k), nil
}

// extend reads a user's profiles and schema.
func extend(a dissect.Additions) (*dissect.Protocol, error) {
	extra := a.Profiles[protocolName]
	if a.Schema == nil {
		return With(extra, nil)
	}
	messages, err := a.Schema.Body(wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
	if err != nil {
		return nil, err
	}
	p, err := With(extra, messages)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Schema.Name, err)
	}
	return p, nil
}

// knowledge is what a user has added about the games in the captures.
type knowledge struct {
	extra  []dissect.Profile
	bodies *bodies
}

// bodiesOf returns the schema that reads the values of a flow.
func (k *knowledge) bodiesOf(s *Settings) *bodies {
	if k == nil {
		return nil
	}
	for i := range k.extra {
		own, ok := k.extra[i].Config.Profile.(*Settings)
		if ok && own.bodies != nil && own.speaks(s) {
			return own.bodies
		}
	}
	return k.bodies
}

// speaks reports whether both sides of a flow can be what a profile says.
func (s *Settings) speaks(flow *Settings) bool {
	for side := range s.Senders {
		a, b := &s.Senders[side], &flow.Senders[side]
		if a.Codec.Dialect != b.Codec.Dialect || a.Codec.BigEndian != b.Codec.BigEndian || a.Builds&b.Builds == 0 {
			return false
		}
	}
	return true
}

func newProtocol(k *knowledge) *dissect.Protocol {
	return &dissect.Protocol{
		Name:   protocolName,
		Title:  "Riptide Networking",
		Fields: allFields,
		Rules:  model.Rules,

		EventNames: model.EventNames,
		EventNote:  eventNote,
		Profiles:   profiles(k),

		NewProfile:  newFileSettings,
		DoneProfile: doneFileSettings,
		Extend:      extend,
		SettingDocs: settingDocs,

		Framings: framings,
		Classify: func() dissect.Classifier { return newClassifier(k) },
		Dissect:  Dissect,
		Account:  account,
		Resends:  true,
		Info:     Info,
		Message:  describe,

		Behaviours:      behaviours(),
		BehavioursOf:    behavioursOf,
		Versions:        versionsOf,
		NewJudge:        newJudge,
		DivergenceRules: judge.Rules,
		Parameters:      whatif.Parameters,
		NewStage: func(c *dissect.Config) (machine.Stage, error) {
			return whatif.New(trackerConfig(c)), nil
		},

		Portable: &dissect.Portable{Write: writePortable, Read: readPortable},
		NewTracker: func(c *dissect.Config) machine.Tracker {
			t := trackerConfig(c)
			t.Narrow = newNarrower(&t.Senders)
			return tracker.New(t, c.Facts)
		},
	}
}
