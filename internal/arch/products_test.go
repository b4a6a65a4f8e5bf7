package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// timed are the packages that draw or count times of a capture. One wrong
// timestamp makes a product of such a time overflow 64 bits. So these packages
// use package scale for products.
var timed = []string{
	"tui/...", "graph", "report", "show", "analyze", "export", "filter/...", "ledger", "metrics",
	"rewrite", "rewrite/merge", "rewrite/anonymise", "cli/listing", "cli/reader", "cli/state", "cli/replaying",
	"cli/files", "cli/simulate", "cli/labs", "cli/terminal", "cli/protocol/gaffer",
	"cli/protocol/riptide", "cli/protocol/srdp",
}

// typed is a package with its export data, as go list -export prints it.
type typed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Export     string
}

// TestTimesAreScaledByScale finds int64(duration)*n, duration*n, and
// differences of two instants by "-", outside package scale.
func TestTimesAreScaledByScale(t *testing.T) {
	var patterns []string
	for _, p := range timed {
		patterns = append(patterns, "./"+p)
	}
	packages, exports := listTyped(t, patterns)
	checked := 0
	for _, p := range packages {
		set := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		checked += len(files)
		for _, fault := range products(t, set, p.ImportPath, files, exports) {
			t.Error(fault)
		}
	}
	if checked < 60 {
		t.Errorf("%d files were looked at, expected those of %s", checked, strings.Join(timed, ", "))
	}
}

// TestProductsAreCaught checks that forbidden products are found.
func TestProductsAreCaught(t *testing.T) {
	_, exports := listTyped(t, []string{"./machine"})
	for _, c := range []struct {
		code   string
		caught bool
	}{
		{"_ = int64(d) * n", true},
		{"_ = n * int64(d) / 7", true},
		{"_ = int(int64(t-u) * 4 / int64(d))", true},
		{"_ = d * time.Duration(n)", true},
		{"_ = 2 * d", true},
		{"_ = -d * 2", true},
		{"_ = t.Sub(u) * 2", true},
		{"_ = uint64(d) << n", true},
		{"x := int64(d); _ = x * n", true},
		{"var x = int64(d) + 1; y := x; _ = n * y", true},
		{"d *= 2", true},
		{"d <<= 1", true},
		{"_ = int64(t.Time().Sub(u.Time())) * n", true},
		{"_ = t.Time().UnixNano() * n", true},
		{"_ = d.Microseconds() * n", true},
		{"_ = max(int64(d), 0) * n", true},
		{"_ = n * min(n, int64(t.Sub(u)))", true},
		{"_ = t - u", true},
		{"_ = int64(t - u)", true},
		{"_ = time.Duration(n) * time.Millisecond", false},
		{"_ = 3 * time.Second", false},
		{"_ = float64(d) * 2", false},
		{"_ = d / 2", false},
		{"_ = n * n", false},
		{"_ = t.Sub(u)", false},
		{"_ = t - 1", false},
		{"x := len(\"\"); _ = x * 2", false},
	} {
		set := token.NewFileSet()
		source := "package planted\nimport (\"time\"; \"" + module + "/machine\")\n" +
			"func f(d time.Duration, n int64, t, u machine.Instant) { " + c.code + "; _ = time.Now }"
		file, err := parser.ParseFile(set, "planted.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if faults := products(t, set, "planted", []*ast.File{file}, exports); len(faults) > 0 != c.caught {
			t.Errorf("%s: caught %v, expected %v: %v", c.code, len(faults) > 0, c.caught, faults)
		}
	}
}

// listTyped returns the packages of some patterns, and the files of export data
// of all packages that they import.
func listTyped(t *testing.T, patterns []string) (packages []typed, exports map[string]string) {
	t.Helper()
	args := append([]string{"list", "-pgo=off", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports = map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p typed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		for _, pattern := range patterns {
			if p.ImportPath == module+strings.TrimPrefix(pattern, ".") {
				packages = append(packages, p)
			}
		}
	}
}

// products returns the positions at which a package multiplies a time.
func products(t *testing.T, set *token.FileSet, path string, files []*ast.File,
	exports map[string]string,
) (faults []string) {
	t.Helper()
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})}
	if _, err := config.Check(path, set, files, info); err != nil {
		t.Fatal(err)
	}
	x := &timeFlow{info: info, holds: map[types.Object]bool{}}
	for _, file := range files {
		x.follow(file)
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if what := x.fault(n); what != "" {
				faults = append(faults,
					fmt.Sprintf("%s: %s: leave that to package scale, which saturates", set.Position(n.Pos()), what))
			}
			return true
		})
	}
	return faults
}

