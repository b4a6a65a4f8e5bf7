package main

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
)

// protocols lists every protocol that ackscope knows, in the order in which
// they are shown. A new one takes its three packages and one line here.
func protocols() *dissect.Registry { return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol) }

// withProfiles gives the protocols with a user's profiles, by protocol.
func withProfiles(extra map[string][]dissect.Profile) *dissect.Registry {
	return dissect.NewRegistry(gaffer.WithProfiles(extra[gaffer.Protocol.Name]), riptide.Protocol)
}
