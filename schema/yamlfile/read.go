package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// mostBytes bounds a file, because people write configuration by hand. A schema
// with schema.MostFields fields takes a tenth of it.
const mostBytes = 4 << 20

// ReadFile reads a configuration file of at most 4 MiB. It returns an error
// after reading that much of a longer file, or of an endless one such as
// /dev/zero or a FIFO.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return nil, err
	}
	return src, checkSize(src, path)
}

func checkSize(src []byte, name string) error {
	if len(src) > mostBytes {
		return &Error{name, fmt.Sprintf("expected at most %d bytes (4 MiB), found more", mostBytes)}
	}
	return nil
}

// Read decodes a file with one document into to. A setting that to does not
// have is an error. Errors are of type *Error. They contain the line number but
// quote nothing of the file, which may hold secrets. JSON is valid input, as a
// subset of YAML.
func Read(src []byte, name string, to any) error {
	file, err := parse(src, name)
	if err != nil {
		return err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	if len(file.Docs) > 1 {
		return &Error{name, fmt.Sprintf("expected one document, found %d", len(file.Docs))}
	}
	if err := decode(file.Docs[0].Body, to); err != nil {
		return &Error{name, where(err) + category(err)}
	}
	return nil
}

// parse parses the syntax of a file. It checks the limits first, because
// nesting costs the library much more than the file's size.
func parse(src []byte, name string) (file *ast.File, err error) {
	defer func() {
		if recover() != nil { // as in decode
			file, err = nil, &Error{name, errUnreadable.Error()}
		}
	}()
	if err := checkSize(src, name); err != nil {
		return nil, err
	}
	if err := checkMarks(src); err != nil {
		return nil, &Error{name, err.Error()}
	}
	tokens := lexer.Tokenize(string(src))
	if err := checkShape(tokens, len(src)); err != nil {
		return nil, &Error{name, err.Error()}
	}
	file, err = parser.Parse(tokens, 0)
	if err != nil {
		return nil, &Error{name, describe(src, err)}
	}
	if err := checkAliases(file); err != nil {
		return nil, &Error{name, err.Error()}
	}
	return file, nil
}

// errUnreadable is the error for a file on which the library itself fails.
var errUnreadable = errors.New("this is not YAML that can be read: a value is missing")

// decode fills in to from a node. The library dereferences nil if a tag has no
// value ("fields: !", goccy/go-yaml 1.19.2). decode returns errUnreadable in
// place of its panic.
func decode(node ast.Node, to any) (err error) {
	defer func() {
		if recover() != nil {
			err = errUnreadable
		}
	}()
	return yaml.NodeToValue(node, to, yaml.Strict())
}
