package listing

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// packetLister prints packets as text: one line each, followed by the tree and
// the bytes if the flags ask for them.
type packetLister struct {
	app     *app.App
	listing *reader.Listing
	paint   show.Painter
	times   string
	tabs    bool
	verbose bool
	hex     bool
	several bool // the recording has several files
	first   int  // position of its first file, from 0
	width   int  // columns of the terminal; 0 if it is none

	shown  machine.Instant // time of the previous packet
	digits map[[2]int]int  // digits of the clock, by file and interface
	digit  struct {        // of digits: what the last packet asked for
		of [2]int
		is int // 0 for nothing
	}
	ways [packetWays]packetWay

	buf, cell []byte
	drawn     show.Tree // used with -V
	// Widths of the columns grow with their contents and never shrink. So a
	// listing of unknown length is aligned nearly everywhere.
	number, time, address, protocol, length int
}

func newPacketLister(a *app.App, f *packetFlags, l *reader.Listing) (*packetLister, error) {
	colored, err := a.Colored()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(TimeFormats, f.times) {
		return nil, fmt.Errorf("-t %q: expected %s", f.times, strings.Join(TimeFormats, ", "))
	}
	return &packetLister{
		app: a, tabs: f.format == "tabs", listing: l, paint: show.Painter(colored), times: f.times,
		verbose: f.verbose, hex: f.hex, width: a.Width(), number: 5, address: 15, protocol: 6, length: 4,
	}, nil
}

// begin names the recording and forgets the previous one.
func (s *packetLister) begin(r *reader.Recording) error {
	s.several, s.first, s.shown, s.digits, s.digit.is = len(r.Paths) > 1, r.First, 0, nil, 0
	if s.tabs {
		return nil // a format for programs has no headings, as in tshark
	}
	return reader.Heading(s.app, r)
}

func (s *packetLister) show(r *filter.Record, x *analyze.Record) error {
	s.buf = s.buf[:0]
	if s.verbose {
		s.drawn.Paint, s.drawn.Several = s.paint, s.several
		s.drawn.Fill(&s.listing.Reading, x)
		s.buf = append(s.buf, s.drawn.Buf...)
	} else {
		s.line(r)
	}
	if s.hex && r.Frame != nil {
		if !s.verbose {
			s.buf = append(s.buf, '\n')
		}
		s.bytes(r)
	}
	if s.verbose || s.hex {
		s.buf = append(s.buf, '\n')
	}
	_, err := s.app.Writer().Write(s.buf)
	return err
}

// bytes writes the bytes of the frame. Where the frame completes an IP packet
// that came in fragments, the joined bytes follow, and both have a heading, as
// in tshark.
func (s *packetLister) bytes(r *filter.Record) {
	joined := r.Packet.Joined
	if joined == nil {
		s.buf = show.AppendHexDump(s.buf, r.Frame.Data)
		return
	}
	name := "Reassembled IPv6"
	if r.Src.Addr().Is4() {
		name = "Reassembled IPv4"
	}
	s.buf = fmt.Appendf(s.buf, "Frame (%d bytes):\n", len(r.Frame.Data))
	s.buf = show.AppendHexDump(s.buf, r.Frame.Data)
	s.buf = fmt.Appendf(s.buf, "%s (%d bytes):\n", name, len(joined))
	s.buf = show.AppendHexDump(s.buf, joined)
}

// column adds the cell, aligned to the left, and widens the column if needed.
func (s *packetLister) column(width *int, st show.Style) {
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
	s.gap()
	s.cell = s.cell[:0]
}

// gap writes the blanks after a column.
func (s *packetLister) gap() {
	if s.tabs {
		s.buf = append(s.buf, '\t')
		return
	}
	s.buf = append(s.buf, ' ', ' ')
}

// right adds the cell, which is ASCII, aligned to the right.
func (s *packetLister) right(width *int, st show.Style) {
	*width = max(*width, len(s.cell))
	s.buf = s.paint.Begin(s.buf, st)
	s.buf = show.PadLeft(s.buf, s.cell, *width)
	s.buf = s.paint.End(s.buf, st)
	s.gap()
	s.cell = s.cell[:0]
}

// line prints a packet in one line: number, time, addresses, protocol, length,
// info.
func (s *packetLister) line(r *filter.Record) {
	s.cell = s.cell[:0]
	if s.several {
		s.cell = strconv.AppendInt(s.cell, int64(s.first+r.Datagram.Ref.File()+1), 10)
		s.cell = append(s.cell, ':')
	}
	s.cell = strconv.AppendUint(s.cell, r.Datagram.Ref.Frame(), 10)
	s.right(&s.number, "")
	s.cell = s.appendWhen(s.cell, r)
	s.right(&s.time, show.Dim)
	s.way(r)
	if r.Frame != nil {
		s.cell = strconv.AppendInt(s.cell, int64(r.Frame.Length), 10)
	} else {
		s.cell = append(s.cell, '?')
	}
	s.right(&s.length, "")
	s.info(r)
	s.buf = show.Fit(append(bytes.TrimRight(s.buf, " "), '\n'), s.width)
}

// info ends a line with a summary of the packet and its findings.
func (s *packetLister) info(r *filter.Record) {
	s.buf = show.AppendInfo(s.buf, &s.listing.Reading)
	for i := range r.Anomalies {
		rule, n := r.Anomalies[i].Rule, 0
		for j := range r.Anomalies {
			if r.Anomalies[j].Rule == rule {
				if n++; j < i {
					n = -len(r.Anomalies) // it was printed with the first of its rule
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

// TimeFormats are the values of -t, as in tshark.
var TimeFormats = []string{"r", "d", "dd", "e", "a", "ad", "adoy", "u", "ud", "udoy"}

// appendWhen appends the time column, with the decimals of the file's clock.
func (s *packetLister) appendWhen(to []byte, r *filter.Record) []byte {
	at, decimals := r.Datagram.At, s.decimals(r.Frame)
	when := at.Time()
	if s.times[0] == 'a' {
		when = when.Local()
	}
	clock := "15:04:05.000000000"[:9+decimals]
	switch s.times {
	case "a", "u":
		return when.AppendFormat(to, clock)
	case "ad", "ud":
		return when.AppendFormat(to, "2006-01-02 "+clock)
	case "adoy", "udoy":
		return when.AppendFormat(to, "2006/002 "+clock)
	case "e":
		return show.AppendSeconds(to, int64(at), decimals)
	case "d":
		return show.AppendSeconds(to, int64(at.Sub(r.Previous)), decimals)
	case "dd":
		before := s.shown
		if s.shown = at; before == 0 {
			before = at
		}
		return show.AppendSeconds(to, int64(at.Sub(before)), decimals)
	}
	return show.AppendSeconds(to, int64(at.Sub(r.Start)), decimals)
}

// decimals returns the digits below the second of the file's clock.
func (s *packetLister) decimals(f *capture.Frame) int {
	if f == nil || s.listing.Reader.In == nil {
		return 6
	}
	key := [2]int{f.Ref.File(), f.Interface}
	if s.digit.is != 0 && s.digit.of == key {
		return s.digit.is
	}
	n, ok := s.digits[key]
	if !ok {
		n = 6
		if list := s.listing.Reader.In.Interfaces(key[0]); key[1] < len(list) {
			n = list[key[1]].Resolution.Digits()
		}
		if s.digits == nil {
			s.digits = map[[2]int]int{}
		}
		s.digits[key] = n
	}
	s.digit.of, s.digit.is = key, n
	return n
}
