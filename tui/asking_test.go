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
	"github.com/ackscope/ackscope/tui/store"
)

// filterBy types a filter.
func filterBy(m *Model, text string) {
	m.store.Lock()
	defer m.store.Unlock()
	m.Key("f")
	m.prompt.line.set(text)
	m.Key("Enter")
}

// shown draws and gives what a function reads of the model.
func shown[T any](t *testing.T, m *Model, read func() T) T {
	t.Helper()
	screenOf(t, m, 160, 50)
	m.store.Lock()
	defer m.store.Unlock()
	return read()
}

// A filter is asked about messages, findings and flows where those are shown.
func TestFiltersInTables(t *testing.T) {
	m := openModel(t, "u210_loss10.client.pcapng.gz")
	m.store.Lock()
	m.open(1)
	m.Key("M")
	m.store.Unlock()
	all := shown(t, m, func() []store.Life { return m.messages.all })
	lengths := make([]int, len(all))
	m.store.Lock()
	for i := range all {
		n, _ := m.store.Find(all[i].Frames[0])
		r, err := m.store.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		lengths[i] = r.Frame.Length
	}
	m.store.Unlock()
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
		if got := shown(t, m, func() int { return len(m.messages.rows) }); got != count || count == 0 {
			t.Errorf("%s: %d messages, expected %d", text, got, count)
		}
		if m.view != viewMessages {
			t.Fatalf("%s: the view is %s", text, viewNames[m.view])
		}
	}
	filterBy(m, "rel.lost")
	if got := shown(t, m, func() int { return len(m.messages.rows) }); got != len(all) {
		t.Errorf("%d of %d messages are shown under a filter that is not asked about them", got, len(all))
	}
	if m.messages.refused == nil || !strings.Contains(m.messages.refused.Error(), "rel.lost is not asked about messages") {
		t.Errorf("refused: %v", m.messages.refused)
	}
	filterBy(m, "")
	m.store.Lock()
	m.show(viewFindings)
	m.store.Unlock()
	findings := shown(t, m, func() int { return len(m.findings.rows) })
	filterBy(m, "finding.rule == riptide-resent-loss && frame.len > 0")
	if got := shown(t, m, func() int { return len(m.findings.rows) }); got == 0 || got >= findings {
		t.Errorf("%d of %d rows of findings are of one rule", got, findings)
	}
	filterBy(m, "frame.len > 60000")
	if got := shown(t, m, func() int { return len(m.findings.rows) }); got != 0 {
		t.Errorf("%d rows of findings of frames that are not there", got)
	}
	m.store.Lock()
	m.view = viewFlows
	m.store.Unlock()
	for text, want := range map[string]int{"frame.len > 60000": 0, "frame.len > 60": 1, "rel.resend": 1, "flow.packets > 100000": 0, "udp.port == 1": 0} {
		filterBy(m, text)
		if got := shown(t, m, func() int { return len(m.flows.order) }); got != want {
			t.Errorf("%s: %d flows, expected %d", text, got, want)
		}
	}
}

// openPipe follows what comes through a pipe.
func openPipe(t *testing.T, data []byte, o analyze.Options, most int) *Model {
	t.Helper()
	in, err := capture.Open([]string{"-"}, capture.Options{Keep: capture.KeepAll, Stdin: io.MultiReader(bytes.NewReader(data))})
	if err != nil {
		t.Fatal(err)
	}
	o.Registry = dissect.NewRegistry(gaffer.Protocol)
	s := store.New(in, o, true)
	s.Bound(most)
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	await(t, s, func() bool { return s.Settled() })
	return NewModel(s, Options{Table: fields.NewTable(fields.Options{Registry: o.Registry, Rules: analyze.Rules}), Theme: "dark"})
}

// What may never end is bounded: by flows, of which the oldest are let go while
// their packets stay, and by what the index takes.
func TestBounded(t *testing.T) {
	const packets, flows = 2000, 50
	m := openPipe(t, noise.Flows(packets), analyze.Options{Limits: analyze.Limits{Flows: flows}}, 0)
	m.store.Lock()
	if n := len(m.store.Flows()); n > flows {
		t.Errorf("%d flows are kept, the limit is %d", n, flows)
	}
	if m.store.Len() != packets || m.store.FlowOf(0) != nil || m.store.FlowOf(packets-1) == nil {
		t.Errorf("%d packets; the first one's flow %v, the last one's %v", m.store.Len(), m.store.FlowOf(0), m.store.FlowOf(packets-1))
	}
	m.open(0)
	m.packet.selected = 0
	m.store.Unlock()
	if screen := textOf(screenOf(t, m, 100, 30)); !strings.Contains(screen, "10.9.9.9") {
		t.Errorf("the packets of flows that were let go are not shown:\n%s", screen)
	}
	m = openPipe(t, noise.Flows(packets), analyze.Options{}, 1)
	m.store.Lock()
	if m.store.Len() != 1 {
		t.Errorf("%d packets are kept, the bound has room for 1", m.store.Len())
	}
	m.store.Unlock()
	if screen := textOf(screenOf(t, m, 100, 30)); !strings.Contains(screen, "full (--memory): 1,999 more not kept") {
		t.Errorf("the bound is not told:\n%s", screen)
	}
}

// Quitting waits for what is being saved; a second time it does not.
func TestLeaving(t *testing.T) {
	m := openPipe(t, noise.Flows(10), analyze.Options{}, 0)
	m.store.Lock()
	defer m.store.Unlock()
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
		t.Error("asked again, it did not leave")
	}
}
