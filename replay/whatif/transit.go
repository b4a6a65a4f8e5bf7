package whatif

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// settle converts what a side sent from the time of the tap to the side's own
// time. It also determines what the network did to each datagram.
//
//	near side   it left when it passed the tap; what its peer sent shows whether
//	            it arrived, and between which of the peer's packets
//	far side    what passed the tap arrived; it left OneWay earlier. The numbers
//	            that are missing were lost before the tap
func (r *recorder) settle(t *machine.Trace, s machine.Side) {
	x, peer := &t.Sides[s], &r.sides[s.Other()]
	r.askedIn(t, s)
	switch {
	case r.vantage == machine.VantageBoth:
		for i := range x.Sent {
			d := &x.Sent[i]
			d.Fate, d.Arrives, d.Certainty = machine.Yes, d.Left, machine.Certain
		}
	case x.Near:
		r.leaving(t, x, peer, t.Sides[s.Other()].Tick)
	default:
		r.coming(t, x, &r.sides[s])
	}
}

// merge joins a packet's fragments into one, since they leave together. It
// drops datagrams that only serve the connection.
func merge(sent []machine.Transit) []machine.Transit {
	out := sent[:0]
	for _, d := range sent {
		switch {
		case d.Role == machine.RoleConnection:
		case d.Role == machine.RolePacket && d.Number < 0 && len(out) > 0:
			out[len(out)-1].Length += d.Length
			out[len(out)-1].Last = d.Ref
		default:
			out = append(out, d)
		}
	}
	return out
}

// askedIn sorts the messages of a side by submission and converts them to the
// side's own time. A message was submitted no later than the next one left.
func (r *recorder) askedIn(t *machine.Trace, s machine.Side) {
	x := &t.Sides[s]
	early, late := time.Duration(0), time.Duration(0)
	if !x.Near {
		early = t.OneWay // for what it sends
	} else {
		late = t.OneWay // for what its peer shows
	}
	for i := range x.Messages {
		m := &x.Messages[i]
		m.Asked = m.Asked.Add(-early)
		if m.Delivered == machine.Yes {
			m.At = m.At.Add(-late)
		}
		if m.Settled != 0 {
			m.Settled = m.Settled.Add(early)
		}
	}
	slices.SortStableFunc(x.Messages, func(a, b machine.TraceMessage) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Order, b.Order))
	})
	for i := len(x.Messages) - 2; i >= 0; i-- {
		m, next := &x.Messages[i], &x.Messages[i+1]
		if m.Channel == next.Channel && m.Mode == next.Mode {
			m.Asked = min(m.Asked, next.Asked)
		}
		m.First = m.Asked
	}
	if n := len(x.Messages); n > 0 {
		x.Messages[n-1].First = x.Messages[n-1].Asked
	}
}

// leaving settles what a side at the tap sent.
func (r *recorder) leaving(t *machine.Trace, x *machine.TraceSide, peer *recorded, tick time.Duration) {
	newest := -1
	for i := range x.Sent {
		if x.Sent[i].Fate == machine.Yes {
			newest = i
			r.arrived(t, &x.Sent[i], peer, x.Sent[i].Arrives)
		}
	}
	// Headers ack the newest packets first: a packet that they passed over is
	// lost.
	for i := range newest {
		if d := &x.Sent[i]; d.Number >= 0 && d.Fate == machine.Unanswered {
			d.Fate, d.Certainty = machine.No, machine.Likely
		}
	}
	r.matched(t, x, peer)
	r.answered(t, x, peer, tick)
}

