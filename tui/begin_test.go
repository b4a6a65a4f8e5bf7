package tui

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/browser"
)

// The screens open at the frame of Begin, if it has the time that Begin says and no key came first.
func TestBegin(t *testing.T) {
	const name = "u210_falseack.server.pcapng.gz"
	m := openModel(t, name)
	n, _ := m.Store.Find(machine.MakeRef(0, 300))
	at := m.Store.TimeAt(n)
	for _, c := range []struct {
		at   machine.Instant
		key  string
		want browser.View
	}{{at, "", browser.Packets}, {at + 1, "", browser.Flows}, {at, "j", browser.Flows}} {
		m := openModel(t, name)
		m.o.Begin = Begin{Ref: machine.MakeRef(0, 300), At: c.at, Text: "the trouble"}
		if c.key != "" {
			press(m, c.key)
		}
		text := textOf(screenOf(t, m, 160, 50))
		if m.View != c.want {
			t.Errorf("%+v: in %s", c, m.View)
		}
		if c.want == browser.Packets && (m.SelectedFrame() != "300" || !strings.Contains(text, "the trouble")) {
			t.Errorf("at frame %s:\n%s", m.SelectedFrame(), text)
		}
	}
}