// timeFlow knows which integer variables contain a time of the capture.
type timeFlow struct {
	info  *types.Info
	holds map[types.Object]bool
}

// follow finds the variables that are assigned a time, until it finds no more.
func (x *timeFlow) follow(file *ast.File) {
	for more := true; more; {
		more = false
		give := func(name, value ast.Expr) {
			id, ok := name.(*ast.Ident)
			if !ok || !x.isTime(value) {
				return
			}
			object := x.info.Defs[id]
			if object == nil {
				object = x.info.Uses[id]
			}
			if object != nil && !x.holds[object] {
				x.holds[object], more = true, true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.AssignStmt:
				for i := range s.Lhs {
					if len(s.Lhs) == len(s.Rhs) {
						give(s.Lhs[i], s.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i := range s.Values {
					if len(s.Names) == len(s.Values) {
						give(s.Names[i], s.Values[i])
					}
				}
			}
			return true
		})
	}
}

// fault describes what is wrong with a node. It returns "" for nothing.
func (x *timeFlow) fault(n ast.Node) string {
	switch e := n.(type) {
	case *ast.BinaryExpr:
		switch {
		case x.info.Types[e].Value != nil:
		case e.Op == token.MUL && (x.isTime(e.X) || x.isTime(e.Y)):
			return "a time is multiplied"
		case e.Op == token.SHL && x.isTime(e.X):
			return "a time is shifted"
		case e.Op == token.SUB && x.isInstant(e.X) && x.isInstant(e.Y):
			return "instants are subtracted without Instant.Sub"
		}
	case *ast.AssignStmt:
		if (e.Tok == token.MUL_ASSIGN || e.Tok == token.SHL_ASSIGN) && x.isTime(e.Lhs[0]) {
			return "a time is multiplied in place"
		}
	}
	return ""
}

// isInstant reports whether an expression is an instant, and not a constant.
func (x *timeFlow) isInstant(e ast.Expr) bool {
	at := x.info.Types[e]
	return at.Value == nil && at.Type != nil && at.Type.String() == module+"/machine.Instant"
}

// isTime reports whether an integer expression is a time of the capture, or
// computed from one. Constants do not count, and neither do counts that are
// converted to a duration.
func (x *timeFlow) isTime(e ast.Expr) bool {
	at := x.info.Types[e]
	if at.Value != nil || at.Type == nil {
		return false
	}
	if basic, ok := at.Type.Underlying().(*types.Basic); !ok || basic.Info()&types.IsInteger == 0 {
		return false
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return x.isTime(e.X)
	case *ast.UnaryExpr:
		return x.isTime(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.QUO || e.Op == token.REM {
			return x.isTime(e.X) && !x.isTime(e.Y) // a time divided by a time is a count
		}
		return x.isTime(e.X) || x.isTime(e.Y) || named(at.Type)
	case *ast.Ident:
		if object := x.info.Uses[e]; object != nil && x.holds[object] {
			return true
		}
	case *ast.CallExpr:
		if x.info.Types[e.Fun].IsType() {
			return x.isTime(e.Args[0]) // a conversion
		}
		if x.isMethodOfTime(e.Fun) {
			return true
		}
		if name, ok := e.Fun.(*ast.Ident); ok && x.info.Types[name].IsBuiltin() { // min and max
			return slices.ContainsFunc(e.Args, x.isTime)
		}
	}
	return named(at.Type)
}

// isMethodOfTime reports whether a call returns a time as a number: UnixNano,
// Microseconds and such.
func (x *timeFlow) isMethodOfTime(fun ast.Expr) bool {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Nanoseconds", "Microseconds", "Milliseconds", "Unix", "UnixNano", "UnixMicro", "UnixMilli":
		return x.info.Types[selector.X].Type != nil
	}
	return false
}

func named(t types.Type) bool {
	switch t.String() {
	case "time.Duration", module + "/machine.Instant":
		return true
	}
	return false
}
