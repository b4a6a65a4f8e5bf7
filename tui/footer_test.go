package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/tui/browser"
)

// A click on a key of the last line presses it, in every view and in the help.
func TestClickFooter(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	click := func(word string) {
		t.Helper()
		lines := strings.Split(textOf(screenOf(t, m, 120, 40)), "\n")
		for _, y := range []int{39, 0, 1} {
			if at := strings.Index(lines[y], word); at >= 0 {
				m.Store.Lock()
				m.click(len([]rune(lines[y][:at])), y)
				m.Store.Unlock()
				return
			}
		}
		t.Errorf("the bars do not have %q:\n%s", word, strings.Join(lines, "\n"))
	}
	click("F findings")
	if m.View != browser.Findings {
		t.Errorf("the view is %s, expected the findings", m.View)
	}
	click("T graphs")
	if m.View != browser.Graphs {
		t.Errorf("the view is %s, expected the graphs", m.View)
	}
	click("? help")
	if !m.help {
		t.Error("the help is not open")
	}
	click("q close")
	if m.help || m.View != browser.Graphs {
		t.Error("the help is not closed")
	}
	click("filter none")
	if m.prompt.kind != promptFilter {
		t.Error("the filter is not asked for")
	}
	press(m, "<Esc>")
	press(m, "y")
	click("j JSON")
	if !strings.Contains(m.copied, `"frame":`) {
		t.Errorf("copied %q", m.copied)
	}
}

// What the user changes of the layout is there next time. The theme of a terminal is not kept.
func TestLayoutRemembersItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ackscope", "tui.json")
	open := func(theme string) *Model {
		m := openModel(t, "reliable-loss10.client.pcap.gz")
		o := m.o
		o.Config = path
		m = NewModel(m.Store, o)
		m.Layout.Theme = theme // as NewApp sets it
		m.theme = theme
		return m
	}
	m := open("light")
	m.remember()
	if _, err := os.Stat(path); err == nil {
		t.Error("nothing was changed, and a layout was written")
	}
	press(m, "ss<Enter>+")
	m.remember()
	m = open("dark")
	if m.Layout.FlowSort != 2 || m.Layout.List != 1 || m.Layout.Theme != "dark" || m.kept.Theme != "" {
		t.Errorf("the layout that was kept is %+v", *m.Layout)
	}
	press(m, ":theme mono<Enter>")
	m.remember()
	if m = open("dark"); m.kept.Theme != "mono" {
		t.Errorf("the theme that was kept is %q", m.kept.Theme)
	}
}
