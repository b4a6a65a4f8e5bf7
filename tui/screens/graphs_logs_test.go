package screens

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// oneLog is a log of the game beside a capture.
type oneLog struct {
	log   *gamelog.Log
	trace *gamelog.Trace
}

// Sink implements store.Logs.
func (l *oneLog) Sink(analyze.Sink) analyze.Sink {
	l.trace = &gamelog.Trace{}
	return l.trace.Take
}

// Forget implements store.Logs.
func (l *oneLog) Forget(f *analyze.Flow) { l.trace.Forget(f) }

// Report implements store.Logs.
func (l *oneLog) Report(s *analyze.Session) *gamelog.Report {
	start, _ := s.Span()
	return &gamelog.Report{Logs: []*gamelog.Aligned{gamelog.Align(l.log, gamelog.Owner{}, l.trace, start)}}
}

// beside opens a capture and the text of a log. Without a text there is no log.
func beside(t *testing.T, path, text string) *store.Store {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(in, analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)}, false)
	if text != "" {
		log, err := gamelog.Read("client.jsonl", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		s.AddLogs(&oneLog{log: log})
	}
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// The frames of the game are a panel of the graphs. Without frames, the panel says why. Without a
// log there is no panel.
func TestGraphsLogs(t *testing.T) {
	dir := filepath.Join(testenv.Module(t), "testdata", "gamelog")
	bytes, err := os.ReadFile(filepath.Join(dir, "client.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(bytes)
	paused, other := filepath.Join(dir, "pause.client.pcap.gz"), testenv.Capture(t, "reliable-dup10.client.pcap.gz")
	for _, c := range []struct {
		name, path, log string
		want, not       []string
	}{
		{"no log", paused, "", nil, []string{"game frame"}},
		{
			"the log of A", paused, log,
			[]string{"game frame  700┤", "A 16.7", "░ pause"},
			[]string{"not aligned", "drawn when"},
		},
		{
			"one without frames", paused, strings.ReplaceAll(log, "frame_ms", "other"),
			[]string{"game frame     │", "client.jsonl: the log of A, and it has no frame_ms"},
			nil,
		},
		{"one of another run", other, log, []string{"game frame     │", "client.jsonl: not aligned: "}, nil},
	} {
		s := beside(t, c.path, c.log)
		br := browser.New(s, fields.NewTable(fields.Options{}), &browser.Layout{})
		graphs := NewSet(br, nil).Graphs
		await(t, s, s.Settled)
		s.Lock()
		br.Open(s.Flows()[0].ID)
		graphs.ensure(br)
		s.Unlock()
		await(t, s, graphs.work.Over)
		text := drawn(t, func(canvas draw.Canvas) { s.Lock(); defer s.Unlock(); graphs.Draw(br, canvas) })
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: expected %q:\n%s", c.name, want, text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: unexpected %q:\n%s", c.name, not, text)
			}
		}
	}
}

// While a capture grows, the panel of the game's frames says so. It is drawn at the end.
func TestGraphsLogsGrow(t *testing.T) {
	file, err := os.Open(filepath.Join(testenv.Module(t), "testdata", "gamelog", "client.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	log, err := gamelog.Read("client.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	// client.jsonl was made of the log of this run.
	s, pipe, data := growing(t, "reliable-loss10.client.pcap.gz", &oneLog{log: log})
	br := browser.New(s, fields.NewTable(fields.Options{}), &browser.Layout{})
	graphs := NewSet(br, nil).Graphs
	pipe.more <- len(data) / 2
	await(t, s, func() bool { return len(s.Flows()) > 0 && !s.Flows()[0].Pending() })
	s.Lock()
	br.Open(s.Flows()[0].ID)
	s.Unlock()
	draws := func(canvas draw.Canvas) { s.Lock(); defer s.Unlock(); graphs.Draw(br, canvas) }
	const wait, figure = "drawn when the whole capture is read", "A 16.7"
	if text := drawn(t, draws); !strings.Contains(text, wait) || strings.Contains(text, figure) {
		t.Errorf("expected %q:\n%s", wait, text)
	}
	close(pipe.more)
	await(t, s, s.Settled)
	await(t, s, graphs.work.Over)
	if text := drawn(t, draws); strings.Contains(text, wait) || !strings.Contains(text, figure) {
		t.Errorf("expected %q:\n%s", figure, text)
	}
}

// A finding of a pause has what the log says of it.
func TestFindingLogs(t *testing.T) {
	dir := filepath.Join(testenv.Module(t), "testdata", "gamelog")
	log, err := os.ReadFile(filepath.Join(dir, "client.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	s := beside(t, filepath.Join(dir, "pause.client.pcap.gz"), string(log))
	await(t, s, s.Settled)
	s.Lock()
	defer s.Unlock()
	br := browser.New(s, fields.NewTable(fields.Options{}), &browser.Layout{})
	table := NewSet(br, nil).Findings
	table.settle(br)
	for i := range table.rows {
		if x := table.rows[i].finding; x != nil && x.Rule.ID == "stall" && x.Side.String() == "a" {
			table.list.Cursor = i
			const want = "log: the game's frame took 617 ms (line 305 of client.jsonl, likely)"
			if text := table.Copy(br); !strings.Contains(text, want) {
				t.Errorf("expected %q:\n%s", want, text)
			}
			return
		}
	}
	t.Error("no stall of A was found")
}

// drawn returns the text of a screen of 120 by 40.
func drawn(t *testing.T, paint func(draw.Canvas)) string {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(120, 40)
	theme, err := draw.NewTheme("dark", 256)
	if err != nil {
		t.Fatal(err)
	}
	paint(draw.NewCanvas(screen, theme))
	screen.Show()
	return rowsOf(screen)
}
