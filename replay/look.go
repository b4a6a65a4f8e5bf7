package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// look is a second look at the flows in which a side diverges. It asks whether the
// capture itself lacks packets, which a judge takes for packets that were never
// sent; and it finds the earlier frames from which each divergence follows.
type look struct {
	flows   map[int]*suspect
	dropped uint64 // by the capturing system, as the file counts
	counted bool   // the file says how many were dropped, be it none
	twins   twins
}

// suspect is one such flow.
type suspect struct {
	flow     *analyze.Flow
	trial    *trial
	until    machine.Ref // the last frame that diverges
	seen     int         // datagrams, of the first ones
	late     bool        // the capture lacks the connection's beginning
	witness  witness
	forgives []*forgiving // by judge; nil where nothing that it found rests on absence
	young    []*forgiving // the same, for a capture that began in the middle: these forgive at first only
	history  history
}

// joined notes whether the capture has the connection's beginning, where there is
// one to have. Without it, what is missing in the first moments may have passed
// before the capture.
func (x *suspect) joined(d *machine.Datagram) {
	o, ok := x.witness.stage.(machine.Opener)
	if !ok || x.seen > beginWithin {
		return
	}
	if x.seen++; x.seen == 1 {
		x.late = true
		for _, f := range x.young {
			if f != nil {
				f.before = d.At.Add(settlesIn)
			}
		}
	}
	if o.Opens(d) {
		x.late = false
	}
}

const (
	beginWithin = 8 // datagrams
	settlesIn   = 3 * time.Second
)

// why formats what was forgiven for.
func (x *suspect) why(l *look) string {
	switch {
	case l.dropped > 0:
		return fmt.Sprintf("the tap dropped %d packets, as the file counts: what is missing is held against nobody",
			l.dropped)
	case l.proven():
		return "the capture lacks packets: what both ends say agrees on that"
	}
	return "the capture began in the middle of the connection"
}

// newLook returns the flows that are worth a second look; nil where none is. first
// is the run that learned the survey, nil where it is not at hand.
func (r *run) newLook(first, s *analyze.Session) (*look, error) {
	l := &look{flows: map[int]*suspect{}, dropped: s.Dropped(), counted: s.Counted()}
	for id, t := range r.flows {
		x := &suspect{flow: t.flow, trial: t, forgives: make([]*forgiving, len(t.judges)),
			young: make([]*forgiving, len(t.judges))}
		for k := range t.judges {
			for side := range t.behaviours {
				d := t.judges[k].Opinion(machine.Side(side)).Divergence
				if d == nil {
					continue
				}
				x.until = max(x.until, d.Ref)
				if d.RestsOn.Absence() && x.forgives[k] == nil {
					var err1, err2 error
					x.forgives[k], err1 = newForgiving(x.flow.Protocol, x.flow.Config(), t.pair(k))
					x.young[k], err2 = newForgiving(x.flow.Protocol, x.flow.Config(), t.pair(k))
					if err := errors.Join(err1, err2); err != nil {
						return nil, err
					}
				}
			}
		}
		if x.until == 0 {
			continue
		}
		if first != nil {
			if f := first.Flow(id); f != nil && f.FirstRef == t.flow.FirstRef {
				x.witness.found(f)
			}
		}
		x.witness.begin(x.flow)
		l.flows[x.flow.ID] = x
	}
	if len(l.flows) == 0 {
		return nil, nil //nolint:nilnil // nothing to look at is no trouble
	}
	most := historyBytes + historyMost*datagramBytes
	if room := r.options.Analysis.Limits.Bytes / 2; room > 0 {
		most = min(most, room/len(l.flows))
	}
	for _, x := range l.flows {
		x.history.most = most
	}
	return l, nil
}

// record takes the next record of the analysis.
func (l *look) record(rec *analyze.Record) {
	if !judged(rec) {
		return
	}
	x := l.flows[rec.Flow.ID]
	if x == nil || l.twins.again(rec) {
		return
	}
	x.joined(&rec.Datagram)
	x.witness.observe(&rec.Datagram)
	for k, f := range x.forgives {
		if f != nil {
			f.observe(&rec.Datagram, l.dropped)
			x.young[k].observe(&rec.Datagram, 0)
		}
	}
	if rec.Datagram.Ref <= x.until {
		x.history.keep(&rec.Datagram)
	}
}

// settle replaces the opinions of flows of which the capture lacks packets, and
// explains what still diverges.
func (l *look) settle() error {
	lacks := l.dropped > 0 || !l.counted && l.proven()
	for _, x := range l.flows {
		for k, f := range x.forgives {
			if !lacks && x.late {
				f = x.young[k]
			} else if !lacks {
				break
			}
			if f == nil || f.forgiven == 0 {
				continue
			}
			f.finish(x.why(l))
			x.trial.opinions[k] = &f.opinions
		}
		for k := range x.trial.judges {
			for side := range x.trial.behaviours {
				if d := x.trial.opinion(k, machine.Side(side)).Divergence; d != nil {
					if err := x.explain(k, machine.Side(side), d); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// history is what passed of a flow, the newest of it where that is too much.
type history struct {
	list  []machine.Datagram
	bytes int
	most  int // bytes, of datagrams with what they carry
	cut   bool
}

const (
	historyMost   = 1 << 15  // datagrams
	historyBytes  = 32 << 20 // that they carry, of one flow
	datagramBytes = int(unsafe.Sizeof(machine.Datagram{}))
)

func (h *history) keep(d *machine.Datagram) {
	x := *d
	x.Bytes = slices.Clone(d.Bytes)
	h.list = append(h.list, x)
	h.bytes += len(x.Bytes)
	if len(h.list) > historyMost || h.bytes > historyBytes || h.bytes+len(h.list)*datagramBytes > h.most {
		n := max(len(h.list)/4, 1)
		for _, y := range h.list[:n] {
			h.bytes -= len(y.Bytes)
		}
		h.list, h.cut = slices.Delete(h.list, 0, n), true
	}
}
