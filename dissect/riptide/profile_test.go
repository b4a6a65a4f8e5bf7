package riptide

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// TestProfileFiles starts a file from every built-in profile and reads some.
func TestProfileFiles(t *testing.T) {
	for _, p := range Protocol.Profiles {
		settings, err := Protocol.NewProfile(p.Name)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		c, err := Protocol.DoneProfile(settings)
		if err != nil || c.Dialect != p.Config.Dialect ||
			c.Profile.(*Settings).Senders != p.Config.Profile.(*Settings).Senders {
			t.Errorf("%s: %+v, %v; want %+v", p.Name, c, err, p.Config)
		}
	}
	read := func(src string) ([]yamlfile.Profile, error) {
		return yamlfile.Profiles([]byte(src), "game.yaml", dissect.NewRegistry(Protocol))
	}
	got, err := read(`
protocol: riptide
name: mygame
base: 2.1-dev-n
settings:
  byte_order: big
  schema:
    messages: {1: {name: move, fields: [{name: x, type: ushort}]}}
`)
	if err != nil || len(got) != 1 || got[0].Config.Profile.(*Settings).Dialect(machine.B) != "2.1-dev-n-be" {
		t.Fatalf("%+v, %v", got, err)
	}
	name, values, err := valuesOf(dissect.Context{Config: got[0].Config}, datagram(t, "0700210001 0102"))
	out, _ := json.Marshal(values)
	if err != nil || name != "move" || string(out) != `{"x":258}` {
		t.Errorf("%s %s, %v", name, out, err)
	}
	const head = "protocol: riptide\nname: a\n"
	for rest, want := range map[string]string{
		"settings: {dialect: \"3.0\"}":                                            "dialect: expected one of",
		"settings: {byte_order: big}":                                             "byte_order: dialect 2.1",
		"settings: {byte_order: odd}":                                             "expected little or big",
		"settings: {notify_header: true}":                                         "notify_header",
		"settings: {build: 2.0.0}":                                                "build: expected one of 2.1.0-2.2.1",
		"base: nothing\nsettings: {}":                                             "found \"nothing\"",
		"settings: {schema: {messages: {1: {fields: [{name: x, type: shart}]}}}}": "shart",
	} {
		src := head + rest
		if _, err := read(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %q", src, err, want)
		}
	}
}
