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

// Two packets are 15 years apart: the graph of the flow's traffic shows both.
func TestHostileTui15y(t *testing.T) {
	m := hostile(t, "tui15y.pcapng")
	text := textOf(screenOf(t, m, 160, 50))
	if !strings.Contains(text, "█") || !strings.Contains(text, "1 of") && !strings.Contains(text, "packet") {
		t.Errorf("the flow's traffic is not drawn:\n%s", text)
	}
	everyView(t, m)
}

// A message whose life spans years is drawn as a line, and with bars.
func TestHostileTui30185(t *testing.T) {
	m := hostile(t, "tui-301-85.cap")
	screenOf(t, m, 160, 50)
	press(m, "<Enter>M")
	text := textOf(screenOf(t, m, 160, 50))
	if !strings.Contains(text, "messages of flow") || !strings.Contains(text, "s══") {
		t.Errorf("the messages' lives are not drawn:\n%s", text)
	}
	everyView(t, m)
}

// Lines of a ladder may end years off the screen. Drawing takes at most as many
// steps as the screen has dots for each packet.
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
