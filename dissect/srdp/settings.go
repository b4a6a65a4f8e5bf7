package srdp

import (
	"github.com/ackscope/ackscope/dissect"
	model "github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Settings says how to read one flow: the dissect.Config.Profile of this
// protocol.
type Settings struct {
	Wire wire.Profile
	// MaxPayload is the most bytes that a data packet may carry: see wire.MaxCall.
	MaxPayload int
	// Rules are what receivers are assumed to remember.
	Rules model.Rules
}

func settingsFor(p wire.Profile) *Settings {
	return &Settings{Wire: p, MaxPayload: p.MaxPayload(), Rules: model.DefaultRules()}
}

// usual is how to read a flow that has no settings.
var usual = settingsFor(wire.Default())

// settingsOf returns the settings of a flow, or usual when it has none.
func settingsOf(c *dissect.Config) *Settings {
	if c != nil {
		if s, ok := c.Profile.(*Settings); ok {
			return s
		}
	}
	return usual
}

// builtin returns the built-in profiles: both forms in both byte orders, the
// usual one first.
func builtin() (out []dissect.Profile) {
	for _, x := range []struct {
		name, doc string
		form      wire.Form
		little    bool
	}{
		{"direct", "straight to the peer: 4 bytes of header before the data", wire.Direct, false},
		{"proxied", "by way of a proxy: both addresses in every packet, 16 bytes of header", wire.Proxied, false},
		{"direct-le", "direct, ids with the low byte first", wire.Direct, true},
		{"proxied-le", "proxied, ids and ports with the low byte first", wire.Proxied, true},
	} {
		p := wire.Default().In(x.form)
		p.LittleEndian = x.little
		out = append(out,
			dissect.Profile{Name: x.name, Doc: x.doc, Config: &dissect.Config{Dialect: x.name, Profile: settingsFor(p)}})
	}
	return out
}
