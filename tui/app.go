package tui

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// App is a running terminal UI.
type App struct {
	*tview.Box
	app    *tview.Application
	store  *store.Store
	model  *Model
	screen tcell.Screen
	theme  *draw.Theme
	colors int
	err    error
	quit   chan struct{}
	once   sync.Once
}

// redrawEvery bounds how often a screen is drawn while a capture is read: more
// would only cost.
const redrawEvery = 100 * time.Millisecond

// Run shows the screens until the user leaves or a signal ends the program. The
// terminal is then as it was before, whatever happened. Where the user leaves for
// another capture, next is which of Options.Files; else it is Options.File.
func Run(s *store.Store, o Options) (next int, err error) {
	screen, err := tcell.NewScreen()
	if err != nil {
		return o.File, fmt.Errorf("no terminal to draw on (TERM=%s): %w", os.Getenv("TERM"), err)
	}
	if err := screen.Init(); err != nil {
		return o.File, fmt.Errorf("no terminal to draw on (TERM=%s): %w", os.Getenv("TERM"), err)
	}
	for r, instead := range plainRunes {
		screen.RegisterRuneFallback(r, instead)
	}
	shown := &initialised{Screen: screen}
	a := NewApp(s, o, shown)
	s.OnFault = shown.Fini
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		select {
		case sig := <-signals:
			a.err = fmt.Errorf("ended by signal %v", sig)
			a.Stop()
		case <-a.quit:
		}
	}()
	err = a.Run()
	s.Lock()
	defer s.Unlock()
	return a.model.next, err
}

// plainRunes stand for what terminals without Unicode cannot show: as many columns,
// and no two glyphs of a meaning alike.
var plainRunes = map[rune]string{
	'▶': ">", '▸': ">", '▾': "v", '▴': "^", '⇄': "=", '↔': "=", '✓': "+", '✗': "x", '…': "~", '–': "-", '·': ".", 'Δ': "d",
	'⋮': ":", '▒': "#", '▲': "^",
	'▁': "_", '▂': "_", '▃': "-", '▄': "-", '▅': "=", '▆': "=", '▇': "#", '█': "#", '≥': ">", '≤': "<", '×': "x", '⚠': "!",
}

// initialised is a screen whose Init was called, and whose error was looked at:
// tview calls it again and looks away. Once it is given back, by whichever
// goroutine, nothing is drawn any more: tcell would draw over what comes after.
type initialised struct {
	tcell.Screen
	mu   sync.Mutex
	over bool
}

// Init does nothing.
func (*initialised) Init() error { return nil }

// Fini gives the terminal back.
func (s *initialised) Fini() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.Screen.Fini()
}

// Show draws what has changed.
func (s *initialised) Show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.Screen.Show()
	}
}

// Sync draws everything.
func (s *initialised) Sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.Screen.Sync()
	}
}

// NewApp makes the UI on a screen that is initialised.
func NewApp(s *store.Store, o Options, screen tcell.Screen) *App {
	a := &App{Box: tview.NewBox(), app: tview.NewApplication(), store: s, model: NewModel(s, o), screen: screen,
		colors: screen.Colors(), quit: make(chan struct{})}
	if o.Theme != "" {
		a.model.Layout.Theme = o.Theme
	}
	if a.model.Layout.Theme == "" {
		a.model.Layout.Theme = draw.TerminalTheme()
	}
	a.app.SetScreen(screen).SetRoot(a, true).EnableMouse(true).EnablePaste(true)
	// Otherwise tview takes it as the end of the program.
	a.app.SetInputCapture(func(e *tcell.EventKey) *tcell.EventKey {
		if e.Key() == tcell.KeyCtrlC {
			a.key("Ctrl-C")
			return nil
		}
		return e
	})
	return a
}

// Run draws and takes keys until Stop.
func (a *App) Run() error {
	a.store.Start()
	go a.watch()
	defer a.once.Do(func() { close(a.quit) })
	err := a.app.Run() // restores the terminal, after a panic too
	return errors.Join(err, a.err)
}

// Stop ends Run.
func (a *App) Stop() {
	a.once.Do(func() { close(a.quit) })
	a.app.Stop()
}

