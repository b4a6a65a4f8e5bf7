package screens

import (
	"strings"

	"github.com/ackscope/ackscope/tui/draw"
)

// Parts of the decode tree can be folded. A folded part stays folded from
// packet to packet, since it is remembered by the name of its line.

// level returns the depth of a line in the tree.
func (d *detail) level(i int) int {
	text := d.lineText(i)
	for strings.HasPrefix(text, "\x1b[") {
		_, text, _ = strings.Cut(text, "m")
	}
	return (len(text) - len(strings.TrimLeft(text, " "))) / 4
}

// foldName returns the name by which a line is remembered: its field, or its
// first word.
func (d *detail) foldName(i int) string {
	if f := d.tree.Lines[i].Field; f != nil {
		return f.Name
	}
	word, _, _ := strings.Cut(strings.TrimLeft(draw.StripStyles(d.lineText(i)), " "), " ")
	return strings.TrimRight(word, ":")
}

// folds reports whether a line has lines below it in the tree.
func (d *detail) folds(i int) bool {
	return i+1 < len(d.tree.Lines) && d.levels[i+1] > d.levels[i]
}

// isFolded reports whether the lines below a line are folded away: as chosen,
// else where the line is a header before the datagram.
func (d *detail) isFolded(i int) bool {
	if folded, chosen := d.folded[d.foldName(i)]; chosen {
		return folded
	}
	return d.tree.Lines[i].Layer
}

// unfold computes which lines are shown.
func (d *detail) unfold() {
	d.levels, d.shown = d.levels[:0], d.shown[:0]
	for i := range d.tree.Lines {
		d.levels = append(d.levels, d.level(i))
	}
	hidden := -1 // lines below this level are hidden
	for i := range d.tree.Lines {
		if hidden >= 0 && d.levels[i] > hidden {
			continue
		}
		hidden = -1
		d.shown = append(d.shown, i)
		if d.folds(i) && d.isFolded(i) {
			hidden = d.levels[i]
		}
	}
	d.cursor = d.shownAt(d.row())
}

// row returns the row of the cursor. If the cursor's line is folded away, it is
// the row of the folded part.
func (d *detail) row() int {
	row := 0
	for j, i := range d.shown {
		if i > d.cursor {
			break
		}
		row = j
	}
	return row
}

// moveBy moves the cursor by rows.
func (d *detail) moveBy(by int) { d.cursor = d.shownAt(d.row() + by) }

// shownAt returns the line of a row.
func (d *detail) shownAt(row int) int {
	if len(d.shown) == 0 {
		return 0
	}
	return d.shown[min(max(row, 0), len(d.shown)-1)]
}

// Fold folds or unfolds the part that contains the cursor.
func (p *PacketView) Fold() {
	d := &p.detail
	i := d.cursor
	if i >= len(d.tree.Lines) || i >= len(d.levels) {
		return
	}
	for !d.folds(i) && i > 0 {
		level := d.levels[i]
		for i--; i > 0 && d.levels[i] >= level; i-- {
		}
		if d.levels[i] >= level {
			return // the first line of the tree, with nothing below it
		}
	}
	if d.folded == nil {
		d.folded = map[string]bool{}
	}
	d.cursor = i
	d.folded[d.foldName(i)] = !d.isFolded(i)
	d.unfold()
}

// FoldAll folds or unfolds all parts.
func (p *PacketView) FoldAll(all bool) {
	d := &p.detail
	d.folded = map[string]bool{}
	for i := range d.tree.Lines {
		if i < len(d.levels) && d.folds(i) {
			d.folded[d.foldName(i)] = all
		}
	}
	d.unfold()
}
