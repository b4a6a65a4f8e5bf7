package replay

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// witness looks for proof that the capture lacks packets of a side at the tap:
// numbers that did not pass the tap among those that did, and that the peer
// acknowledges all the same. Two ends must agree on such a one; it takes several,
// since a single header that lies looks like one.
type witness struct {
	holes int
	stage machine.Stage
	near  [2]bool
	asked [2]map[uint32]bool
	top   [2]uint32
	met   [2]bool
	named map[uint32]bool
}

const (
	holesProve  = 2
	absentProve = 6
	rulesProve  = 3

	holeSpan  = 1024 // numbers behind the newest one that an answer may be late
	holeDense = 56   // of the 64 before it that must have passed
)

// found takes what the first run found: Gaffer's headers are looked through there.
func (w *witness) found(f *analyze.Flow) {
	for _, x := range f.Findings() {
		if x.Rule.CaptureLoss && x.Certainty == machine.Certain {
			w.holes += int(min(x.Count, holesProve))
		}
	}
}

func (w *witness) begin(f *analyze.Flow) {
	if f.Protocol.NewStage == nil {
		return
	}
	if s, err := f.Protocol.NewStage(f.Config()); err == nil {
		w.stage = s
	}
	for i := range w.near {
		w.near[i] = f.Facts().Vantage.Near(machine.Side(i))
		w.asked[i] = map[uint32]bool{}
	}
	w.named = map[uint32]bool{}
}

func (w *witness) observe(d *machine.Datagram) {
	if w.stage == nil {
		return
	}
	s := w.stage.Purpose(d)
	if s.Kind != 0 {
		return
	}
	switch s.Role {
	case machine.RoleAsks:
		if !w.near[d.From] {
			return
		}
		w.asked[d.From][s.ID] = true
		if ahead := s.ID - w.top[d.From]; !w.met[d.From] || ahead < 1<<14 {
			w.met[d.From], w.top[d.From] = true, s.ID
		}
		delete(w.asked[d.From], s.ID-4*holeSpan)
	case machine.RoleAnswers:
		from := d.From.Other()
		behind := w.top[from] - s.ID
		if !w.met[from] || w.asked[from][s.ID] || w.named[s.ID] || behind == 0 || behind > holeSpan {
			return
		}
		passed := 0
		for n := range uint32(64) {
			if w.asked[from][s.ID-1-n] {
				passed++
			}
		}
		if passed >= min(holeDense, int(s.ID)-2) && passed > 0 {
			w.named[s.ID] = true
			w.holes++
		}
	default:
	}
}

// proven reports whether the capture is known to lack packets: by holes that two
// ends agree on, or because both ends of flows seem to break so many different
// rules, all of them by what did not pass the tap, that no fault explains it.
func (l *look) proven() bool {
	holes, sides, rules := 0, [2]uint64{}, map[*machine.Rule]bool{}
	for _, x := range l.flows {
		holes += x.witness.holes
		if len(x.forgives) == 0 || x.forgives[0] == nil {
			continue
		}
		f := x.forgives[0]
		for s, n := range f.sides {
			sides[s] += n
		}
		for rule := range f.rules {
			rules[rule] = true
		}
	}
	return holes >= holesProve || min(sides[0], sides[1]) >= 2 && sides[0]+sides[1] >= absentProve &&
		len(rules) >= rulesProve
}

// twins tells a datagram that the tap captured twice from one that was sent twice,
// where the packet has no identification to tell it by: an endpoint does not send
// the same bytes again within microseconds.
type twins struct {
	last map[twinKey]twin
}

type twinKey struct {
	flow int
	from machine.Side
}

type twin struct {
	hash uint64
	at   machine.Instant
}

// forget lets go of a flow.
func (t *twins) forget(f *analyze.Flow) {
	delete(t.last, twinKey{f.ID, machine.A})
	delete(t.last, twinKey{f.ID, machine.B})
}

const twinWindow = 250 * time.Microsecond

func (t *twins) again(rec *analyze.Record) bool {
	d := &rec.Datagram
	if rec.Packet == nil || rec.Packet.IPID != 0 || rec.Message {
		return false
	}
	if t.last == nil {
		t.last = map[twinKey]twin{}
	}
	key, now := twinKey{rec.Flow.ID, d.From}, twin{machine.Digest(0, d.Bytes), d.At}
	was, ok := t.last[key]
	t.last[key] = now
	return ok && was.hash == now.hash && now.at.Sub(was.at).Abs() <= twinWindow
}
