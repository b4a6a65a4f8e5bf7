// Package srdp dissects SRDP, the Scalable Reliable Datagram Protocol: a
// descriptor for the registry, a classifier that believes nothing but
// acknowledgements that answer data, the fields of both forms, how packets stand
// in the TCP stream to a proxy, and a layer for users of gopacket.
//
//	datagram, or packet of a stream ──> classifier ──> Settings (form, byte order, commands)
//	                                └─> Dissect    ──> fields, or what is foreign
//
// SRDP is made to share a port: a datagram of a flow that is none of its packets
// is foreign, which is no fault.
//
// What the bytes mean is known to wire/srdp; see there for the forms.
package srdp

import (
	"github.com/ackscope/ackscope/dissect"
)

// Protocol describes SRDP to the registry.
var Protocol = newProtocol(nil)

// WithProfiles gives a descriptor that knows a user's profiles too: every flow is
// tried by them. Each Config must come from Protocol.DoneProfile.
func WithProfiles(extra []dissect.Profile) *dissect.Protocol { return newProtocol(extra) }

func newProtocol(extra []dissect.Profile) *dissect.Protocol {
	known := append(builtin(), extra...)
	return &dissect.Protocol{
		Name:     "srdp",
		Title:    "SRDP (Scalable Reliable Datagram Protocol)",
		Fields:   allFields,
		Profiles: known,

		NewProfile:  newFileSettings,
		DoneProfile: doneFileSettings,
		SettingDocs: settingDocs,

		Framings: framings(known),
		Classify: func() dissect.Classifier { return newClassifier(known) },
		Dissect:  Dissect,
		Info:     Info,
	}
}
