package yamlfile

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

// Read decodes a file with one document into to, strictly: a setting that to
// does not have is an error. Errors, which are *Error, give the line but repeat
// nothing of the file: it may hold secrets. JSON is YAML too.
func Read(src []byte, name string, to any) error {
	if len(src) > mostBytes {
		return &Error{name, fmt.Sprintf("is %d bytes long, expected at most %d", len(src), mostBytes)}
	}
	if err := yaml.UnmarshalWithOptions(src, to, yaml.Strict()); err != nil {
		return &Error{name, discreet(err)}
	}
	return nil
}

// discreet words an error without the lines around it.
func discreet(err error) string {
	line := ""
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		line = fmt.Sprintf("line %d: ", at.GetToken().Position.Line)
	}
	var (
		syntax  *yaml.SyntaxError
		unknown *yaml.UnknownFieldError
		twice   *yaml.DuplicateKeyError
		kind    *yaml.TypeError
	)
	switch {
	case errors.As(err, &unknown):
		return line + "a setting that is not known stands here"
	case errors.As(err, &twice):
		return line + "a setting stands twice"
	case errors.As(err, &kind):
		return line + "this value is of another kind than its setting takes"
	case errors.As(err, &syntax):
		return line + "this is not YAML"
	}
	return line + "this cannot be read"
}
