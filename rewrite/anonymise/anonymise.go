// Package anonymise makes of a capture one that can be given to others: addresses
// and what the application said are replaced, field by field, and everything that
// tells how the traffic went stays as it was: times, lengths, sequences, acks.
//
//	read     what is encrypted without a key? ── refused, before anything is written
//	read     streams and reassembled datagrams: their bytes to come, by frame
//	write    link, IP, ports ── addresses.go, frame.go
//	         payload ────────── contents.go, by the protocol's own decoding
//	         checksums, CRC, MAC right again
//
// The same bytes give the same bytes: a copy stays a copy, a message that is sent
// again stays recognisable. What nothing reads is replaced whole; a frame that is
// neither UDP nor TCP keeps its time and length and nothing else.
//
// Ring 4 of the house.
package anonymise

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Options say what is replaced.
type Options struct {
	// Key makes the replacements: with the same key the same bytes are replaced by
	// the same ones, and without it nobody can test a guess.
	Key [32]byte
	// Ports replaces ports too.
	Ports bool
	// Blank replaces what is encrypted without a key as bytes, where it would be
	// refused.
	Blank bool
	// Room bounds the bytes that the tables of addresses, datagrams and streams may
	// take, about. 0: no bound.
	Room int
}

// Report is what was replaced by what. It is as secret as the original.
type Report struct {
	Addresses []Replacement
	Ports     []Replacement
	Contents  []Content // by field
	Frames    uint64
	Blanked   uint64 // frames that are neither UDP nor TCP: nothing of them is left but their length
}

// Replacement is one name and the other.
type Replacement struct{ From, To string }

// Content is how much of a field was replaced.
type Content struct {
	Field string // "payload of unknown protocols" where no protocol reads it
	Count uint64
	Bits  uint64
}

// EncryptedError says that flows carry what no key opens.
type EncryptedError struct {
	Flow  int // the first such flow
	Frame uint64
	More  int // further flows
}

func (e *EncryptedError) Error() string {
	s := fmt.Sprintf("flow %d, frame %d: encrypted, and no key given opens it: what is in it cannot be told from what "+
		"may leave; expected its keys (--keys), or to replace it as it is (--blank-encrypted)", e.Flow, e.Frame)
	if e.More > 0 {
		s += fmt.Sprintf("; %d more flows are the same", e.More)
	}
	return s
}

// RoomError says that a capture needs larger tables than it may have. What takes the
// place of an address must be the same to the end, so nothing is let go.
type RoomError struct {
	What string
	Room int // bytes; 0 where the analysis let go of flows
}

func (e *RoomError) Error() string {
	const advice = ": nothing is written; give more room by --memory, or anonymise the capture in parts"
	if e.Room == 0 {
		return e.What + " do not fit in memory" + advice
	}
	return fmt.Sprintf("%s take more than %d bytes%s", e.What, e.Room, advice)
}

// Source is a capture that can be read several times.
type Source interface {
	capture.Source
	Rewind() error
}

// Run anonymises a capture: every frame goes to write, with a new link header, new
// addresses and contents, and without comments. An *EncryptedError comes before
// the first frame is written. A *RoomError can come later: what was written is then
// of no use. A capture that ends early is anonymised up to there;
// the error says so.
func Run(src Source, analysis analyze.Options, o Options, write func(*capture.Frame) error) (*Report, error) {
	a := newAnonymiser(o)
	reading := analyze.Until(src, func() error { return a.err })
	gone := analysis.Gone
	analysis.Gone = func(f *analyze.Flow, why analyze.Reason) {
		if a.err == nil { // its datagrams would be read otherwise, and those that were held not written
			a.err = &RoomError{What: "the flows"}
		}
		if gone != nil {
			gone(f, why)
		}
	}
	learned, err := analyze.Learn(reading, analysis)
	if err != nil {
		return nil, err
	}
	if learned.Begun() > uint64(len(learned.Flows())) {
		return nil, &RoomError{What: "the flows"}
	}
	analysis.Survey, analysis.Sink = learned.Survey(), a.collect
	s, err := analyze.Run(reading, analysis)
	if a.err != nil {
		return nil, a.err
	}
	if !readable(err) {
		return nil, err
	}
	if a.closed.Flow > 0 {
		a.closed.More = len(a.encrypted) - 1
		return nil, &a.closed
	}
	if err := src.Rewind(); err != nil {
		return nil, err
	}
	a.lay()
	analysis.Survey, analysis.Sink, analysis.NoEvents, analysis.Untracked = s.Survey(), a.take, true, true
	a.write = write
	_, ended := analyze.Run(reading, analysis)
	if a.err != nil {
		return nil, a.err
	}
	if !readable(ended) {
		return nil, ended
	}
	return a.report(), ended
}

// readable reports whether a capture was read to its end, or up to where it is cut
// or damaged.
func readable(err error) bool {
	var cut *capture.CutError
	var damaged *capture.DamageError
	return err == nil || errors.Is(err, io.EOF) || errors.As(err, &cut) || errors.As(err, &damaged)
}

