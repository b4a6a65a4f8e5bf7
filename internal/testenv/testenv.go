// Package testenv skips or fails tests whose tool or privilege is missing. For
// example, testenv.Need(t, "tshark") skips the test with a reason. Where every
// check is required (CI sets ACKSCOPE_REQUIRE=1), it fails the test instead, so
// that no check is silently omitted.
package testenv

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Require is the environment variable that makes a skipped check a failure.
const Require = "ACKSCOPE_REQUIRE"

// Required reports whether skipped checks are failures.
func Required() bool {
	askedBy(nil)
	return required()
}

func required() bool { return os.Getenv(Require) == "1" }

// Skip ends the test. The test is skipped, or failed if checks are required.
func Skip(t testing.TB, reason string) {
	t.Helper()
	askedBy(t)
	if required() {
		t.Fatalf("%s (and %s=1 makes a skipped check a failure)", reason, Require)
	}
	t.Skip(reason)
}

// Need returns the path of an external tool that the test needs.
func Need(t testing.TB, tool string) string {
	t.Helper()
	askedBy(t)
	path, err := exec.LookPath(tool)
	if err != nil {
		Skip(t, tool+" is not installed here")
	}
	return path
}

// Root skips the test unless it runs as root on Linux, with the privileges to
// make network namespaces and to open packet sockets.
func Root(t testing.TB) {
	t.Helper()
	askedBy(t)
	switch {
	case runtime.GOOS != "linux":
		Skip(t, "needs Linux")
	case os.Geteuid() != 0:
		Skip(t, "needs root (packet sockets, network namespaces)")
	}
}

// The user as whom tests of live captures continue. It is in no database, so no
// file of the machine belongs to it. AsUser is the value of -Z.
const (
	UserID  = 4711
	GroupID = 4712
	AsUser  = "4711:4712"
)

// UserDir returns a temporary folder that this user can write. The caller is
// root.
func UserDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chown(dir, UserID, GroupID); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // the parent of the test's folders
		t.Fatal(err)
	}
	return dir
}

// Long skips a long test under -short. The user has chosen that, so it is never
// a failure.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out under -short: " + why)
	}
}

// Grid skips a long grid, many repetitions, or a comparison with another
// program. README's test command must take only two minutes. `make full` runs
// such tests, and so do the targets that set a variable of their own. why says
// what takes long.
func Grid(t testing.TB, why string) {
	t.Helper()
	askedBy(t)
	if !whole() {
		t.Skip("make full runs it: " + why)
	}
}

// Whole reports whether a test runs over all its data, as under make full, or
// over a part.
func Whole() bool {
	askedBy(nil)
	return whole()
}

func whole() bool {
	// go test answers from its cache unless a variable changed that a test read by name.
	asked := os.Getenv(Require) != "" || slices.ContainsFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "ACKSCOPE_") || strings.HasPrefix(variable, "SOAK_")
	})
	return asked && !testing.Short()
}

// Soak reports whether a test runs for hours or minutes: under make soak and the targets that
// set ACKSCOPE_SOAK.
func Soak() bool { return os.Getenv("ACKSCOPE_SOAK") != "" }

// Rounds returns how often a test over data made at random runs: by itself, under make full,
// and in a soak.
func Rounds(alone, full, soak int) int {
	askedBy(nil)
	switch {
	case Soak():
		return soak
	case whole():
		return full
	}
	return alone
}

// Capture returns the path of a file in testdata/pcaps, whatever the working
// directory of the test. A missing file is a failure, since captures are part
// of the repository.
func Capture(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Module(t), "testdata", "pcaps", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("testdata/pcaps has no %s: %v", name, err)
	}
	return path
}

// Module returns the folder of the module's go.mod, above the package under
// test.
func Module(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod above %s", start)
		}
	}
}

// Unpacked returns the contents of a gzip file.
func Unpacked(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}
