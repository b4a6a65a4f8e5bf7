package export

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// wasColumns returns the columns about the flow whose connection a flow continues.
func wasColumns() []flowColumn {
	of := func(c Column, fill func(w *analyze.Was, c *Cell)) flowColumn {
		c.Absent = Omitted
		return flowColumn{c, func(r *FlowRow, cell *Cell) {
			if r.Was != nil {
				fill(r.Was, cell)
			}
		}}
	}
	return []flowColumn{
		of(Column{
			Name: "was", Type: Uint,
			Doc: "The flow whose connection this one continues, because a player's address changed. This and what " +
				"follows: where one is found.",
		}, func(w *analyze.Was, c *Cell) { c.uint(uint64(w.ID)) }),
		of(Column{Name: "was_addr", Type: Text, Doc: "The address that the player had there."},
			func(w *analyze.Was, c *Cell) { c.addr(w.Addr) }),
		of(Column{Name: "was_side", Type: Text, Words: sides, Doc: "Which side of this flow the player is."},
			func(w *analyze.Was, c *Cell) { c.own(w.Side.String()) }),
		of(Column{
			Name: "was_certainty", Type: Text, Words: certainties,
			Doc: "How sure that is: certain only where keys prove it.",
		}, func(w *analyze.Was, c *Cell) { c.own(w.Certainty.String()) }),
		of(Column{
			Name: "was_chance", Type: Float, Digits: 6,
			Doc: "How probable it is that an unrelated flow fits as well, 0 to 1; absent where keys decide.",
		}, func(w *analyze.Was, c *Cell) {
			if w.Certainty != machine.Certain && w.Chance > 0 {
				c.float(w.Chance, 6)
			}
		}),
		of(Column{Name: "was_reason", Type: Text, Doc: "What shows it."},
			func(w *analyze.Was, c *Cell) { c.text(w.Reason) }),
	}
}
