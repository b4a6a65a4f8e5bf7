package screens

import (
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// detail is the selected packet taken apart: its tree, and its bytes with those
// of the selected line lit.
type detail struct {
	entry   int // what it shows; -1 for nothing
	version int // of the store when it was made; it is made anew while a flow's protocol can change
	came    int // walks that had come to their packets when it was made
	err     error
	tree    show.Tree
	cursor  int // line of the tree
	levels  []int
	shown   []int           // lines that are not folded away
	folded  map[string]bool // by foldName
	list    draw.List
	hex     draw.List
	hexRows int
	frame   []byte // the bytes of the places of lines
	payload []byte
	whole   []byte
	reading *filter.Reading
}

// fill takes the selected packet apart, if that has not been done.
func (d *detail) fill(br *browser.Browser, width int) {
	n := br.Selected
	pass := br.Store.Pass()
	at := min(max(width-15, 20), 52)
	if d.reading != nil && d.entry == n && (d.version == pass && d.came == br.Store.Approached() || n < 0) &&
		d.tree.Width == at {
		return
	}
	if d.entry != n {
		d.cursor, d.list, d.hex = 0, draw.List{}, draw.List{}
	}
	fresh := d.entry != n || d.reading == nil
	d.entry, d.version, d.came, d.err = n, pass, br.Store.Approached(), nil
	d.frame, d.payload, d.whole = d.frame[:0], d.payload[:0], d.whole[:0]
	d.tree.Buf, d.tree.Lines, d.shown = d.tree.Buf[:0], d.tree.Lines[:0], d.shown[:0]
	if d.reading == nil {
		d.reading = br.Store.NewReading()
	}
	if n < 0 || n >= br.Store.Len() {
		return
	}
	d.reading.Start = br.Store.First()
	d.tree.Width, d.tree.Paint, d.tree.Several = at, true, br.Store.Several()
	d.reading.Previous = br.Store.TimeAt(n - 1)
	r, err := br.Store.Full(n) // valid until the store reads again
	if err != nil {
		d.err = err
		return
	}
	if r.Frame != nil {
		d.frame = append(d.frame, r.Frame.Data...)
	}
	d.payload = append(d.payload, r.Datagram.Bytes...)
	d.reading.Take(r)
	d.tree.Fill(d.reading, r)
	defer d.unfold()
	if w := d.reading.Whole; w != nil {
		d.whole = append(d.whole, w.Bytes...)
	}
	if fresh {
		// The protocol's own line is what one looks at first.
		for i, l := range d.tree.Lines {
			if l.Heading && l.Field != nil {
				d.cursor, d.list.Top = i, i
				break
			}
		}
	}
}

// lit returns the bytes in which the selected line's lie, and which of them, in bits.
func (d *detail) lit() (data []byte, title string, bit, bits int) {
	if d.cursor < len(d.tree.Lines) {
		l := d.tree.Lines[d.cursor]
		switch l.Place {
		case show.InDatagram:
			return d.payload, "bytes of the datagram", l.Bit, l.Bits
		case show.InWhole:
			return d.whole, "bytes of the joined packet", l.Bit, l.Bits
		case show.InFrame:
			return d.frame, "bytes", l.Bit, l.Bits
		}
	}
	return d.frame, "bytes", 0, 0
}

// lineText returns a line of the tree with its styles.
func (d *detail) lineText(i int) string {
	l := d.tree.Lines[i]
	return string(d.tree.Buf[l.From:l.To])
}
