package tui

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
)

// finiScreen records the call of Fini, and panics at its second Show.
type finiScreen struct {
	tcell.SimulationScreen
	ended bool
	shows int
}

func (s *finiScreen) Fini() { s.ended = true; s.SimulationScreen.Fini() }

func (s *finiScreen) Show() {
	if s.shows++; s.shows == 2 {
		panic("on purpose")
	}
	s.SimulationScreen.Show()
}

// A panic while drawing restores the terminal before the message is printed.
func TestTerminalIsGivenBackAfterAFault(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screen := &finiScreen{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
	a := NewApp(m.Store, m.o, screen)
	recovered := func() (fault any) {
		defer func() { fault = recover() }()
		go func() {
			for range 50 {
				time.Sleep(10 * time.Millisecond)
				_ = screen.PostEvent(tcell.NewEventResize(80, 24))
			}
		}()
		_ = a.app.Run()
		return nil
	}()
	if recovered != "on purpose" || !screen.ended {
		t.Errorf("the panic was printed as %v, the terminal restored: %v", recovered, screen.ended)
	}
}

// A signal ends the program also when it comes before the first drawing.
func TestSignalBeforeTheFirstDrawing(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	a := NewApp(m.Store, m.o, screen)
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	go a.endAt(signals)
	time.Sleep(20 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- a.app.Run() }()
	select {
	case err := <-ended:
		if err != nil || a.err == nil || a.err.Error() != "ended by signal terminated" {
			t.Errorf("the UI ended with %v and %v, expected the signal", err, a.err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the UI goes on after the signal")
	}
}
