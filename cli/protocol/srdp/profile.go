//go:build !js

package srdp

import (
	"errors"

	"github.com/ackscope/ackscope/cli/app"
	dissector "github.com/ackscope/ackscope/dissect/srdp"
	description "github.com/ackscope/ackscope/sim/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// usual returns the name of the endpoints' default profile.
func usual(via description.Via) string {
	if via == description.Straight {
		return wire.Direct.String()
	}
	return wire.Proxied.String()
}

// profileOf returns the profile with a name, built in or the user's. It returns
// nil when there is none. It also returns the names of all profiles.
func profileOf(a *app.App, name string) (profile *wire.Profile, names []string, err error) {
	protocol, ok := a.Registry.Lookup("srdp")
	if !ok {
		return nil, nil, errors.New("srdp is not built in")
	}
	for i := range protocol.Profiles {
		x := &protocol.Profiles[i]
		names = append(names, x.Name)
		if s, ok := x.Config.Profile.(*dissector.Settings); ok && x.Name == name {
			return &s.Wire, names, nil
		}
	}
	return nil, names, nil
}
