// Package yamlfile reads schemas and protocol profiles from YAML files. It is
// strict: a misspelt setting is an error. Errors name the line, but do not
// quote it.
//
// A schema file holds a schema (see package schema):
//
//	messages:
//	  1: {name: PlayerMove, fields: [{name: x, type: float}]}
//
// A profile file holds one or more profiles, separated by "---":
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
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/schema"
)

// Schema reads a schema file. coding is the coding of the protocol whose bodies
// it describes. The name appears in errors, which are of type *Error.
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
		return nil, &Error{name, describe(src, err)}
	}
	if err := s.Compile(coding); err != nil {
		return nil, &Error{name, locate(src, file.Docs[0].Body, err, "$")}
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

// Profile is a profile with the name of its protocol.
type Profile struct {
	Protocol string
	dissect.Profile
}

// Profiles reads the profiles of a file. The name appears in errors, which are
// of type *Error.
func Profiles(src []byte, name string, registry *dissect.Registry) ([]Profile, error) {
	file, err := parse(src, name)
	if err != nil {
		return nil, err
	}
	var out []Profile
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		p, err := profile(doc.Body, registry)
		if err != nil {
			return nil, &Error{name, locate(src, doc.Body, err, "$.settings.schema")}
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
		return nil, lineError(body, "protocol",
			fmt.Errorf("expected one of %s, found %q", strings.Join(names, ", "), d.Protocol))
	}
	if d.Name == "" {
		return nil, lineError(body, "name", errors.New("is missing"))
	}
	if err := printable.Name(d.Name); err != nil {
		return nil, lineError(body, "name", err)
	}
	if proto.NewProfile == nil {
		return nil, lineError(body, "protocol", fmt.Errorf("%s takes no profiles", d.Protocol))
	}
	settings, err := proto.NewProfile(d.Base)
	if err != nil {
		return nil, lineError(body, "base", err)
	}
	if d.Settings != nil {
		if err := decode(d.Settings, settings); err != nil {
			return nil, ofSetting(d.Settings, err, func() (any, error) { return proto.NewProfile(d.Base) })
		}
	}
	config, err := proto.DoneProfile(settings)
	if err != nil {
		return nil, namedLine(body, err)
	}
	config.Dialect = d.Name
	return &Profile{d.Protocol, dissect.Profile{Name: d.Name, Doc: d.Doc, Config: config}}, nil
}

// lineError returns an error about a setting of a document, with its line.
func lineError(body ast.Node, setting string, err error) error {
	line := body.GetToken().Position.Line
	if m, ok := body.(*ast.MappingNode); ok {
		for _, v := range m.Values {
			if v.Key.GetToken().Value == setting {
				line = v.Key.GetToken().Position.Line
			}
		}
	}
	return fmt.Errorf("line %d: %s: %w", line, setting, err)
}

// namedLine adds the line of the setting that an error of a whole profile names first, as
// in "sent_buffer: expected 1 to 32768, found -1". A setting that is not in the file has
// the line of the nearest one above it.
func namedLine(body ast.Node, err error) error {
	var ofSchema *schema.Error
	name, _, found := strings.Cut(err.Error(), ": ")
	if !found || errors.As(err, &ofSchema) || !settingPath.MatchString(name) {
		return err
	}
	for at := "$.settings." + name; ; {
		if path, pathErr := yaml.PathString(at); pathErr == nil {
			if node, findErr := path.FilterNode(body); findErr == nil && node != nil {
				return fmt.Errorf("line %d: %w", node.GetToken().Position.Line, err)
			}
		}
		i := strings.LastIndexByte(at, '.')
		if i <= 0 {
			return err
		}
		at = at[:i]
	}
}

// settingPath matches the path of a setting: messages.send_queue.
var settingPath = regexp.MustCompile(`^[a-z_0-9]+(\.[a-z_0-9]+)*$`)

// ofSetting adds the line of the first setting that cannot be decoded by itself to an error
// that has none. Each is decoded into fresh settings.
func ofSetting(settings ast.Node, err error, fresh func() (any, error)) error {
	m, ok := settings.(*ast.MappingNode)
	if !ok || where(err) != "" {
		return err
	}
	for _, v := range m.Values {
		to, freshErr := fresh()
		if freshErr != nil {
			return err
		}
		if decode(v, to) != nil {
			return lineError(settings, v.Key.GetToken().Value, err)
		}
	}
	return err
}
