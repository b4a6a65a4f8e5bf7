package sim

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Path is what one direction of a link does to the traffic on it. The zero
// value is a perfect wire.
type Path struct {
	Delay  time.Duration // one way
	Jitter time.Duration // adds a uniform time of 0 to Jitter to each datagram
	// InOrder keeps datagrams in order: a datagram that jitter delays also
	// delays those behind it. Without it, jitter reorders.
	InOrder bool

	Loss      float64 // probability that a datagram is lost
	Bursts    Gilbert
	Duplicate float64 // probability that a datagram arrives twice
	Outages   []Outage

	Rate  int // bits a second on the path's first hop; 0 means unlimited
	Queue int // bytes that may wait for the first hop, more are dropped; 0 means 64 KiB

	// Segment is the largest piece of a stream; 0 means 1460 bytes. Resend is
	// how long after its loss a segment is sent again; 0 means 200 ms.
	Segment int
	Resend  time.Duration
}

// Gilbert is the two-state model of bursts (Gilbert 1960, Elliott 1963). In the
// good state no datagram is lost. In the bad state datagrams are lost with
// probability Loss. The state may change before each datagram.
type Gilbert struct {
	ToBad, ToGood float64 // probability of leaving the good state, and the bad state
	Loss          float64 // in the bad state; 0 means that all are lost
}

// Outage is a time in which everything that is sent is lost.
type Outage struct {
	From  machine.Instant
	For   time.Duration
	Every time.Duration // period of repetition; 0 means once
}

func (o Outage) covers(t machine.Instant) bool {
	since := t.Sub(o.From)
	if since < 0 {
		return false
	}
	if o.Every > 0 {
		since %= o.Every
	}
	return since < o.For
}

// direction is one direction of a link: from a host to one of its peers.
type direction struct {
	world *World
	does  *Impairment
	to    *Host
	from  machine.Peer // the receiver's number for the sender
	taps  []tapping
}

// tapping is a tap on one direction.
type tapping struct {
	at  float64 // position, as a share of the delay from the sender, 0..1
	see func(Tapped)
	is  Tapped // the fields that all its results share
}

// Tapped is one thing that a tap saw.
type Tapped struct {
	At     machine.Instant
	From   *Host
	To     *Host
	Kind   machine.TransmitKind
	Offset uint64 // for SendBytes: of the bytes in the stream
	Bytes  []byte // the tap may keep them; they never change
}

// Connect connects two hosts by a link with one path for each direction. The
// result holds the number of each host at the other.
func (w *World) Connect(a, b *Host, toB, toA Path) *Link {
	l := w.link(a, b)
	l.ab = w.direction(a, b, l.PeerOfB, toB)
	l.ba = w.direction(b, a, l.PeerOfA, toA)
	a.peers = append(a.peers, l.ab)
	b.peers = append(b.peers, l.ba)
	return l
}

// Link is a pair of paths between two hosts.
type Link struct {
	A, B    *Host
	PeerOfA machine.Peer // A's number for B
	PeerOfB machine.Peer // B's number for A

	ab, ba tappable
}

type tappable interface {
	sender
	tap(t tapping)
}

func (w *World) link(a, b *Host) *Link {
	return &Link{A: a, B: b, PeerOfA: machine.Peer(len(a.peers)), PeerOfB: machine.Peer(len(b.peers))}
}

func (w *World) direction(from, to *Host, peer machine.Peer, p Path) *direction {
	return &direction{world: w, does: Impair(p, w.seed, from.Name, to.Name), to: to, from: peer}
}

// Tap calls see with everything that passes a point of the link, in order of
// time. At 0 the tap is at host A: it sees all that A sends, and what reaches A
// of all that B sends. At 1 it is at B. In between, a lost datagram may have
// passed the tap or not.
func (l *Link) Tap(at float64, see func(Tapped)) {
	l.ab.tap(tapping{at: at, see: see, is: Tapped{From: l.A, To: l.B}})
	l.ba.tap(tapping{at: 1 - at, see: see, is: Tapped{From: l.B, To: l.A}})
}

func (d *direction) tap(t tapping) { d.taps = append(d.taps, t) }

// send carries one datagram.
func (d *direction) send(kind machine.TransmitKind, b []byte) {
	if kind != machine.SendDatagram {
		return
	}
	b = append([]byte(nil), b...)
	d.leave(b)
	f := d.does.Datagram(d.world.now, len(b))
	if f.Dropped {
		return
	}
	d.pass(f.Leaves, f.Travel, f.Reach, b)
	if !f.Lost {
		d.arrive(f.Leaves.Add(f.Travel), b)
	}
	if f.Twice {
		d.passCopy(f.Leaves, f.Travel, f.CopyTravel, f.TwiceAt, b)
		d.arrive(f.Leaves.Add(f.CopyTravel), b)
	}
}

// leave shows b to the taps at the sender, which see it before it waits for the
// first hop.
func (d *direction) leave(b []byte) {
	for i := range d.taps {
		if t := &d.taps[i]; t.at <= 0 {
			t.show(d.world, d.world.now, machine.SendDatagram, 0, b)
		}
	}
}

// pass shows b to the taps on the way, up to the share reach of it.
func (d *direction) pass(start machine.Instant, travel time.Duration, reach float64, b []byte) {
	for i := range d.taps {
		if t := &d.taps[i]; t.at > 0 && t.at <= reach {
			t.show(d.world, start.Add(share(travel, t.at)), machine.SendDatagram, 0, b)
		}
	}
}

// passCopy shows the copy of a datagram that was duplicated at the share
// twiceAt.
func (d *direction) passCopy(start machine.Instant, travel, whole time.Duration, twiceAt float64, b []byte) {
	first := float64(travel) * twiceAt
	for i := range d.taps {
		t := &d.taps[i]
		if t.at <= twiceAt {
			continue
		}
		part := (t.at - twiceAt) / (1 - twiceAt)
		t.show(d.world, start.Add(time.Duration(first+(float64(whole)-first)*part)), machine.SendDatagram, 0, b)
	}
}

func (t *tapping) show(w *World, at machine.Instant, kind machine.TransmitKind, offset uint64, b []byte) {
	seen := t.is
	seen.At, seen.Kind, seen.Offset, seen.Bytes = at, kind, offset, b
	w.at(at, func() { t.see(seen) })
}

func share(d time.Duration, part float64) time.Duration { return time.Duration(float64(d) * part) }

func (d *direction) arrive(at machine.Instant, b []byte) {
	d.world.at(at, func() { d.to.arrive(machine.Arrive{From: d.from, Bytes: b}) })
}
