package tracker

import (
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/vantage"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// opening holds the first messages of a flow until they show where the tap is. Many flows can be
// too short to show it, so an opening uses little memory. It weighs its messages only when it has
// enough.
type opening struct {
	config  riptide.Config
	facts   machine.Facts
	held    []heldMessage
	bytes   []byte            // of all held messages, one after the other
	place   *vantage.Evidence // nil until messages were weighed
	weighed int               // number of held messages that place has weighed
	ended   bool              // a Disconnect is held
	seen    counted           // of the held messages
}

// heldMessage is a message that waits for the vantage.
type heldMessage struct {
	at     machine.Instant
	ref    machine.Ref
	length uint32 // the top bits hold the side, and whether it is behind a hole
	end    uint32 // of its bytes in opening.bytes
}

const (
	// heldFromB is the bit of heldMessage.length that marks a message of side B.
	// Source: name, a bit of a held message
	heldFromB = 1 << 31
	// heldBehind is the bit of heldMessage.length that marks a message behind a hole.
	// Source: name, a bit of a held message
	heldBehind = 1 << 30
)

// Numbers of held messages at which the tap is placed: each power of two from holdLeast on. At
// holdMost the result is final.
const (
	// holdLeast is how many messages are held before the tap is first placed.
	// Source: measured, TestMarginsRiptide
	holdLeast = 16
	// holdMost is how many held messages place the tap for good.
	// Source: measured, TestMarginsRiptide
	holdMost = 512
)

// reopens reports whether a message opens another connection, after one that ended.
func (o *opening) reopens(p *sighting) bool {
	if !o.ended {
		return false
	}
	var m wire.Message
	return o.config.Senders[p.from].Codec.Fits(p.bytes, p.length, &m) && m.Type == wire.Connect
}

// hold keeps a message. enough reports whether it is time to place the tap.
func (o *opening) hold(p *sighting) (enough bool) {
	var m wire.Message
	if o.config.Senders[p.from].Codec.Fits(p.bytes, p.length, &m) {
		o.ended = o.ended || m.Type == wire.Disconnect
		o.seen.take(p.from, &m)
	}
	o.bytes = append(o.bytes, p.bytes...)
	h := heldMessage{p.at, p.ref, uint32(p.length) | uint32(p.from)*heldFromB, uint32(len(o.bytes))}
	if p.behind {
		h.length |= heldBehind
	}
	o.held = append(o.held, h)
	n := len(o.held)
	return n >= holdLeast && n&(n-1) == 0
}

// placeTap returns where the tap is, by the held messages.
func (o *opening) placeTap() vantage.Verdict {
	if o.place == nil {
		place := vantage.New(o.config.Stream)
		o.place = &place
	}
	var m wire.Message
	o.each(o.weighed, func(p *sighting) {
		if speaker := &o.config.Senders[p.from]; speaker.Codec.Fits(p.bytes, p.length, &m) {
			o.place.Weigh(p.at, p.from, speaker, &m)
		}
	})
	o.weighed = len(o.held)
	v := o.place.Verdict()
	v.Sure = v.Sure || o.weighed >= holdMost
	return v
}

// each calls do with the held messages from the nth on.
func (o *opening) each(n int, do func(*sighting)) {
	start := uint32(0)
	if n > 0 {
		start = o.held[n-1].end
	}
	for _, h := range o.held[n:] {
		do(&sighting{
			at: h.at, ref: h.ref, from: machine.Side(h.length >> 31), behind: h.length&heldBehind != 0,
			bytes: o.bytes[start:h.end:h.end], length: int(h.length &^ (heldFromB | heldBehind)),
		})
		start = h.end
	}
}

// follow returns a follower that has processed the held messages. The opening does not change.
func (o *opening) follow(v vantage.Verdict, out *machine.Effects) *follower {
	f := follow(o.config, o.facts, v.Vantage, v.Reason)
	f.weighing, f.releasing = true, true
	if o.place != nil {
		f.place = *o.place
	}
	o.each(0, func(p *sighting) { f.take(&step{sighting: *p, out: out}) })
	f.releasing = false
	return f
}

func (o *opening) clone() *opening {
	c := *o
	c.held, c.bytes = slices.Clone(o.held), slices.Clone(o.bytes)
	if o.place != nil {
		place := o.place.Clone()
		c.place = &place
	}
	return &c
}

// size returns about how many bytes a clone takes.
func (o *opening) size() int {
	n := int(unsafe.Sizeof(*o)) + len(o.bytes) + len(o.held)*int(unsafe.Sizeof(heldMessage{}))
	if o.place != nil {
		n += int(unsafe.Sizeof(*o.place))
	}
	return n
}
