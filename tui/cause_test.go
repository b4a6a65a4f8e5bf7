package tui

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestCommonCause holds that the list of flows says what the troubles of many players have in
// common. That takes a fifth of the screen at most. Of two players it says nothing.
func TestCommonCause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "match.pcapng")
	c := exec.Command(testenv.Ackscope(t), "simulate", "riptide", "--clients", "8", "--seed", "3", "--delay", "30ms",
		"--outage", "3s,400ms,4s", "--duration", "20s", "--tap", "b", "-w", path)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const want = "Common cause: 4 stalls"
	m := openPath(t, path)
	for _, size := range []struct{ w, h, most int }{{80, 24, 4}, {160, 50, 9}, {40, 13, 2}} {
		screen := textOf(screenOf(t, m, size.w, size.h))
		_, below, found := strings.Cut(screen, want)
		if !found {
			t.Errorf("%d×%d: expected %q:\n%s", size.w, size.h, want, screen)
			continue
		}
		if n := strings.Count(below, "\n") - 1; n > size.most { // the last line has the keys
			t.Errorf("%d×%d: %d lines, expected at most %d:\n%s", size.w, size.h, n, size.most, screen)
		}
	}
	if screen := textOf(screenOf(t, openModel(t, "reliable-two-clients.server.pcap.gz"), 80, 24)); strings.Contains(
		screen, "ommon cause") {
		t.Errorf("two flows were compared:\n%s", screen)
	}
}
