package report

import (
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// htmlCost is the ledger of one side.
type htmlCost struct {
	Who   string
	Total string
	Parts []htmlPart
	Rows  []Row
	More  int
}

// htmlPart is a part of the bar that shows what bytes were spent on.
type htmlPart struct {
	Name, Class, Share string
	Percent            float64
}

// mostCosts limits the types in a side's ledger.
const mostCosts = 16

func costOf(f *Flow, side machine.Side) htmlCost {
	s := &f.Cost.Sides[side]
	rows, sum := s.Rows(), s.Total()
	c := htmlCost{Who: who(f.Flow, side), Total: show.Bytes(sum.Total())}
	for _, p := range []struct {
		name, class string
		bits        uint64
	}{
		{"goodput", "goodput", sum.Goodput},
		{"sent again", "again", sum.Resent},
		{"acks", "acks", sum.Acks},
		{"protocol's headers", "header", sum.Header},
		{"IP and UDP or TCP", "ip", sum.IP + sum.Transport},
		{"link", "link", sum.Link},
	} {
		if p.bits > 0 {
			c.Parts = append(c.Parts,
				htmlPart{p.name, p.class, show.Share(p.bits, sum.Total()), 100 * float64(p.bits) / float64(sum.Total())})
		}
	}
	var rest ledger.Row
	for i, row := range rows {
		if i < mostCosts {
			c.Rows = append(c.Rows, costRow(row, row.Type, sum.Total()))
			continue
		}
		c.More++
		rest.Count += row.Count
		rest.Copies += row.Copies
		rest.Add(&row.Cost)
	}
	if c.More > 0 {
		c.Rows = append(c.Rows, costRow(&rest, show.Plural(c.More, "further type"), sum.Total()))
	}
	return c
}

func costRow(r *ledger.Row, name string, whole uint64) Row {
	again := ""
	if r.Copies > 0 {
		again = show.Grouped(r.Copies)
	}
	return Row{Name: name, Cells: []string{
		show.Grouped(r.Count), again, show.Octets(r.Total()), show.Share(r.Total(), whole),
		show.Octets(r.Goodput), show.Octets(r.Resent), show.Octets(r.Acks), show.Octets(r.Header),
		show.Octets(r.IP + r.Transport), show.Octets(r.Link),
	}}
}
