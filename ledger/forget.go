package ledger

import (
	"slices"

	"github.com/ackscope/ackscope/analyze"
)

// Forget adds the cost of a flow to Gone and releases the rest. Call it for
// flows that the session dropped.
func (l *Ledger) Forget(f *analyze.Flow) {
	x := l.byFlow[f]
	if x == nil {
		return
	}
	for i := range x.Sides {
		s := &x.Sides[i]
		l.gone.Frames += s.Frames
		l.release(keyCost*len(s.seen) + rowCost*len(s.rows))
		for _, r := range s.Rows() {
			l.row(&l.gone, r.Type).join(r)
		}
	}
	delete(l.byFlow, f)
	*x = Flow{}
	l.forgotten++
	if l.dead++; l.dead > 1024 && l.dead > len(l.flows)/2 {
		l.compact()
	}
}

// compact removes forgotten flows from the list.
func (l *Ledger) compact() {
	l.flows = slices.DeleteFunc(l.flows, func(x *Flow) bool { return x.Flow == nil })
	l.dead = 0
}

// Gone returns the sum of the forgotten flows, and their number.
func (l *Ledger) Gone() (sum *Side, flows int) { return &l.gone, l.forgotten }
