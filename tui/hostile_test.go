package tui

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

func hostile(t testing.TB, name string) *Model {
	t.Helper()
	return openPath(t, filepath.Join(testenv.Module(t), "testdata", "hostile", name))
}

// Two packets 15 years apart: the small graph of the flow's traffic has both.
func TestHostileTui15y(t *testing.T) {
	m := hostile(t, "tui15y.pcapng")
	text := textOf(screenOf(t, m, 160, 50))
	if !strings.Contains(text, "█") || !strings.Contains(text, "1 of") && !strings.Contains(text, "packet") {
		t.Errorf("the flow's traffic is not drawn:\n%s", text)
	}
	everyView(t, m)
}

// A message whose life spans years has a line of its life, and bars.
func TestHostileTui30185(t *testing.T) {
	m := hostile(t, "tui-301-85.cap")
	screenOf(t, m, 160, 50)
	press(m, "<Enter>M")
	text := textOf(screenOf(t, m, 160, 50))
	if !strings.Contains(text, "messages of flow") || !strings.Contains(text, "s──") {
		t.Errorf("the messages' lives are not drawn:\n%s", text)
	}
	everyView(t, m)
}

// A ladder whose lines end years off the screen takes no more steps than the
// screen has dots for each packet drawn.
func TestHostileLadderFreeze(t *testing.T) {
	m := hostile(t, "ladder-freeze.cap")
	screenOf(t, m, 160, 50)
	press(m, "<Enter>L")
	for range 12 {
		if text := textOf(screenOf(t, m, 160, 50)); !strings.Contains(text, "ladder of flow") {
			t.Fatalf("the ladder is not drawn:\n%s", text)
		}
		press(m, "]z")
	}
	everyView(t, m)
}

// everyView draws every view at several sizes.
func everyView(t *testing.T, m *Model) {
	t.Helper()
	for _, size := range [][2]int{{80, 24}, {200, 60}, {20, 6}} {
		press(m, "<Enter>")
		for _, k := range "PSLTMFAR" {
			press(m, string(k))
			screenOf(t, m, size[0], size[1])
			press(m, "G")
			screenOf(t, m, size[0], size[1])
		}
	}
}
