package testenv

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// askedFile is the environment variable with the path of a file. Each test that may do more under
// `make full` adds a line with its name there:
//
//	TestAsTshark
//
// `make plain` sets it, and `make full` then runs these tests only: the others would do the same
// once more. Its name has another prefix than those at which Whole looks.
const askedFile = "TESTENV_ASKED"

// askedBy notes the test t, or the one on the stack if t is nil. A test that cannot be named
// is noted as ".*", which matches every test.
func askedBy(t testing.TB) {
	path := os.Getenv(askedFile)
	if path == "" {
		return
	}
	name := ".*"
	if t != nil {
		name, _, _ = strings.Cut(t.Name(), "/")
	} else if on, ok := testOnStack(); ok {
		name = on
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", askedFile, err)) // a lost line would lose a test
	}
	if _, err := fmt.Fprintln(f, name); err != nil {
		panic(fmt.Sprintf("%s: %v", askedFile, err))
	}
	if err := f.Close(); err != nil {
		panic(fmt.Sprintf("%s: %v", askedFile, err))
	}
}

// testName finds the test in the name of a function, such as "…/cli.TestFaults.func2".
var testName = regexp.MustCompile(`\.(Test[A-Z0-9]\w*)(\.|$)`)

// testOnStack returns the name of the test that called, whether by itself or from a subtest that
// it holds.
func testOnStack() (string, bool) {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if m := testName.FindStringSubmatch(frame.Function); m != nil {
			return m[1], true
		}
		if !more {
			return "", false
		}
	}
}