// arrived sets when a datagram arrived at the far side. The peer's packet that
// passed the tap at shown was the first to prove it. So the datagram arrived
// after the peer's packet before that one had left.
func (r *recorder) arrived(t *machine.Trace, d *machine.Transit, peer *recorded, shown machine.Instant) {
	k, _ := slices.BinarySearchFunc(peer.sent,
		shown, func(p machine.Transit, at machine.Instant) int { return cmp.Compare(p.Left, at) })
	d.Arrives = d.Left.Add(t.OneWay)
	if k > 0 {
		d.Arrives = max(d.Arrives, peer.sent[k-1].Left.Add(1-t.OneWay))
	}
	d.Arrives = max(d.Left, min(d.Arrives, shown.Add(-t.OneWay)))
}

// exchange is the questions of one side and the answers of the other under one
// id.
type exchange struct {
	asks    []int // indexes in Sent of the side that asks, in order
	answers []int // indexes in Sent of the side that answers
}

type exchangeKey struct {
	kind uint8
	id   uint32
}

// exchangeSpan is the silence after which an id belongs to another question.
const exchangeSpan = 20 * time.Second

// exchanges collects the exchanges of two sides. Instants are those of the tap.
func exchanges(asking, answering []machine.Transit) (list []exchange) {
	open := map[exchangeKey]int{}
	last := map[exchangeKey]machine.Instant{}
	i, k := 0, 0
	for i < len(asking) || k < len(answering) {
		if k == len(answering) || i < len(asking) && asking[i].Left <= answering[k].Left {
			d := &asking[i]
			if d.Role == machine.RoleAsks {
				key := exchangeKey{d.Kind, d.ID}
				n, ok := open[key]
				if !ok || d.Left.Sub(last[key]) > exchangeSpan {
					n = len(list)
					list, open[key] = append(list, exchange{}), n
				}
				list[n].asks, last[key] = append(list[n].asks, i), d.Left
			}
			i++
			continue
		}
		d := &answering[k]
		if n, ok := open[exchangeKey{d.Kind, d.ID}]; ok && d.Role == machine.RoleAnswers {
			list[n].answers = append(list[n].answers, k)
		}
		k++
	}
	return list
}

// matched settles the copies that a side at the tap sent, and that the other
// side answers one by one. When a copy has no answer, either the copy or its
// answer was lost:
//
//   - Some protocols' answers also name what else arrived. Then the first
//     answer that names the copy shows which one was lost.
//   - Otherwise the capture does not show it. matched alternates between the
//     two.
func (r *recorder) matched(t *machine.Trace, x *machine.TraceSide, peer *recorded) {
	trip := 2 * t.OneWay * 9 / 10
	also := slices.ContainsFunc(peer.sent, func(d machine.Transit) bool { return d.Also })
	carried := make(map[machine.Ref]*machine.TraceMessage, len(x.Messages))
	for i := range x.Messages {
		carried[x.Messages[i].Frames[0]] = &x.Messages[i]
	}
	lost := false
	var gone []machine.Transit
	for _, e := range exchanges(x.Sent, peer.sent) {
		next := 0
		for n, i := range e.asks {
			d := &x.Sent[i]
			after := machine.Instant(math.MaxInt64 / 2)
			if n+1 < len(e.asks) {
				after = x.Sent[e.asks[n+1]].Left
			}
			if next < len(e.answers) {
				at := peer.sent[e.answers[next]].Left
				left := len(e.asks) - n
				// The answers belong to the first copies that can have caused
				// them.
				if at.Sub(d.Left) >= trip && (at < after.Add(trip) || len(e.answers)-next >= left) {
					d.Fate, d.Certainty = machine.Yes, machine.Likely
					if len(e.asks) == 1 {
						d.Certainty = machine.Certain
					}
					r.arrived(t, d, peer, at)
					next++
					continue
				}
			}
			if r.end().Sub(d.Left) < 4*t.OneWay+time.Second/10 {
				continue // the answer may come after the capture
			}
			d.Certainty = machine.Possible
			itself := false
			if m := carried[x.Sent[e.asks[0]].Ref]; also && m != nil {
				shown := m.At.Add(t.OneWay)
				switch {
				case m.Delivered != machine.Yes || shown >= after.Add(trip):
					itself, d.Certainty = true, machine.Likely
				case shown.Sub(d.Left) >= trip:
					d.Certainty = machine.Likely
				default: // another copy had arrived before
					lost = !lost
					itself = lost
				}
			} else {
				lost = !lost
				itself = lost
			}
			if itself {
				d.Fate = machine.No
				continue
			}
			d.Fate, d.Arrives = machine.Yes, d.Left.Add(t.OneWay)
			gone = append(gone, machine.Transit{
				Left: d.Arrives, Number: -1, Fate: machine.No, Certainty: machine.Possible,
				Purpose: machine.Purpose{Role: machine.RoleAnswers, Kind: d.Kind, ID: d.ID},
			})
		}
	}
	r.gone = append(r.gone, gone...)
}

