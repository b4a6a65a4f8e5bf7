package riptide

import (
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Settings is how one flow is read: dissect.Config.Profile of this protocol.
type Settings struct {
	Senders [2]Sender // by side
	bodies  *bodies   // reads the values; nil without a schema
}

// Sender is what one end of a flow speaks. The two ends can differ.
type Sender struct {
	Codec wire.Codec
	// Builds are the implementations that are possible by what this end has sent.
	Builds wire.BuildSet
}

// settingsOf returns the settings of a flow, or those of the usual dialect where it has none.
func settingsOf(c *dissect.Config) *Settings {
	if c != nil {
		if s, ok := c.Profile.(*Settings); ok {
			return s
		}
	}
	return usual
}

// usual is how a flow is read when nothing is known about it: as the form of all releases since
// 2.1.0.
var usual = both(Sender{Codec: wire.Codec{Dialect: wire.V21}, Builds: wire.BuildsOf(wire.V21)})

func both(s Sender) *Settings { return &Settings{Senders: [2]Sender{s, s}} }

// config wraps settings with the name that lists of flows show.
func config(s *Settings) *dissect.Config {
	name := s.Dialect(machine.A)
	if b := s.Dialect(machine.B); b != name {
		name += "|" + b
	}
	return &dissect.Config{Dialect: name, Profile: s}
}

// Dialect returns the name of what a side speaks.
func (s *Settings) Dialect(side machine.Side) string {
	c := s.Senders[side].Codec
	if c.BigEndian {
		return c.Dialect.Name + "-be"
	}
	return c.Dialect.Name
}

// Version returns the implementations that a side can be: "2.1.0-2.1.2".
func (s *Settings) Version(side machine.Side) string { return s.Senders[side].Builds.String() }

// profiles lists the built-in ways to read, and then those of the user:
//
//  1. every dialect, the usual one first;
//  2. the byte-aligned dialects in the other byte order;
//  3. every other name of an implementation that lab and simulate take.
func profiles(k *knowledge) (out []dissect.Profile) {
	var b *bodies
	if k != nil {
		b = k.bodies
	}
	for _, c := range hypotheses {
		doc := c.Dialect.Doc
		if c.BigEndian {
			doc += "; built big-endian"
		}
		s := both(Sender{Codec: c, Builds: wire.BuildsOf(c.Dialect)})
		s.bodies = b
		out = append(out, dissect.Profile{Name: s.Dialect(machine.A), Doc: doc, Config: config(s)})
	}
	for _, name := range riptide.FormNames() {
		if slices.ContainsFunc(out, func(p dissect.Profile) bool { return p.Name == name }) {
			continue
		}
		v, bigEndian, _ := riptide.LookupForm(name)
		s := both(Sender{
			Codec:  wire.Codec{Dialect: v.Build.Dialect, BigEndian: bigEndian},
			Builds: wire.Matching(func(o *wire.Build) bool { return o == v.Build }),
		})
		s.bodies = b
		doc := fmt.Sprintf("%s as %s writes it", v.Build.Dialect.Name, v.Build.Name)
		switch {
		case v.Name == name && v.Build.Name != name:
			doc = fmt.Sprintf("%s as %s writes it, which is as %s does", v.Build.Dialect.Name, name, v.Build.Name)
		case bigEndian:
			doc += "; built big-endian"
		}
		out = append(out, dissect.Profile{Name: name, Doc: doc, Config: config(s)})
	}
	out[0].Fields = b.fields()
	if k != nil {
		for _, p := range k.extra {
			if own, ok := p.Config.Profile.(*Settings); ok {
				p.Fields = own.bodies.fields()
			}
			out = append(out, p)
		}
	}
	return out
}
