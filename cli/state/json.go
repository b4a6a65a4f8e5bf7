package state

import (
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// begin starts an object with the keys that all objects of the state have.
func (p *statePrinter) begin(o *app.Object, ref machine.Ref, side machine.Side) {
	o.Begin()
	o.Uint("frame", ref.Frame())
	o.File(p.travel.from.File(ref))
	if m, ok := p.travel.moment(ref); ok {
		o.Time("time", m.at)
	} else {
		o.Null("time")
	}
	o.Uint("flow", uint64(p.Flow.ID))
	o.Str("protocol", p.Flow.Protocol.Name)
	o.Str("dialect", p.Flow.Config().Dialect)
	o.Str("side", side.String())
	o.Addr("addr", p.Flow.Addr(side))
	o.Addr("peer", p.Flow.Addr(side.Other()))
	o.Str("vantage", p.Flow.Facts().Vantage.String())
}

// json prints the state: one object for each side.
func (p *statePrinter) json(ref machine.Ref, views *[2]machine.View) error {
	var o app.Object
	for _, side := range p.Sides {
		v := &views[side]
		p.begin(&o, ref, side)
		o.List("windows", len(v.Windows), func(i int) { o.Inner(func() { p.windowJSON(&o, &v.Windows[i]) }) })
		o.List("gauges", len(v.Gauges), func(i int) {
			g := &v.Gauges[i]
			o.Inner(func() {
				o.Str("name", g.Name)
				o.Float("value", g.Value, 6)
				o.Word("unit", g.Unit)
				o.Str("certainty", g.Grade.String())
			})
		})
		o.List("tables", len(v.Tables), func(i int) {
			t := &v.Tables[i]
			o.Inner(func() {
				o.Str("name", t.Name)
				o.List("columns", len(t.Columns), func(j int) { o.Buf = export.AppendString(o.Buf, t.Columns[j]) })
				o.List("rows", len(t.Rows), func(j int) {
					o.Buf = append(o.Buf, '[')
					for k, cell := range t.Rows[j] {
						if k > 0 {
							o.Buf = append(o.Buf, ',')
						}
						o.Buf = export.AppendString(o.Buf, cell)
					}
					o.Buf = append(o.Buf, ']')
				})
			})
		})
		if err := o.End(p.app.Writer()); err != nil {
			return err
		}
	}
	return nil
}

func (p *statePrinter) windowJSON(o *app.Object, w *machine.Window) {
	o.Str("name", w.Name)
	o.Int("first", w.First)
	if w.Next >= 0 {
		o.Int("next", w.Next)
	} else {
		o.Null("next")
	}
	o.Int("size", int64(w.Size))
	o.Str("certainty", w.Grade.String())
	o.Key("cells")
	o.Buf = append(o.Buf, '"')
	for _, c := range w.Cells {
		o.Buf = append(o.Buf, string(c.Rune())...)
	}
	o.Buf = append(o.Buf, '"')
	o.List("slots", len(w.Slots), func(i int) {
		s := &w.Slots[i]
		o.Inner(func() {
			o.Int("index", int64(s.Index))
			o.Uint("sequence", uint64(s.Sequence))
			o.Int("sequence64", s.Sequence64)
			o.Str("cell", show.CellWords[s.Cell])
			o.Str("certainty", s.Grade.String())
			if s.Ref != 0 {
				o.Uint("frame", s.Ref.Frame())
			}
			if s.SentAt != 0 {
				o.Time("sent", s.SentAt)
			}
			if s.AckedAt != 0 {
				o.Time("acked", s.AckedAt)
			}
			if s.SettledBy != 0 {
				o.Uint("by_frame", s.SettledBy.Frame())
				o.Uint("bit", uint64(s.Bit))
			}
		})
	})
}

// diffJSON prints what changed: one object for each side.
func (p *statePrinter) diffJSON(refs []machine.Ref, views [][2]machine.View) error {
	var o app.Object
	for _, side := range p.Sides {
		before, after := &views[0][side], &views[1][side]
		p.begin(&o, refs[1], side)
		o.Uint("from_frame", refs[0].Frame())
		cells := show.ChangesOf(before, after)
		o.List("changes", len(cells), func(i int) {
			c := &cells[i]
			o.Inner(func() {
				o.Str("window", c.Window)
				o.Int("sequence64", c.Sequence)
				if c.Slot != nil {
					o.Uint("sequence", uint64(c.Slot.Sequence))
				}
				if c.Was {
					o.Str("from", show.CellWords[c.From])
				} else {
					o.Null("from")
				}
				o.Str("to", show.CellWords[c.To])
				if c.Settled() != "" {
					o.Uint("by_frame", c.Slot.SettledBy.Frame())
					o.Uint("bit", uint64(c.Slot.Bit))
				}
			})
		})
		figures := show.GaugesOf(before, after)
		o.List("gauges", len(figures), func(i int) {
			g := &figures[i]
			o.Inner(func() {
				o.Str("name", g.Name)
				o.Optional("from", g.From, g.Was)
				o.Optional("to", g.To, g.Is)
			})
		})
		if err := o.End(p.app.Writer()); err != nil {
			return err
		}
	}
	return nil
}
