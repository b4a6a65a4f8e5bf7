package tui

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/internal/noise"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/store"
)

// filterBy types a filter.
func filterBy(m *Model, text string) {
	m.Store.Lock()
	defer m.Store.Unlock()
	m.Key("f")
	m.prompt.line.set(text)
	m.Key("Enter")
}

// shown draws the model and returns what read returns.
func shown[T any](t *testing.T, m *Model, read func() T) T {
	t.Helper()
	screenOf(t, m, 160, 50)
	m.Store.Lock()
	defer m.Store.Unlock()
	return read()
}

// rowsShown returns the number of rows of the table on screen.
func rowsShown(m *Model) int {
	rows, _, _ := m.screen().Matches(m.Browser, &m.search)
	return rows
}

// lives returns the messages of the flow in focus. It walks the flow itself.
func lives(t *testing.T, m *Model) (out []store.Life) {
	t.Helper()
	m.Store.Lock()
	defer m.Store.Unlock()
	w, err := m.Store.Walk(m.Focus(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for r := w.Next(); r != nil; r = w.Next() {
		out = store.AppendLives(out, r)
	}
	if r := w.Finish(); r != nil {
		out = store.AppendLives(out, r)
	}
	return out
}

// Filters apply to messages, findings and flows in their views.
func TestFiltersInTables(t *testing.T) {
	m := openModel(t, "u210_loss10.client.pcapng.gz")
	m.Store.Lock()
	m.Open(1)
	m.Key("M")
	m.Store.Unlock()
	screenOf(t, m, 160, 50)
	all := lives(t, m)
	lengths := make([]int, len(all))
	m.Store.Lock()
	for i := range all {
		n, _ := m.Store.Find(all[i].Frames[0])
		r, err := m.Store.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		lengths[i] = r.Frame.Length
	}
	m.Store.Unlock()
	for text, want := range map[string]func(i int) bool{
		"message.sends > 1":                   func(i int) bool { return all[i].Attempts > 1 },
		"frame.len > 60":                      func(i int) bool { return lengths[i] > 60 },
		"frame.len > 60 && message.side == b": func(i int) bool { return lengths[i] > 60 && all[i].From == 1 },
	} {
		filterBy(m, text)
		count := 0
		for i := range all {
			if want(i) {
				count++
			}
		}
		if got := shown(t, m, func() int { return rowsShown(m) }); got != count || count == 0 {
			t.Errorf("%s: %d messages, expected %d", text, got, count)
		}
		if m.View != browser.Messages {
			t.Fatalf("%s: the view is %s", text, m.View)
		}
	}
	filterBy(m, "rel.lost")
	if got := shown(t, m, func() int { return rowsShown(m) }); got != len(all) {
		t.Errorf("%d of %d messages are shown under a filter that is not asked about them", got, len(all))
	}
	if err := m.Refusal(m.View); err == nil || !strings.Contains(err.Error(), "rel.lost is not asked about messages") {
		t.Errorf("refused: %v", err)
	}
	filterBy(m, "")
	m.Store.Lock()
	m.Show(browser.Findings)
	m.Store.Unlock()
	findings := shown(t, m, func() int { return rowsShown(m) })
	filterBy(m, "finding.rule == riptide-resent-loss && frame.len > 0")
	if got := shown(t, m, func() int { return rowsShown(m) }); got == 0 || got >= findings {
		t.Errorf("%d of %d rows of findings are of one rule", got, findings)
	}
	filterBy(m, "frame.len > 60000")
	if got := shown(t, m, func() int { return rowsShown(m) }); got != 0 {
		t.Errorf("%d rows of findings of frames that are not there", got)
	}
	m.Store.Lock()
	m.View = browser.Flows
	m.Store.Unlock()
	for text, want := range map[string]int{
		"frame.len > 60000": 0, "frame.len > 60": 1, "rel.resend": 1,
		"flow.packets > 100000": 0, "udp.port == 1": 0, "fate == lost": 1, "fate == received-unacked": 0,
	} {
		filterBy(m, text)
		if got := shown(t, m, func() int { return rowsShown(m) }); got != want {
			t.Errorf("%s: %d flows, expected %d", text, got, want)
		}
	}
}

// openPipe opens a capture as a pipe that grows.
func openPipe(t *testing.T, data []byte, o analyze.Options, most int) *Model {
	t.Helper()
	in, err := capture.Open([]string{"-"},
		capture.Options{Keep: capture.KeepAll, Stdin: io.MultiReader(bytes.NewReader(data))})
	if err != nil {
		t.Fatal(err)
	}
	o.Registry = dissect.NewRegistry(gaffer.Protocol)
	s := store.New(in, o, true)
	count(s)
	s.Bound(most)
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	await(t, s, func() bool { return s.Settled() })
	return NewModel(s, Options{
		Table: fields.NewTable(fields.Options{Registry: o.Registry, Rules: analyze.Rules}),
		Theme: "dark",
	})
}

// A capture that never ends is bounded in two ways. The oldest flows are
// forgotten, but their packets stay. The index has a limit in bytes.
func TestBounded(t *testing.T) {
	const packets, flows = 2000, 50
	m := openPipe(t, noise.Flows(packets), analyze.Options{Limits: analyze.Limits{Flows: flows}}, 0)
	m.Store.Lock()
	if n := len(m.Store.Flows()); n > flows {
		t.Errorf("%d flows are kept, the limit is %d", n, flows)
	}
	if m.Store.Len() != packets || m.Store.FlowOf(0) != nil || m.Store.FlowOf(packets-1) == nil {
		t.Errorf("%d packets; the first one's flow %v, the last one's %v", m.Store.Len(), m.Store.FlowOf(0),
			m.Store.FlowOf(packets-1))
	}
	m.Open(0)
	m.Selected = 0
	m.Store.Unlock()
	if screen := textOf(screenOf(t, m, 100, 30)); !strings.Contains(screen, "10.9.9.9") {
		t.Errorf("the packets of discarded flows are not shown:\n%s", screen)
	}
	m = openPipe(t, noise.Flows(packets), analyze.Options{}, 1)
	m.Store.Lock()
	if m.Store.Len() != 1 {
		t.Errorf("%d packets are kept, the bound has room for 1", m.Store.Len())
	}
	m.Store.Unlock()
	if screen := textOf(screenOf(t, m, 100, 30)); !strings.Contains(screen, "full (--memory): 1,999 more not kept") {
		t.Errorf("the limit is not shown:\n%s", screen)
	}
}

// Quitting waits for a file being saved. Quitting again does not wait.
func TestLeaving(t *testing.T) {
	m := openPipe(t, noise.Flows(10), analyze.Options{}, 0)
	m.Store.Lock()
	defer m.Store.Unlock()
	m.saving = &saving{"out.pcapng", &store.Saving{Total: 10}}
	if m.Key("q"); m.quit {
		t.Fatal("left while a file was being written")
	}
	m.saving.Done = true
	if m.settleSaving(); !m.quit {
		t.Error("did not leave when the file was written")
	}
	m.quit, m.leaving, m.saving = false, false, &saving{"out.pcapng", &store.Saving{Total: 10}}
	m.Key("q")
	if m.Key("q"); !m.quit {
		t.Error("a second q did not leave")
	}
}
