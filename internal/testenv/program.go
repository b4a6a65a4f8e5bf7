package testenv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var program struct {
	once sync.Once
	path string
	err  error
	said []byte
}

// Main runs the tests of a package that uses Ackscope, and then removes the
// program: func TestMain(m *testing.M) { testenv.Main(m) }. It calls after before it ends.
func Main(m *testing.M, after ...func()) {
	code := m.Run()
	for _, f := range after {
		f()
	}
	if program.path != "" {
		if err := os.RemoveAll(filepath.Dir(program.path)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// Ackscope returns the path of the program, which it builds once for a test
// process. The package's TestMain must call Main.
func Ackscope(t testing.TB) string {
	t.Helper()
	program.once.Do(func() {
		var dir string
		if dir, program.err = os.MkdirTemp("", "ackscope-test"); program.err != nil { //nolint:usetesting // it outlives the test that asks first
			return
		}
		program.path = filepath.Join(dir, "ackscope")
		build := exec.Command("go", "build", "-o", program.path, "./cmd/ackscope")
		build.Dir = Module(t)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		program.said, program.err = build.CombinedOutput()
	})
	if program.err != nil {
		t.Fatalf("go build ./cmd/ackscope: %v\n%s", program.err, program.said)
	}
	return program.path
}

// Output runs a command that must succeed, and returns its output.
func Output(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	var complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, complaint.Bytes())
	}
	return out
}