// anonymiser is one run.
type anonymiser struct {
	options  Options
	names    names
	frames   framer
	fields   contents
	lineage  lineage
	streams  map[way][]*stream
	streamed int // bytes of their messages
	held     int // bytes of streams, and of spread, about
	spread   []spread

	patches   map[machine.Ref][]patch
	encrypted map[*analyze.Flow]bool
	closed    EncryptedError

	write func(*capture.Frame) error
	last  machine.Ref
	err   error
	total uint64
	blank uint64
}

// spread is a datagram whose bytes lie in other frames than the one that completes it.
type spread struct {
	ref   machine.Ref
	spans []capture.Span
	bytes []byte // edited
	plain []byte // as captured
}

// patch is bytes that a frame is to have, known before the frame is written.
type patch struct {
	at    int
	bytes []byte
}

func newAnonymiser(o Options) *anonymiser {
	a := &anonymiser{options: o, streams: map[way][]*stream{}, patches: map[machine.Ref][]patch{},
		encrypted: map[*analyze.Flow]bool{}}
	a.names.init(o.Key, o.Ports)
	a.fields.init(o.Key, &a.names)
	a.frames.names = &a.names
	a.lineage.init()
	return a
}

// collect takes a record of the first reading: it notes what is encrypted, and
// works out what spreads over several frames.
func (a *anonymiser) collect(r *analyze.Record) {
	if r.Flow == nil {
		return
	}
	if r.Flow.Transport == capture.TCP {
		a.segment(r)
		return
	}
	if r.Packet == nil {
		return
	}
	defer a.fit()
	a.fields.learn(r.Flow, &r.Datagram)
	a.fields.quick = !elsewhere(r.Packet)
	b, err := a.fields.edited(r.Flow, &r.Datagram)
	a.fields.quick = false
	if err != nil {
		if !a.options.Blank && !a.encrypted[r.Flow] {
			a.encrypted[r.Flow] = true
			if a.closed.Flow == 0 {
				a.closed = EncryptedError{Flow: r.Flow.ID, Frame: r.Datagram.Ref.Frame()}
			}
		}
		return
	}
	a.lineage.take(r.Flow, &r.Datagram, &a.fields.d)
	if elsewhere(r.Packet) {
		a.fields.count(r.Flow, false)
		a.spread = append(a.spread, spread{
			ref: r.Packet.Ref, spans: append([]capture.Span(nil), r.Packet.Spans...),
			bytes: b, plain: append([]byte(nil), r.Datagram.Bytes...),
		})
		a.held += spreadCost + len(r.Packet.Spans)*int(unsafe.Sizeof(capture.Span{})+unsafe.Sizeof(patch{})) + len(b) +
			len(r.Datagram.Bytes)
	}
}

// spreadCost is what a datagram that is spread over frames takes, about, in bytes,
// beside its own: the map of patches by frame is half empty after it has grown.
const spreadCost = int(unsafe.Sizeof(spread{})) + 2*int(unsafe.Sizeof(machine.Ref(0))+unsafe.Sizeof([]patch{}))

// fit ends the reading where the tables have outgrown their room.
func (a *anonymiser) fit() {
	if room := a.options.Room; room > 0 && a.err == nil && a.held+a.names.size()+a.lineage.size() > room {
		a.err = &RoomError{"the tables of addresses, datagrams and streams", room}
	}
}

// elsewhere reports whether the payload of a packet lies in other frames too.
func elsewhere(p *capture.Packet) bool {
	return len(p.Spans) > 1 || len(p.Spans) == 1 && p.Spans[0].Ref != p.Ref
}

// lay works out what each frame gets of the datagrams that are spread over several.
func (a *anonymiser) lay() {
	for _, d := range a.spread {
		b := d.bytes
		if a.lineage.foreign[d.ref] {
			b = a.fields.scrambled(d.plain)
		}
		for _, s := range d.spans {
			n := min(s.Length, len(b))
			a.patches[s.Ref] = append(a.patches[s.Ref], patch{s.Offset, b[:n]})
			b = b[n:]
		}
	}
	a.spread = nil
}

// take takes a record of the second reading, and writes its frame.
func (a *anonymiser) take(r *analyze.Record) {
	if a.err != nil || r.Frame == nil || r.Frame.Ref == a.last {
		return
	}
	a.last = r.Frame.Ref
	a.total++
	f := *r.Frame
	f.KeepPassing()
	var payload []byte
	switch {
	case r.Flow == nil:
	case r.Flow.Transport == capture.TCP:
		payload = a.rewritten(r)
	case elsewhere(r.Packet):
	case a.lineage.foreign[f.Ref]:
		payload = a.fields.scrambled(r.Datagram.Bytes)
		a.fields.foreign(len(payload))
	default:
		b, err := a.fields.edited(r.Flow, &r.Datagram)
		if err != nil {
			b = a.fields.scrambled(r.Datagram.Bytes)
		}
		payload = b
		a.fields.count(r.Flow, err != nil)
	}
	if !a.frames.rewrite(&f, r.Packet, payload, a.patches[f.Ref]) {
		a.blank++
	}
	delete(a.patches, f.Ref)
	a.err = a.write(&f)
	a.fit()
}

func (a *anonymiser) report() *Report {
	return &Report{
		Addresses: a.names.addresses(), Ports: a.names.portList(), Contents: a.fields.list(),
		Frames: a.total, Blanked: a.blank,
	}
}
