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

// redrawEvery is the least time between two drawings while a capture is read.
const redrawEvery = 100 * time.Millisecond

// Run shows the screens until the user leaves or a signal ends the program. It
// always restores the terminal. The result next is the index in Options.Files of
// the capture to open next, or Options.File if the user leaves the program.
func Run(s *store.Store, o Options) (next int, err error) {
	// A signal that comes while the screen is made must not get lost: who captures
	// live listens too, and would only end the capture.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
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
	go a.endAt(signals)
	err = a.Run()
	s.Lock()
	defer s.Unlock()
	a.model.remember()
	return a.model.next, err
}

// plainRunes are the substitutes of runes for terminals without Unicode. A
// substitute has as many columns as its rune, and glyphs of different meanings
// stay different.
var plainRunes = map[rune]string{
	'▶': ">", '▸': ">", '▾': "v", '▴': "^", '⇄': "=", '↔': "=", '✓': "+", '✗': "x", '…': "~", '–': "-", '·': ".", 'Δ': "d",
	'⋮': ":", '▒': "#", '▲': "^",
	'▁': "_", '▂': "_", '▃': "-", '▄': "-", '▅': "=", '▆': "=", '▇': "#", '█': "#", '≥': ">", '≤': "<", '×': "x", '⚠': "!",
}

// initialised is a screen whose Init was called and its error checked. tview
// calls Init again and ignores the error. After Fini, whichever goroutine calls
// it, nothing is drawn: tcell would draw over the shell's output.
type initialised struct {
	tcell.Screen
	mu   sync.Mutex
	over bool
}

// Init does nothing: NewApp's caller has initialised the screen.
func (*initialised) Init() error { return nil }

// Fini restores the terminal.
func (s *initialised) Fini() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.Screen.Fini()
}

// Show draws the cells that have changed.
func (s *initialised) Show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.Screen.Show()
	}
}

// Sync draws all cells.
func (s *initialised) Sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.Screen.Sync()
	}
}

// NewApp returns the UI on an initialised screen.
func NewApp(s *store.Store, o Options, screen tcell.Screen) *App {
	a := &App{
		Box: tview.NewBox(), app: tview.NewApplication(), store: s, model: NewModel(s, o), screen: screen,
		colors: screen.Colors(), quit: make(chan struct{}),
	}
	if o.Theme != "" {
		a.model.Layout.Theme = o.Theme
	}
	if a.model.Layout.Theme == "" {
		a.model.Layout.Theme = draw.TerminalTheme()
	}
	a.model.theme = a.model.Layout.Theme
	a.app.SetScreen(screen).SetRoot(a, true).EnableMouse(true).EnablePaste(true)
	// A nil event keeps tview from ending the program on this key.
	a.app.SetInputCapture(func(e *tcell.EventKey) *tcell.EventKey {
		if e.Key() == tcell.KeyCtrlC {
			a.key("Ctrl-C")
			return nil
		}
		return e
	})
	return a
}

// Run draws and handles keys until Stop.
func (a *App) Run() error {
	a.store.Start()
	go a.watch()
	defer a.once.Do(func() { close(a.quit) })
	err := a.app.Run() // it restores the terminal, also after a panic
	return errors.Join(err, a.err)
}

// endAt ends Run at a signal. The loop of events ends itself: a Stop before the
// loop begins would take its screen away, and the loop would make another.
func (a *App) endAt(signals <-chan os.Signal) {
	select {
	case sig := <-signals:
		a.app.QueueUpdate(func() {
			a.err = fmt.Errorf("ended by signal %v", sig)
			a.Stop()
		})
	case <-a.quit:
	}
}

// Stop ends Run. It is called while Run goes on.
func (a *App) Stop() {
	a.once.Do(func() { close(a.quit) })
	a.app.Stop()
}

// watch redraws while the capture is read, at most every redrawEvery.
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

// InputHandler passes keys to the model.
func (a *App) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return func(e *tcell.EventKey, _ func(tview.Primitive)) { a.key(keyName(e)) }
}

func (a *App) key(k string) {
	if k == "" {
		return
	}
	a.store.Lock()
	a.model.Key(k)
	a.obey()
}

// obey does what a key or a click asks of the program. It releases the store's lock.
func (a *App) obey() {
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

// copyOut copies text to the clipboard of the terminal, which may be on another
// machine.
func (a *App) copyOut(text string) {
	if tty, ok := a.screen.Tty(); ok {
		_, _ = tty.Write([]byte("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"))
	}
}

// PasteHandler passes pasted text to the model.
func (a *App) PasteHandler() func(string, func(tview.Primitive)) {
	return func(s string, _ func(tview.Primitive)) {
		a.store.Lock()
		defer a.store.Unlock()
		a.model.Paste(s)
	}
}

// MouseHandler passes clicks and the wheel to the model.
func (a *App) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive) {
	return func(action tview.MouseAction, e *tcell.EventMouse, setFocus func(tview.Primitive)) (bool, tview.Primitive) {
		x, y := e.Position()
		a.store.Lock()
		if action == tview.MouseLeftDown {
			a.model.click(x, y)
			a.obey()
			setFocus(a)
			return true, nil
		}
		defer a.store.Unlock()
		switch action {
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

// keyNames are the names of keys that type no character.
var keyNames = map[tcell.Key]string{
	tcell.KeyEnter: "Enter", tcell.KeyEscape: "Esc", tcell.KeyTab: "Tab", tcell.KeyBacktab: "Backtab",
	tcell.KeyBackspace: "Backspace", tcell.KeyBackspace2: "Backspace",
	tcell.KeyDelete: "Delete", tcell.KeyUp: "Up", tcell.KeyDown: "Down", tcell.KeyLeft: "Left", tcell.KeyRight: "Right",
	tcell.KeyHome: "Home", tcell.KeyEnd: "End",
	tcell.KeyPgUp: "PgUp", tcell.KeyPgDn: "PgDn", tcell.KeyF1: "F1",
}

// keyName returns the name of a key as in the table of bindings.
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
