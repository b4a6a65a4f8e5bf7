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

// recheck reads once more the flows in which a side diverges. It asks whether the capture itself
// lacks packets, since a judge takes such packets for packets that were never sent. It also
// finds the earlier frames from which each divergence follows.
type recheck struct {
	flows   map[int]*suspect
	dropped uint64 // packets that the capturing system dropped, as the file counts
	counted bool   // the file says how many were dropped, or that none were
	copies  copiesAtTap
}

// suspect is one such flow.
type suspect struct {
	flow       *analyze.Flow
	comparison *comparison
	until      machine.Ref // the last frame that diverges
	seen       int         // how many of the first datagrams were seen
	late       bool        // the capture lacks the connection's beginning
	gaps       captureGaps
	lossy      []*lossyJudge // by judge, for a lossy capture; nil where nothing that it found rests on an absence
	lateStart  []*lossyJudge // the same for a late start: these ignore divergences at first only
	history    history
}

// joined records whether the capture has the beginning of the connection, if its protocol has
// one. If it does not, packets that are missing in the first moments may have passed before
// the capture.
func (x *suspect) joined(d *machine.Datagram) {
	o, ok := x.gaps.stage.(machine.Opener)
	if !ok || x.seen > beginWithin {
		return
	}
	if x.seen++; x.seen == 1 {
		x.late = true
		for _, f := range x.lateStart {
			if f != nil {
				f.until = d.At.Add(settlesIn)
			}
		}
	}
	if o.Opens(d) {
		x.late = false
	}
}

const (
	beginWithin = 8 // in datagrams
	settlesIn   = 3 * time.Second
)

// why says why divergences were ignored.
func (x *suspect) why(c *recheck) string {
	switch {
	case c.dropped > 0:
		return fmt.Sprintf("the capturing host dropped %d packets, as the file says, so no side is blamed for what is "+
			"missing",
			c.dropped)
	case c.proven():
		return "the capture lacks packets: what both ends sent proves it"
	}
	return "the capture began in the middle of the connection"
}

// newRecheck returns the flows to check again; nil where there are none.
func (r *run) newRecheck(s *analyze.Session) (*recheck, error) {
	c := &recheck{flows: map[int]*suspect{}, dropped: s.Dropped(), counted: s.Counted()}
	for _, t := range r.flows {
		x := &suspect{
			flow: t.flow, comparison: t, lossy: make([]*lossyJudge, len(t.judges)),
			lateStart: make([]*lossyJudge, len(t.judges)),
		}
		for k := range t.judges {
			for side := range t.behaviours {
				d := t.judges[k].Opinion(machine.Side(side)).Divergence
				if d == nil {
					continue
				}
				x.until = max(x.until, d.Ref)
				if d.RestsOn.Absence() && x.lossy[k] == nil {
					var err1, err2 error
					x.lossy[k], err1 = newLossyJudge(x.flow.Protocol, x.flow.Config(), t.pair(k))
					x.lateStart[k], err2 = newLossyJudge(x.flow.Protocol, x.flow.Config(), t.pair(k))
					if err := errors.Join(err1, err2); err != nil {
						return nil, err
					}
				}
			}
		}
		if x.until == 0 {
			continue
		}
		// Those that the first run found: the gaps of the Gaffer family show there.
		x.gaps.holes = min(r.analysis.Survey.CaptureLoss(t.flow), holesProve)
		x.gaps.begin(x.flow)
		c.flows[x.flow.ID] = x
	}
	if len(c.flows) == 0 {
		return nil, nil //nolint:nilnil // nothing to check is no error
	}
	most := historyBytes + historyMost*datagramBytes
	if room := r.options.Analysis.Limits.Bytes / 2; room > 0 {
		most = min(most, room/len(c.flows))
	}
	for _, x := range c.flows {
		x.history.most = most
	}
	return c, nil
}

// record takes the next record of the analysis.
func (c *recheck) record(rec *analyze.Record) {
	if !judged(rec) {
		return
	}
	x := c.flows[rec.Flow.ID]
	if x == nil || c.copies.isCopy(rec) {
		return
	}
	x.joined(&rec.Datagram)
	x.gaps.observe(&rec.Datagram)
	for k, f := range x.lossy {
		if f != nil {
			f.observe(&rec.Datagram, c.dropped)
			x.lateStart[k].observe(&rec.Datagram, 0)
		}
	}
	if rec.Datagram.Ref <= x.until {
		x.history.keep(&rec.Datagram)
	}
}

// settle replaces the opinions of flows of which the capture lacks packets, and explains what
// still diverges.
func (c *recheck) settle() error {
	lacks := c.dropped > 0 || !c.counted && c.proven()
	for _, x := range c.flows {
		for k, f := range x.lossy {
			if !lacks && x.late {
				f = x.lateStart[k]
			} else if !lacks {
				break
			}
			if f == nil || f.ignored == 0 {
				continue
			}
			f.finish(x.why(c))
			x.comparison.opinions[k] = &f.opinions
		}
		for k := range x.comparison.judges {
			for side := range x.comparison.behaviours {
				if d := x.comparison.opinion(k, machine.Side(side)).Divergence; d != nil {
					if err := x.explain(k, machine.Side(side), d); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// history is the datagrams of a flow; the newest of them where all are too many.
type history struct {
	list  []machine.Datagram
	bytes int
	most  int // bytes, of datagrams with what they carry
	cut   bool
}

const (
	historyMost   = 1 << 15  // datagrams
	historyBytes  = 32 << 20 // bytes that they carry, of one flow
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
