package tracker

import (
	"errors"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sighting is one datagram as it passed the tap.
type sighting struct {
	at       machine.Instant
	ref      machine.Ref
	ackBits  uint64
	sequence uint32
	ack      uint32
	length   uint32 // of the UDP payload
	payload  uint32 // of the packet's own payload, after its header
	id       uint16 // number of the fragment
	count    uint16 // of fragments; 0 for a whole packet
	from     machine.Side
	header   bool // ack and ackBits are set
}

// parse reads a datagram into p. It returns false if the datagram carries no packet
// with a sequence.
func (t *Tracker) parse(d *machine.Datagram, p *sighting, out *machine.Effects) bool {
	var h wire.Header
	n, ok := t.profile.ParseRegular(d.Bytes, d.Length, &h)
	if !ok || !t.numbered {
		return t.parseAny(d, p, out)
	}
	if t.canonical && d.Bytes[0] != wire.CanonicalPrefix(h) {
		out.At(d.At, d.Ref).Report(gaffer.NonCanonical, d.From, machine.Certain, 0)
	}
	p.at, p.ref, p.from = d.At, d.Ref, d.From
	p.length, p.payload = uint32(d.Length), uint32(max(d.Length, len(d.Bytes))-n)
	p.sequence, p.ack, p.ackBits, p.header = h.Sequence, h.Ack, h.AckBits, true
	return true
}

// parseAny is parse for any datagram.
func (t *Tracker) parseAny(d *machine.Datagram, p *sighting, out *machine.Effects) bool {
	var k wire.Packet
	err := t.profile.Parse(d.Bytes, d.Length, &k)
	if k.Kind > wire.KindFragment || !t.numbered {
		return false
	}
	if err != nil {
		if !errors.Is(err, base.ErrSnapped) {
			out.At(d.At, d.Ref).Report(gaffer.MalformedPacket, d.From, machine.Certain, 0, float64(d.Length))
			return false
		}
		if k.Kind != wire.KindFragment || k.FragmentCount == 0 {
			return false // the snap length cut off what it was
		}
		k.HasHeader = false
	} else if t.canonical && k.Kind == wire.KindRegular && d.Bytes[0] != wire.CanonicalPrefix(k.Header) {
		out.At(d.At, d.Ref).Report(gaffer.NonCanonical, d.From, machine.Certain, 0)
	}
	p.at, p.ref, p.from = d.At, d.Ref, d.From
	p.length, p.payload = uint32(d.Length), uint32(k.PayloadLen)
	p.sequence, p.ack, p.ackBits, p.header = k.Sequence, k.Header.Ack, k.Header.AckBits, k.HasHeader
	if k.Kind == wire.KindFragment {
		p.id, p.count = uint16(k.FragmentID), uint16(k.FragmentCount)
	}
	return true
}
