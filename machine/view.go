package machine

// View is a neutral picture of one side at one packet, for `ackscope state`,
// the terminal UI, exports and golden tests. The caller owns it.
type View struct {
	Windows []Window
	Gauges  []Gauge
	Tables  []Table
}

// Reset empties v and keeps its memory for reuse.
func (v *View) Reset() { v.Windows, v.Gauges, v.Tables = v.Windows[:0], v.Gauges[:0], v.Tables[:0] }

// Cell is one slot of a window.
type Cell uint8

const (
	CellUnknown  Cell = iota // the capture does not say
	CellEmpty                // known to hold nothing
	CellSent                 // sent, no ack read yet
	CellAcked                // sent, and the side read an ack of it
	CellReceived             // received
	CellClaimed              // the side's header claims it, but it never passed the tap
	CellLost                 // sent, and can no longer be acked
	CellPartial              // some fragments received
)

// Glyphs holds one rune per Cell. State pictures, scenario files and the UI use
// them.
var Glyphs = [...]rune{'?', '.', 's', 'a', 'r', '~', 'x', 'p'}

// Rune returns the glyph of c.
func (c Cell) Rune() rune { return Glyphs[c] }

// Window is a run of slots by rising sequence, such as a sent or a received
// sequence buffer.
type Window struct {
	Name  string // "sent", "received", ...
	First int64  // unwrapped sequence of Cells[0]
	Next  int64  // sent: the next sequence; received: the newest; -1 if unknown
	Size  int    // entries of the endpoint's buffer; 0 if unknown
	Cells []Cell
	Grade Certainty // how well the side's cells are known
	// Acked is the newest sequence of which the side has read an ack. Where AckedKnown is
	// false, the cells tell. It is for windows whose cells leave out what is settled.
	Acked      int64
	AckedKnown bool
	Slots      []Slot // the same entries in the protocol's own terms; may be empty
}

// Slot is one entry of a sequence buffer in the protocol's own terms.
type Slot struct {
	Index      int // sequence mod size
	Sequence   uint32
	Sequence64 int64
	Cell       Cell
	SentAt     Instant // 0 if unknown
	AckedAt    Instant // 0 if not acked
	Ref        Ref     // the packet's frame; zero if it was not captured
	SettledBy  Ref     // the frame that settled whether it arrived
	Bit        uint8   // the ack bit that named it
	Grade      Certainty
}

// Gauge is one figure.
type Gauge struct {
	Name  string
	Value float64
	Unit  string // "ms", "%", "packets", ...
	Grade Certainty
}

// Table holds what is neither a window nor a gauge.
type Table struct {
	Name    string
	Columns []string
	Rows    [][]string
}
