// Package yamlfile reads schemas and protocol profiles from YAML files:
// strictly, so that a misspelt setting is an error, and with errors that point
// at the line.
//
// A schema file holds a schema (see package schema):
//
//	messages:
//	  1: {name: PlayerMove, fields: [{name: x, type: float}]}
//
// A profile file holds one or more profiles, divided by "---":
//
//	protocol: gaffer
//	name: mygame
//	base: article          # the built-in profile that this one starts from
//	settings:              # those of the protocol: `ackscope protocols gaffer` prints them
//	  byte_order: big
package yamlfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/schema"
)

// mostBytes bounds a file: profiles are written by hand.
const mostBytes = 4 << 20

// Error is what is wrong with a file.
type Error struct {
	File string // its name, as the caller gave it
	Text string // what is wrong, with the lines around it
}

func (e *Error) Error() string { return e.File + ": " + e.Text }

// Schema reads a schema file; coding is that of the protocol whose bodies it
// describes. The name is for errors, which are *Error.
func Schema(src []byte, name string, coding schema.Coding) (*schema.Schema, error) {
	file, err := parse(src, name)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, &Error{name, fmt.Sprintf("expected one schema, found %d documents", len(file.Docs))}
	}
	s := &schema.Schema{}
	if err := decode(file.Docs[0].Body, s); err != nil {
		return nil, &Error{name, plain(err)}
	}
	if err := s.Compile(coding); err != nil {
		return nil, &Error{name, point(src, err, "$")}
	}
	return s, nil
}

// document is one profile of a file.
type document struct {
	Protocol string   `yaml:"protocol"`
	Name     string   `yaml:"name"`
	Doc      string   `yaml:"doc"`
	Base     string   `yaml:"base"`
	Settings ast.Node `yaml:"settings"`
}

// Profile is one that was read, with the name of its protocol.
type Profile struct {
	Protocol string
	dissect.Profile
}

// Profiles reads the profiles of a file. The name is for errors, which are *Error.
func Profiles(src []byte, name string, registry *dissect.Registry) ([]Profile, error) {
	file, err := parse(src, name)
	if err != nil {
		return nil, err
	}
	var out []Profile
	for i, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		p, err := profile(doc.Body, registry)
		if err != nil {
			text := plain(err)
			// Paths lead into the first document only.
			if i == 0 {
				text = point(src, err, "$.settings.schema")
			}
			return nil, &Error{name, text}
		}
		for _, other := range out {
			if other.Protocol == p.Protocol && other.Name == p.Name {
				return nil, &Error{name, fmt.Sprintf("two profiles of %s are named %q", p.Protocol, p.Name)}
			}
		}
		out = append(out, *p)
	}
	if len(out) == 0 {
		return nil, &Error{name, "holds no profile"}
	}
	return out, nil
}

func profile(body ast.Node, registry *dissect.Registry) (*Profile, error) {
	var d document
	if err := decode(body, &d); err != nil {
		return nil, err
	}
	proto, ok := registry.Lookup(d.Protocol)
	if !ok {
		var names []string
		for _, p := range registry.Protocols() {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("protocol: expected one of %s, found %q", strings.Join(names, ", "), d.Protocol)
	}
	if d.Name == "" || strings.ContainsAny(d.Name, ":, \t") {
		return nil, fmt.Errorf("name: expected a name without spaces, commas and colons, found %q", d.Name)
	}
	if proto.NewProfile == nil {
		return nil, fmt.Errorf("protocol: %s takes no profiles", d.Protocol)
	}
	settings, err := proto.NewProfile(d.Base)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if d.Settings != nil {
		if err := decode(d.Settings, settings); err != nil {
			return nil, err
		}
	}
	config, err := proto.DoneProfile(settings)
	if err != nil {
		return nil, err
	}
	config.Dialect = d.Name
	return &Profile{d.Protocol, dissect.Profile{Name: d.Name, Doc: d.Doc, Config: config}}, nil
}

func parse(src []byte, name string) (*ast.File, error) {
	if len(src) > mostBytes {
		return nil, &Error{name, fmt.Sprintf("is %d bytes long, expected at most %d", len(src), mostBytes)}
	}
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, &Error{name, plain(err)}
	}
	return file, nil
}

func decode(node ast.Node, to any) error { return yaml.NodeToValue(node, to, yaml.Strict()) }

// plain words an error of the YAML reader without colours.
func plain(err error) string { return strings.TrimSpace(yaml.FormatError(err, false, true)) }

// point words an error; that of a schema with the lines that it is about.
func point(src []byte, err error, root string) string {
	var wrong *schema.Error
	if !errors.As(err, &wrong) {
		return plain(err)
	}
	at := root + strings.TrimPrefix(wrong.Path, "$")
	path, pathErr := yaml.PathString(at)
	if pathErr != nil {
		return err.Error()
	}
	lines, annotateErr := path.AnnotateSource(src, false)
	for annotateErr != nil { // a setting that is missing: point at what misses it
		i := strings.LastIndexAny(at, ".[")
		if i <= 0 {
			return err.Error()
		}
		if at = at[:i]; at == "$" {
			return err.Error()
		}
		if path, pathErr = yaml.PathString(at); pathErr != nil {
			return err.Error()
		}
		lines, annotateErr = path.AnnotateSource(src, false)
	}
	return err.Error() + "\n" + strings.TrimRight(string(lines), "\n")
}
