package tui

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// q returns to the view that led here. From a packet it returns to the finding
// or message, and skips the other views of the packet. At last it returns to
// the flows.
func TestBack(t *testing.T) {
	for _, c := range []struct {
		keys string
		want []browser.View // after each q
	}{
		{"<Enter>", []browser.View{browser.Flows}},
		{"Fj<Enter>", []browser.View{browser.Findings, browser.Flows}},
		{"<Enter>M<Enter>", []browser.View{browser.Messages, browser.Packets, browser.Flows}},
		{"<Enter>SLTMFAR", []browser.View{browser.Packets, browser.Flows}},
		{"<Enter>S<Enter>", []browser.View{browser.State, browser.Packets, browser.Flows}},
		{"SL", []browser.View{browser.Flows}},
		{"<Enter>100G200G", []browser.View{browser.Flows}},
		{"<Enter><Tab>", []browser.View{browser.Packets, browser.Flows}},
	} {
		m := openModel(t, "u210_falseack.server.pcapng.gz")
		screenOf(t, m, 160, 50)
		for _, key := range strings.SplitAfter(strings.ReplaceAll(c.keys, "<", "\x00<"), "\x00") {
			press(m, strings.TrimSuffix(key, "\x00"))
			screenOf(t, m, 100, 30) // keys act on what is drawn
		}
		for _, want := range c.want {
			press(m, "q")
			if m.View != want || want == browser.Findings && m.Flow != 0 {
				t.Errorf("%s, then q: in %s of flow %d, expected %s", c.keys, m.View, m.Flow, want)
				break
			}
		}
		if m.quit {
			t.Errorf("%s: it left", c.keys)
		}
	}
}

// Positions of the screen: the head of a column sorts. Text beside or below a
// table is not a row. While the help is shown nothing opens.
func TestMousePlaces(t *testing.T) {
	m := openModel(t, "u210_falseack.server.pcapng.gz")
	screenOf(t, m, 160, 50)
	head := func() (text string, at int) {
		line := []rune(strings.Split(textOf(screenOf(t, m, 160, 50)), "\n")[2])
		before, after, _ := strings.Cut(string(line), "RTT ms")
		return "RTT ms" + string([]rune(after + " ")[:1]), utf8.RuneCountInString(before)
	}
	_, at := head()
	for _, want := range []string{"RTT ms▾", "RTT ms▴"} {
		m.Store.Lock()
		m.click(at, 2)
		m.Store.Unlock()
		if got, _ := head(); got != want {
			t.Errorf("after a click on the head of RTT that reads %q, expected %q", got, want)
		}
	}
	m.Store.Lock()
	m.help = true
	if m.doubleClick(5, 4); m.View != browser.Flows {
		t.Error("a click on the help opened a flow")
	}
	m.help = false
	m.doubleClick(5, 30) // below the only flow
	m.Store.Unlock()
	press(m, "F")
	screenOf(t, m, 160, 24)
	m.Store.Lock()
	m.click(10, 5)
	rows, _, _ := m.screens.Findings.Area()
	if rows.Cursor != 2 {
		t.Errorf("the third row was clicked, the cursor is at row %d", rows.Cursor)
	}
	m.click(120, 8)
	m.wheel(120, 8, 3)
	if rows.Cursor != 2 || m.Text.List.Top != 3 {
		t.Errorf("beside the list: cursor at row %d, text from line %d; expected 2, 3", rows.Cursor, m.Text.List.Top)
	}
	m.Store.Unlock()
}

// The list is drawn on the smallest screens.
func TestTinyScreens(t *testing.T) {
	m := openModel(t, "u210_falseack.server.pcapng.gz")
	screenOf(t, m, 80, 24)
	for _, c := range []struct{ keys, want string }{
		{"", "▶ 1"},
		{"<Enter>", "▶    1"},
		{"M", "▶2"},
		{"F", " E riptide"},
		{"R", "▶   1"},
	} {
		press(m, c.keys)
		screenOf(t, m, 40, 8)
		if got := textOf(screenOf(t, m, 24, 8)); !strings.Contains(got, c.want) {
			t.Errorf("after %q the screen lacks %q:\n%s", c.keys, c.want, got)
		}
	}
}

// After a command Tab inserts its possible arguments, one after the other.
func TestArgumentsComplete(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screenOf(t, m, 80, 24)
	for keys, want := range map[string]string{
		":theme l<Tab>": "theme light", ":sort never<Tab>": "sort never acked", ":sort <Tab><Tab><Backtab>": "sort #",
		":set n<Tab>":                     "set nofollow",
		":columns number gaffer.seq<Tab>": "columns number gaffer.sequence", ":columns num<Tab>": "columns number",
		":filter gaffer.seq<Tab>": "filter gaffer.sequence",
		":the<Tab>":               "theme", ":replay reliable@>=1<Tab>": "replay reliable@>=1.3", ":w x<Tab>": "w x",
	} {
		press(m, keys)
		if got := m.prompt.line.String(); got != want {
			t.Errorf("%s: %q, expected %q", keys, got, want)
		}
		press(m, "<Esc>")
	}
}

// WrapLine loses no text, and no part is too wide.
func TestWrapLine(t *testing.T) {
	for _, line := range append(helpLines(browser.Packets, ""), "", "short",
		"  a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9", strings.Repeat("x", 100), "\x1b[33m"+
			strings.Repeat("word ", 40)+"\x1b[0mend") {
		for _, width := range []int{20, 37, 78} {
			parts := draw.WrapLine(line, width)
			var words []string
			for _, part := range parts {
				if n := draw.TextWidth(draw.StripStyles(part)); n > width &&
					strings.Contains(strings.TrimSpace(draw.StripStyles(part)), " ") {
					t.Errorf("%q is %d columns wide, of %d", part, n, width)
				}
				words = append(words, strings.Fields(draw.StripStyles(part))...)
			}
			if want := strings.Fields(draw.StripStyles(line)); !slices.Equal(words, want) {
				t.Errorf("%q became %q", want, words)
			}
		}
	}
}

// An encrypted flow has no known round trip. The title of the ladder says so,
// and does not cover the name of the selected packet.
func TestFlatLadder(t *testing.T) {
	m := openModel(t, "yojimbo-clean.client.pcap.gz")
	screenOf(t, m, 120, 24)
	press(m, "<Enter>50GL")
	lines := strings.Split(textOf(screenOf(t, m, 120, 24)), "\n")
	if !strings.Contains(lines[2], "flat: the way's length is not known") ||
		!strings.Contains(lines[3], "50 encrypted payload, counter") {
		t.Errorf("the ladder begins with\n%s\n%s", lines[2], lines[3])
	}
}
