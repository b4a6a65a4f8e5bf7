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

import "github.com/ackscope/ackscope/dissect"

// Protocol describes Riptide to the registry. What its endpoints knew is the
// business of a tracker, which Protocol does not bring.
var Protocol = &dissect.Protocol{
	Name:     "riptide",
	Title:    "Riptide Networking",
	Fields:   allFields,
	Profiles: profiles(),
	Framings: framings,
	Classify: newClassifier,
	Dissect:  Dissect,
	Info:     Info,
}
