package draw

// List is a cursor in a list of rows, and the window of rows on screen.
type List struct {
	Cursor, Top int
	Height      int // rows of the window at the last draw
}

// Fit clamps the cursor to n rows and moves the window to contain it.
func (l *List) Fit(n, height int) {
	l.Height = max(height, 1)
	l.Cursor = min(max(l.Cursor, 0), max(n-1, 0))
	switch {
	case l.Cursor < l.Top-l.Height, l.Cursor >= l.Top+2*l.Height:
		l.Top = l.Cursor - l.Height/2 // a jump from afar: center the cursor
	case l.Cursor < l.Top:
		l.Top = l.Cursor
	case l.Cursor >= l.Top+l.Height:
		l.Top = l.Cursor - l.Height + 1
	}
	l.Top = min(max(l.Top, 0), max(n-l.Height, 0))
}

// Scroll moves the window. The cursor moves only if the window would lose it.
func (l *List) Scroll(by, n int) {
	l.Top = min(max(l.Top+by, 0), max(n-l.Height, 0))
	l.Cursor = min(max(l.Cursor, l.Top), l.Top+l.Height-1)
}
