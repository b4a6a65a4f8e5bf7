package listing

import (
	"net/netip"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// packetWays is how many texts of addresses are kept: a power of two, since a place is found by a
// mask. A server of 128 players has twice as many directions.
const packetWays = 256

// packetWay is the text between a packet's time and its length: both addresses and the protocol.
// All packets of one direction of a flow share it, as long as no column becomes wider.
type packetWay struct {
	packetEnds
	widths [2]int // of the addresses and of the protocol
	text   []byte // empty for nothing
}

// packetEnds is all that decides the text, beside the widths.
type packetEnds struct {
	src, dst  netip.AddrPort
	transport capture.Transport
	from      machine.Side
	protocol  *dissect.Protocol
	dialect   string
}

// way adds the addresses of a packet and the name of its protocol.
func (s *packetLister) way(r *filter.Record) {
	if !r.Src.IsValid() || r.Flow == 0 || r.Transport != capture.UDP && r.Transport != capture.TCP {
		s.ends(r) // the frame decides the text
		return
	}
	x := &s.ways[(r.Flow*2+int(r.Datagram.From))%packetWays]
	is := packetEnds{r.Src, r.Dst, r.Transport, r.Datagram.From, r.Protocol, r.Dialect}
	widths := [2]int{s.address, s.protocol}
	if len(x.text) > 0 && x.widths == widths && x.packetEnds == is {
		s.buf = append(s.buf, x.text...)
		return
	}
	from := len(s.buf)
	s.ends(r)
	x.packetEnds, x.widths, x.text = is, widths, x.text[:0]
	if widths == [2]int{s.address, s.protocol} { // otherwise some columns before the wide text are narrower
		x.text = append(x.text, s.buf[from:]...)
	}
}

// ends formats the addresses of a packet and the name of its protocol.
func (s *packetLister) ends(r *filter.Record) {
	side := show.Cyan
	if r.Datagram.From == machine.B {
		side = show.Purple
	}
	if r.Src.IsValid() {
		s.cell = show.AppendEndpoint(s.cell, r.Src, r.Transport)
		s.column(&s.address, side)
		if s.tabs {
			s.buf = append(s.buf, "→\t"...)
		} else {
			s.buf = append(s.buf[:len(s.buf)-1], "→ "...)
		}
		s.cell = show.AppendEndpoint(s.cell, r.Dst, r.Transport)
		s.column(&s.address, "")
	} else {
		s.column(&s.address, "")
		s.buf = append(s.buf, ' ')
		s.column(&s.address, "")
	}
	s.cell = show.AppendProtocol(s.cell, r)
	s.column(&s.protocol, "")
}
