package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// openModel reads a capture of the repository and returns its model.
func openModel(t testing.TB, name string) *Model {
	t.Helper()
	return openPath(t, testenv.Capture(t, name))
}

func openPath(t testing.TB, path string) *Model {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	registry := dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
	s := store.New(in, analyze.Options{Registry: registry}, false)
	count(s)
	s.Start()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	await(t, s, func() bool { return s.Settled() })
	return NewModel(s, Options{
		Table: fields.NewTable(fields.Options{Registry: registry, Rules: analyze.Rules}),
		Theme: "dark", Autopsy: func(f *analyze.Flow, _ machine.Instant, each func(analyze.Sink)) []string {
			records, lost := 0, 0
			each(func(r *analyze.Record) {
				records++
				lost += len(r.Messages)
			})
			return []string{fmt.Sprintf("flow %d: %d records, %d messages ended", f.ID, records, lost)}
		},
	})
}

// counts maps a store to the number of its running background jobs.
var counts sync.Map

// count starts to count a store's background jobs.
func count(s *store.Store) {
	n := &atomic.Int32{}
	counts.Store(s, n)
	s.Spawn = func(f func()) {
		n.Add(1)
		go func() {
			defer n.Add(-1)
			f()
		}()
	}
}

// running returns the number of running background jobs, or 0 for a store that
// is not counted.
func running(s *store.Store) int32 {
	if n, ok := counts.Load(s); ok {
		return n.(*atomic.Int32).Load()
	}
	return 0
}

// await waits until a condition holds, which it checks under the store's lock.
func await(t testing.TB, s *store.Store, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		s.Lock()
		ok := holds()
		s.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it took more than a minute")
		}
	}
}

// screenOf draws the model when its background jobs have ended.
func screenOf(t testing.TB, m *Model, w, h int) tcell.SimulationScreen {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(screen.Fini)
	screen.SetSize(w, h)
	th, err := draw.NewTheme("dark", 256)
	if err != nil {
		t.Fatal(err)
	}
	paint := func() {
		m.Store.Lock()
		defer m.Store.Unlock()
		m.draw(draw.NewCanvas(screen, th))
	}
	paint() // starts the jobs that the screen needs
	await(t, m.Store, func() bool { return running(m.Store) == 0 })
	paint()
	paint() // the second drawing shows what the first one started
	screen.Show()
	return screen
}

// textOf returns the text of a screen, without blanks at the ends of lines.
func textOf(screen tcell.SimulationScreen) string {
	cells, w, h := screen.GetContents()
	var b strings.Builder
	for y := range h {
		var line strings.Builder
		for x := 0; x < w; {
			r := cells[y*w+x].Runes
			if len(r) == 0 {
				r = []rune{' '}
			}
			line.WriteString(string(r))
			x += max(draw.RuneWidth(r[0]), 1)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// press presses keys: names in < >, or single characters.
func press(m *Model, keys string) {
	for keys != "" {
		k := keys[:1]
		if i := strings.IndexByte(keys, '>'); keys[0] == '<' && i > 1 {
			k = keys[1:i]
			keys = keys[i+1:]
		} else {
			keys = keys[1:]
		}
		m.Store.Lock()
		m.Key(k)
		m.Store.Unlock()
	}
}

// The screens of all views, as users see them, in three sizes.
func TestScreens(t *testing.T) {
	for _, c := range []struct{ name, capture, keys string }{
		{"overview", "reliable-two-clients.server.pcap.gz", "<Tab>j"},
		{"flows", "reliable-two-clients.server.pcap.gz", ""},
		{"packets", "reliable-loss10.client.pcap.gz", "<Enter>300G<Tab>jjj"},
		{"filtered", "reliable-loss10.client.pcap.gz", "<Enter>fgaffer.sequence in {100..110}<Enter>"},
		{"filter-invalid", "reliable-loss10.client.pcap.gz", "<Enter>fgaffer.seqence == 3 && x"},
		{"filter-incomplete", "reliable-loss10.client.pcap.gz", "<Enter>fgaffer.sequence =="},
		{"filter-complete", "reliable-loss10.client.pcap.gz", "<Enter>fgaffer.se<Tab>"},
		{"state", "reliable-loss10.client.pcap.gz", "<Enter>300GS"},
		{"difference", "reliable-loss10.client.pcap.gz", "<Enter>300GSd5]"},
		{"ladder", "reliable-loss10.client.pcap.gz", "<Enter>300GL"},
		{"graphs", "reliable-loss10.client.pcap.gz", "<Enter>300GT"},
		{"messages", "u210_falseack.server.pcapng.gz", "<Enter>Msssj"},
		{"findings", "plain-le-stalebug-loss98.client.pcap.gz", "Fjj"},
		{"autopsy", "u210_falseack.server.pcapng.gz", "<Enter>A"},
		{"replay", "plain-le-stalebug-loss98.client.pcap.gz", "R"},
		{"replay-matrix", "u210_falseack.server.pcapng.gz", "Rv"},
		{"palette", "reliable-two-clients.server.pcap.gz", "<Ctrl-P>loss"},
		{"help", "reliable-loss10.client.pcap.gz", "?"},
		{"help-search", "reliable-loss10.client.pcap.gz", "<Enter>?/mark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := openModel(t, c.capture)
			for i, size := range []struct {
				name string
				w, h int
			}{{"80x24", 80, 24}, {"120x40", 120, 40}, {"200x60", 200, 60}} {
				if i == 0 {
					screenOf(t, m, size.w, size.h) // keys may act on what was drawn
					press(m, c.keys)
				}
				got := textOf(screenOf(t, m, size.w, size.h))
				path := filepath.Join("testdata", "screens", c.name+"-"+size.name+".txt")
				if *update {
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
					continue
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("%s %s differs (-update writes it anew):\n%s", c.name, size.name, got)
				}
			}
		})
	}
}
