package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// sequential are the packages that start no goroutine, not even in their tests.
// Their callers decide what runs concurrently. `make race` omits them, since
// the race detector could find nothing there.
var sequential = []string{
	"agenda", "wire", "machine", "schema", "sim", "dissect", "filter", "analyze", "replay",
	"rewrite", "graph", "show", "ledger", "report", "overview", "compare", "figures", "export", "capture/stream",
	"capture/pcapfilter",
}

// concurrent are their files that may start goroutines all the same. `make race` runs the tests of
// their packages.
var concurrent = map[string]bool{"analyze/threads.go": true}

func TestInnerRingsStartNoGoroutine(t *testing.T) {
	files := 0
	for _, ring := range sequential {
		err := filepath.WalkDir(filepath.Join("..", "..", ring), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") {
				return err
			}
			files++
			if concurrent[filepath.ToSlash(strings.TrimPrefix(name, filepath.Join("..", "..")+string(filepath.Separator)))] {
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, at := range goroutines(file) {
				t.Errorf("%s starts a goroutine: %s leave that to their callers", set.Position(at), strings.Join(sequential, ", "))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Fatalf("looked into %d files, expected the whole of %v", files, sequential)
	}
}

// TestGoroutinesAreFound checks that forbidden goroutines are found.
func TestGoroutinesAreFound(t *testing.T) {
	for _, body := range []string{"go func() {}()", "t.Parallel()"} {
		file, err := parser.ParseFile(token.NewFileSet(), "planted.go", "package p\nfunc f() { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(goroutines(file)) != 1 {
			t.Errorf("%q is not found", body)
		}
	}
}

// goroutines returns the positions where a file starts a goroutine: go
// statements and parallel tests.
func goroutines(file *ast.File) (at []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			at = append(at, n.Pos())
		case *ast.SelectorExpr:
			if n.Sel.Name == "Parallel" {
				at = append(at, n.Pos())
			}
		}
		return true
	})
	return at
}
