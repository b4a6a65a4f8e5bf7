package queries

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the files of the folder queries")

// TestFiles: the folder queries has what the templates make, and nothing else.
func TestFiles(t *testing.T) {
	root := Root(t)
	want := map[string]bool{}
	for _, e := range Engines() {
		for _, name := range Names("") {
			text, err := Text(e, name)
			if err != nil {
				t.Fatal(err)
			}
			want[File(e, name)] = true
			path := filepath.Join(root, filepath.FromSlash(File(e, name)))
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if is, err := os.ReadFile(path); err != nil || string(is) != text {
				t.Errorf("%s is not what is made now (%v): make golden, and look at the difference", File(e, name), err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "queries", "*", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if !want[filepath.ToSlash(name)] {
			t.Errorf("%s: no template makes it", name)
		}
	}
	if n := len(Names("studio-")) + len(Names("operator-")); n != 10 || n != len(Names("")) {
		t.Errorf("expected ten queries of a studio and an operator, found %q", Names(""))
	}
}