// answered settles the answers that a side at the tap sent. An answer was lost
// when another copy of the question left after the answer would have arrived.
func (r *recorder) answered(t *machine.Trace, x *machine.TraceSide, peer *recorded, tick time.Duration) {
	for _, e := range exchanges(peer.sent, x.Sent) {
		for _, k := range e.answers {
			d := &x.Sent[k]
			d.Fate, d.Arrives, d.Certainty = machine.Yes, d.Left.Add(t.OneWay), machine.Likely
			// The questions are in order, so the last one decides.
			if q := &peer.sent[e.asks[len(e.asks)-1]]; q.Left > d.Left.Add(2*t.OneWay+tick) {
				d.Fate = machine.No
			}
		}
	}
}

// end returns when the last datagram passed the tap.
func (r *recorder) end() machine.Instant {
	at := machine.Instant(math.MinInt64)
	for i := range r.sides {
		if n := len(r.sides[i].sent); n > 0 {
			at = max(at, r.sides[i].sent[n-1].Left)
		}
	}
	return at
}

// coming settles what came from a side far from the tap.
func (r *recorder) coming(t *machine.Trace, x *machine.TraceSide, from *recorded) {
	arrived := x.Sent
	x.Sent = nil
	room := gapMost + gapsMost*len(arrived)
	for i, d := range arrived {
		// A gap in the numbers before it shows packets that were lost before
		// the tap. A smaller number is a packet that was overtaken, and shows
		// no loss.
		if i > 0 && d.Number >= 0 {
			was := arrived[i-1]
			if missing := d.Number - was.Number - 1; missing > 0 && missing <= gapMost {
				if room -= int(missing); room < 0 {
					r.tooMany = true
					return
				}
				for n := range missing {
					if _, came := from.packets[was.Number+1+n]; came {
						continue
					}
					x.Sent = append(x.Sent, machine.Transit{
						Left:   was.Left.Add(-t.OneWay) + (d.Left-was.Left)*machine.Instant(n+1)/machine.Instant(missing+1),
						Number: was.Number + 1 + n, Length: was.Length, Fate: machine.No, Certainty: machine.Likely,
					})
				}
			}
		}
		d.Arrives, d.Fate, d.Certainty = d.Left, machine.Yes, machine.Certain
		d.Left = d.Left.Add(-t.OneWay)
		x.Sent = append(x.Sent, d)
	}
	x.Sent = append(x.Sent, r.gone...)
	x.Sent = append(x.Sent, unseen(t, x)...)
	slices.SortStableFunc(x.Sent, func(a, b machine.Transit) int { return cmp.Compare(a.Left, b.Left) })
}

// gapMost is the longest gap of numbers that counts as loss.
const gapMost = 4096

// gapsMost limits the lost packets that the numbers of a far side can show, for
// each packet that came. One gap comes on top. A forged capture can claim
// thousands.
const gapsMost = 16

