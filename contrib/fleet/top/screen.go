package top

import (
	"context"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// Screen shows a fleet in a terminal.
type Screen struct {
	Fleet *Fleet
	// Open fetches the packets of a finding and opens them; the terminal is its own meanwhile. It returns a line for
	// the foot of the screen.
	Open func(ctx context.Context, x *Finding) string

	screen   tcell.Screen
	snapshot *Snapshot
	selected int
	foot     string
}

const (
	redraw = time.Second
	keys   = "↑ ↓ choose a finding · Enter fetches its packets and opens them · q ends"
	// mostShownSensors leaves room for findings.
	mostShownSensors = 12
)

// Run shows the fleet until q is pressed or the context ends.
func (s *Screen) Run(ctx context.Context, screen tcell.Screen) error {
	if err := screen.Init(); err != nil {
		return err
	}
	s.screen = screen
	defer screen.Fini()
	events, quit := make(chan tcell.Event), make(chan struct{})
	defer close(quit)
	go screen.ChannelEvents(events, quit)
	every := time.NewTicker(redraw)
	defer every.Stop()
	s.snapshot = s.Fleet.Snapshot()
	for {
		s.draw(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			s.snapshot = s.Fleet.Snapshot()
		case e, ok := <-events:
			if !ok || s.event(ctx, e) {
				return nil
			}
		}
	}
}

// event handles a key. It returns true if the screen ends.
func (s *Screen) event(ctx context.Context, e tcell.Event) (end bool) {
	switch e := e.(type) {
	case *tcell.EventResize:
		s.screen.Sync()
	case *tcell.EventKey:
		switch {
		case e.Key() == tcell.KeyRune && e.Rune() == 'q', e.Key() == tcell.KeyCtrlC, e.Key() == tcell.KeyEscape:
			return true
		case e.Key() == tcell.KeyUp:
			s.selected--
		case e.Key() == tcell.KeyDown:
			s.selected++
		case e.Key() == tcell.KeyEnter:
			s.open(ctx)
		}
	}
	return false
}

func (s *Screen) open(ctx context.Context) {
	if s.Open == nil || s.selected >= len(s.snapshot.Findings) {
		return
	}
	x := s.snapshot.Findings[s.selected]
	s.foot = "asking " + x.At.String() + " …"
	s.draw(time.Now())
	if err := s.screen.Suspend(); err != nil {
		s.foot = err.Error()
		return
	}
	s.foot = s.Open(ctx, &x)
	if err := s.screen.Resume(); err != nil {
		s.foot = err.Error()
	}
	s.snapshot = s.Fleet.Snapshot()
}

func (s *Screen) draw(now time.Time) {
	s.screen.Clear()
	width, height := s.screen.Size()
	s.selected = max(0, min(s.selected, len(s.snapshot.Findings)-1))
	plain, bold, dim := tcell.StyleDefault, tcell.StyleDefault.Bold(true), tcell.StyleDefault.Dim(true)
	y := 0
	line := func(text string, style tcell.Style) {
		if y < height-1 {
			put(s.screen, y, width, text, style)
			y++
		}
	}
	line(s.snapshot.Heading(), bold)
	for _, c := range s.snapshot.Causes {
		line(c, plain)
	}
	line("", plain)
	line(sensorHeads, dim)
	for i := range s.snapshot.Sensors[:min(mostShownSensors, len(s.snapshot.Sensors))] {
		line(SensorLine(&s.snapshot.Sensors[i], now), plain)
	}
	if more := len(s.snapshot.Sensors) - mostShownSensors; more > 0 {
		line("  and more", dim)
	}
	line("", plain)
	line(findingHeads, dim)
	room := max(1, height-1-y)
	first := max(0, s.selected-room+1)
	for i := first; i < len(s.snapshot.Findings) && y < height-1; i++ {
		style := plain
		if i == s.selected {
			style = style.Reverse(true)
		}
		line(FindingLine(&s.snapshot.Findings[i]), style)
	}
	foot := s.foot
	if foot == "" {
		foot = keys
	}
	put(s.screen, height-1, width, foot, dim)
	s.screen.Show()
}

// put draws a line, one cluster of characters after the other, as far as there is room.
func put(screen tcell.Screen, y, width int, text string, style tcell.Style) {
	x := 0
	for clusters := uniseg.NewGraphemes(text); clusters.Next() && x+clusters.Width() <= width; x += clusters.Width() {
		runes := clusters.Runes()
		screen.SetContent(x, y, runes[0], runes[1:], style)
	}
}