// watch draws anew while the capture is read, but not too often.
func (a *App) watch() {
	for {
		select {
		case <-a.quit:
			return
		case <-a.store.Changed():
		}
		a.app.QueueUpdateDraw(func() {})
		a.store.Lock()
		a.model.settleSaving()
		quit := a.model.quit
		a.store.Unlock()
		if quit {
			a.Stop()
			return
		}
		select {
		case <-a.quit:
			return
		case <-time.After(redrawEvery):
		}
	}
}

// Draw paints the screen.
func (a *App) Draw(screen tcell.Screen) {
	a.store.Lock()
	defer a.store.Unlock()
	if a.theme == nil || a.theme.Name != a.model.Layout.Theme {
		t, err := draw.NewTheme(a.model.Layout.Theme, a.colors)
		if err != nil {
			t, _ = draw.NewTheme("dark", a.colors)
			a.model.Layout.Theme = "dark"
		}
		a.theme = t
	}
	a.model.drawAny(draw.NewCanvas(screen, a.theme))
}

// InputHandler returns keys to the model.
func (a *App) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return func(e *tcell.EventKey, _ func(tview.Primitive)) { a.key(keyName(e)) }
}

func (a *App) key(k string) {
	if k == "" {
		return
	}
	a.store.Lock()
	a.model.Key(k)
	quit, copied, redraw, suspend := a.model.quit, a.model.copied, a.model.redraw, a.model.suspend
	a.model.copied, a.model.redraw, a.model.suspend = "", false, false
	a.store.Unlock()
	if suspend {
		a.app.Suspend(stopProcess)
		redraw = true
	}
	if copied != "" {
		a.copyOut(copied)
	}
	if redraw {
		a.screen.Sync()
	}
	if quit {
		a.Stop()
	}
}

// copyMost bounds what is put on the clipboard: terminals take no more.
const copyMost = 74_000

// copyOut puts text on the clipboard of the terminal, which may be far away.
func (a *App) copyOut(text string) {
	if len(text) > copyMost {
		text = text[:copyMost]
	}
	if tty, ok := a.screen.Tty(); ok {
		_, _ = tty.Write([]byte("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"))
	}
}

// PasteHandler returns pasted text to the model.
func (a *App) PasteHandler() func(string, func(tview.Primitive)) {
	return func(s string, _ func(tview.Primitive)) {
		a.store.Lock()
		defer a.store.Unlock()
		a.model.Paste(s)
	}
}

// MouseHandler returns clicks and the wheel to the model.
func (a *App) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive) {
	return func(action tview.MouseAction, e *tcell.EventMouse, setFocus func(tview.Primitive)) (bool, tview.Primitive) {
		x, y := e.Position()
		a.store.Lock()
		defer a.store.Unlock()
		switch action {
		case tview.MouseLeftDown:
			a.model.click(x, y)
		case tview.MouseLeftDoubleClick:
			a.model.doubleClick(x, y)
		case tview.MouseScrollUp:
			a.model.wheel(x, y, -3)
		case tview.MouseScrollDown:
			a.model.wheel(x, y, 3)
		default:
			return false, nil
		}
		setFocus(a)
		return true, nil
	}
}

// keyNames are the keys that have names of their own.
var keyNames = map[tcell.Key]string{
	tcell.KeyEnter: "Enter", tcell.KeyEscape: "Esc", tcell.KeyTab: "Tab", tcell.KeyBacktab: "Backtab",
	tcell.KeyBackspace: "Backspace", tcell.KeyBackspace2: "Backspace",
	tcell.KeyDelete: "Delete", tcell.KeyUp: "Up", tcell.KeyDown: "Down", tcell.KeyLeft: "Left", tcell.KeyRight: "Right",
	tcell.KeyHome: "Home", tcell.KeyEnd: "End",
	tcell.KeyPgUp: "PgUp", tcell.KeyPgDn: "PgDn", tcell.KeyF1: "F1",
}

// keyName names a key as the table of bindings does.
func keyName(e *tcell.EventKey) string {
	if name, ok := keyNames[e.Key()]; ok {
		return name
	}
	if e.Key() == tcell.KeyRune {
		if e.Rune() == ' ' {
			return "Space"
		}
		return string(e.Rune())
	}
	if e.Key() >= tcell.KeyCtrlA && e.Key() <= tcell.KeyCtrlZ {
		return "Ctrl-" + string(rune('A'+e.Key()-tcell.KeyCtrlA))
	}
	return ""
}
