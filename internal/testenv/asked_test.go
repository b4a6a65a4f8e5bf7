package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// A test that asks is named, whether it asks by itself or from a subtest. One that cannot be named
// stands for all.
func TestAskedNamesTheTest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "asked")
	t.Setenv(askedFile, path)
	for _, ask := range []func(t *testing.T){
		func(*testing.T) { Whole() },
		func(*testing.T) { Rounds(1, 2, 3) },
		func(*testing.T) { Required() },
		func(t *testing.T) { Need(t, "go") },
		func(t *testing.T) { t.Run("below", func(*testing.T) { Whole() }) },
		func(t *testing.T) { t.Run("below", func(t *testing.T) { Need(t, "go") }) },
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ask(t)
		got, err := os.ReadFile(path)
		if err != nil || string(got) != "TestAskedNamesTheTest\n" {
			t.Errorf("asked by %q, %v", got, err)
		}
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go unnamed(done)
	<-done
	if got, err := os.ReadFile(path); err != nil || string(got) != ".*\n" {
		t.Errorf("a function that no test holds: asked by %q, %v", got, err)
	}
}

// unnamed asks from a goroutine whose stack has no test.
func unnamed(done chan<- struct{}) {
	Whole()
	close(done)
}
