package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingOfContrib: the modules below contrib/ build on this one, and it has nothing of them: no
// package, and no module that one of them brings.
func TestNothingOfContrib(t *testing.T) {
	root := filepath.Join("..", "..")
	ours := required(t, filepath.Join(root, "go.mod"))
	files, err := filepath.Glob(filepath.Join(root, "contrib", "*", "go.mod"))
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v: expected the modules below contrib/", files, err)
	}
	out, err := exec.Command("go", "list", "-deps", module+"/cmd/ackscope").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 300 {
		t.Fatalf("the program has %d packages, expected the standard library among them", len(packages))
	}
	for _, one := range ofContrib(packages, module+"/contrib") {
		t.Errorf("the program has %s", one)
	}
	for _, path := range files {
		theirs := required(t, path)
		if theirs[module] != replaced {
			t.Errorf("%s: expected `replace %s => ../..`, so that it builds on this tree", path, module)
		}
		brought := 0
		for name, how := range theirs {
			if how == indirect || ours[name] != "" || name == module {
				continue // what it shares with this module, or does not ask for itself
			}
			brought++
			for _, one := range ofContrib(packages, name) {
				t.Errorf("the program has %s, which %s brings", one, path)
			}
		}
		if brought == 0 {
			t.Errorf("%s brings no module: it need not be one of its own", path)
		}
	}
	for _, engine := range []string{"github.com/apache/beam/sdks/v2", "github.com/nats-io/nats-server/v2"} {
		if ours[engine] != "" {
			t.Errorf("go.mod requires %s", engine)
		}
	}
}

// ofContrib returns the packages of a module.
func ofContrib(packages []string, name string) (list []string) {
	for _, one := range packages {
		if one == name || strings.HasPrefix(one, name+"/") {
			list = append(list, one)
		}
	}
	return list
}

// How a module is required.
const (
	direct   = "direct"
	indirect = "indirect"
	replaced = "replaced" // by the tree that it lies in
)

// required returns the modules that a go.mod requires.
func required(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 4 && words[0] == "replace" && words[3] == "../..":
			modules[words[1]] = replaced
		case len(words) >= 2 && strings.HasPrefix(words[1], "v") && modules[words[0]] == "":
			modules[words[0]] = direct
			if strings.HasSuffix(strings.TrimSpace(line), "// indirect") {
				modules[words[0]] = indirect
			}
		}
	}
	if len(modules) < 5 {
		t.Fatalf("%s: found only %v", path, modules)
	}
	return modules
}
