package gaffer

import (
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// nearSide is the reference of a side at the tap.
//
// When within a frame a real endpoint reads its socket is not on the wire; that
// it reads in order is. So two states step through the same packets: ahead tries
// how many more must be read for a header, and base follows once that is settled.
type nearSide struct {
	base, ahead State
	opened      bool
	joined      bool // met in the middle: what is older than the capture is unknown
	joinedTop   uint32
	headers     int      // since it was joined
	unknown     []uint64 // of a joined one that keeps old entries: slots whose entry is not known

	queue  pendingQueue
	doubts []doubt
	last   machine.Ref // its last header

	arrived    []arrivedPacket // by sequence mod 64: what was read last
	refused    uint64
	unread     int    // at the end
	before     uint64 // headers that name packets from before the capture
	overflowed bool
}

// pendingPacket is a datagram that lies in a near side's socket.
type pendingPacket struct {
	ref       machine.Ref
	sequence  uint32
	id, count uint16
	headers   int // of the side that had passed when it came
}

// note keeps the frame of a packet that was read.
func (n *nearSide) note(p *pendingPacket) {
	if n.arrived == nil {
		n.arrived = make([]arrivedPacket, 64)
	}
	n.arrived[p.sequence%64] = arrivedPacket{p.ref, p.sequence}
}

type arrivedPacket struct {
	ref      machine.Ref
	sequence uint32
}

// doubt is a packet that was read and that the next header did not name: its
// application refused it, or the header is wrong. If a later header names it
// without another copy having come, the header was wrong.
type doubt struct {
	sequence   uint32
	arrived    machine.Ref
	divergence *machine.Divergence
}

const doubtsMost = 64

// pendingQueue is a ring of datagrams in order.
type pendingQueue struct {
	ring []pendingPacket
	head int
	n    int
}

func (q *pendingQueue) at(i int) *pendingPacket { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *pendingQueue) push(p pendingPacket) {
	if q.n == len(q.ring) {
		ring := make([]pendingPacket, max(8, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.n++
	*q.at(q.n - 1) = p
}

func (q *pendingQueue) drop(n int) {
	if n > 0 {
		q.head = (q.head + n) & (len(q.ring) - 1)
		q.n -= n
	}
}

func newNearSide(r *Rules) *nearSide {
	return &nearSide{base: NewState(r), ahead: NewState(r)}
}

// arrive puts a datagram into the side's socket.
func (n *nearSide) arrive(p pendingPacket) {
	if n.queue.n >= queueMost {
		// What became of the oldest is not known any more.
		n.queue.drop(1)
		n.overflowed = true
	}
	p.headers = n.headers
	n.queue.push(p)
}

// read has a state read one datagram.
func (n *nearSide) read(s *State, p *pendingPacket, refuse bool) {
	if p.count == 0 {
		s.Arrive(p.sequence, refuse)
		return
	}
	if s.ArriveFragment(p.sequence, int(p.id), int(p.count)) == FragmentComplete {
		s.Arrive(p.sequence, refuse)
		s.Forget(p.sequence)
	}
}

// judge holds a header of the side against the reference's.
func (n *nearSide) judge(s, peer *judged, d *machine.Datagram, h wire.Header) *machine.Divergence {
	c := s.claims(h)
	if !n.opened {
		n.open(s, h, c)
	}
	n.headers++
	v := n.match(s, peer, d, c)
	n.last = d.Ref
	return v
}

// open starts the reference: as an endpoint that has just begun, or where the
// side stands by its first header.
func (n *nearSide) open(s *judged, h wire.Header, c Claims) {
	r := n.base.rules
	n.opened = true
	if c.Nothing(r) || h.Sequence == 0 && !s.sent.met {
		return
	}
	n.joined, n.joinedTop = true, c.Newest
	n.base.Join(c)
	until := 0
	for i := range n.queue.n {
		if p := n.queue.at(i); n.base.Has(p.sequence) || p.sequence == c.Newest {
			until = i + 1
		}
	}
	for i := range until {
		if p := n.queue.at(i); p.count > 0 {
			n.read(&n.base, p, false)
		}
	}
	n.queue.drop(until)
	if r.NoStaleClear {
		n.unknown = make([]uint64, (r.Received+63)/64)
		for i := range r.Received {
			n.unknown[i/64] |= 1 << (i % 64)
		}
		for left := c.Named; left != 0; left &= left - 1 {
			n.know((c.Newest - uint32(bits.TrailingZeros64(left))) & r.mask())
		}
	}
	n.ahead = n.base.Clone()
}

// know says that the entry of a packet's slot is now known, if it was entered.
func (n *nearSide) know(q uint32) {
	if n.unknown != nil && n.base.Has(q) {
		i := slot(q, n.base.rules.Received)
		n.unknown[i/64] &^= 1 << (i % 64)
	}
}

func (n *nearSide) unknownSlot(q uint32) bool {
	if n.unknown == nil {
		return false
	}
	i := slot(q, n.base.rules.Received)
	return n.unknown[i/64]>>(i%64)&1 == 1
}

// match finds how much the side has read when it sent a header with these
// claims, and has the reference read that.
func (n *nearSide) match(s, peer *judged, d *machine.Datagram, c Claims) *machine.Divergence {
	r := n.base.rules
	if len(n.doubts) > 0 {
		n.retire(c)
	}
	if n.ahead.Claims() == c {
		return nil
	}
	for i := 0; i < n.queue.n; i++ {
		n.read(&n.ahead, n.queue.at(i), false)
		if n.ahead.Claims() == c {
			n.commit(i + 1)
			return nil
		}
		if r.Distance(n.ahead.NewestReceived(), c.Newest) > 0 && i > 0 {
			break // the window never goes back
		}
	}
	n.ahead = n.base.Clone()
	return n.explain(s, peer, d, c)
}

// commit takes it that the first i datagrams of the socket were read, all of
// them: ahead has read them already.
func (n *nearSide) commit(i int) {
	for k := range i {
		p := n.queue.at(k)
		n.read(&n.base, p, false)
		n.note(p)
		n.know(p.sequence)
	}
	n.queue.drop(i)
}

// explain looks for what else may have led to a header: packets that the
// application refused, or that came before the capture.
func (n *nearSide) explain(s, peer *judged, d *machine.Datagram, c Claims) *machine.Divergence {
	r := n.base.rules
	if c.Nothing(r) {
		return n.diverge(d, c, &n.base, "ack-went-back", "the side had received packets before, and says that it has not", refs(n.last)...)
	}
	if back := r.Distance(n.base.NewestReceived(), c.Newest); back > 0 && !n.base.Claims().Nothing(r) {
		return n.diverge(d, c, &n.base, "ack-went-back", fmt.Sprintf("ack is %d older than in the header before: the newest packet received never becomes an older one", back), refs(n.last)...)
	}
	if v := n.withdrawn(d, c); v != nil {
		return v
	}
	// How much must have been read so that all that is newly named was.
	trial := n.base.Clone()
	until, undecided := 0, false
	for left := c.Named; left != 0; left &= left - 1 {
		q := (c.Newest - uint32(bits.TrailingZeros64(left))) & r.mask()
		if n.base.Has(q) {
			continue
		}
		if i := n.whole(q); i > 0 {
			until = max(until, i)
			continue
		}
		if x := n.doubted(q); x != nil {
			return x.divergence
		}
		if !n.mayPrecede(peer, q) {
			return n.neverArrived(peer, d, c, q)
		}
		undecided = true
	}
	if c.Named&1 == 0 && c.Newest != n.base.NewestReceived() {
		i := n.begun(c.Newest)
		if i == 0 && !n.mayPrecede(peer, c.Newest) {
			return n.diverge(d, c, n.nearest(c), "ack-never-arrived", fmt.Sprintf("no fragment of packet %d, which ack names, passed the tap", c.Newest), refs(n.last)...)
		}
		undecided = undecided || i == 0
		until = max(until, i)
	}
	refused := n.retrace(&trial, c, until)
	if undecided {
		n.before++
		trial.Advance(c.Newest)
		for left := c.Named; left != 0; left &= left - 1 {
			if q := (c.Newest - uint32(bits.TrailingZeros64(left))) & r.mask(); !trial.Has(q) {
				trial.EnterReceived(q)
			}
		}
	}
	if trial.Claims() != c {
		want := trial.Claims()
		if len(refused) == 0 {
			return n.diverge(d, c, &trial, "ack-omitted", fmt.Sprintf("what the header names was read after what it lacks (%s)", lacking(r, want, c)), refs(n.last)...)
		}
		return n.diverge(d, c, n.nearest(c), "ack-order", "no order of what passed the tap towards the side leads to this header", refs(n.last)...)
	}
	for _, p := range refused {
		n.refuse(d, c, p)
	}
	n.base, n.ahead = trial, trial.Clone()
	for left := c.Named; left != 0 && n.unknown != nil; left &= left - 1 {
		n.know((c.Newest - uint32(bits.TrailingZeros64(left))) & r.mask())
	}
	for k := range until {
		p := n.queue.at(k)
		n.note(p)
		n.know(p.sequence)
	}
	n.queue.drop(until)
	s.opinion.Undecided++
	return nil
}

// retrace has trial read the first datagrams of the socket, with those refused
// that the header speaks of and does not name. It gives these.
func (n *nearSide) retrace(trial *State, c Claims, until int) (refused []pendingPacket) {
	r := trial.rules
	for i := range until {
		p := n.queue.at(i)
		behind := r.Distance(c.Newest, p.sequence)
		refuse := behind < 0 || behind < c.Width && c.Named>>uint(behind)&1 == 0
		has := trial.Has(p.sequence)
		if refuse && !has && p.count == 0 && trial.Judge(p.sequence) == Accepted {
			refused = append(refused, *p)
		}
		if refuse && p.count > 0 {
			if part := trial.PartialOf(p.sequence); part != nil && part.Missing == 1 && part.Have[p.id/64]>>(p.id%64)&1 == 0 || p.count == 1 {
				refused = append(refused, *p)
			}
		}
		n.read(trial, p, refuse)
	}
	return refused
}

// refuse takes it that the application refused a packet, with what is to be said
// should a later header name it all the same.
func (n *nearSide) refuse(d *machine.Datagram, c Claims, p pendingPacket) {
	if len(n.doubts) == doubtsMost {
		n.doubts = append(n.doubts[:0], n.doubts[1:]...)
		n.refused++
	}
	r := n.base.rules
	want := c
	rule := "ack-omitted"
	switch behind := r.Distance(c.Newest, p.sequence); {
	case behind >= 0 && behind < 64:
		want.Named |= 1 << uint(behind)
	case behind < 0:
		want.Newest, want.Named = p.sequence, c.Named<<uint(min(-behind, 64))|1
		if want.Width < 64 {
			want.Named &= 1<<uint(want.Width) - 1
		}
	}
	field, expected, got := fieldsOf(r, want, c)
	n.doubts = append(n.doubts, doubt{p.sequence, p.ref, &machine.Divergence{
		Ref: d.Ref, At: d.At, Rule: rule, Field: field, Expected: expected, Got: got,
		Because: fmt.Sprintf("packet %d was read before this header, which names later ones and not it; a later header names it without another copy of it", p.sequence),
		Frames:  refs(p.ref), Reference: picture(r, want), Captured: picture(r, c),
	}})
}

// retire drops the doubts that headers speak of no more: those were refused.
func (n *nearSide) retire(c Claims) {
	r := n.base.rules
	kept := n.doubts[:0]
	for _, x := range n.doubts {
		if r.Distance(c.Newest, x.sequence) < c.Width {
			kept = append(kept, x)
		} else {
			n.refused++
		}
	}
	n.doubts = kept
}

// doubted gives the doubt about a packet, nil for none.
func (n *nearSide) doubted(q uint32) *doubt {
	for i := range n.doubts {
		if n.doubts[i].sequence == q {
			return &n.doubts[i]
		}
	}
	return nil
}

// whole gives how many datagrams of the socket must be read for packet q to be
// received; 0 where it does not come to be.
func (n *nearSide) whole(q uint32) int {
	var have Partial
	if p := n.base.PartialOf(q); p != nil {
		have = *p
	}
	for i := range n.queue.n {
		p := n.queue.at(i)
		if p.sequence != q {
			continue
		}
		if p.count == 0 {
			return i + 1
		}
		if have.Count == 0 {
			have = Partial{Sequence: q, Count: int(p.count), Missing: int(p.count)}
		}
		if bit := uint64(1) << (p.id % 64); int(p.count) == have.Count && have.Have[p.id/64]&bit == 0 {
			have.Have[p.id/64] |= bit
			if have.Missing--; have.Missing == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// begun gives how many datagrams must be read for a fragment of packet q to have
// come; 0 where none did.
func (n *nearSide) begun(q uint32) int {
	for i := range n.queue.n {
		if p := n.queue.at(i); p.sequence == q && p.count > 0 {
			return i + 1
		}
	}
	return 0
}

// mayPrecede reports whether packet q may have come to the side before the
// capture began.
func (n *nearSide) mayPrecede(peer *judged, q uint32) bool {
	if n.unknownSlot(q) && n.base.rules.Distance(q, n.base.NewestReceived()) > 0 {
		return true // and the header before did not speak of it
	}
	if !n.joined || n.overflowed {
		return n.overflowed
	}
	r := n.base.rules
	switch peer.sent.sight(r, q) {
	case sightFragments:
		// The first of its fragments may have come before.
		return r.Distance(q, n.joinedTop) <= r.Partial
	case sightBefore:
		// It lay in the socket, unread, when the capture began.
		return n.headers <= joinedHeaders
	case sightAhead:
		return !peer.sent.met && n.headers <= joinedHeaders
	}
	return peer.sent.met && r.Distance(q, peer.sent.first) <= 0 && n.headers <= joinedHeaders
}

// joinedHeaders is for how many headers a side may still read what reached it
// before the capture began.
const joinedHeaders = 3

// withdrawn looks for packets that are received, in range, and no longer named.
func (n *nearSide) withdrawn(d *machine.Datagram, c Claims) *machine.Divergence {
	r := n.base.rules
	for k := range min(c.Width, 64) {
		q := (c.Newest - uint32(k)) & r.mask()
		if c.Named>>uint(k)&1 == 1 || !n.base.Has(q) || r.NoStaleClear && r.Distance(n.base.NewestReceived(), q) < 0 {
			continue
		}
		frames := refs(n.last)
		if n.arrived != nil && n.arrived[q%64].sequence == q {
			frames = refs(n.arrived[q%64].ref, n.last)
		}
		want := c
		want.Named |= 1 << uint(k)
		return n.diverge2(d, c, n.expected(c), "ack-withdrawn", fmt.Sprintf("packet %d was received, an earlier header names it, and this one speaks of it and does not", q), frames)
	}
	return nil
}

// neverArrived words that a header names a packet that never passed the tap
// towards the side.
func (n *nearSide) neverArrived(peer *judged, d *machine.Datagram, c Claims, q uint32) *machine.Divergence {
	what := "no packet of that number passed the tap"
	switch peer.sent.sight(n.base.rules, q) {
	case sightAhead:
		what = "its peer had not sent a packet of that number"
	case sightFragments:
		what = "not all of its fragments passed the tap"
	case sightWhole:
		what = "it was dropped when it came: as too old, or as refused"
	}
	frames := refs(n.last)
	return n.diverge2(d, c, n.expected(c), "ack-never-arrived", fmt.Sprintf("the header names packet %d, and %s towards this side", q, what), frames)
}

// expected gives the reference's claims that come nearest to a header: after
// how much of the socket the fewest bits differ.
func (n *nearSide) expected(c Claims) Claims {
	r := n.base.rules
	trial := n.base.Clone()
	best, least := trial.Claims(), 1000
	weigh := func() {
		w := trial.Claims()
		off := 0
		if w.Newest != c.Newest {
			off = 100 + min(max(r.Distance(w.Newest, c.Newest), r.Distance(c.Newest, w.Newest)), 100)
		}
		if off += bits.OnesCount64(w.Named ^ c.Named); off < least {
			best, least = w, off
		}
	}
	weigh()
	for i := range n.queue.n {
		n.read(&trial, n.queue.at(i), false)
		weigh()
	}
	return best
}

// nearest is expected as a state; it is only asked for its claims.
func (n *nearSide) nearest(c Claims) *State {
	want := n.expected(c)
	s := NewState(n.base.rules)
	s.Join(want)
	return &s
}

func (n *nearSide) diverge(d *machine.Datagram, c Claims, want *State, rule, because string, frames ...machine.Ref) *machine.Divergence {
	return n.diverge2(d, c, want.Claims(), rule, because, frames)
}

func (n *nearSide) diverge2(d *machine.Datagram, got, want Claims, rule, because string, frames []machine.Ref) *machine.Divergence {
	r := n.base.rules
	field, expected, found := fieldsOf(r, want, got)
	return &machine.Divergence{
		Ref: d.Ref, At: d.At, Rule: rule, Field: field, Expected: expected, Got: found, Because: because,
		Frames: frames, Reference: picture(r, want), Captured: picture(r, got),
	}
}

// lacking names the packets that want names and got does not.
func lacking(r *Rules, want, got Claims) string {
	for k := range min(want.Width, 64) {
		q := (want.Newest - uint32(k)) & r.mask()
		if want.Named>>uint(k)&1 == 1 && !got.names(r, q) {
			return fmt.Sprintf("packet %d", q)
		}
	}
	return "nothing"
}

// unreadMost is how many packets may lie in the socket of a side that goes on
// sending before it is doubted that it reads them.
const unreadMost = 64

// finish notes, at the end, what the side never showed to have read.
func (n *nearSide) finish(s *judged) {
	for i := range n.queue.n {
		if p := n.queue.at(i); p.headers+unreadMost < n.headers && n.ahead.Judge(p.sequence) == Accepted {
			n.unread++
		}
	}
	if n.unread > unreadMost || n.overflowed {
		s.opinion.Undecided++
	}
}

// why says what the headers that could not be decided left open.
func (n *nearSide) why() string {
	switch {
	case n.unread > unreadMost || n.overflowed:
		return fmt.Sprintf("%d packets arrived and no later header shows that they were read", n.unread)
	case n.before > 0 && (n.refused > 0 || len(n.doubts) > 0):
		return "packets from before the capture; packets that arrived and were not taken: refused by the application, or dropped by its host"
	case n.before > 0:
		return "packets from before the capture"
	}
	return "packets that arrived and were not taken: refused by the application, or dropped by its host"
}
