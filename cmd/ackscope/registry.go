package main

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/schema/yamlfile"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// protocols lists every protocol that ackscope knows, in the order in which
// they are shown. A new one takes its three packages and one line here.
func protocols() *dissect.Registry {
	return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
}

// withProfiles gives the protocols with a user's profiles, by protocol, with the
// keys given, and with a schema of Riptide's messages; nil for none.
func withProfiles(extra map[string][]dissect.Profile, keys *gaffer.Keys, messages *schema.Schema) (*dissect.Registry, error) {
	other, err := riptide.With(extra[riptide.Protocol.Name], messages)
	if err != nil {
		return nil, err
	}
	own, third := extra[gaffer.Protocol.Name], srdp.WithProfiles(extra[srdp.Protocol.Name])
	if keys != nil {
		return dissect.NewRegistry(gaffer.WithKeys(own, keys), other, third), nil
	}
	return dissect.NewRegistry(gaffer.WithProfiles(own), other, third), nil
}

// readSchema reads a schema of Riptide's messages. Gaffer's stand in profiles,
// since there how messages are packed is the game's affair too.
func readSchema(path string) (*schema.Schema, error) {
	src, err := yamlfile.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return yamlfile.Schema(src, path, wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
}

// readKeys reads a key file.
func readKeys(path string) (*gaffer.Keys, error) {
	src, err := yamlfile.ReadFile(path)
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
