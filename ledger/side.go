package ledger

import (
	"cmp"
	"slices"
)

// Cost counts bits by their use.
type Cost struct {
	Link      uint64 // link-layer headers and padding
	IP        uint64
	Transport uint64 // UDP's or TCP's headers
	Header    uint64 // the protocol's, padding included
	Acks      uint64
	Resent    uint64 // of the application, sent again
	Goodput   uint64 // of the application, sent for the first time
}

// Total returns the sum of all bits.
func (c *Cost) Total() uint64 {
	return c.Link + c.IP + c.Transport + c.Header + c.Acks + c.Resent + c.Goodput
}

// Add adds another cost.
func (c *Cost) Add(o *Cost) {
	c.Link += o.Link
	c.IP += o.IP
	c.Transport += o.Transport
	c.Header += o.Header
	c.Acks += o.Acks
	c.Resent += o.Resent
	c.Goodput += o.Goodput
}

// Row is the cost of one type of message from one side.
type Row struct {
	Type   string
	Count  uint64 // messages, or datagrams without messages
	Copies uint64 // of Count: those that had been sent before
	Cost
}

// join adds what another row of the type counted.
func (r *Row) join(o *Row) {
	r.Count, r.Copies = r.Count+o.Count, r.Copies+o.Copies
	r.Add(&o.Cost)
}

// Side holds what one side of a flow sent.
type Side struct {
	Frames uint64
	rows   map[string]*Row
	number uint32              // among the sides that have rows
	seen   map[uint64]struct{} // keys of messages
	stream uint64              // bits of TCP payload that belong to no message yet
}

// Rows returns the side's types, in descending order of cost.
func (s *Side) Rows() []*Row {
	rows := make([]*Row, 0, len(s.rows))
	for _, r := range s.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Type, b.Type))
	})
	return rows
}

// Total returns the sum of the rows.
func (s *Side) Total() (sum Cost) {
	for _, r := range s.rows {
		sum.Add(&r.Cost)
	}
	return sum
}

// Types that do not come from a protocol.
const (
	Unexplained = "(of no known protocol)"
	Empty       = "(empty)"
	Copies      = "(captured twice)"
	StreamRest  = "(stream: lengths, segments sent again, no message)"
	Others      = "(further types)"
	Segments    = "(segments)"
)

// maxTypes is the most rows of a side. maxKeys is the most messages that it
// remembers.
const (
	maxTypes = 1024
	maxKeys  = 1 << 16
)

// rowCost and keyCost are the approximate bytes of memory of a row and a key.
const (
	rowCost = 256
	keyCost = 32
)

// How many rows, and how many flows, the ledger finds without a map. They are powers of two, since a
// mask finds the place. Messages with ids have up to some hundred types on each side.
const (
	recentRows  = 4096
	recentFlows = 64
)

// row returns the row of a type, or the row of further types when there is no
// room.
func (l *Ledger) row(s *Side, kind string) *Row {
	recent := &l.rows[place(s, kind)]
	if recent.side == s && recent.row.Type == kind {
		return recent.row
	}
	*recent = recentRow{s, l.rowOf(s, kind)}
	return recent.row
}

// recentRow is a row that was found by a map, and its side.
type recentRow struct {
	side *Side
	row  *Row
}

// place returns where the ledger looks for a row before it looks into a map. Types that are names with numbers
// differ at their ends.
func place(s *Side, kind string) uint32 {
	h := s.number<<16 ^ uint32(len(kind))<<8
	for i := max(0, len(kind)-3); i < len(kind); i++ {
		h = h*31 + uint32(kind[i])
	}
	return h * 2654435769 >> 20 % recentRows
}

// rowOf is row by the map.
func (l *Ledger) rowOf(s *Side, kind string) *Row {
	if r, ok := s.rows[kind]; ok {
		return r
	}
	if s.rows == nil {
		s.rows = map[string]*Row{}
		l.sides++
		s.number = l.sides
	}
	if full := l.Room > 0 && l.used+rowCost > l.Room && len(s.rows) > 0; full || len(s.rows) >= maxTypes {
		if r, ok := s.rows[Others]; ok {
			return r
		}
		kind = Others
	}
	r := &Row{Type: kind}
	s.rows[kind] = r
	l.used += rowCost
	return r
}

// release counts memory that is in use no more.
func (l *Ledger) release(bytes int) {
	l.most = max(l.most, l.used)
	l.used -= bytes
}

// charged reports whether a message with this key was charged before.
func (l *Ledger) charged(s *Side, key uint64) bool {
	if key == 0 {
		return false
	}
	if _, ok := s.seen[key]; ok {
		return true
	}
	if s.seen == nil || len(s.seen) >= maxKeys {
		l.release(keyCost * len(s.seen))
		s.seen = map[uint64]struct{}{}
	}
	if l.Room > 0 && l.used+keyCost > l.Room {
		return false // without room it is not remembered: its copies count as sent for the first time
	}
	s.seen[key] = struct{}{}
	l.used += keyCost
	return false
}
