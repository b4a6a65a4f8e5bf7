package cli

import (
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// begin starts an object with what every object of the state has.
func (p *statePrinter) begin(o *object, ref machine.Ref, side machine.Side) {
	o.begin()
	o.uint("frame", ref.Frame())
	o.file(p.travel.from.file(ref))
	if m, ok := p.travel.moment(ref); ok {
		o.time("time", m.at)
	} else {
		o.null("time")
	}
	o.uint("flow", uint64(p.Flow.ID))
	o.str("protocol", p.Flow.Protocol.Name)
	o.str("dialect", p.Flow.Config().Dialect)
	o.str("side", side.String())
	o.addr("addr", p.Flow.Addr(side))
	o.addr("peer", p.Flow.Addr(side.Other()))
	o.str("vantage", p.Flow.Facts().Vantage.String())
}

// json writes the state, an object a side.
func (p *statePrinter) json(ref machine.Ref, views *[2]machine.View) error {
	var o object
	for _, side := range p.Sides {
		v := &views[side]
		p.begin(&o, ref, side)
		o.list("windows", len(v.Windows), func(i int) { o.inner(func() { p.windowJSON(&o, &v.Windows[i]) }) })
		o.list("gauges", len(v.Gauges), func(i int) {
			g := &v.Gauges[i]
			o.inner(func() {
				o.str("name", g.Name)
				o.float("value", g.Value, 6)
				o.word("unit", g.Unit)
				o.str("certainty", g.Grade.String())
			})
		})
		o.list("tables", len(v.Tables), func(i int) {
			t := &v.Tables[i]
			o.inner(func() {
				o.str("name", t.Name)
				o.list("columns", len(t.Columns), func(j int) { o.buf = export.AppendString(o.buf, t.Columns[j]) })
				o.list("rows", len(t.Rows), func(j int) {
					o.buf = append(o.buf, '[')
					for k, cell := range t.Rows[j] {
						if k > 0 {
							o.buf = append(o.buf, ',')
						}
						o.buf = export.AppendString(o.buf, cell)
					}
					o.buf = append(o.buf, ']')
				})
			})
		})
		if err := o.end(p.app.writer()); err != nil {
			return err
		}
	}
	return nil
}

func (p *statePrinter) windowJSON(o *object, w *machine.Window) {
	o.str("name", w.Name)
	o.int("first", w.First)
	if w.Next >= 0 {
		o.int("next", w.Next)
	} else {
		o.null("next")
	}
	o.int("size", int64(w.Size))
	o.str("certainty", w.Grade.String())
	o.key("cells")
	o.buf = append(o.buf, '"')
	for _, c := range w.Cells {
		o.buf = append(o.buf, string(c.Rune())...)
	}
	o.buf = append(o.buf, '"')
	o.list("slots", len(w.Slots), func(i int) {
		s := &w.Slots[i]
		o.inner(func() {
			o.int("index", int64(s.Index))
			o.uint("sequence", uint64(s.Sequence))
			o.int("sequence64", s.Sequence64)
			o.str("cell", show.CellWords[s.Cell])
			o.str("certainty", s.Grade.String())
			if s.Ref != 0 {
				o.uint("frame", s.Ref.Frame())
			}
			if s.SentAt != 0 {
				o.time("sent", s.SentAt)
			}
			if s.AckedAt != 0 {
				o.time("acked", s.AckedAt)
			}
			if s.SettledBy != 0 {
				o.uint("by_frame", s.SettledBy.Frame())
				o.uint("bit", uint64(s.Bit))
			}
		})
	})
}

// diffJSON writes what changed, an object a side.
func (p *statePrinter) diffJSON(refs []machine.Ref, views [][2]machine.View) error {
	var o object
	for _, side := range p.Sides {
		before, after := &views[0][side], &views[1][side]
		p.begin(&o, refs[1], side)
		o.uint("from_frame", refs[0].Frame())
		cells := show.ChangesOf(before, after)
		o.list("changes", len(cells), func(i int) {
			c := &cells[i]
			o.inner(func() {
				o.str("window", c.Window)
				o.int("sequence64", c.Sequence)
				if c.Slot != nil {
					o.uint("sequence", uint64(c.Slot.Sequence))
				}
				if c.Was {
					o.str("from", show.CellWords[c.From])
				} else {
					o.null("from")
				}
				o.str("to", show.CellWords[c.To])
				if c.Settled() != "" {
					o.uint("by_frame", c.Slot.SettledBy.Frame())
					o.uint("bit", uint64(c.Slot.Bit))
				}
			})
		})
		figures := show.GaugesOf(before, after)
		o.list("gauges", len(figures), func(i int) {
			g := &figures[i]
			o.inner(func() {
				o.str("name", g.Name)
				o.optional("from", g.From, g.Was)
				o.optional("to", g.To, g.Is)
			})
		})
		if err := o.end(p.app.writer()); err != nil {
			return err
		}
	}
	return nil
}
