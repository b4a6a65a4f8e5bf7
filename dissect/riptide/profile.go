package riptide

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// FileSettings is what a profile file sets.
type FileSettings struct {
	// Dialect is one of wire.Dialects.
	Dialect string `yaml:"dialect"`
	// Build is the implementation where it is known, one of wire.Builds. It implies its dialect.
	Build string `yaml:"build"`
	// ByteOrder is little or big; big for byte-aligned dialects only.
	ByteOrder string `yaml:"byte_order"`
	// NotifyHeader reads the Notify messages of dialect notes with the library's ack header in place
	// of a message id.
	NotifyHeader bool `yaml:"notify_header"`
	// Schema describes the values of messages.
	Schema *schema.Schema `yaml:"schema"`
}

// settingDocs describes the settings of a profile file.
var settingDocs = map[string]string{
	"dialect": "how messages are written: " + namesOf(wire.Dialects, func(d *wire.Dialect) string { return d.Name }),
	"build": "the implementation, where it is known; its dialect is then given with it: " +
		namesOf(wire.Builds, func(b *wire.Build) string { return b.Name }),
	"byte_order":    "little or big; big for byte-aligned dialects only",
	"notify_header": "whether Notify messages of dialect notes have the library's ack header in place of a message id",
	"schema":        "the values of messages by their id, as a schema file has them",
}

func namesOf[T any](list []T, name func(T) string) string {
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = name(x)
	}
	return strings.Join(names, ", ")
}

// newFileSettings returns the settings of a built-in profile to start from, or those of 2.1 where
// no base is named.
func newFileSettings(base string) (any, error) {
	if base == "" {
		return &FileSettings{Dialect: wire.V21.Name, ByteOrder: "little"}, nil
	}
	name, big := strings.CutSuffix(base, "-be")
	s := &FileSettings{ByteOrder: "little"}
	if big {
		s.ByteOrder = "big"
	}
	if d, ok := wire.Lookup(name); ok && (!big || d.Form == wire.ByteAligned) {
		s.Dialect = d.Name
		return s, nil
	}
	if v, _, ok := riptide.LookupForm(base); ok {
		s.Dialect, s.Build = v.Build.Dialect.Name, v.Build.Name
		return s, nil
	}
	var names []string
	for _, p := range profiles(nil) {
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("expected one of %v, found %q", names, base)
}

// doneFileSettings checks what a file has set. The error names the setting, what was expected and
// what was found.
func doneFileSettings(v any) (*dissect.Config, error) {
	f, ok := v.(*FileSettings)
	if !ok {
		return nil, fmt.Errorf("riptide: expected the settings that NewProfile gave, found %T", v)
	}
	d, ok := wire.Lookup(f.Dialect)
	if !ok {
		var names []string
		for _, d := range wire.Dialects {
			names = append(names, d.Name)
		}
		return nil, fmt.Errorf("dialect: expected one of %v, found %q", names, f.Dialect)
	}
	s := Sender{Codec: wire.Codec{Dialect: d, NotifyHeader: f.NotifyHeader}, Builds: wire.BuildsOf(d)}
	switch f.ByteOrder {
	case "", "little":
	case "big":
		if d.Form != wire.ByteAligned {
			return nil, fmt.Errorf("byte_order: dialect %s has no byte order but little", d.Name)
		}
		s.Codec.BigEndian = true
	default:
		return nil, fmt.Errorf("byte_order: expected little or big, found %q", f.ByteOrder)
	}
	if f.NotifyHeader && !d.BareNotify() {
		return nil, fmt.Errorf("notify_header: dialect %s has that header in any case, or no Notify", d.Name)
	}
	if f.Build != "" {
		b, ok := wire.LookupBuild(f.Build)
		if !ok || b.Dialect != d {
			return nil, fmt.Errorf("build: expected one of %s, found %q", wire.BuildsOf(d), f.Build)
		}
		s.Builds = wire.Matching(func(o *wire.Build) bool { return o == b })
	}
	settings := both(s)
	if f.Schema != nil {
		var err error
		if settings.bodies, err = newBodies(f.Schema); err != nil {
			return nil, err
		}
	}
	return config(settings), nil
}
