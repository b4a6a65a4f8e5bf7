package show

import (
	"fmt"
	mathbits "math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// AckBits explains the ack bits of a flow's headers. It remembers what the
// flow's headers have shown so far: how many bits there are, and what bit 0
// means.
type AckBits struct {
	flow  int
	kind  string // kind of message that a field of the header names; empty if none does
	width int    // bits, as far as headers have shown
	below int64  // 0 if bit 0 is the newest packet, 1 if it is the one below
	known bool   // whether below is known
}

// Lines explains the ack bits of a packet's header. It lists the sequence
// numbers that the bits stand for, and those that are missing. sender is the
// state of the header's sender. Lines returns nil if the header has no ack
// bits.
func (x *AckBits) Lines(f *analyze.Flow, r *analyze.Record, sender *machine.View, width int) []string {
	var d dissect.Dissection
	if f.Transport != r.Packet.Transport || len(r.Datagram.Bytes) == 0 {
		return nil
	}
	f.Protocol.Dissect(dissect.Context{Config: f.Config(), From: r.Datagram.From}, &r.Datagram, &d)
	ack, bits, count := int64(-1), uint64(0), 0
	kind, least := "", 16
	for i := range d.Fields {
		switch name := d.Fields[i].Spec.Name; {
		case strings.HasSuffix(name, ".type") && kind == "":
			kind, least = strings.ToLower(d.Fields[i].Spec.Enum[d.Fields[i].Uint]), 8
		case strings.HasSuffix(name, ".ack") && ack < 0:
			ack = int64(d.Fields[i].Uint)
		case strings.HasSuffix(name, ".ack_bits") && count == 0:
			if ack < 0 && i > 0 {
				ack = int64(d.Fields[i-1].Uint) // the ack has a name of the protocol's own
			}
			// A header may omit some of the bits. The width is that of the flow's
			// widest header.
			bits = d.Fields[i].Uint
			if x.flow != f.ID || x.kind != kind {
				*x = AckBits{flow: f.ID, kind: kind}
			}
			x.width = max(x.width, least, int(d.Fields[i].Bits), (mathbits.Len64(bits)+7)/8*8)
			count = x.width
		}
	}
	if ack < 0 || count == 0 {
		return nil
	}
	strip := []byte("ack bits  ")
	for i := count - 1; i >= 0; i-- {
		c := byte('0')
		if bits>>i&1 == 1 {
			c = '1'
		}
		if strip = append(strip, c); i%8 == 0 {
			strip = append(strip, ' ')
		}
	}
	out := []string{string(strip) + " \x1b[2m(the newest stands last)\x1b[0m"}
	// Protocols differ in the meaning of bit 0. It is shown once the flow's
	// headers fit only one of the two meanings.
	if below, ok := x.readBits(sender, ack, bits, count); ok {
		x.below, x.known = below, true
	}
	if !x.known {
		return out
	}
	first := ack - x.below
	var missing []string
	for i := range count {
		if bits>>i&1 == 0 {
			missing = append(missing, strconv.FormatInt((first-int64(i))&0xffff, 10))
		}
	}
	line := fmt.Sprintf("they stand for %d down to %d: all are there", first&0xffff, (first-int64(count)+1)&0xffff)
	if n := len(missing); n > 0 {
		line = fmt.Sprintf("they stand for %d down to %d; missing %s", first&0xffff, (first-int64(count)+1)&0xffff,
			strings.Join(missing[:min(n, 12)], " "))
		if n > 12 {
			line += fmt.Sprintf(" and %d more", n-12)
		}
	}
	return append(out, strings.Split(Wrap(line, "", width), "\n")...)
}

// readBits finds out what bit 0 of a header's ack bits means. It returns 0 for
// the packet that the header names as newest, and 1 for the one below. It
// compares both meanings with what the sender is known to have received. It
// returns false if both fit equally well.
func (x *AckBits) readBits(v *machine.View, ack int64, bits uint64, count int) (below int64, ok bool) {
	w := slices.IndexFunc(v.Windows, func(w machine.Window) bool { return w.Name == x.kind+" received" })
	if w < 0 {
		w = slices.IndexFunc(v.Windows, func(w machine.Window) bool { return strings.Contains(w.Name, "received") })
	}
	if w < 0 || v.Windows[w].Next < 0 {
		return 0, false
	}
	received := &v.Windows[w]
	var fits [2]int
	for below := range fits {
		for i := range count {
			sequence := received.Next + int64(int16(ack-int64(below)-int64(i)-received.Next))
			c, in := CellAt(received, sequence)
			if in && c != machine.CellUnknown && (c == machine.CellReceived || c == machine.CellClaimed) == (bits>>i&1 == 1) {
				fits[below]++
			}
		}
	}
	if fits[0] == fits[1] {
		return 0, false
	}
	if fits[1] > fits[0] {
		below = 1
	}
	return below, true
}
