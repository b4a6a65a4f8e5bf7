package show

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// Tree is a packet with every header and field, one line each. A field that is
// on the wire shows its position: in bytes, or in bits.
type Tree struct {
	Paint   Painter
	Several bool // the capture has several files
	Width   int  // column of the positions; 0 for 52

	Buf   []byte // the lines, each ending in a newline
	Lines []TreeLine

	reading *filter.Reading
	record  *analyze.Record
	line    TreeLine // for the next line
	cell    []byte
}

// TreeLine is one line of a tree and the bytes that it shows.
type TreeLine struct {
	From, To int // in Tree.Buf, without the newline
	Heading  bool
	Layer    bool // a header before the datagram, with its fields below
	Place    Place
	Bit      int // first bit in those bytes; bit 0 is the low bit of byte 0
	Bits     int // number of bits; 0 for a line without bytes
	Field    *dissect.FieldSpec
}

// Place says which bytes a line's position refers to.
type Place uint8

const (
	InFrame    Place = iota // the captured frame
	InDatagram              // a payload that arrived in several frames
	InWhole                 // a packet that was joined from several datagrams
	InJoined                // an IP payload that was joined from fragments
)

// Fill fills the tree with the record that l has taken. x is the same record of
// the analysis.
func (s *Tree) Fill(l *filter.Reading, x *analyze.Record) {
	s.Buf, s.Lines, s.reading, s.record, s.line = s.Buf[:0], s.Lines[:0], l, x, TreeLine{}
	r := &l.Record
	if r.Frame != nil {
		s.frameTree(r)
		s.layerTree(r, x)
	} else {
		s.heading("Frame %d", r.Datagram.Ref.Frame())
		if !x.Message {
			s.row("Payload: %s (its headers are gone: it was held while its protocol was worked out)",
				AppendBytesCount(nil, r.Datagram.Length))
		}
	}
	s.flowTree(r)
	if x.Message {
		s.messageTree(x)
	}
	if r.Protocol != nil && r.Decode != nil {
		d := r.Dissection()
		own := l.Own
		place, base := s.payload()
		for i := range d.Fields[:own] {
			s.field(&d.Fields[i], r.Datagram.Bytes, place, base)
		}
		if d.Snapped {
			s.remark(Yellow, "cut by the snap length: %d of %d bytes captured", len(r.Datagram.Bytes), r.Datagram.Length)
		}
		if d.Problem != nil {
			s.remark(Red, "malformed: %v", d.Problem)
		}
		if whole := l.Whole; whole != nil {
			s.heading("Packet joined of its parts: %s, complete with this frame", AppendBytesCount(nil, whole.Length))
			for i := range d.Fields[own:] {
				s.field(&d.Fields[own+i], whole.Bytes, InWhole, 0)
			}
			if p := l.Inside.Problem; p != nil {
				s.remark(Red, "malformed: %v", p)
			}
		}
	} else if r.Transport == capture.UDP || r.Transport == capture.TCP {
		if n := len(r.Datagram.Bytes); n > 0 {
			s.cell = AppendShortBytes(s.cell[:0], r.Datagram.Bytes)
			place, base := s.payload()
			s.line = TreeLine{Place: place, Bit: 8 * base, Bits: 8 * n}
			s.heading("Data: %s", s.cell)
		}
	}
	s.eventTree(x)
}

// payload returns which bytes contain the datagram, and its offset there. The
// datagram is in the frame, or separate if it arrived in several frames.
func (s *Tree) payload() (Place, int) {
	spans := s.record.Spans
	if p := s.reading.Record.Packet; p != nil && !s.record.Message && s.record.Batch.Count == 0 {
		spans = p.Spans
	}
	if len(spans) == 1 && s.reading.Record.Frame != nil && spans[0].Ref == s.reading.Record.Frame.Ref {
		return InFrame, spans[0].Offset
	}
	return InDatagram, 0
}

// end finishes a line, which began at from.
func (s *Tree) end(from int) {
	s.line.From, s.line.To = from, len(s.Buf)
	s.Lines = append(s.Lines, s.line)
	s.line = TreeLine{}
	s.Buf = append(s.Buf, '\n')
}

func (s *Tree) heading(format string, args ...any) {
	from := len(s.Buf)
	s.Buf = s.Paint.Begin(s.Buf, Bold)
	s.Buf = AppendClean(s.Buf, fmt.Sprintf(format, args...))
	s.Buf = s.Paint.End(s.Buf, Bold)
	s.line.Heading = true
	s.end(from)
}

