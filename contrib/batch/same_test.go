package batch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/contrib/batch/place"
	"github.com/ackscope/ackscope/internal/folders"
)

// TestSameAsBatch holds a run by Prism in this process against one of `ackscope batch`. The manifest
// has hostile names and labels. A run that follows another one removes what it replaces.
func TestSameAsBatch(t *testing.T) {
	manifest, out := set(t), t.TempDir()
	want, got := filepath.Join(out, "want"), filepath.Join(out, "got")
	args := []string{"--manifest", manifest, "--parts", "2", "--set", "loss=1%", "--packets", "400"}
	said := run(t, 2, append(args, "-o", got, "--threads", "3")...)
	if !strings.Contains(said, "1 cut") || !strings.Contains(said, "unreadable") || !strings.Contains(said, "bounded") {
		t.Errorf("it said %q", said)
	}
	ackscope(t, 2, append([]string{"batch", "-q", "-o", want}, args...)...)
	if n := folders.Same(t, "by Prism in this process", got, want); n < 12 {
		t.Errorf("only %d files were compared", n)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder beside the output has %v, %v", entries, err)
	}

	args = []string{"--manifest", manifest, "--partition", "region"}
	run(t, 2, append(args, "-o", got)...)
	ackscope(t, 2, append([]string{"batch", "-q", "-o", want}, args...)...)
	folders.Same(t, "other options", got, want)
	if plans, err := filepath.Glob(filepath.Join(got, place.WorkFolder, "*")); err != nil || len(plans) != 1 {
		t.Errorf("the folder of the run's work has %v, %v", plans, err)
	}

	good := filepath.Join(filepath.Dir(manifest), "good")
	if said := run(t, 2, "-o", good, good); !strings.Contains(said, "something else") {
		t.Errorf("a folder of something else: %q", said)
	}
	if said := run(t, 2, "-o", got, filepath.Join(out, "*.pcap")); !strings.Contains(said, "no capture was found") {
		t.Errorf("no capture: %q", said)
	}
}

// TestQuarantine: a capture that ends its process three times is named as `ackscope batch` does, and
// the others are analysed.
func TestQuarantine(t *testing.T) {
	manifest, out := set(t), t.TempDir()
	want, got := filepath.Join(out, "want"), filepath.Join(out, "got")
	t.Setenv(poison, "good/1")
	said := run(t, 2, "--manifest", manifest, "-o", got)
	if !strings.Contains(said, "1 quarantined") {
		t.Errorf("it said %q", said)
	}
	ackscope(t, 2, "batch", "-q", "-o", want, "--manifest", manifest)
	folders.Same(t, "with a capture that ends its processes", got, want)
}
