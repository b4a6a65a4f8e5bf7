package srdp

import (
	"errors"

	"github.com/ackscope/ackscope/cli/app"
	dissector "github.com/ackscope/ackscope/dissect/srdp"
	description "github.com/ackscope/ackscope/sim/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// usual names the profile that endpoints speak where nothing is said.
func usual(via description.Via) string {
	if via == description.Straight {
		return wire.Direct.String()
	}
	return wire.Proxied.String()
}

// profileOf returns the profile of a name, built in or a user's; nil where there is
// none, with the names of all.
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