func (s *Tree) row(format string, args ...any) {
	from := len(s.Buf)
	s.Buf = append(s.Buf, "    "...)
	s.Buf = AppendClean(s.Buf, fmt.Sprintf(format, args...))
	s.end(from)
}

func (s *Tree) remark(st Style, format string, args ...any) {
	from := len(s.Buf)
	s.Buf = append(s.Buf, "    "...)
	s.Buf = s.Paint.Begin(s.Buf, st)
	s.Buf = append(s.Buf, '[')
	s.Buf = AppendClean(s.Buf, fmt.Sprintf(format, args...))
	s.Buf = append(s.Buf, ']')
	s.Buf = s.Paint.End(s.Buf, st)
	s.end(from)
}

func (s *Tree) frameTree(r *filter.Record) {
	f := r.Frame
	s.heading("Frame %d: %d bytes on wire, %d bytes captured", r.Datagram.Ref.Frame(), f.Length, len(f.Data))
	if s.Several {
		s.row("File: %s", r.File)
	}
	s.row("Time: %s UTC", f.At.Time().Format("2006-01-02 15:04:05.000000000"))
	s.row("Since the first frame: %s s, since the frame before: %s s", AppendSeconds(nil, int64(f.At.Sub(r.Start)), 9),
		AppendSeconds(nil, int64(f.At.Sub(r.Previous)), 9))
	s.row("Interface: %d (%s)", f.Interface, capture.LinkTypeName(f.LinkType))
	for comment := range f.Comments() {
		s.row("Comment: %s", comment)
	}
	if p := r.Packet.Problem; p != nil {
		s.remark(Red, "malformed: %v", p)
	}
	if r.Packet.Duplicate {
		s.remark(Yellow, "this datagram was captured twice: the copy is kept out of all state")
	}
}

func (s *Tree) flowTree(r *filter.Record) {
	f := s.reading.Flow
	if f == nil {
		return
	}
	s.heading("Flow %d: side %s, %s → %s", f.ID, r.Datagram.From, r.Src, r.Dst)
	if f.Protocol == nil {
		s.row("Protocol: none that is known: %s", f.Verdict.Reason)
		return
	}
	s.row("Protocol: %s %s", f.Protocol.Name, r.Dialect)
}

// messageTree says where a message of a TCP stream comes from.
func (s *Tree) messageTree(x *analyze.Record) {
	frames := make([]string, 0, len(x.Spans))
	for _, span := range x.Spans {
		frames = append(frames, strconv.FormatUint(span.Ref.Frame(), 10))
	}
	s.heading("Message %d of this segment: %s of the stream, from frame %s", x.Index+1,
		AppendBytesCount(nil, x.Datagram.Length), strings.Join(slices.Compact(frames), ", "))
}

// eventTree adds what this packet settled.
func (s *Tree) eventTree(x *analyze.Record) {
	if len(x.Events)+len(x.Anomalies) == 0 {
		return
	}
	s.heading("Settled here")
	for i := range x.Events {
		e := &x.Events[i]
		at := ""
		if e.Ref != x.Datagram.Ref {
			at = fmt.Sprintf(", at frame %d", e.Ref.Frame())
		}
		by := ""
		if e.Kind == machine.EventAcked && e.By != 0 {
			by = fmt.Sprintf(" by frame %d bit %d", e.By.Frame(), e.Bit)
		}
		s.row("%s: %s %d%s (%s%s)", e.Side, EventName(x.Flow, e.Kind), e.Sequence, by, e.Certainty, at)
	}
	for i := range x.Anomalies {
		m := &x.Anomalies[i]
		s.remark(SeverityStyle(m.Rule.Severity), "%s %s (%s): %s, by side %s", m.Rule.Severity, m.Rule.ID, m.Certainty,
			m.Rule.Summary, m.Side)
	}
}

// treeWidth is the default column of positions.
const treeWidth = 52

func (s *Tree) width() int {
	if s.Width > 0 {
		return s.Width
	}
	return treeWidth
}

