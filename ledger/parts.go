package ledger

import (
	"sync"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Run reads a source through a new session, whose records a ledger takes. Several goroutines may share
// the run, and then each feeds a ledger of its own:
//
//	            .-> ledger 0 -.
//	analysis -+               +-> the ledger of all flows
//	            '-> ledger 1 -'
//
// Where those reach a bound that all flows share, one ledger could have charged otherwise. The source is
// then read once more, for one. room is Ledger.Room. The error is that of analyze.Run. The ledger is
// never nil.
func Run(src analyze.Rewinder, o analyze.Options, room int) (*Ledger, error) {
	p, told := &parts{room: room}, o.Gone
	o.Split, o.Gone = p.split, func(f *analyze.Flow, why analyze.Reason) {
		p.list[f.Group()].Forget(f)
		if told != nil {
			told(f, why)
		}
	}
	_, err := analyze.Run(src, o)
	l, exact := p.join()
	if exact {
		return l, err
	}
	if err := src.Rewind(); err != nil {
		return l, err
	}
	l = &Ledger{Room: room}
	o.Split, o.Sink, o.Gone = nil, l.Take, func(f *analyze.Flow, _ analyze.Reason) { l.Forget(f) }
	_, err = analyze.Run(src, o)
	return l, err
}

// parts are the ledgers of groups of flows.
type parts struct {
	room   int
	pieces pieces
	list   []*Ledger // by analyze.Flow.Group
}

// split is for analyze.Options.
func (p *parts) split() analyze.Sink {
	l := &Ledger{Room: p.room, pieces: &p.pieces}
	p.list = append(p.list, l)
	return l.Take
}

// join returns one ledger of all parts. It is exact unless a bound was reached.
func (p *parts) join() (all *Ledger, exact bool) {
	all = p.list[0]
	if len(p.list) == 1 {
		return all, true
	}
	used, forgotten := 0, 0
	for _, l := range p.list {
		used += max(l.most, l.used)
		forgotten += l.forgotten
	}
	for _, l := range p.list[1:] {
		all.flows = append(all.flows, l.flows...)
		all.other.Frames += l.other.Frames
		for kind, r := range l.other.rows {
			all.row(&all.other, kind).join(r)
		}
	}
	return all, !p.pieces.full && forgotten == 0 && (p.room <= 0 || used <= p.room)
}

// pieces are IP fragments whose datagram is not complete yet. A fragment and the datagram can come to
// different parts: where an ICMP error came before, what belongs to no flow is the first part's.
type pieces struct {
	mu    sync.Mutex
	costs map[machine.Ref]Cost
	full  bool // there was no room for one
}

// maxPieces bounds the fragments.
// Source: bound, 8 MB
const maxPieces = 1 << 16

// add keeps the cost of a fragment, if there is room.
func (p *pieces) add(ref machine.Ref, c *Cost) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.costs) >= maxPieces {
		p.full = true
		return false
	}
	if p.costs == nil {
		p.costs = map[machine.Ref]Cost{}
	}
	p.costs[ref] = *c
	return true
}

// take removes the fragments of a datagram, and calls do with the cost of each. They are in spans.
func (p *pieces) take(spans []capture.Span, do func(*Cost)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range spans {
		if c, ok := p.costs[spans[i].Ref]; ok {
			do(&c)
			delete(p.costs, spans[i].Ref)
		}
	}
}
