package tui

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// The help lists every bound key and every command with its description.
func TestHelpListsEveryKey(t *testing.T) {
	var lines []string
	for _, l := range helpLines(browser.Packets, "") {
		lines = append(lines, draw.StripStyles(l))
	}
	for _, b := range bindingTable() {
		if b.help == "" || b.group == "" || b.do == nil {
			t.Errorf("the binding of %v has no help, no group, or does nothing", b.keys)
		}
		for _, k := range b.keys {
			shown := regexp.MustCompile(`^  (.*  )?` + regexp.QuoteMeta(k) + ` .*` + regexp.QuoteMeta(b.help))
			if !slices.ContainsFunc(lines, shown.MatchString) {
				t.Errorf("the help does not list %q as %q", k, b.help)
			}
		}
	}
	for _, c := range commands {
		if !slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "  :"+c.name) && strings.Contains(l, c.help)
		}) {
			t.Errorf("the help does not list :%s", c.name)
		}
	}
	for view := browser.Flows; view <= browser.Replay; view++ {
		v := view.String()
		if !slices.ContainsFunc(bindingTable(),
			func(b binding) bool { return b.group == "opening" && strings.Contains(b.help, v) }) && v != "flows" {
			t.Errorf("no key opens the view %s", v)
		}
	}
}

// No key has two meanings in one view.
func TestKeysMeanOneThing(t *testing.T) {
	table := bindingTable()
	for v := browser.Flows; v <= browser.Replay; v++ {
		seen := map[string]string{}
		for _, general := range []bool{false, true} {
			for _, b := range table {
				if !b.in(v) || (len(b.views) == 0) != general {
					continue
				}
				for _, k := range b.keys {
					if had, ok := seen[k]; ok && !general {
						t.Errorf("in %s, %q means %q and %q", v, k, had, b.help)
					}
					seen[k] = b.help
				}
			}
		}
		for k := range seen {
			if first, _, ok := strings.Cut(k, " "); ok && seen[first] != "" {
				t.Errorf("in %s, %q cannot be typed: %q alone means %q", v, k, first, seen[first])
			}
		}
	}
}

// The list of commands is complete.
func TestCommandsAreListed(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	for _, c := range commands {
		m.Store.Lock()
		m.command(c.name)
		if strings.HasPrefix(m.Note, "no command") {
			t.Errorf(":%s is listed and means nothing", c.name)
		}
		m.quit, m.help = false, false
		m.Store.Unlock()
	}
	press(m, ":nonsense<Enter>")
	if !strings.HasPrefix(m.Note, "no command") {
		t.Errorf("an unknown command was answered by %q", m.Note)
	}
}
