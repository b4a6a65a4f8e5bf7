// Package riptide dissects Riptide Networking: a descriptor for the registry, a
// classifier that tells its dialects and releases apart by their packets, the
// fields of every message, how messages stand in TCP streams, and a layer for
// users of gopacket.
//
//	datagram, or message of a stream ──> classifier ──> Settings (dialect and builds of each side)
//	                                 └─> Dissect    ──> fields
//
// What the bytes mean is known to wire/riptide; see there for the forms.
package riptide

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	tracker "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Protocol describes Riptide to the registry.
var Protocol = newProtocol(nil)

// WithSchema gives a descriptor that reads the values of messages by a user's
// schema; see bodies for what its messages and packets describe. The error is a
// *schema.Error.
func WithSchema(s *schema.Schema) (*dissect.Protocol, error) {
	b, err := newBodies(s)
	if err != nil {
		return nil, err
	}
	return newProtocol(b), nil
}

func newProtocol(b *bodies) *dissect.Protocol {
	return &dissect.Protocol{
		Name:     "riptide",
		Title:    "Riptide Networking",
		Fields:   allFields,
		Profiles: profiles(b),

		NewProfile:  newFileSettings,
		DoneProfile: doneFileSettings,
		SettingDocs: settingDocs,

		Framings: framings,
		Classify: func() dissect.Classifier { return newClassifier(b) },
		Dissect:  Dissect,
		Info:     Info,

		NewTracker: func(c *dissect.Config) machine.Tracker {
			s := settingsOf(c)
			return tracker.NewTracker([2]wire.Codec{s.Senders[0].Codec, s.Senders[1].Codec}, c.Facts)
		},
	}
}
