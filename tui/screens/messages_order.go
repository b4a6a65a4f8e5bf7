package screens

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// messageOrder is an order of the messages that existed when it was begun, and
// the spread of their latencies by type.
type messageOrder struct {
	all      []store.Life
	passed   []bool
	filtered bool
	sort     int
	reverse  bool
	rows     []int
	bars     []string
}

// sortAtOnce is how many rows are sorted on the UI's thread, with some 13
// comparisons each.
const sortAtOnce = 8192

// order sorts the lives. Many lives are sorted in the background; the table
// shows the old order until then.
func (t *MessageTable) order(br *browser.Browser) {
	// The messages so far do not change any more, so they can be read without the
	// lock.
	o := &messageOrder{all: t.all, passed: t.passed, filtered: t.filtered(), sort: t.sort, reverse: t.reverse}
	if len(t.all) <= sortAtOnce {
		o.make()
		t.take(o)
		return
	}
	if x := t.later; x != nil && x.sort == o.sort && x.reverse == o.reverse && x.filtered == o.filtered {
		return // wait for it: it redraws the screen, which calls order again
	}
	t.later = o
	s := br.Store
	s.Work(func() {
		o.make()
		s.Lock()
		defer s.Unlock()
		if t.later == o {
			t.take(o)
			s.Redraw()
		}
	})
}

// take shows an order.
func (t *MessageTable) take(o *messageOrder) {
	t.rows, t.bars, t.sorted, t.later = o.rows, o.bars, len(o.all), nil
}

// make sorts the rows. It runs without the lock.
func (o *messageOrder) make() {
	for i := range o.all {
		if !o.filtered || i < len(o.passed) && o.passed[i] {
			o.rows = append(o.rows, i)
		}
	}
	o.bars = histogram(o.all)
	slices.SortStableFunc(o.rows, func(i, j int) int {
		x, y := &o.all[i], &o.all[j]
		c := 0
		switch o.sort {
		case 0:
			c = cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.ID, y.ID))
		case 1:
			c = cmp.Compare(x.Wait, y.Wait)
		case 2:
			c = cmp.Compare(x.Attempts, y.Attempts)
		case 3:
			c = cmp.Compare(x.Took(), y.Took())
		case 4:
			c = cmp.Compare(x.Title, y.Title)
		case 5:
			c = cmp.Compare(y.Cause, x.Cause) // messages with a cause first
		}
		if o.reverse {
			return -c
		}
		return c
	})
}

// histogram formats the times of arrival of each type: the count, the median and the
// longest.
func histogram(all []store.Life) []string {
	byName := map[string][]time.Duration{}
	for i := range all {
		if d := all[i].Took(); d >= 0 {
			byName[all[i].Title] = append(byName[all[i].Title], d)
		}
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(byName[y]), len(byName[x])), cmp.Compare(x, y))
	})
	var out []string
	for _, name := range names {
		list := byName[name]
		slices.Sort(list)
		out = append(out,
			fmt.Sprintf("%-18s %6d  %s  median %s  worst %s", name, len(list), bars(list), show.Wait(list[len(list)/2]),
				show.Wait(list[len(list)-1])))
	}
	return out
}

// bars draws the distribution of sorted durations between 0 and the longest.
func bars(list []time.Duration) string {
	var counts [16]int
	for _, d := range list {
		counts[scale.Position(d, 0, list[len(list)-1], len(counts))]++
	}
	return draw.Sparkline(counts[:])
}
