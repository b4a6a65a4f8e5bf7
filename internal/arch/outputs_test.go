package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// writing lists the functions that create, replace or write files by name. Only
// outfile may call them. So modes, links, locks and overwriting follow the same
// rules everywhere.
var writing = map[string][]string{
	"os": {
		"Create", "CreateTemp", "OpenFile", "WriteFile", "Rename", "Link", "Symlink", "Truncate", "OpenRoot",
		"OpenInRoot",
	},
	"io/ioutil": {"WriteFile", "TempFile"},
	"syscall":   {"Open", "Openat", "Creat", "Mkfifo", "Mknod", "Rename", "Link"},
	// The same functions of Cobra and x/sys.
	"golang.org/x/sys/unix": {
		"Open", "Openat", "Openat2", "Creat", "Mkfifo", "Mknod", "Rename", "Renameat",
		"Renameat2", "Link", "Linkat",
	},
	"golang.org/x/sys/windows":   {"CreateFile", "MoveFile", "MoveFileEx"},
	"github.com/spf13/cobra/doc": {"GenManTree", "GenManTreeFromOpts", "GenMarkdownTree", "GenYamlTree", "GenReSTTree"},
}

// writingAllowed are the exceptions, each with its reason.
var writingAllowed = map[string]string{
	"capture/spool.go os.CreateTemp": "what came through a pipe: private (0600), and unlinked at once",
	"export/sorter.go os.CreateTemp": "runs of sorted notes: private (0600), and unlinked at once",

	"cli/privilege/privileges_linux.go os.WriteFile": "the process's own name in /proc/self/comm, no file on a disk",
	"cli/files/secret.go os.OpenFile":                "the terminal, /dev/tty, which the secret is asked on",

	"contrib/fleet/collect/partition.go os.CreateTemp": "a file of the tables, before its link",
	"contrib/fleet/collect/partition.go os.Link":       "fails where there is such a file: the position depends on it",
	"contrib/fleet/collect/table.go os.CreateTemp":     "a file of the tables, before its link",
	"contrib/fleet/collect/unread.go os.CreateTemp":    "rows of other versions, before their link",
	"contrib/fleet/collect/lock_unix.go os.OpenFile":   "the lock of a partition, which stays empty",
	"contrib/fleet/collect/lock_other.go os.OpenFile":  "the lock of a partition, which stays empty",
	"contrib/fleet/sensor/fetch.go os.CreateTemp":      "packets on their way to the hub: private (0600), and removed",
	"contrib/fleet/hub/access.go os.OpenFile":          "a new seed (0600), and a line of the access file",
	"contrib/fleet/demo/traffic.go os.OpenFile":        "a file of a simulated host, in the demo's own folder",

	"contrib/batch/place/find.go os.CreateTemp": "rows, and copies of objects: private (0600), and unlinked at once",
}

// TestFilesAreWrittenByOutfile checks all packages of the program.
func TestFilesAreWrittenByOutfile(t *testing.T) {
	root := filepath.Join("..", "..")
	files, used := 0, map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case d.IsDir() && (relative == "internal" || relative == "testdata" || relative == "outfile" ||
			strings.HasPrefix(d.Name(), ".") && relative != "."):
			return filepath.SkipDir // tests, their tools, and outfile itself
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, w := range writers(file) {
			key := relative + " " + w.name
			if used[key] = true; writingAllowed[key] == "" {
				t.Errorf("%s uses %s: expected outfile, which treats modes, links and overwriting alike",
					set.Position(w.at), w.name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 200 {
		t.Fatalf("looked into %d files, expected the whole of the program", files)
	}
	for key := range writingAllowed {
		if !used[key] {
			t.Errorf("%s is allowed, and not used: expected exceptions that are needed", key)
		}
	}
}

// TestWritersAreFound checks that forbidden calls are found.
func TestWritersAreFound(t *testing.T) {
	for body, want := range map[string]string{
		`import "os"; var _ = os.Create`:                                          "os.Create",
		`import "os"; func f() { os.WriteFile("x", nil, 0o600) }`:                 "os.WriteFile",
		`import "os"; func f() { os.OpenFile("x", os.O_RDWR|os.O_CREATE, 0) }`:    "os.OpenFile",
		`import other "os"; func f() { other.Rename("x", "y") }`:                  "os.Rename",
		`import "golang.org/x/sys/unix"; func f() { unix.Open("x", 0, 0) }`:       "golang.org/x/sys/unix.Open",
		`import "github.com/spf13/cobra/doc"; var _ = doc.GenManTree`:             "github.com/spf13/cobra/doc.GenManTree",
		`import "os"; func f() { os.OpenFile("x", os.O_RDONLY, 0); os.Open("") }`: "",
		`import "os"; func f(x T) { x.Create("") }`:                               "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "planted.go", "package p\n"+body, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range writers(file) {
			got += w.name
		}
		if got != want {
			t.Errorf("%s: found %q, expected %q", body, got, want)
		}
	}
}

// writer is a use of a function that writes files.
type writer struct {
	name string // with its package
	at   token.Pos
}

// writers returns the uses of writing functions in a file, called or not.
func writers(file *ast.File) (found []writer) {
	imported := map[string]string{} // path, by its name in this file
	for _, i := range file.Imports {
		from, err := strconv.Unquote(i.Path.Value)
		if err != nil || writing[from] == nil {
			continue
		}
		name := path.Base(from)
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = from
	}
	reads := map[*ast.SelectorExpr]bool{} // os.OpenFile with only os.O_RDONLY
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || called.Sel.Name != "OpenFile" || len(n.Args) != 3 {
				return true
			}
			if flag, ok := n.Args[1].(*ast.SelectorExpr); ok && flag.Sel.Name == "O_RDONLY" {
				reads[called] = true
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if !ok || imported[of.Name] == "" || reads[n] {
				return true
			}
			for _, name := range writing[imported[of.Name]] {
				if name == n.Sel.Name {
					found = append(found, writer{imported[of.Name] + "." + n.Sel.Name, n.Pos()})
				}
			}
		}
		return true
	})
	return found
}
