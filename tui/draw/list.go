package draw

// List is a cursor in rows of which a window is shown.
type List struct {
	Cursor, Top int
	Height      int // rows shown at the last draw
}

// Fit keeps the cursor within n rows and inside of the window.
func (l *List) Fit(n, height int) {
	l.Height = max(height, 1)
	l.Cursor = min(max(l.Cursor, 0), max(n-1, 0))
	switch {
	case l.Cursor < l.Top-l.Height, l.Cursor >= l.Top+2*l.Height:
		l.Top = l.Cursor - l.Height/2 // from afar: with what stands around it
	case l.Cursor < l.Top:
		l.Top = l.Cursor
	case l.Cursor >= l.Top+l.Height:
		l.Top = l.Cursor - l.Height + 1
	}
	l.Top = min(max(l.Top, 0), max(n-l.Height, 0))
}

// Scroll shows other rows, with the cursor going along only where it must.
func (l *List) Scroll(by, n int) {
	l.Top = min(max(l.Top+by, 0), max(n-l.Height, 0))
	l.Cursor = min(max(l.Cursor, l.Top), l.Top+l.Height-1)
}
