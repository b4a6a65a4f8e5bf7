package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/tui/browser"
)

func TestFuzzy(t *testing.T) {
	for _, c := range []struct {
		query, text string
		at          []int // nil for no match
	}{
		{"", "anything", []int{}},
		{"loss", "steady-loss flow", []int{7, 8, 9, 10}},
		{"sl", "steady-loss", []int{0, 7}},
		{"flow 3", "flow 13, then flow 3", []int{0, 1, 2, 3, 19}},
		{"rtt", "rate of transfer, rtt", []int{18, 19, 20}},
		{"ssol", "steady-loss", nil},
		{"zz", "z", nil},
		{"ab", "a very long way to the hub", nil},
		{"世", "hello 世界", []int{6}},
	} {
		_, at, ok := fuzzy(c.query, c.text)
		if ok != (c.at != nil) || !slices.Equal(at, c.at) {
			t.Errorf("%q in %q: %v %v, expected %v", c.query, c.text, at, ok, c.at)
		}
	}
	word, _, _ := fuzzy("loss", "loss of a packet")
	inside, _, _ := fuzzy("loss", "glossary")
	scattered, _, _ := fuzzy("loss", "xlxoxsxs")
	if word <= inside || inside <= scattered {
		t.Errorf("a word has %d points, letters inside a word %d, scattered ones %d", word, inside, scattered)
	}
}

// The palette goes to flows and findings, runs keys and commands, and begins filters.
func TestPalette(t *testing.T) {
	m := openModel(t, "reliable-two-clients.server.pcap.gz")
	screen := func() string { return textOf(screenOf(t, m, 120, 40)) }
	screen()
	press(m, "<Ctrl-P>")
	for _, kind := range []string{"key", "command", "flow", "finding", "field"} {
		if !slices.ContainsFunc(m.palette.items, func(x paletteItem) bool { return x.kind == kind }) {
			t.Errorf("the palette has no %s", kind)
		}
	}
	press(m, "graphs<Enter>")
	if m.View != browser.Graphs || m.palette.open {
		t.Errorf("the view is %s, expected the graphs:\n%s", m.View, screen())
	}
	press(m, "q<Ctrl-P>:theme<Enter>")
	if m.prompt.kind != promptCommand || m.prompt.line.String() != "theme " {
		t.Errorf("the line is %q, expected the beginning of :theme", m.prompt.line.String())
	}
	press(m, "light<Enter>")
	if m.Layout.Theme != "light" {
		t.Errorf("the theme is %s", m.Layout.Theme)
	}
	press(m, "<Ctrl-P>gaffer.sequence<Enter>== 3<Enter>")
	if m.Filter == nil || m.Filter.String() != "gaffer.sequence == 3" {
		t.Errorf("the filter is %v", m.Filter)
	}
	flow := m.Store.Flows()[1]
	press(m, "<Ctrl-P>flow")
	press(m, " "+flow.A.String()+"<Enter>")
	if m.View != browser.Packets || m.Flow != flow.ID {
		t.Errorf("%s of flow %d, expected the packets of flow %d", m.View, m.Flow, flow.ID)
	}
	press(m, "f<Ctrl-U><Enter>")
	finding := flow.Findings()[0]
	press(m, "<Ctrl-P>"+finding.Rule.ID+" 2<Enter>")
	if got := screen(); m.View != browser.Findings || !strings.Contains(got, finding.Rule.ID+"  ") ||
		m.screens.Findings.Copy(m.Browser) == "" {
		t.Errorf("%s does not explain %s:\n%s", m.View, finding.Rule.ID, got)
	}
	press(m, "<Ctrl-P>qqqqq")
	if got := screen(); !strings.Contains(got, "nothing matches") {
		t.Errorf("a text that nothing has:\n%s", got)
	}
	if press(m, "<Enter><Esc>"); m.palette.open || m.View != browser.Findings {
		t.Error("Esc does not close the palette")
	}
}

// A click on a row of the palette chooses it, and one beside the palette closes it.
func TestPaletteClick(t *testing.T) {
	m := openModel(t, "reliable-two-clients.server.pcap.gz")
	click := func(x, y int) {
		m.Store.Lock()
		defer m.Store.Unlock()
		m.click(x, y)
	}
	press(m, "<Ctrl-P>ladder")
	lines := strings.Split(textOf(screenOf(t, m, 120, 40)), "\n")
	y := slices.IndexFunc(lines, func(s string) bool { return strings.Contains(s, "key      ladder") })
	if click(40, y); m.View != browser.Ladder || m.palette.open {
		t.Errorf("line %d of\n%s\nopened %s", y, strings.Join(lines, "\n"), m.View)
	}
	press(m, "<Ctrl-P>")
	screenOf(t, m, 120, 40)
	if click(2, 35); m.palette.open || m.View != browser.Ladder {
		t.Error("a click beside the palette does not close it")
	}
}
