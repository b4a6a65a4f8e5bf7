package yamlfile

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// mostCopied bounds the values that aliases expand to, each counted as often as
// it is named. A dozen lines of aliases of aliases can expand to a billion
// values.
const mostCopied = 100_000

// aliases measures the expansion of a document's aliases.
type aliases struct {
	anchors map[string]measure
	copied  int
	err     error
}

// measure is the number of values below a node, and how deep they nest.
type measure struct{ values, depth int }

func (m *measure) add(other measure) {
	m.values = min(m.values+other.values, 2*mostCopied)
	m.depth = max(m.depth, other.depth)
}

func checkAliases(file *ast.File) error {
	for _, doc := range file.Docs {
		a := &aliases{anchors: map[string]measure{}}
		if a.of(doc.Body); a.err != nil {
			return a.err
		}
	}
	return nil
}

// of returns the measure of a value with all aliases replaced. An anchor is
// known only after its value, so a value that names itself is an unknown
// anchor.
func (a *aliases) of(node ast.Node) (m measure) {
	if node == nil || a.err != nil {
		return m
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			m.add(a.of(v))
		}
		m.depth++
	case *ast.MappingValueNode:
		m.add(a.of(n.Key))
		m.add(a.of(n.Value))
	case *ast.MappingKeyNode:
		m = a.of(n.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			m.add(a.of(v))
		}
		m.depth++
	case *ast.TagNode:
		m = a.of(n.Value)
	case *ast.AnchorNode:
		m = a.of(n.Value)
		a.anchors[n.Name.GetToken().Value] = m
	case *ast.AliasNode:
		known, ok := a.anchors[n.Value.GetToken().Value]
		line := n.Start.Position.Line
		if !ok {
			a.err = fmt.Errorf("line %d: expected the name of an anchor that stands before this alias, found another", line)
			return m
		}
		m = known
		if a.copied = min(a.copied+m.values, 2*mostCopied); a.copied > mostCopied {
			a.err = fmt.Errorf("line %d: expected aliases that stand for at most %d values, found more", line, mostCopied)
		}
	}
	m.values++
	if m.depth > mostDepth && a.err == nil {
		a.err = fmt.Errorf("line %d: expected values nested at most %d deep, aliases included, found more",
			node.GetToken().Position.Line, mostDepth)
	}
	return m
}
