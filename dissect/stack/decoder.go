package stack

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
)

// MaxDepth bounds the layers of one packet, together with those that it quotes.
// Every nested tag or tunnel costs the same again, so that a frame of nothing
// but tags would cost the square of its length.
const MaxDepth = 16

// Chosen is what detection found for the flow of a packet. The zero value
// means that no protocol explains the flow.
type Chosen struct {
	Protocol *dissect.Protocol
	// Dissect returns the fields of the payload. It is called at most once.
	Dissect func() *dissect.Dissection
}

// Stack is a packet taken apart. It aliases the bytes that it was decoded from.
type Stack struct {
	Packet gopacket.Packet
	Layers []Layer // outermost first
	// Problem says which layer could not be decoded, and at which byte. It is
	// nil when everything decoded. It is a *LayerError.
	Problem error
}

// Layer is one layer of a packet, with its place.
type Layer struct {
	gopacket.Layer
	Offset int // of its first byte within the decoded bytes
	Length int // of its header in bytes, without what it carries
	// ByPort is set on layers that only a port number speaks for: on port 53,
	// bytes are taken for DNS. Nothing else shows that they are.
	ByPort bool
	// Quoted is the packet that an ICMP message quotes; nil for all others.
	Quoted *Stack

	header []byte // its bytes, which some decoders of gopacket do not set
}

// Header returns the layer's own bytes, without what it carries. They are what
// LayerContents returns, and are there for the layers of gopacket that leave
// LayerContents empty, too.
func (l *Layer) Header() []byte { return l.header }

// LayerError says which layer of a packet could not be decoded.
type LayerError struct {
	Layer  string // "ICMPv6"
	Offset int    // of that layer's first byte within the decoded bytes
	ByPort bool   // only a port number spoke for the layer
	Err    error
}

func (e *LayerError) Error() string {
	return fmt.Sprintf("%s at byte %d: %v", e.Layer, e.Offset, e.Err)
}

func (e *LayerError) Unwrap() error { return e.Err }

// Decode takes a captured frame apart. Of a frame whose link type is unknown it
// returns no layers. It accepts any bytes: it panics on none, and its cost is
// bounded by MaxDepth and the length of the frame.
func Decode(f *capture.Frame, c Chosen) *Stack {
	first := firstDecoder(f.LinkType)
	if first == nil {
		return &Stack{Packet: gopacket.NewPacket(f.Data, gopacket.DecodePayload, options)}
	}
	return decode(f.Data, first, &run{chosen: c})
}

// DecodeMessage takes a payload apart that has no headers before it in one
// frame: a message of a TCP stream.
func DecodeMessage(b []byte, c Chosen) *Stack {
	r := &run{chosen: c}
	if c.Protocol == nil {
		return decode(b, gopacket.DecodePayload, r)
	}
	return decode(b, own{c.Protocol.Name, r.datagram}, r)
}

// DecodeIP takes the payload of an IP packet apart that was joined of
// fragments. protocol is the number of the protocol that it carries.
func DecodeIP(b []byte, protocol uint8, c Chosen) *Stack {
	r := &run{chosen: c}
	return decode(b, r.transport(ipPayload(layers.IPProtocol(protocol))), r)
}

// options make gopacket decode one layer at a time, so that the run sees, and
// can change, which decoder is next.
var options = gopacket.DecodeOptions{Lazy: true, NoCopy: true}

func decode(b []byte, first gopacket.Decoder, r *run) *Stack {
	b = slices.Clip(b) // some decoders of gopacket slice beyond the length, up to the capacity
	r.data, r.out = b, &Stack{}
	r.out.Packet = gopacket.NewPacket(b, step{run: r, decoder: first}, options)
	r.out.Packet.Layers() // decodes all
	return r.out
}

// run is the decoding of one packet.
type run struct {
	data   []byte
	chosen Chosen
	base   int // of data within the frame, for a quoted packet
	depth  int
	byPort bool // a port number chose the layers from here on
	quoted bool // by an error of ICMP, as far as that has room
	inner  bool // within a tunnel: what detection found is of the outer packet
	out    *Stack
}

// step decodes one layer.
type step struct {
	run     *run
	decoder gopacket.Decoder
}

var errDepth = errors.New("expected at most 16 layers, found more")

// Decode implements gopacket.Decoder.
func (s step) Decode(data []byte, p gopacket.PacketBuilder) (err error) {
	r := s.run
	b := &building{PacketBuilder: p, run: r, data: data}
	r.depth++
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("expected a whole layer, found %d bytes (%v)", len(data), panicked)
		}
		if err != nil {
			r.fail(s, data, err)
		}
	}()
	if r.depth > MaxDepth {
		return errDepth
	}
	if err := s.decoder.Decode(data, b); err != nil || b.continued || b.last == nil || len(b.last.LayerPayload()) == 0 {
		return err
	}
	// Where gopacket knows no decoder for a number, some layers end the packet.
	return b.NextDecoder(gopacket.LayerTypeZero)
}

// fail records the first problem.
func (r *run) fail(s step, data []byte, err error) {
	if r.out.Problem != nil {
		return
	}
	at, ok := offset(r.data, data)
	if !ok {
		at = len(r.data)
	}
	r.out.Problem = &LayerError{Layer: nameOf(s.decoder), Offset: r.base + at, ByPort: r.byPort, Err: err}
}

// offset returns where part begins within whole, of which it is a slice.
func offset(whole, part []byte) (at int, ok bool) {
	at = cap(whole) - cap(part)
	if at < 0 || at > len(whole) || at+len(part) > len(whole) {
		return 0, false
	}
	return at, len(part) == 0 || &whole[at] == &part[0]
}

// building passes what a layer's decoder finds to gopacket, and keeps the place
// of each layer.
type building struct {
	gopacket.PacketBuilder
	run       *run
	data      []byte // what the decoder was given
	last      gopacket.Layer
	continued bool // the decoder has said what is next
}

// AddLayer implements gopacket.PacketBuilder.
func (b *building) AddLayer(l gopacket.Layer) {
	b.last = l
	b.PacketBuilder.AddLayer(l)
	contents := l.LayerContents()
	if len(contents) == 0 { // some decoders of gopacket set only the fields
		contents = b.data[:max(0, len(b.data)-len(l.LayerPayload()))]
	}
	at, ok := offset(b.run.data, contents)
	if !ok {
		at, _ = offset(b.run.data, b.data)
	}
	b.run.out.Layers = append(b.run.out.Layers,
		Layer{Layer: l, Offset: b.run.base + at, Length: len(contents), ByPort: b.run.byPort, header: contents})
}

// NextDecoder implements gopacket.PacketBuilder: it has the run decide what the
// payload is.
func (b *building) NextDecoder(next gopacket.Decoder) error {
	b.continued = true
	return b.PacketBuilder.NextDecoder(step{run: b.run, decoder: b.run.after(b.last, next)})
}
