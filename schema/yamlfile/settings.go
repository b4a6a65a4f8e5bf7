package yamlfile

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// Settings reads a file of single values, such as "loss: 3%", and calls set with each name and
// value in their order. Errors are of type *Error, with the line of the setting. They quote
// nothing of the file, since it may be a file of keys that was given by mistake.
func Settings(src []byte, name string, set func(setting, value string) error) error {
	file, err := parse(src, name)
	if err != nil {
		return err
	}
	if len(file.Docs) > 1 {
		return &Error{name, fmt.Sprintf("expected one document, found %d", len(file.Docs))}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	pairs, err := pairsOf(file.Docs[0].Body)
	if err != nil {
		return &Error{name, err.Error()}
	}
	for _, v := range pairs {
		key := v.Key.GetToken()
		value, ok := plainValue(v.Value)
		if err = errors.New("expected one plain value"); ok {
			err = set(key.Value, value)
		}
		if err != nil {
			return &Error{name, fmt.Sprintf("line %d: %v", key.Position.Line, err)}
		}
	}
	return nil
}

// pairsOf returns the settings of a document.
func pairsOf(body ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := body.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	case *ast.NullNode, *ast.CommentGroupNode:
		return nil, nil
	}
	return nil, fmt.Errorf("line %d: expected settings (name: value)", body.GetToken().Position.Line)
}

// plainValue returns a single value as it is written.
func plainValue(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}
