package tui

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/draw"
)

// At random packets, the state on screen equals that of a tracker which was
// stepped from the flow's first packet.
func TestStateEqualsAFoldFromTheStart(t *testing.T) {
	for _, name := range []string{
		"reliable-loss10.client.pcap.gz", "u210_falseack.server.pcapng.gz",
		"reliable-two-clients.server.pcap.gz",
	} {
		m := openModel(t, name)
		m.Store.Lock()
		rng := rand.New(rand.NewPCG(7, 9))
		var got [2]machine.View
		tried := 0
		for range 12 {
			n := rng.IntN(m.Store.Len())
			f := m.Store.FlowOf(n)
			if f == nil || f.Protocol == nil {
				continue
			}
			if err := m.Store.StateAt(f, n, &got); err != nil {
				t.Fatal(err)
			}
			want, err := m.Store.Walk(f, 0)
			if err != nil {
				t.Fatal(err)
			}
			for {
				at, ok := want.Peek()
				if !ok || at > n {
					break
				}
				want.Next()
			}
			for side := range got {
				var v machine.View
				want.Tracker().Inspect(machine.Side(side), &v)
				for i := range v.Windows {
					if !slices.Equal(v.Windows[i].Cells, got[side].Windows[i].Cells) ||
						v.Windows[i].Next != got[side].Windows[i].Next {
						t.Errorf("%s, entry %d, side %d: window %s differs from a fold", name, n, side, v.Windows[i].Name)
					}
				}
				if !slices.Equal(v.Gauges, got[side].Gauges) {
					t.Errorf("%s, entry %d, side %d: gauges differ from a fold", name, n, side)
				}
			}
			tried++
		}
		m.Store.Unlock()
		if tried < 5 {
			t.Errorf("%s: only %d packets were tried", name, tried)
		}
	}
}

// The fates of packets in the list agree with the events.
func TestFatesEqualEvents(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	m.Store.Lock()
	defer m.Store.Unlock()
	f := m.Store.Flows()[0]
	w, err := m.Store.Walk(f, 0)
	if err != nil {
		t.Fatal(err)
	}
	acked := map[int]int{}
	note := func(r *analyze.Record) {
		for _, e := range r.Events {
			if e.Kind != machine.EventAcked {
				continue
			}
			n, ok := m.Store.Find(e.About)
			by, _ := m.Store.Find(e.Ref)
			if _, had := acked[n]; ok && !had {
				acked[n] = by
			}
		}
	}
	for r := w.Next(); r != nil; r = w.Next() {
		note(r)
	}
	if r := w.Finish(); r != nil {
		note(r)
	}
	shown := 0
	for n := range m.Store.Len() {
		e := m.Store.Entry(n)
		by, ok := acked[n]
		if ok != (e.Marks.Fate() == analyze.FateAcked) || ok && by != e.Settled {
			t.Fatalf("entry %d: shown as %v by %d, the events say %v by %d", n, e.Marks.Fate(), e.Settled, ok, by)
		}
		if ok {
			shown++
		}
	}
	if shown < 1500 {
		t.Errorf("only %d packets were acked", shown)
	}
}

// In every view every key works, and none panics, whatever was pressed before.
func TestAnyKeys(t *testing.T) {
	var keys []string
	for _, b := range bindingTable() {
		for _, k := range b.keys {
			keys = append(keys, strings.Split(k, " ")...)
		}
	}
	keys = append(keys, "1", "7", "0", "x", "é", "世", "Backspace", "Delete", "'", "a")
	for _, name := range []string{
		"u210_falseack.server.pcapng.gz", "reliable-ipfrag.client.pcap.gz",
		"t210_rechunk.client.pcap.gz",
	} {
		m := openModel(t, name)
		rng := rand.New(rand.NewPCG(3, 5))
		steps := 1500
		if testing.Short() {
			steps = 300
		}
		screen := screenOf(t, m, 80, 24)
		th, _ := draw.NewTheme("dark", 256)
		for i := range steps {
			k := keys[rng.IntN(len(keys))]
			m.Store.Lock()
			m.Key(k)
			m.quit = false
			if i%3 == 0 {
				w, h := 20+rng.IntN(160), 6+rng.IntN(60)
				screen.SetSize(w, h)
				m.draw(draw.NewCanvas(screen, th))
				m.click(rng.IntN(w), rng.IntN(h))
				m.wheel(rng.IntN(w), rng.IntN(h), rng.IntN(7)-3)
			}
			m.Store.Unlock()
		}
	}
}

// A story: open a finding, go from there to the packet that settled a fate, and
// return.
func TestStory(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screenOf(t, m, 160, 50)
	press(m, "<Enter>")
	screenOf(t, m, 160, 50)
	press(m, "300Gma")
	if got := m.SelectedFrame(); got != "300" {
		t.Fatalf("300G went to %s", got)
	}
	press(m, "a")
	if got := m.SelectedFrame(); got != "307" {
		t.Fatalf("frame 300 was acked in 307, the screen went to %s: %s", got, m.Note)
	}
	press(m, "<Ctrl-O>")
	if got := m.SelectedFrame(); got != "300" {
		t.Fatalf("back went to %s", got)
	}
	press(m, "brel.lost<Enter>")
	screenOf(t, m, 160, 50)
	if m.until.running() || m.until.found < 0 {
		t.Fatal("the run until a lost packet found none")
	}
	if !m.Store.Entry(m.Selected).Marks.Has(machine.EventLost) {
		t.Errorf("break-when stopped at %s, where nothing was lost", m.SelectedFrame())
	}
	press(m, "'a")
	if got := m.SelectedFrame(); got != "300" {
		t.Fatalf("the mark is at %s", got)
	}
	press(m, "frel.lost<Enter>")
	screenOf(t, m, 160, 50)
	lost := m.Rows()
	if lost == 0 || lost > 300 {
		t.Errorf("%d packets at which something was lost", lost)
	}
	press(m, ":columns number gaffer.sequence info<Enter>")
	if text := textOf(screenOf(t, m, 160, 50)); !strings.Contains(text, "seq ") {
		t.Errorf("the columns chosen are not shown:\n%s", text)
	}
	press(m, "c")
	if m.copied == "" {
		t.Error("nothing was copied")
	}
}

func TestLine(t *testing.T) {
	l := line{history: []string{"one", "two"}}
	l.set("flow.rt > 1")
	for _, k := range []string{
		"Home", "Right", "Delete", "l", "End", "0", "Ctrl-W", "2", "Left", "Left", "Left",
		"Left", "t",
	} {
		l.key(k)
	}
	if got := l.String(); got != "flow.rtt > 2" {
		t.Errorf("edited to %q", got)
	}
	l.key("Up")
	l.key("Up")
	if got := l.String(); got != "one" {
		t.Errorf("recalled %q", got)
	}
	l.key("Down")
	l.key("Down")
	if got := l.String(); got != "flow.rtt > 2" {
		t.Errorf("the draft came back as %q", got)
	}
}
