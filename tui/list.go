package tui

// list is a cursor in rows of which a window is shown.
type list struct {
	cursor, top int
	height      int // rows shown at the last draw
}

// fit keeps the cursor within n rows and inside of the window.
func (l *list) fit(n, height int) {
	l.height = max(height, 1)
	l.cursor = min(max(l.cursor, 0), max(n-1, 0))
	switch {
	case l.cursor < l.top-l.height, l.cursor >= l.top+2*l.height:
		l.top = l.cursor - l.height/2 // from afar: with what stands around it
	case l.cursor < l.top:
		l.top = l.cursor
	case l.cursor >= l.top+l.height:
		l.top = l.cursor - l.height + 1
	}
	l.top = min(max(l.top, 0), max(n-l.height, 0))
}

// scroll shows other rows, with the cursor going along only where it must.
func (l *list) scroll(by, n int) {
	l.top = min(max(l.top+by, 0), max(n-l.height, 0))
	l.cursor = min(max(l.cursor, l.top), l.top+l.height-1)
}
