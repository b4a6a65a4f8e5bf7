package screens

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/store"
)

// flowOrder is an order that is made in the background: there may be a million
// flows.
type flowOrder struct {
	column  *flowColumn
	sorts   bool
	reverse bool
	filter  *filter.Filter
	session *analyze.Session
	flows   []sortedFlow
	next    int // index of the next flow to add
}

// begin returns an empty order with the current settings.
func (t *FlowTable) begin(br *browser.Browser) *flowOrder {
	t.version, t.sorted, t.turned, t.filter = br.Store.Version(), t.sort, t.reverse, br.Filter
	return &flowOrder{
		column: &flowColumns[min(t.sort, len(flowColumns)-1)], sorts: t.sort != 0 || t.reverse,
		reverse: t.reverse, filter: t.filter, session: br.Store.Session(),
	}
}

// gather adds up to most flows. It returns false when there are no more.
func (o *flowOrder) gather(br *browser.Browser, most int) bool {
	flows := br.Store.Flows()
	if o.session != br.Store.Session() { // the second run replaces the flows
		o.session, o.flows, o.next = br.Store.Session(), nil, 0
	}
	for ; o.next < len(flows) && most > 0; most-- {
		f := flows[o.next]
		o.next++
		if o.filter != nil && !br.FlowPasses(f) {
			continue
		}
		x := sortedFlow{flow: f}
		if o.sorts {
			x.key = o.column.key(br, f)
		}
		o.flows = append(o.flows, x)
	}
	return o.next < len(flows)
}

// list returns the flows in order: without another one, those of known protocols come first.
// It runs without the lock.
func (o *flowOrder) list() []*analyze.Flow {
	if o.sorts {
		slices.SortStableFunc(o.flows, func(x, y sortedFlow) int {
			c := x.key.compare(&y.key)
			if o.reverse {
				return -c
			}
			return c
		})
	}
	out := make([]*analyze.Flow, len(o.flows))
	for i := range o.flows {
		out[i] = o.flows[i].flow
	}
	if !o.sorts {
		return knownFirst(out)
	}
	return out
}

// knownFirst returns the flows with those of known protocols first, otherwise in their order.
func knownFirst(flows []*analyze.Flow) []*analyze.Flow {
	out := make([]*analyze.Flow, 0, len(flows))
	for _, f := range flows {
		if f.Protocol != nil {
			out = append(out, f)
		}
	}
	for _, f := range flows {
		if f.Protocol == nil {
			out = append(out, f)
		}
	}
	return out
}

// take shows an order. The cursor follows its flow.
func (t *FlowTable) take(o *flowOrder) { t.show(o.list()) }

func (t *FlowTable) show(order []*analyze.Flow) {
	t.Order, t.later = order, nil
	// At the top the cursor stays there, so that it meets the first flow of a known protocol.
	if t.picked != 0 && (t.sort != 0 || t.list.Cursor > 0) {
		if i := slices.IndexFunc(t.Order, func(f *analyze.Flow) bool { return f.ID == t.picked }); i >= 0 {
			t.list.Cursor = i
		}
	}
	t.picked = 0
}

// orderMany sorts many flows in the background. The table shows the old order
// until then.
func (t *FlowTable) orderMany(br *browser.Browser, asked bool) {
	switch {
	case t.sort == 0 && !t.reverse && br.Filter == nil:
		t.begin(br)
		t.show(knownFirst(br.Store.Flows()))
		return
	case t.later != nil && !asked:
		return
	}
	o := t.begin(br)
	t.later = o
	s := br.Store
	s.Work(func() {
		wanted := true
		gather := func() bool { wanted = t.later == o; return wanted && o.gather(br, store.FlowsAtOnce) }
		if !s.Parts(gather) || !wanted {
			return
		}
		begun := time.Now()
		order := o.list()
		s.Lock()
		defer s.Unlock()
		if t.later == o {
			t.made, t.cost = time.Now(), time.Since(begun)
			t.show(order)
			s.Redraw()
		}
	})
}
