// Package anonymise makes a copy of a capture that can be given to others. It
// replaces addresses and what the application said, field by field. Everything
// that shows how the traffic flowed stays: times, lengths, sequences, acks.
//
//	read     what is encrypted without a key? ── refused, before anything is written
//	read     streams and reassembled datagrams: their new bytes, by frame
//	write    link, IP, ports ── addresses.go, frame.go
//	         payload ────────── contents.go, by the protocol's own decoding
//	         checksums, CRC, MAC recomputed
//
// Equal bytes are replaced with equal bytes. So a copy stays a copy, and a
// resent message stays recognisable. Bytes that no protocol reads are replaced
// completely. A frame that is neither UDP nor TCP keeps only its time and
// length.
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
	// Key selects the replacements. With one key, equal bytes have equal
	// replacements. Without the key, an attacker cannot test a guess.
	Key [32]byte
	// Ports replaces ports too.
	Ports bool
	// Blank replaces encrypted bytes without a key as a whole. Otherwise Run
	// refuses them.
	Blank bool
	// Room bounds the approximate memory for the tables of addresses, datagrams
	// and streams, in bytes. 0 means no bound.
	Room int
}

// Report lists the replacements. It is as secret as the original.
type Report struct {
	Addresses []Replacement
	Ports     []Replacement
	Contents  []Content // per field
	Frames    uint64
	Blanked   uint64 // frames that are neither UDP nor TCP, of which only the length is left
}

// Replacement is an original name and its replacement.
type Replacement struct{ From, To string }

// Content is how much of a field was replaced.
type Content struct {
	Field string // "payload of unknown protocols" if no protocol reads it
	Count uint64
	Bits  uint64
}

// EncryptedError says that flows carry data that no key decrypts.
type EncryptedError struct {
	Flow  int // the first such flow
	Frame uint64
	More  int // number of further flows
}

func (e *EncryptedError) Error() string {
	s := fmt.Sprintf("flow %d, frame %d: encrypted, and no key given opens it: what is in it cannot be told from what "+
		"may leave; expected its keys (--keys), or to replace it as it is (--blank-encrypted)", e.Flow, e.Frame)
	if e.More > 0 {
		s += fmt.Sprintf("; %d more flows are the same", e.More)
	}
	return s
}

// RoomError says that a capture needs larger tables than allowed. The
// replacement of an address must stay the same to the end, so nothing can be
// removed.
type RoomError struct {
	What string
	Room int // bytes; 0 if the analysis removed flows
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

// Run anonymises a capture. It passes every frame to write, with a new link
// header, new addresses and contents, and without comments.
//
// An *EncryptedError comes before the first frame is written. A *RoomError can
// come later; the output is then of no use. If a capture ends early, Run
// anonymises it up to that point and returns the source's error.
func Run(src Source, analysis analyze.Options, o Options, write func(*capture.Frame) error) (*Report, error) {
	a := newAnonymiser(o)
	reading := analyze.Until(src, func() error { return a.err })
	gone := analysis.Gone
	analysis.Gone = func(f *analyze.Flow, why analyze.Reason) {
		if a.err == nil { // its later datagrams would be read differently, and held ones would not be written
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

// readable reports whether a capture was read to its end, or to the point where
// it is cut or damaged.
func readable(err error) bool {
	var cut *capture.CutError
	var damaged *capture.DamageError
	return err == nil || errors.Is(err, io.EOF) || errors.As(err, &cut) || errors.As(err, &damaged)
}

// anonymiser is the state of one run.
type anonymiser struct {
	options    Options
	names      names
	frames     framer
	fields     contents
	membership membership
	streams    map[way][]*stream
	streamed   int // bytes of the messages of streams
	held       int // approximate bytes of streams and spread
	spread     []spread

	patches   map[machine.Ref][]patch
	encrypted map[*analyze.Flow]bool
	closed    EncryptedError

	write func(*capture.Frame) error
	last  machine.Ref
	batch []byte // new bytes of datagrams that were captured as one, so far
	err   error
	total uint64
	blank uint64
}

// spread is a datagram whose bytes lie in several frames.
type spread struct {
	ref   machine.Ref
	spans []capture.Span
	bytes []byte // with replacements
	plain []byte // as captured
}

// patch is the new bytes of a part of a frame, known before the frame is
// written.
type patch struct {
	at    int
	bytes []byte
}

func newAnonymiser(o Options) *anonymiser {
	a := &anonymiser{
		options: o, streams: map[way][]*stream{}, patches: map[machine.Ref][]patch{},
		encrypted: map[*analyze.Flow]bool{},
	}
	a.names.init(o.Key, o.Ports)
	a.fields.init(o.Key, &a.names)
	a.frames.names = &a.names
	a.membership.init()
	return a
}

// collect processes a record of the first reading. It records what is
// encrypted, and computes the new bytes of datagrams that lie in several
// frames.
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
	a.membership.take(r.Flow, &r.Datagram, &a.fields.d)
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

// spreadCost is the approximate memory of a datagram in several frames, in
// bytes, in addition to its own bytes. The map of patches by frame is half
// empty after growth.
const spreadCost = int(unsafe.Sizeof(spread{})) + 2*int(unsafe.Sizeof(machine.Ref(0))+unsafe.Sizeof([]patch{}))

// fit ends the reading if the tables have outgrown their room.
func (a *anonymiser) fit() {
	if room := a.options.Room; room > 0 && a.err == nil && a.held+a.names.size()+a.membership.size() > room {
		a.err = &RoomError{"the tables of addresses, datagrams and streams", room}
	}
}

// elsewhere reports whether some of a packet's payload lies in other frames.
func elsewhere(p *capture.Packet) bool {
	return len(p.Spans) > 1 || len(p.Spans) == 1 && p.Spans[0].Ref != p.Ref
}

// lay computes the patches of each frame from the datagrams that lie in several
// frames.
func (a *anonymiser) lay() {
	for _, d := range a.spread {
		b := d.bytes
		if a.membership.foreign[d.ref] {
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

// take processes a record of the second reading, and writes its frame.
func (a *anonymiser) take(r *analyze.Record) {
	if a.err != nil || r.Frame == nil || r.Frame.Ref == a.last {
		return
	}
	if r.Batch.Count > 0 { // the frame is written with the last of its datagrams
		if r.Index == 0 {
			a.batch = a.batch[:0]
		}
		if a.batch = append(a.batch, a.replaced(r)...); r.More {
			return
		}
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
	case r.Batch.Count > 0:
		payload = a.batch
	default:
		payload = a.replaced(r)
	}
	if !a.frames.rewrite(&f, r.Packet, payload, a.patches[f.Ref]) {
		a.blank++
	}
	delete(a.patches, f.Ref)
	a.err = a.write(&f)
	a.fit()
}

// replaced returns the new bytes of a datagram that lies in one frame.
func (a *anonymiser) replaced(r *analyze.Record) []byte {
	if a.membership.foreign[r.Frame.Ref] {
		a.fields.foreign(len(r.Datagram.Bytes))
		return a.fields.scrambled(r.Datagram.Bytes)
	}
	b, err := a.fields.edited(r.Flow, &r.Datagram)
	if err != nil {
		b = a.fields.scrambled(r.Datagram.Bytes)
	}
	a.fields.count(r.Flow, err != nil)
	return b
}

func (a *anonymiser) report() *Report {
	return &Report{
		Addresses: a.names.addresses(), Ports: a.names.portList(), Contents: a.fields.list(),
		Frames: a.total, Blanked: a.blank,
	}
}
