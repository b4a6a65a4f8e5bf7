package tui

import (
	"strings"
	"testing"
)

// The columns of the flows stay where they are while the cursor moves over flows of every kind.
func TestColumnsStay(t *testing.T) {
	m := openModel(t, "u221_lobby.client.pcapng.gz")
	heads := func() string {
		lines := strings.Split(textOf(screenOf(t, m, 100, 7)), "\n") // two rows
		return lines[2]
	}
	first := heads()
	seen := map[string]bool{}
	for range len(m.Store.Flows()) {
		press(m, "j")
		if got := heads(); got != first {
			t.Errorf("the columns were\n%s\nand are\n%s", first, got)
		}
		seen[strings.Split(textOf(screenOf(t, m, 100, 7)), "\n")[4]] = true
	}
	if len(seen) < 3 {
		t.Errorf("%d different rows were shown: nothing scrolled", len(seen))
	}
}

// The column by which the flows are sorted is always shown.
func TestSortedColumnIsShown(t *testing.T) {
	m := openModel(t, "u221_lobby.client.pcapng.gz")
	screenOf(t, m, 80, 24)
	for range 13 {
		press(m, "s")
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Note, "sorted by "), ":")
		lines := strings.Split(textOf(screenOf(t, m, 80, 24)), "\n")
		if head := lines[2]; !strings.Contains(head, name+"▴") && !strings.Contains(head, name+"▾") {
			t.Errorf("sorted by %s, and the columns are\n%s", name, head)
		}
	}
}

// A filter that is not complete says what it lacks.
func TestIncompleteFilterSaysWhy(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	press(m, "fgaffer.sequence ==")
	if got := textOf(screenOf(t, m, 80, 24)); m.prompt.check.text == "" || !strings.Contains(got, "incomplete") ||
		!strings.Contains(got, m.prompt.check.text) {
		t.Errorf("%q is not shown:\n%s", m.prompt.check.text, got)
	}
}

// A search narrows the help to the lines that have the text, and Esc takes that back.
func TestHelpSearch(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	press(m, "?")
	whole := textOf(screenOf(t, m, 120, 40))
	press(m, "/CLIP<Backspace><Backspace><Backspace><Backspace>OSC")
	got := textOf(screenOf(t, m, 120, 40))
	if !strings.Contains(got, "(OSC 52)") || strings.Contains(got, "half a page") {
		t.Errorf("the help about OSC is\n%s", got)
	}
	press(m, "<Enter>")
	if got = textOf(screenOf(t, m, 120, 40)); !strings.Contains(got, "(OSC 52)") || strings.Contains(got, "half a page") {
		t.Errorf("after Enter the help is\n%s", got)
	}
	if press(m, "<Esc>"); textOf(screenOf(t, m, 120, 40)) != whole || !m.help {
		t.Error("Esc does not show the whole help again")
	}
	if press(m, "/zzz<Enter>"); !strings.Contains(textOf(screenOf(t, m, 120, 40)), "no line has zzz") {
		t.Error("a text that is not there is not named")
	}
	if press(m, "<Esc><Esc>"); m.help {
		t.Error("a second Esc does not close the help")
	}
}

// A screen of 120 by 40 has room for the state of both sides below the packets.
func TestStateBelowPackets(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screenOf(t, m, 120, 40)
	press(m, "<Enter>300G")
	got := textOf(screenOf(t, m, 120, 40))
	for _, want := range []string{"packets", "frame 300", "bytes ·", "both sides of flow 1 at frame 300", "A thinks B"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, title := range []string{"▸packets", "▸frame 300", "▸bytes", "▸both sides"} {
		if got := textOf(screenOf(t, m, 120, 40)); !strings.Contains(got, title) {
			t.Errorf("the pane %q does not have the keys:\n%s", title, got)
		}
		press(m, "<Tab>")
	}
	// A click goes to the pane that is drawn there.
	lines := strings.Split(got, "\n")
	for y, line := range lines {
		if strings.Contains(line, "both sides of flow 1") {
			m.Store.Lock()
			m.click(5, y+2)
			m.Store.Unlock()
		}
	}
	if got := textOf(screenOf(t, m, 120, 40)); !strings.Contains(got, "▸both sides") {
		t.Errorf("a click into the state does not select it:\n%s", got)
	}
}