// unseen returns the copies of a far side that were lost before the tap. It
// finds them in two ways:
//
//   - A message must have been sent before its first copy came.
//   - Copies of a message came a multiple of the usual time apart.
func unseen(t *machine.Trace, x *machine.TraceSide) (lost []machine.Transit) {
	index := make(map[machine.Ref]int, len(x.Sent))
	for i := range x.Sent {
		index[x.Sent[i].Ref] = i
	}
	step := usualStep(x, index)
	if step == 0 {
		near := &t.Sides[0]
		if near == x {
			near = &t.Sides[1]
		}
		of := make(map[machine.Ref]int, len(near.Sent))
		for i := range near.Sent {
			of[near.Sent[i].Ref] = i
		}
		step = usualStep(near, of)
	}
	add := func(like *machine.Transit, at machine.Instant) {
		lost = append(lost, machine.Transit{
			Left: at, Number: -1, Length: like.Length, Purpose: like.Purpose, Fate: machine.No, Certainty: machine.Possible,
		})
	}
	for i := range x.Messages {
		m := &x.Messages[i]
		k, ok := index[m.Frames[0]]
		if !ok || x.Sent[k].Role != machine.RoleAsks {
			continue
		}
		was := m.Asked
		if x.Sent[k].Left.Sub(was) > max(copySpan, x.Tick/2) {
			// A later message overtook it: it was sent again in whole steps.
			if step > 0 {
				first := x.Sent[k].Left
				if away := first.Sub(was); away > 0 {
					if over := away % step; over > 0 {
						away += step - over
					}
					first = first.Add(-away)
				}
				was = first
				m.Asked, m.First = was, was
			}
			add(&x.Sent[k], was)
		}
		for n := range min(m.Attempts, machine.MessageFrames) {
			k, ok := index[m.Frames[n]]
			if !ok {
				break
			}
			if step > 0 {
				for missing := int((x.Sent[k].Left.Sub(was) + step/2) / step); missing > 1 && missing < 16; missing-- {
					was = was.Add(step)
					add(&x.Sent[k], was)
				}
			}
			was = x.Sent[k].Left
		}
	}
	return lost
}

// usualStep returns the usual time between two copies of a message of a side,
// or 0 when too few copies show it. Copies in between may be lost, and some
// leave early, but most do not.
func usualStep(x *machine.TraceSide, index map[machine.Ref]int) time.Duration {
	var steps []time.Duration
	for i := range x.Messages {
		m := &x.Messages[i]
		for n := 1; n < min(m.Attempts, machine.MessageFrames); n++ {
			from, ok1 := index[m.Frames[n-1]]
			to, ok2 := index[m.Frames[n]]
			if ok1 && ok2 && x.Sent[from].Role == machine.RoleAsks {
				steps = append(steps, x.Sent[to].Left.Sub(x.Sent[from].Left))
			}
		}
	}
	if len(steps) < 4 {
		return 0
	}
	slices.Sort(steps)
	return steps[len(steps)*13/20]
}

// framesOf returns the frames of a side's game. There is one when it sent
// something, and in between one per frame time. The network may have pulled the
// datagrams of a frame apart. Those within half a frame time therefore count as
// one frame, at the time of the last. framesOf returns nil when the frame time
// is unknown.
func framesOf(x *machine.TraceSide) *machine.Frames {
	if x.Tick <= 0 || len(x.Sent) == 0 {
		return nil
	}
	frames, last := &machine.Frames{}, machine.Instant(0)
	for i := 0; i < len(x.Sent); {
		at := x.Sent[i].Left
		for first := at; i < len(x.Sent) && x.Sent[i].Left.Sub(first) < x.Tick/2; i++ {
			if x.Sent[i].Ref != 0 || x.Near {
				at = x.Sent[i].Left // the time of a packet that was lost before the tap is a guess
			}
		}
		if frames.Len() > 0 {
			gap := at.Sub(last)
			if gap < x.Tick/4 {
				continue
			}
			frames.AddBetween(last, at, int((gap+x.Tick/2)/x.Tick))
		}
		frames.Add(at)
		last = at
	}
	return frames
}
