package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// protocols lists every protocol that ackscope knows, in the order in which
// they are shown. A new one takes its three packages and one line here.
func protocols() *dissect.Registry { return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol) }

// withProfiles gives the protocols with a user's profiles, by protocol, and
// with the keys given; nil for none.
func withProfiles(extra map[string][]dissect.Profile, keys *gaffer.Keys) *dissect.Registry {
	own, other := extra[gaffer.Protocol.Name], listed(riptide.Protocol, extra[riptide.Protocol.Name])
	if keys != nil {
		return dissect.NewRegistry(gaffer.WithKeys(own, keys), other)
	}
	return dissect.NewRegistry(gaffer.WithProfiles(own), other)
}

// readKeys reads a key file.
func readKeys(path string) (*gaffer.Keys, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f gaffer.KeyFile
	if err := yamlfile.Read(src, path, &f); err != nil {
		return nil, err
	}
	keys, err := gaffer.NewKeys(&f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// listed gives a descriptor that lists further profiles: -d names them, but no
// flow is tried on them.
func listed(p *dissect.Protocol, extra []dissect.Profile) *dissect.Protocol {
	if len(extra) == 0 {
		return p
	}
	with := *p
	with.Profiles = append(slices.Clone(p.Profiles), extra...)
	return &with
}
