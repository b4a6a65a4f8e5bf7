package judge

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// HeaderForm is the rule "header-form".
var HeaderForm = &machine.Rule{
	ID: "header-form", Severity: machine.Error,
	Summary: "a header is not written as its library writes it",
	Explain: `reliable writes a header in one way only. It leaves out a byte of ack_bits that is 0xff. It writes ack in one byte where sequence - ack is at most 255. Bits 6 and 7 of the prefix are 0. Fragment 0 holds the header of its own packet, in the same form. For example, the prefix is 0x3e, and the first byte of ack_bits is 0xff: the prefix should be 0x3c. rely, a port of reliable, writes bits 8 to 15 of ack_bits as 0 unless all of them are set. A header of 0x05ff is not of rely.

The datagram itself shows it, wherever the capture was taken. No packet that the capture lacks explains it. A receiver of reliable reads a regular header in any form. It drops a fragment 0 with such a header, and so the whole packet.

Look at the code that writes the header. Leave out a byte of ack_bits only where all of its bits are set. Compute sequence - ack modulo 65536. Build the header once for the packet, and write it into fragment 0.`,
}

// formDiverges returns the divergence of a header that no reliable endpoint writes. It
// returns nil for any other datagram. unread is the error of Parse.
func formDiverges(profile *wire.Profile, d *machine.Datagram, p *wire.Packet, unread error) *machine.Divergence {
	inside := wire.InFragmentHeader(unread)
	switch {
	case unread != nil && !inside, unread == nil && profile.Canonical(d.Bytes, p):
		return nil
	case inside && p.Header.Sequence != p.Sequence:
		v := machine.Diverge(d, HeaderForm, machine.RestsOnOwn,
			machine.Differ("gaffer.sequence", p.Sequence, p.Header.Sequence),
			fmt.Sprintf("fragment 0 of packet %d holds the header of packet %d", p.Sequence, p.Header.Sequence))
		v.Reference = fmt.Sprintf("fragment 0 with the header of packet %d", p.Sequence)
		v.Captured = fmt.Sprintf("fragment 0 with the header of packet %d", p.Header.Sequence)
		return v
	}
	at := p.HeaderOffset
	if inside {
		at = wire.FragmentHeaderLen
	}
	want, got := fmt.Sprintf("0x%02x", wire.CanonicalPrefix(p.Header)), fmt.Sprintf("0x%02x", d.Bytes[at])
	v := machine.Diverge(d, HeaderForm, machine.RestsOnOwn, machine.Differ("gaffer.prefix", want, got),
		fmt.Sprintf("reliable writes this sequence, this ack and these ack_bits with the prefix %s", want))
	v.Reference, v.Captured = "prefix "+want, "prefix "+got
	return v
}

// zeroedDiverges returns the divergence of a header that has some of the bits that its
// library writes together or not at all. It returns nil for any other header.
func zeroedDiverges(r *gaffer.Rules, d *machine.Datagram, h wire.Header) *machine.Divergence {
	part := h.AckBits & r.ZeroedAckBits
	if part == 0 || part == r.ZeroedAckBits {
		return nil
	}
	digits := r.AckBits / 4
	want, got := machine.Hex(h.AckBits&^r.ZeroedAckBits, digits), machine.Hex(h.AckBits, digits)
	v := machine.Diverge(d, HeaderForm, machine.RestsOnOwn, machine.Differ("gaffer.ack_bits", want, got),
		fmt.Sprintf("the library writes the bits %#x all set or all clear", r.ZeroedAckBits))
	v.Reference, v.Captured = "ack_bits "+want.String(), "ack_bits "+got.String()
	return v
}
