package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMemoryOf(t *testing.T) {
	usual := func(n int64) func() int64 { return func() int64 { return n } }
	for _, c := range []struct {
		text  string
		usual int64
		want  int64
		wrong string
	}{
		{"", 1 << 30, 1 << 30, ""},
		{"", 1 << 20, leastMemory, ""},
		{"64MiB", 0, 64 << 20, ""},
		{"2GiB", 0, 2 << 30, ""},
		{"63MiB", 0, 0, "expected 64 MiB at least"},
		{"much", 0, 0, "expected a size"},
	} {
		got, err := memoryOf(c.text, usual(c.usual))
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: %v, expected %q", c.text, err, c.wrong)
			}
		case err != nil || got != c.want:
			t.Errorf("%q: %d and %v, expected %d", c.text, got, err, c.want)
		}
	}
}

func TestBudgetIsHalfOfTheMachine(t *testing.T) {
	if half := halfOfMachine(); half < 1<<20 || runtime.GOOS != "linux" && half != unknownMemory/2 {
		t.Errorf("half of the machine is %d bytes", half)
	}
	var a App
	if a.Share(1) != unknownMemory/2 {
		t.Errorf("before --memory is read the budget is %d", a.Share(1))
	}
	a.Memory.Bytes = 64 << 20
	if l := a.Limits(0); l.Flows != 8192 || l.Bytes != 32<<20 || !l.Room || l.Idle != 0 {
		t.Errorf("limits of 64 MiB: %+v", l)
	}
}

func writeLimit(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
