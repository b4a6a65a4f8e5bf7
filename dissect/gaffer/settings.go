package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Settings is the content of a profile file: the wire profile, and the bodies of
// messages and packets.
type Settings struct {
	wire.Profile `yaml:",inline"`

	Schema *schema.Schema `yaml:"schema"`
}

// newSettings returns the settings of the built-in profile base, to start from. Without
// a base they are the article's.
func newSettings(base string) (any, error) {
	if base == "" {
		base = wire.Article
	}
	if base == Yojimbo {
		return &YojimboSettings{}, nil
	}
	set := newProfileSet(nil, nil)
	for _, p := range set.profiles {
		if w, ok := p.Config.Profile.(*wire.Profile); ok && p.Name == base {
			return &Settings{Profile: *w}, nil
		}
	}
	return nil, fmt.Errorf("expected one of %v, found %q", append(wire.BuiltinNames(), Yojimbo), base)
}

// doneSettings checks the settings of a file.
func doneSettings(v any) (*dissect.Config, error) {
	if y, ok := v.(*YojimboSettings); ok {
		return y.done()
	}
	s, ok := v.(*Settings)
	if !ok {
		return nil, fmt.Errorf("gaffer: expected the settings that NewProfile gave, found %T", v)
	}
	p := s.Profile
	if s.Schema != nil {
		if err := attach(&p, s.Schema); err != nil {
			return nil, err
		}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &dissect.Config{Profile: &p, Ports: p.Ports}, nil
}

// attach compiles a schema and makes it the bodies of a profile.
func attach(p *wire.Profile, s *schema.Schema) error {
	if err := s.Compile(wire.Coding{}); err != nil {
		return err
	}
	for kind := range s.Messages {
		if p.Messages.Form != wire.MessagesNone && int(kind) >= p.Messages.Types {
			return fmt.Errorf("schema.messages.%d: messages.types says that there are %d", kind, p.Messages.Types)
		}
	}
	for kind := range s.Packets {
		if int(kind) >= max(p.PacketTypes, 1) {
			return fmt.Errorf("schema.packets.%d: packet_types says that there are %d", kind, p.PacketTypes)
		}
	}
	if len(s.Messages) > 0 {
		p.Messages.Bodies = newBodies("gaffer.message", s.Messages)
	}
	if len(s.Packets) > 0 {
		p.PacketBodies = newBodies("gaffer.packet", s.Packets)
	}
	return nil
}
