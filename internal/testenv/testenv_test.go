package testenv

import (
	"path/filepath"
	"testing"
)

// verdict records how a test would have ended, and does not end it.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Skip(...any)           { v.skipped = true }
func (v *verdict) Fatalf(string, ...any) { v.failed = true }

func TestSkipFailsWhereChecksAreRequired(t *testing.T) {
	for _, c := range []struct {
		require         string
		skipped, failed bool
	}{{"", true, false}, {"0", true, false}, {"1", false, true}} {
		t.Setenv(Require, c.require)
		v := &verdict{TB: t}
		// The recorder does not end the test, so a failure continues to Skip.
		Need(v, "a-tool-that-is-nowhere")
		if v.failed != c.failed || (!c.failed && v.skipped != c.skipped) {
			t.Errorf("%s=%q: skipped %v, failed %v; expected %v, %v", Require, c.require, v.skipped, v.failed,
				c.skipped, c.failed)
		}
	}
}

func TestRoundsOfASoak(t *testing.T) {
	full := 2
	if testing.Short() {
		full = 1
	}
	for value, want := range map[string]int{"": full, "1": 3} { // any ACKSCOPE_ variable asks for all data
		t.Setenv("ACKSCOPE_SOAK", value)
		if got := Rounds(1, 2, 3); got != want {
			t.Errorf("ACKSCOPE_SOAK=%q: %d rounds, expected %d", value, got, want)
		}
	}
}

func TestNeedFindsWhatIsThere(t *testing.T) {
	if path := Need(t, "go"); !filepath.IsAbs(path) {
		t.Errorf("Need gave %q for go, expected an absolute path", path)
	}
}

func TestModuleIsFoundFromBelow(t *testing.T) {
	if got := filepath.Base(Capture(t, "README.md")); got != "README.md" {
		t.Errorf("Capture gave %q", got)
	}
}
