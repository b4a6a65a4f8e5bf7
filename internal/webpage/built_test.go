package webpage

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// tools is a copy of web with the tools that package-lock.json names.
var tools struct {
	once sync.Once
	dir  string
	err  error
	said []byte
}

// withTools returns the folder web with its node_modules: the one here if `make web` has made it,
// else a copy.
func withTools(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "node")
	npm := testenv.Need(t, "npm")
	tools.once.Do(func() {
		tools.dir, tools.err = os.MkdirTemp("", "ackscope-web") //nolint:usetesting // several tests share it
		if tools.err != nil {
			return
		}
		from := filepath.Join(testenv.Module(t), "web")
		for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json", "build.mjs"} {
			text, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(tools.dir, name), text, 0o600)
			}
			if err != nil {
				tools.err = err
				return
			}
		}
		if tools.err = os.CopyFS(filepath.Join(tools.dir, "src"), os.DirFS(filepath.Join(from, "src"))); tools.err != nil {
			return
		}
		c := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		c.Dir = tools.dir
		tools.said, tools.err = c.CombinedOutput()
	})
	if tools.err != nil {
		testenv.Skip(t, "npm cannot install the tools of web/package-lock.json: "+tools.err.Error()+" "+string(tools.said))
	}
	return tools.dir
}

// The committed files of the page are what its sources build, and the types of the sources hold.
func TestBuilt(t *testing.T) {
	testenv.Grid(t, "npm")
	dir := withTools(t)
	for _, script := range []string{"check", "build"} {
		c := exec.Command("npm", "run", script)
		c.Dir = dir
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("npm run %s: %v\n%s", script, err, said)
		}
	}
	for _, name := range []string{"index.html", "app.js", "app.css", "worker.js"} {
		want, err := os.ReadFile(filepath.Join(dir, "dist", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(testenv.Module(t), "web", "dist", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("web/dist/%s is not what web/src builds: run `make web`", name)
		}
	}
}

// The capture that the page reads ahead is one of testdata: a real one.
func TestCaptureOfWarmUp(t *testing.T) {
	got, err := os.ReadFile(filepath.Join(testenv.Module(t), "web", "src", "riptide.pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(testenv.Capture(t, "u221_loss10.client.pcap.gz"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("web/src/riptide.pcap.gz is not testdata/pcaps/u221_loss10.client.pcap.gz: %v", err)
	}
}
