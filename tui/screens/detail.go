package screens

import (
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// detail is the decode tree and the bytes of the selected packet. The bytes of
// the selected line are highlighted.
type detail struct {
	entry   int // entry of the packet; -1 for none
	version int // version of the store when the tree was made; a change of the flow's protocol makes it again
	came    int // Store.Approached when the tree was made
	err     error
	tree    show.Tree
	cursor  int // line of the tree
	levels  []int
	shown   []int           // lines that are not folded
	folded  map[string]bool // key: foldName
	list    draw.List
	hex     draw.List
	hexRows int
	frame   []byte // bytes of the places of lines: frame, datagram, whole packet
	payload []byte
	whole   []byte
	joined  []byte
	reading *filter.Reading
}

// fill decodes the selected packet, unless that is done.
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
	d.frame, d.payload, d.whole, d.joined = d.frame[:0], d.payload[:0], d.whole[:0], d.joined[:0]
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
	r, err := br.Store.Full(n) // valid until the store's next Read
	if err != nil {
		d.err = err
		return
	}
	if r.Frame != nil {
		d.frame = append(d.frame, r.Frame.Data...)
	}
	if r.Packet != nil {
		d.joined = append(d.joined, r.Packet.Joined...)
	}
	d.payload = append(d.payload, r.Datagram.Bytes...)
	d.reading.Take(r)
	d.tree.Fill(d.reading, r)
	if w := d.reading.Whole; w != nil {
		d.whole = append(d.whole, w.Bytes...)
	}
	d.unfold()
	if fresh {
		// Start at the protocol's own line: it is what users read first.
		for i, l := range d.tree.Lines {
			if l.Heading && l.Field != nil {
				d.cursor = i
				d.list.Top = d.row()
				break
			}
		}
	}
}

// lit returns the bytes that contain the selected line's field, and the field's
// bits in them.
func (d *detail) lit() (data []byte, title string, bit, bits int) {
	if d.cursor < len(d.tree.Lines) {
		l := d.tree.Lines[d.cursor]
		switch l.Place {
		case show.InDatagram:
			return d.payload, "bytes of the datagram", l.Bit, l.Bits
		case show.InWhole:
			return d.whole, "bytes of the joined packet", l.Bit, l.Bits
		case show.InJoined:
			return d.joined, "bytes of the joined IP payload", l.Bit, l.Bits
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
