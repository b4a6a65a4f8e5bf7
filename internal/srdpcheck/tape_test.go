package srdpcheck

import (
	"bytes"
	"net/netip"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// tape writes what passes a tap to a capture of raw IP packets.
type tape struct {
	to     bytes.Buffer
	w      *capture.Writer
	packet []byte
	ids    map[netip.AddrPort]uint16 // of IP, by sender
	frames []taped
	err    error // the first one
}

// taped is a datagram that passed the tap.
type taped struct {
	at       machine.Instant
	from, to netip.AddrPort
	bytes    []byte
}

// openTape starts a capture. whole says in the file that it lacks nothing.
func openTape(whole bool) (p *tape, err error) {
	p = &tape{ids: map[netip.AddrPort]uint16{}}
	if p.w, err = capture.NewWriter(&p.to, capture.WriterOptions{}); err != nil {
		return nil, err
	}
	if _, err = p.w.AddInterface(capture.Interface{LinkType: capture.LinkRaw}); err != nil {
		return nil, err
	}
	if whole {
		p.w.SetStatistics(0, capture.Statistics{Known: capture.KnownOSDropped})
	}
	return p, nil
}

func (p *tape) write(at machine.Instant, from, to netip.AddrPort, b []byte) {
	if p.err != nil {
		return
	}
	p.ids[from]++
	p.frames = append(p.frames, taped{at, from, to, bytes.Clone(b)})
	p.packet, p.err = capture.AppendUDP(p.packet[:0], capture.Envelope{Src: from, Dst: to, ID: p.ids[from]}, b)
	if p.err == nil {
		p.err = p.w.WriteFrame(&capture.Frame{At: at, LinkType: capture.LinkRaw, Length: len(p.packet), Data: p.packet})
	}
}

// end completes the capture.
func (p *tape) end() error {
	if p.err != nil {
		return p.err
	}
	return p.w.Close()
}