// field adds one decoded field.
func (s *Tree) field(d *dissect.Field, payload []byte, place Place, base int) {
	from := len(s.Buf)
	top := d.Depth == 0
	if top {
		s.Buf = s.Paint.Begin(s.Buf, Bold)
	}
	for range d.Depth {
		s.Buf = append(s.Buf, "    "...)
	}
	if d.Bits > 0 && d.Bits < 8 && d.Bit/8 == (d.Bit+d.Bits-1)/8 && int(d.Bit/8) < len(payload) {
		s.Buf = appendBitPattern(s.Buf, payload[d.Bit/8], d.Bit%8, d.Bits)
		s.Buf = append(s.Buf, " = "...)
	}
	s.Buf = AppendClean(s.Buf, d.Spec.Label)
	if d.Spec.Kind != dissect.KindGroup {
		s.Buf = append(s.Buf, ": "...)
		s.Buf = AppendFieldValue(s.Buf, d)
		if d.Spec.Unit != "" {
			s.Buf = append(append(s.Buf, ' '), d.Spec.Unit...)
		}
	}
	if d.Note != "" {
		s.Buf = append(s.Buf, " ("...)
		s.Buf = AppendClean(s.Buf, d.Note)
		s.Buf = append(s.Buf, ')')
	}
	if top {
		s.Buf = s.Paint.End(s.Buf, Bold)
	}
	if d.Bits > 0 {
		s.Buf = Pad(s.Buf, from, s.width())
		s.Buf = append(s.Buf, ' ', ' ')
		s.Buf = s.Paint.Begin(s.Buf, Dim)
		s.Buf = appendPlace(s.Buf, d)
		s.Buf = s.Paint.End(s.Buf, Dim)
	} else if !top && d.Spec.Kind != dissect.KindGroup {
		s.Buf = Pad(s.Buf, from, s.width())
		s.Buf = s.Paint.Text(append(s.Buf, ' ', ' '), Dim, "generated")
	}
	s.line = TreeLine{Heading: top, Place: place, Bit: 8*base + int(d.Bit), Bits: int(d.Bits), Field: d.Spec}
	s.end(from)
}

// AppendFieldValue appends a value: the word of an enumeration, a hexadecimal
// number, or the first of many bytes.
func AppendFieldValue(to []byte, d *dissect.Field) []byte {
	switch d.Spec.Kind {
	case dissect.KindUint:
		if word, ok := d.Spec.Enum[d.Uint]; ok {
			to = append(AppendClean(to, word), " ("...)
			return append(strconv.AppendUint(to, d.Uint, 10), ')')
		}
		if d.Spec.Hex {
			return filter.AppendHex(to, d.Uint, int(d.Bits))
		}
		return strconv.AppendUint(to, d.Uint, 10)
	case dissect.KindBool:
		return strconv.AppendBool(to, d.Uint != 0)
	case dissect.KindFloat:
		return strconv.AppendFloat(to, math.Float64frombits(d.Uint), 'g', -1, 64)
	case dissect.KindBytes:
		return AppendShortBytes(to, d.Bytes)
	case dissect.KindText:
		return append(AppendClean(append(to, '"'), d.Bytes), '"')
	case dissect.KindInt, dissect.KindGroup, dissect.KindAddr:
	}
	return filter.AppendValue(to, d)
}

// AppendShortBytes appends bytes in hexadecimal. It appends only the first 24
// of many.
func AppendShortBytes(to, b []byte) []byte {
	const most = 24
	for _, c := range b[:min(len(b), most)] {
		to = append(to, hexDigits[c>>4], hexDigits[c&15])
	}
	if len(b) > most {
		to = append(to, "…"...)
	}
	to = append(to, " ("...)
	return append(AppendBytesCount(to, len(b)), ')')
}

// appendBitPattern shows the position of a field of a few bits in its byte. The
// high bit is first, as people write bytes.
func appendBitPattern(to []byte, b byte, low, n uint32) []byte {
	for i := 7; i >= 0; i-- {
		c := byte('.')
		if uint32(i) >= low && uint32(i) < low+n {
			c = '0' + b>>i&1
		}
		to = append(to, c)
		if i == 4 {
			to = append(to, ' ')
		}
	}
	return to
}

// appendPlace appends the position of a field in the datagram.
func appendPlace(to []byte, d *dissect.Field) []byte {
	what, from, to2 := "bit", uint64(d.Bit), uint64(d.Bit)+uint64(d.Bits)-1
	if d.Bit%8 == 0 && d.Bits%8 == 0 {
		what, from, to2 = "byte", from/8, to2/8
	}
	to = append(to, what...)
	if from != to2 {
		to = append(to, 's')
	}
	to = strconv.AppendUint(append(to, ' '), from, 10)
	if from != to2 {
		to = strconv.AppendUint(append(to, "–"...), to2, 10)
	}
	return to
}
