package tui

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/tui/browser"
)

// copied presses keys and returns what is copied.
func copied(t *testing.T, m *Model, keys string) string {
	t.Helper()
	screenOf(t, m, 120, 40) // a copy is of what is on screen
	press(m, keys)
	text := m.copied
	m.copied = ""
	if text == "" {
		t.Errorf("%s copies nothing: %s", keys, m.Note)
	}
	return text
}

// The filter that y f copies passes the packet, the finding, the message or the flow at the cursor.
// The JSON names it, and the command shows it.
func TestCopyForms(t *testing.T) {
	program := testenv.Ackscope(t)
	run := func(command string) string {
		t.Helper()
		rest, ok := strings.CutPrefix(command, "ackscope ")
		if !ok {
			t.Fatalf("%q is no command of ackscope", command)
		}
		out, err := exec.Command("sh", "-c", program+" "+rest).Output() //nolint:gosec // the command is what the test is about
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return string(out)
	}
	m := openModel(t, "u210_loss30.server.pcapng.gz")
	for _, c := range []struct {
		keys, json, filter, shows string
	}{
		{"", `"flow":1,`, "flow == 1", "riptide"},
		{"<Enter> 100G", `"frame":100,`, "frame.number == 100", "Frame 100:"},
		{"S", `"frame":100,`, "frame.number == 100", "A "},
		{"T", `"frame":100,`, "frame.number == 100", "sequence"},
		{"M", `"attempts":`, "message.side == ", "flow 1"},
		{"F j", `"rule":"`, `finding.rule == "`, "flow 1"},
	} {
		if c.keys != "" {
			opens, moves, _ := strings.Cut(c.keys, " ")
			press(m, opens)
			screenOf(t, m, 120, 40) // the keys that follow move in what is on screen
			press(m, moves)
		}
		for range 40 { // to a message with a number of its own
			if m.View != browser.Messages || strings.Contains(copied(t, m, "yf"), "message.id") {
				break
			}
			press(m, "j")
		}
		text := copied(t, m, "yj")
		if !json.Valid([]byte(text)) || !strings.Contains(text, c.json) {
			t.Errorf("in %s the JSON is %s, without %s", m.View, text, c.json)
		}
		filter := copied(t, m, "yf")
		if f, err := m.Table.Compile(filter); err != nil || !strings.Contains(filter, c.filter) {
			t.Errorf("in %s the filter is %s: %v", m.View, f, err)
		}
		command := copied(t, m, "yc")
		if out := run(command); !strings.Contains(out, c.shows) {
			t.Errorf("%s does not print %q:\n%s", command, c.shows, out)
		}
	}
}

// A field of the tree is copied as its bytes, and as a filter that the packet passes.
func TestCopyField(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screenOf(t, m, 120, 40)
	press(m, "<Enter>300G")
	whole := copied(t, m, "yh")
	press(m, "<Tab>")
	passed := 0
	for range 12 {
		press(m, "j")
		filter := copied(t, m, "yf")
		f, err := m.Table.Compile(filter)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		r, err := m.Store.NewReader().Read(m.Selected)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Match(r) {
			t.Errorf("the packet does not pass %s", filter)
		}
		if strings.HasPrefix(filter, "gaffer.") && strings.Contains(filter, " == ") {
			passed++
		}
		if part := copied(t, m, "yh"); !strings.Contains(whole, part) {
			t.Errorf("the bytes %s are not in the payload %s", part, whole)
		}
	}
	if passed < 6 {
		t.Errorf("%d filters compare a field", passed)
	}
	if m.View != browser.Packets {
		t.Errorf("copying opened %s", m.View)
	}
}

// A copy is printable, whatever the capture holds.
func TestCopyIsPrintable(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	m.View = browser.State
	m.Text.Lines = []string{"a\x07b\u202ec\td", "\xff\x9b", "é世\xff"}
	press(m, "yy")
	for _, r := range m.copied {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q holds %q", m.copied, r)
		}
	}
	if !strings.HasPrefix(m.copied, "a") || !strings.Contains(m.copied, "é世") || strings.Count(m.copied, "\n") != 2 {
		t.Errorf("%q lost what is printable", m.copied)
	}
}

// What is copied is bounded, and a part is called a part.
func TestCopyIsBounded(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	m.View = browser.State
	m.Text.Lines = []string{strings.Repeat("é", copyMost)}
	press(m, "yy")
	if n := len(m.copied); n > copyMost || n < copyMost-4 || strings.Trim(m.copied, "é") != "" {
		t.Errorf("%d bytes are copied, expected %d of whole letters", n, copyMost)
	}
	if want := fmt.Sprintf("the first 74,000 of %s bytes", "148,000"); !strings.Contains(m.Note, want) {
		t.Errorf("%.60q does not say %q", m.Note, want)
	}
	press(m, "y")
	if got := textOf(screenOf(t, m, 120, 24)); !strings.Contains(got, "j JSON") || !strings.Contains(got, "c command") {
		t.Errorf("after y the last line does not list what may follow:\n%s", got)
	}
}
