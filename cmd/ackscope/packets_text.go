package main

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// packetLister prints packets for eyes: a line, and below it the tree and the
// bytes where they are asked for.
type packetLister struct {
	app     *app
	listing *listing
	paint   painter
	times   string
	verbose bool
	hex     bool
	several bool
	width   int // of the terminal; 0 for none

	buf, cell []byte
	drawn     show.Tree // with verbose
	// widths of the columns grow with what they hold and never shrink, so that
	// a listing that is not known beforehand is aligned nearly everywhere.
	number, time, address, protocol, length int
}

func (a *app) newPacketLister(f *packetFlags, l *listing, several bool) (*packetLister, error) {
	colored, err := a.colored()
	if err != nil {
		return nil, err
	}
	switch f.times {
	case "r", "d", "a", "ad", "e", "u", "ud":
	default:
		return nil, fmt.Errorf("-t %q: expected r, d, a, ad or e", f.times)
	}
	return &packetLister{app: a, listing: l, paint: painter(colored), times: f.times, verbose: f.verbose, hex: f.hex, several: several, width: a.width(), number: 5, address: 15, protocol: 6, length: 4}, nil
}

func (s *packetLister) show(r *filter.Record, x *analyze.Record) error {
	s.buf = s.buf[:0]
	if s.verbose {
		s.drawn.Paint, s.drawn.Several = s.paint, s.several
		s.drawn.Fill(&s.listing.reading, x)
		s.buf = append(s.buf, s.drawn.Buf...)
	} else {
		s.line(r)
	}
	if s.hex && r.Frame != nil {
		if !s.verbose {
			s.buf = append(s.buf, '\n')
		}
		s.buf = show.AppendHexDump(s.buf, r.Frame.Data)
		if r.Packet.Fragments > 1 && r.Transport == capture.UDP {
			s.buf = append(s.buf, "Payload of the reassembled datagram ("...)
			s.buf = strconv.AppendInt(s.buf, int64(len(r.Datagram.Bytes)), 10)
			s.buf = append(s.buf, " bytes):\n"...)
			s.buf = show.AppendHexDump(s.buf, r.Datagram.Bytes)
		}
	}
	if s.verbose || s.hex {
		s.buf = append(s.buf, '\n')
	}
	_, err := s.app.writer().Write(s.buf)
	return err
}

// column adds the cell aligned to the left, and widens the column where needed.
func (s *packetLister) column(width *int, st style) {
	*width = max(*width, len(s.cell))
	s.buf = s.paint.Begin(s.buf, st)
	from := len(s.buf)
	s.buf = append(s.buf, s.cell...)
	s.buf = s.paint.End(s.buf, st)
	if st == "" || !bool(s.paint) {
		s.buf = show.Pad(s.buf, from, *width)
	} else {
		for n := len(s.cell); n < *width; n++ {
			s.buf = append(s.buf, ' ')
		}
	}
	s.buf = append(s.buf, ' ', ' ')
	s.cell = s.cell[:0]
}

// right adds the cell aligned to the right.
func (s *packetLister) right(width *int, st style) {
	*width = max(*width, len(s.cell))
	s.buf = s.paint.Begin(s.buf, st)
	s.buf = show.PadLeft(s.buf, s.cell, *width)
	s.buf = s.paint.End(s.buf, st)
	s.buf = append(s.buf, ' ', ' ')
	s.cell = s.cell[:0]
}

// line is the packet in one line: number, time, addresses, protocol, length, info.
func (s *packetLister) line(r *filter.Record) {
	s.cell = s.cell[:0]
	if s.several {
		s.cell = strconv.AppendInt(s.cell, int64(r.Datagram.Ref.File()+1), 10)
		s.cell = append(s.cell, ':')
	}
	s.cell = strconv.AppendUint(s.cell, r.Datagram.Ref.Frame(), 10)
	s.right(&s.number, "")
	s.cell = s.appendWhen(s.cell, r)
	s.right(&s.time, dim)
	side := cyan
	if r.Datagram.From == machine.B {
		side = purple
	}
	if r.Src.IsValid() {
		s.cell = show.AppendEndpoint(s.cell, r.Src, r.Transport)
		s.column(&s.address, side)
		s.buf = append(s.buf[:len(s.buf)-1], "→ "...)
		s.cell = show.AppendEndpoint(s.cell, r.Dst, r.Transport)
		s.column(&s.address, "")
	} else {
		s.column(&s.address, "")
		s.buf = append(s.buf, ' ')
		s.column(&s.address, "")
	}
	s.cell = show.AppendProtocol(s.cell, r)
	s.column(&s.protocol, "")
	if r.Frame != nil {
		s.cell = strconv.AppendInt(s.cell, int64(r.Frame.Length), 10)
	} else {
		s.cell = append(s.cell, '?')
	}
	s.right(&s.length, "")
	s.info(r)
	s.buf = show.Fit(append(bytes.TrimRight(s.buf, " "), '\n'), s.width)
}

// info ends a line: what the packet is, and what is wrong with it.
func (s *packetLister) info(r *filter.Record) {
	s.cell = show.AppendInfo(s.cell[:0], &s.listing.reading)
	s.buf = append(s.buf, s.cell...)
	for i := range r.Anomalies {
		rule, n := r.Anomalies[i].Rule, 0
		for j := range r.Anomalies {
			if r.Anomalies[j].Rule == rule {
				if n++; j < i {
					n = -len(r.Anomalies) // told with the first of its rule
				}
			}
		}
		if n < 1 {
			continue
		}
		s.buf = s.paint.Begin(append(s.buf, ' ', ' '), show.SeverityStyle(rule.Severity))
		s.buf = append(append(s.buf, '['), rule.ID...)
		if n > 1 {
			s.buf = strconv.AppendInt(append(s.buf, " ×"...), int64(n), 10)
		}
		s.buf = s.paint.End(append(s.buf, ']'), show.SeverityStyle(rule.Severity))
	}
}

// appendWhen writes the time column.
func (s *packetLister) appendWhen(to []byte, r *filter.Record) []byte {
	at := r.Datagram.At
	switch s.times {
	case "a", "u":
		return at.Time().AppendFormat(to, "15:04:05.000000")
	case "ad", "ud":
		return at.Time().AppendFormat(to, "2006-01-02 15:04:05.000000")
	case "e":
		return show.AppendSeconds(to, int64(at), 9)
	case "d":
		return show.AppendSeconds(to, int64(at-r.Previous), 6)
	}
	return show.AppendSeconds(to, int64(at-r.Start), 6)
}
