// Package constants reads what the numbers of the machines rest on.
//
// Each number that a machine compares with says in its comment what it is:
//
//	// nearProof is how soon a side must answer to be shown to stand at the tap.
//	// Source: measured, TestMarginsRiptide
//	const nearProof = 4 * time.Millisecond
//
// Read finds these lines, and which numbers have none. Overlay makes measured
// constants variables for the time of a measurement.
package constants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is what a number rests on.
type Kind string

const (
	Law        Kind = "law"        // the text of a protocol says it
	Library    Kind = "library"    // a library of the named version has it
	Measured   Kind = "measured"   // the named test measures how far off it may be
	Unmeasured Kind = "unmeasured" // no scene with a known truth reaches it
	Definition Kind = "definition" // it says what a finding's word means, and decides nothing else
	Bound      Kind = "bound"      // it bounds memory or work, and decides no grade
	Name       Kind = "name"       // it is no quantity: it tells one thing from another
	Derived    Kind = "derived"    // it follows from other constants, which have a source each
)

// Kinds lists those that a Source line can name, in the order of the table.
var Kinds = []Kind{Measured, Unmeasured, Law, Library, Definition, Bound, Name}

// Constant is one number.
type Constant struct {
	Package string // its folder, as machine/riptide/vantage
	Name    string
	File    string // path below the module's root
	Line    int
	Value   string // as the source has it, such as 4 * time.Millisecond
	Kind    Kind   // empty where there is no Source line
	Rests   string // what the Source line says behind the kind
	Doc     string // its comment without the Source line

	spec  *ast.ValueSpec
	decl  *ast.GenDecl
	local bool // declared in a function
}

// Key names a constant among all: machine/riptide/vantage.nearProof.
func (c *Constant) Key() string { return c.Package + "." + c.Name }

// file is one parsed file.
type file struct {
	path      string // below the root
	folder    string
	syntax    *ast.File
	constants []*Constant
}

// Tree is the machines' sources.
type Tree struct {
	Constants []*Constant // by file and line

	root   string
	set    *token.FileSet
	files  []*file
	module string // path of the module
}

// exempt are the packages whose numbers decide nothing about a capture: the reference
// endpoints, the what-if runs, and tests.
var exempt = []string{"endpoint", "whatif", "gaffertest", "riptidetest", "machinetest", "testdata"}

// Read parses machine/** of the module at a root.
func Read(root string) (*Tree, error) {
	t := &Tree{root: root, set: token.NewFileSet(), module: "github.com/ackscope/ackscope"}
	err := filepath.WalkDir(filepath.Join(root, "machine"), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(exempt, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go"):
			return nil
		}
		return t.read(p)
	})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range t.files {
		for _, c := range f.constants {
			known[c.Key()] = true
		}
	}
	for _, f := range t.files {
		for _, c := range f.constants {
			if c.Kind == "" && t.derives(f, c, known) {
				c.Kind = Derived
			}
			t.Constants = append(t.Constants, c)
		}
	}
	return t, nil
}

func (t *Tree) read(p string) error {
	syntax, err := parser.ParseFile(t.set, p, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(t.root, p)
	if err != nil {
		return err
	}
	f := &file{path: filepath.ToSlash(below), syntax: syntax}
	f.folder = path.Dir(f.path)
	for _, d := range syntax.Decls {
		t.declared(f, d, false)
	}
	t.files = append(t.files, f)
	return nil
}

// declared takes the constants of a declaration, and those within a function.
func (t *Tree) declared(f *file, d ast.Node, local bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		ast.Inspect(d, func(n ast.Node) bool {
			if g, ok := n.(*ast.GenDecl); ok {
				t.declared(f, g, true)
			}
			return true
		})
	case *ast.GenDecl:
		if d.Tok != token.CONST {
			return
		}
		for _, s := range d.Specs {
			s := s.(*ast.ValueSpec)
			if !numeric(s) {
				continue
			}
			doc := s.Doc.Text() + s.Comment.Text()
			if !d.Lparen.IsValid() {
				doc = d.Doc.Text() + doc
			}
			kind, rests, words := sourceOf(doc)
			for i, name := range s.Names {
				f.constants = append(f.constants, &Constant{
					Package: f.folder, Name: name.Name, File: f.path, Line: t.set.Position(name.Pos()).Line,
					Value: t.text(s.Values[i]), Kind: kind, Rests: rests, Doc: words, spec: s, decl: d, local: local,
				})
			}
		}
	}
}

// numeric reports whether a declaration has numbers of its own: neither words, nor
// counted up by iota, nor members of a type that names things.
func numeric(s *ast.ValueSpec) bool {
	if len(s.Values) != len(s.Names) {
		return false
	}
	if named, ok := s.Type.(*ast.Ident); ok && !slices.Contains(basic, named.Name) {
		return false
	}
	if x, ok := s.Type.(*ast.SelectorExpr); ok && x.Sel.Name != "Duration" {
		return false
	}
	for _, v := range s.Values {
		counts := true
		ast.Inspect(v, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				counts = counts && n.Name != "iota"
			case *ast.BasicLit:
				counts = counts && n.Kind != token.STRING && n.Kind != token.CHAR
			}
			return counts
		})
		if !counts {
			return false
		}
	}
	return true
}

var basic = []string{"int", "int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64"}

// sourceOf takes the Source line off a comment.
func sourceOf(doc string) (kind Kind, rests, words string) {
	var rest []string
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "Source: "); ok {
			name, after, _ := strings.Cut(text, ", ")
			kind, rests = Kind(name), strings.TrimSuffix(after, ".")
			continue
		}
		rest = append(rest, line)
	}
	return kind, rests, strings.TrimSpace(strings.Join(rest, " "))
}

// derives reports whether a constant follows from others: it names one, and brings no
// time of its own.
func (t *Tree) derives(f *file, c *Constant, known map[string]bool) bool {
	others, own := 0, false
	t.names(f, c, func(key string) {
		switch {
		case strings.HasPrefix(key, "time."):
			own = true
		case known[key] || !strings.HasPrefix(key, "machine/"):
			others++
		}
	})
	return others > 0 && !own
}

// names calls found with each name in the value of a constant. Constants of ours are named
// as Key does, those of other packages by their path, such as time.Second.
func (t *Tree) names(f *file, c *Constant, found func(key string)) {
	value := c.spec.Values[slices.IndexFunc(c.spec.Names, func(n *ast.Ident) bool { return n.Name == c.Name })]
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				found(t.importOf(f, x.Name) + "." + n.Sel.Name)
			}
			return false
		case *ast.CallExpr:
			return false // a size: no constant of ours
		case *ast.Ident:
			found(f.folder + "." + n.Name)
		}
		return true
	})
}

// importOf returns the path that a file imports under a name, below the module.
func (t *Tree) importOf(f *file, name string) string {
	for _, i := range f.syntax.Imports {
		p := strings.TrimPrefix(strings.Trim(i.Path.Value, `"`), t.module+"/")
		if i.Name != nil && i.Name.Name == name || i.Name == nil && path.Base(p) == name {
			return p
		}
	}
	return name
}

func (t *Tree) text(n ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, t.set, n); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return b.String()
}

// bytesOf returns a file as it stands on disk.
func (t *Tree) bytesOf(f *file) ([]byte, error) { return os.ReadFile(filepath.Join(t.root, f.path)) }
