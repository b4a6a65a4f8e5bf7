package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// diff prints what changed on each side between two frames.
func (p *statePrinter) diff(refs []machine.Ref, views [][2]machine.View) {
	w := p.app.writer()
	fmt.Fprintf(w, "flow %d  %s · frame %s → %s\n", p.Flow.ID, show.FlowName(p.Flow), p.travel.frame(refs[0]), p.travel.frame(refs[1]))
	for _, side := range p.Sides {
		before, after := &views[0][side], &views[1][side]
		fmt.Fprintf(w, "\n%s\n", p.Paint.String(bold, fmt.Sprintf("%s %s", strings.ToUpper(side.String()), p.Flow.Addr(side))))
		cells, figures := show.ChangesOf(before, after), show.GaugesOf(before, after)
		if len(cells)+len(figures) == 0 {
			fmt.Fprintln(w, "  nothing")
			continue
		}
		// Neighbours that changed alike stand together.
		for i := 0; i < len(cells); {
			j := i
			for j+1 < len(cells) && cells[j+1].Window == cells[i].Window && cells[j+1].Sequence == cells[j].Sequence+1 &&
				cells[j+1].Words() == cells[i].Words() && cells[j+1].Settled() == cells[i].Settled() {
				j++
			}
			span := strconv.FormatInt(cells[i].Sequence, 10)
			if j > i {
				span += "–" + strconv.FormatInt(cells[j].Sequence, 10)
			}
			fmt.Fprintf(w, "  %-9s %13s  %s%s\n", cells[i].Window, span, p.Paint.String(show.CellStyle(cells[i].To), cells[i].Words()), cells[i].Settled())
			i = j + 1
		}
		for _, g := range figures {
			from, to := "–", "–"
			if g.Was {
				from = show.GaugeValue(g.From, g.Unit)
			}
			if g.Is {
				to = show.GaugeValue(g.To, g.Unit)
			}
			if from != to {
				fmt.Fprintf(w, "  %s  %s → %s\n", g.Name, from, to)
			}
		}
	}
}
