package top

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
)

var place = message.Place{Site: "eu", Sensor: "game-7"}

// findingRow returns a finding's row with a message.
func findingRow(uid, text string) []byte {
	s := message.Schema(message.Findings)
	cells := s.Cells()
	for i := range cells {
		cells[i].Set = s.Columns[i].Absent == export.Never
	}
	for name, text := range map[string]string{
		"uid": uid, "a": "10.0.0.1:5", "b": "10.0.0.2:6", "rule": "stall", "severity": "warn", "side": "A", "message": text,
	} {
		cells[message.Column(s, name)].Bytes = []byte(text)
	}
	return message.Append(nil, message.Findings, cells)
}

// TestHostile takes messages that no sensor sends. They are counted, and nothing of them reaches a terminal as it is.
func TestHostile(t *testing.T) {
	f := New()
	noise := make([]byte, 3000)
	_, _ = rand.Read(noise)
	for _, subject := range []string{
		message.Subject(message.Health, place), message.Subject(message.Flows, place), message.Subject(message.Findings,
			place), "x",
		"ackscope.v1.health.eu", "ackscope.v1.health.EU.a", "ackscope.v1.health.eu.\x1b[2J",
	} {
		for _, body := range [][]byte{
			nil,
			{},
			noise, []byte("{}"), []byte("[]"), []byte(strings.Repeat("[", 4000)),
			[]byte(`{"told":{"a":1}}`),
		} {
			f.Take(subject, body, time.Now())
		}
	}
	if s := f.Snapshot(); s.Refused+s.Other != 7*7 || len(s.Sensors)+len(s.Findings)+s.Flows > 0 {
		t.Errorf("expected 49 messages that are no rows and nothing else, found %+v", s)
	}
	f.Take(message.Subject(message.Findings, place), findingRow("\x1b[31m", "a\x1b[2J\nb\u202e"), time.Now())
	s := f.Snapshot()
	if text := s.Text(time.Now(), 9); strings.ContainsAny(text, "\x1b\u202e") || len(s.Findings) != 1 {
		t.Errorf("expected one finding in harmless characters, found %q", text)
	}
}

// TestOtherVersion: rows of another version are told apart from messages that no sensor sends.
func TestOtherVersion(t *testing.T) {
	f := New()
	body := findingRow("one", "first")
	body[4]++ // the fingerprint of other columns
	f.Take(message.Subject(message.Findings, place), body, time.Now())
	f.SetUnread(7)
	s := f.Snapshot()
	if text := s.Heading(); s.Other != 1 || s.Refused != 0 || !strings.Contains(text, "1 row of another version") ||
		!strings.Contains(text, "7 rows unread in the tables") {
		t.Errorf("expected one row of another version and 7 in the tables, found %d, %d refused: %s", s.Other, s.Refused,
			text)
	}
}

// TestBounds tells very many findings of made-up flows.
func TestBounds(t *testing.T) {
	f := New()
	for i := range mostFindings + 100 {
		f.Take(message.Subject(message.Findings, place), findingRow(strings.Repeat("x", i%7)+time.Duration(i).String(),
			"m"), time.Now())
	}
	if n := len(f.Snapshot().Findings); n != mostFindings {
		t.Errorf("expected %d findings, found %d", mostFindings, n)
	}
}

// TestScreen draws the screen, chooses a finding, opens it, and ends.
func TestScreen(t *testing.T) {
	f := New()
	report, err := message.Encode(&message.Report{
		Version: "v1", Epoch: strings.Repeat("a", 32), Packets: 12345,
		Fetch: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Take(message.Subject(message.Health, place), report, time.Now())
	f.Take(message.Subject(message.Findings, place), findingRow("one", "first"), time.Now())
	f.Take(message.Subject(message.Findings, place), findingRow("two", "second"), time.Now())
	screen := tcell.NewSimulationScreen("UTF-8")
	opened := make(chan string, 1)
	s := &Screen{Fleet: f, Open: func(_ context.Context, x *Finding) string { opened <- x.UID; return "fetched it" }}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), screen) }()
	shows := func(want string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			cells, _, _ := screen.GetContents()
			var text strings.Builder
			for _, c := range cells {
				text.WriteString(string(c.Runes))
			}
			if strings.Contains(text.String(), want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("expected %q on the screen, found %s", want, text.String())
			}
		}
	}
	shows("1 sensor at 1 site")
	shows("12,345")
	shows("second")
	screen.InjectKey(tcell.KeyDown, 0, tcell.ModNone)
	screen.InjectKey(tcell.KeyEnter, 0, tcell.ModNone)
	if got := <-opened; got != "two" {
		t.Errorf("expected the second finding, found %s", got)
	}
	shows("fetched it")
	screen.InjectKey(tcell.KeyRune, 'q', tcell.ModNone)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
