// Package protocols lists the protocols of ackscope for programs that use its packages.
//
//	set, err := protocols.New(protocols.Options{DecodeAs: []string{"udp.port==7777,gaffer"}})
//	result, err := unit.Analyze(ctx, name, inputs, unit.Options{Registry: set.Registry, DecodeAs: set.DecodeAs})
//
// The options are those of the command line. Package cmd/ackscope has a list of its own, with the
// parts of the command line beside each protocol. A test there compares both.
package protocols

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// Default returns the registry of all protocols, in the order in which they are tried and shown.
func Default() *dissect.Registry {
	return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
}

// File is a file of a user: its path, and its content if that is at hand.
type File = yamlfile.File

// Options are what a user adds to the protocols. The zero value adds nothing.
type Options struct {
	Profiles []File   // --profiles
	Keys     *File    // --keys; nil for none
	Schema   *File    // --schema; nil for none
	DecodeAs []string // -d: "udp.port==7777,gaffer:article-be"
}

// Set is a registry with what a user added.
type Set struct {
	Registry *dissect.Registry
	// DecodeAs are the overrides of Options.DecodeAs, then those of profiles that name ports.
	DecodeAs []analyze.DecodeAs
}

// New returns the protocols with what the options add.
func New(o Options) (*Set, error) {
	registry, err := yamlfile.Extend(Default(), yamlfile.Files{Profiles: o.Profiles, Keys: o.Keys, Schema: o.Schema})
	if err != nil {
		return nil, err
	}
	overrides, err := analyze.ParseDecodeAs(registry, o.DecodeAs)
	if err != nil {
		return nil, err
	}
	return &Set{Registry: registry, DecodeAs: overrides}, nil
}
