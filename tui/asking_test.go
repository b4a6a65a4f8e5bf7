package tui

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/filter/fields"
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
	all := shown(t, m, func() []life { return m.messages.all })
	lengths := make([]int, len(all))
	m.store.Lock()
	for i := range all {
		n, _ := m.store.timeline.Find(all[i].Frames[0])
		r, err := m.store.timeline.Read(n)
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

// noise is a capture of packets that are each of another flow.
func noise(packets int) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	out = append(out, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, 65535)
	out = binary.LittleEndian.AppendUint32(out, 101) // raw IP
	for n := range packets {
		p := []byte{0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, byte(n >> 8), byte(n), 10, 9, 9, 9, 0x30, 0x39, 0x1b, 0x58, 0, 12, 0, 0, 1, 2, 3, 4}
		for _, v := range []uint32{1700000000 + uint32(n), 0, uint32(len(p)), uint32(len(p))} {
			out = binary.LittleEndian.AppendUint32(out, v)
		}
		out = append(out, p...)
	}
	return out
}

// openPipe follows what comes through a pipe.
func openPipe(t *testing.T, data []byte, o analyze.Options, most int) *Model {
	t.Helper()
	in, err := capture.Open([]string{"-"}, capture.Options{Keep: capture.KeepAll, Stdin: io.MultiReader(bytes.NewReader(data))})
	if err != nil {
		t.Fatal(err)
	}
	o.Registry = dissect.NewRegistry(gaffer.Protocol)
	s := NewStore(in, o, true)
	s.Bound(most)
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	await(t, s, func() bool { return s.pass == 3 })
	return NewModel(s, Options{Table: fields.NewTable(fields.Options{Registry: o.Registry, Rules: analyze.Rules}), Theme: "dark"})
}

// What may never end is bounded: by flows, of which the oldest are let go while
// their packets stay, and by what the index takes.
func TestBounded(t *testing.T) {
	const packets, flows = 2000, 50
	m := openPipe(t, noise(packets), analyze.Options{Limits: analyze.Limits{Flows: flows}}, 0)
	m.store.Lock()
	if n := len(m.store.Flows()); n > flows || len(m.store.figures) > flows {
		t.Errorf("%d flows and %d figures are kept, the limit is %d", n, len(m.store.figures), flows)
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
	m = openPipe(t, noise(packets), analyze.Options{}, 1)
	m.store.Lock()
	if m.store.Len() != 1 || m.store.beyond != packets-1 {
		t.Errorf("%d packets are kept, %d are beyond the bound", m.store.Len(), m.store.beyond)
	}
	m.store.Unlock()
	if screen := textOf(screenOf(t, m, 100, 30)); !strings.Contains(screen, "full (--memory): 1,999 more not kept") {
		t.Errorf("the bound is not told:\n%s", screen)
	}
}

// TestBoundedFile: the index of a file keeps its room in both runs, and says so.
func TestBoundedFile(t *testing.T) {
	const packets = 40000
	path := filepath.Join(t.TempDir(), "noise.pcap")
	if err := os.WriteFile(path, noise(packets), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	o := analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol), Limits: analyze.Limits{Flows: 50, Room: true},
	}
	s := NewStore(in, o, false)
	const most = 600 << 10
	s.Bound(most)
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	await(t, s, func() bool { return s.pass == 3 })
	s.Lock()
	defer s.Unlock()
	// Entries come by pages of 393,216 bytes, so it can be exceeded by one.
	if size := s.timeline.Size(); s.Len() >= packets || s.Len()+s.beyond != packets || size > most+400<<10 {
		t.Errorf("%d packets are kept in %d bytes, %d are beyond the bound", s.Len(), size, s.beyond)
	}
	if len(s.figures) > 50 || !strings.Contains(s.Progress(), "full (--memory)") {
		t.Errorf("%d figures, %q", len(s.figures), s.Progress())
	}
}

// Quitting waits for what is being saved; a second time it does not.
func TestLeaving(t *testing.T) {
	m := openPipe(t, noise(10), analyze.Options{}, 0)
	m.store.Lock()
	defer m.store.Unlock()
	m.saving = &saving{path: "out.pcapng", total: 10}
	if m.Key("q"); m.quit {
		t.Fatal("left while a file was being written")
	}
	m.saving.done = true
	if m.settleSaving(); !m.quit {
		t.Error("did not leave when the file was written")
	}
	m.quit, m.leaving, m.saving = false, false, &saving{path: "out.pcapng", total: 10}
	m.Key("q")
	if m.Key("q"); !m.quit {
		t.Error("asked again, it did not leave")
	}
}
