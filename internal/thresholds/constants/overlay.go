package constants

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
)

// Overlay writes what `go build -overlay` needs into a folder. Each measured constant becomes
// a variable of package dial, and so does what derives from one. Overlay returns the path of
// the file for -overlay.
//
// Example: of
//
//	const nearProof = 4 * time.Millisecond
//
// the compiler sees
//
//	var nearProof = 4 * time.Millisecond
//	func init() { dial.Add("machine/riptide/vantage.nearProof", &nearProof) }
func (t *Tree) Overlay(folder string) (string, error) {
	moved := t.moved()
	replace := map[string]string{}
	for i, f := range t.files {
		text, err := t.rewritten(f, moved)
		if err != nil {
			return "", err
		}
		if text == nil {
			continue
		}
		to := filepath.Join(folder, fmt.Sprintf("%d-%s", i, filepath.Base(f.path)))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(t.root, f.path)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	to := filepath.Join(folder, "overlay.json")
	return to, os.WriteFile(to, list, 0o600)
}

// moved returns the constants that become variables, by key: those that are measured,
// and all that follows from one.
func (t *Tree) moved() map[string]bool {
	moved := map[string]bool{}
	for _, c := range t.Constants {
		if c.Kind == Measured {
			moved[c.Key()] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, f := range t.files {
			for _, c := range f.constants {
				if moved[c.Key()] {
					continue
				}
				t.names(f, c, func(key string) {
					if moved[key] {
						moved[c.Key()], grown = true, true
					}
				})
			}
		}
	}
	return moved
}

// rewritten returns a file with its moved constants as variables; nil where it has none.
func (t *Tree) rewritten(f *file, moved map[string]bool) ([]byte, error) {
	text, err := t.bytesOf(f)
	if err != nil {
		return nil, err
	}
	var tail, start strings.Builder
	done := map[*ast.ValueSpec]bool{}
	for _, c := range f.constants {
		if !moved[c.Key()] {
			continue
		}
		switch {
		case c.local && c.Kind == Measured:
			return nil, fmt.Errorf("%s:%d: %s is measured: expected it outside of functions", c.File, c.Line, c.Name)
		case c.local:
			at := t.set.Position(c.decl.Pos()).Offset
			copy(text[at:], "var  ")
			continue
		case !done[c.spec] && !t.together(c.spec, f.folder, moved):
			return nil, fmt.Errorf("%s:%d: %s stands in one line with others that are not measured: expected lines of their own",
				c.File, c.Line, c.Name)
		}
		if !done[c.spec] {
			from, to := c.spec.Pos(), c.spec.End()
			if !c.decl.Lparen.IsValid() {
				from = c.decl.Pos()
			}
			blank(text[t.set.Position(from).Offset:t.set.Position(to).Offset])
			done[c.spec] = true
		}
		kind := ""
		if c.spec.Type != nil {
			kind = " " + t.text(c.spec.Type)
		}
		fmt.Fprintf(&tail, "\nvar %s%s = %s\n", c.Name, kind, c.Value)
		if c.Kind == Measured {
			fmt.Fprintf(&start, "\tthresholdsdial.Add(%q, &%s)\n", c.Key(), c.Name)
		} else {
			fmt.Fprintf(&start, "\tthresholdsdial.Derive(func() { %s = %s })\n", c.Name, c.Value)
		}
	}
	if start.Len() == 0 && tail.Len() == 0 {
		return text, nil
	}
	name := t.set.Position(f.syntax.Name.End()).Offset
	head := fmt.Sprintf("%s; import thresholdsdial %q", text[:name], t.module+"/internal/thresholds/dial")
	return fmt.Appendf(nil, "%s%s%s\nfunc init() {\n%s}\n", head, text[name:], tail.String(), start.String()), nil
}

// together reports whether all names of a declaration move.
func (t *Tree) together(s *ast.ValueSpec, folder string, moved map[string]bool) bool {
	for _, n := range s.Names {
		if !moved[folder+"."+n.Name] {
			return false
		}
	}
	return true
}

// blank overwrites text, but for its line ends.
func blank(text []byte) {
	for i := range text {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
}
