package cli

import (
	"encoding"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// `protocols NAME` prints a file that --profiles reads, with the same settings.
// Every setting is documented under its right name.
func TestProfilesReadBack(t *testing.T) {
	registry := protocols()
	for _, p := range registry.Protocols() {
		if p.NewProfile == nil {
			continue
		}
		documented := map[string]bool{}
		for i := range p.Profiles {
			x := &p.Profiles[i]
			text, err := about.ProfileYAML(p, x)
			if err != nil {
				t.Fatalf("%s:%s: %v", p.Name, x.Name, err)
			}
			read, err := yamlfile.Profiles(text, x.Name, registry)
			if err != nil {
				t.Errorf("%s:%s: %v\n%s", p.Name, x.Name, err, text)
				continue
			}
			if len(read) != 1 || read[0].Name != "my-"+x.Name || read[0].Doc != x.Doc {
				t.Fatalf("%s:%s reads back as %+v", p.Name, x.Name, read)
			}
			if diff := cmp.Diff(settingsOf(x.Config.Profile), settingsOf(read[0].Config.Profile)); diff != "" {
				t.Errorf("%s:%s reads back otherwise:\n%s", p.Name, x.Name, diff)
			}
			settings, err := p.NewProfile(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			settingNames(reflect.TypeOf(settings).Elem(), "", documented)
		}
		for name := range documented {
			if p.SettingDocs[name] == "" {
				t.Errorf("%s: the setting %s has no sentence", p.Name, name)
			}
		}
		for name := range p.SettingDocs {
			if !documented[name] {
				t.Errorf("%s: there is a sentence for %s, which is no setting", p.Name, name)
			}
		}
	}
}

// settingsOf returns the settings of a profile that a file can set, by name.
func settingsOf(profile any) map[string]any {
	out := map[string]any{}
	v := reflect.ValueOf(profile).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		x := v.Field(i).Interface()
		if s := v.Field(i); s.Kind() == reflect.Struct {
			inner := settingsOf(s.Addr().Interface())
			for k, y := range inner {
				out[name+"."+k] = y
			}
			continue
		} else if s.Kind() == reflect.Slice && s.Len() == 0 {
			continue // nil and empty are equal
		}
		out[name] = x
	}
	return out
}

func settingNames(t reflect.Type, path string, into map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case options == "inline":
			settingNames(f.Type, path, into)
		case f.Type.Kind() == reflect.Struct && !f.Type.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
			settingNames(f.Type, path+name+".", into)
		default:
			into[path+name] = true
		}
	}
}

// A user's profile decides how a flow is decoded. The names of its schema are
// fields of filters.
func TestFieldsOfSchemas(t *testing.T) {
	a := &app.App{Registry: protocols()}
	found := false
	for _, p := range a.Registry.Protocols() {
		for i := range p.Profiles {
			for _, spec := range p.Profiles[i].Fields {
				if spec.Kind == dissect.KindGroup {
					continue
				}
				found = true
				if _, ok := a.Table().Lookup(spec.Name); !ok {
					t.Errorf("%s:%s: filters do not know %s", p.Name, p.Profiles[i].Name, spec.Name)
				}
			}
		}
	}
	if !found {
		t.Error("no built-in profile has a schema: the test shows nothing")
	}
}
