package state

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// diff prints what changed on each side between two frames.
func (p *statePrinter) diff(refs []machine.Ref, views [][2]machine.View) {
	w := p.app.Writer()
	fmt.Fprintf(w, "flow %d  %s · frame %s → %s\n", p.Flow.ID, show.FlowName(p.Flow), p.travel.frame(refs[0]),
		p.travel.frame(refs[1]))
	for _, side := range p.Sides {
		before, after := &views[0][side], &views[1][side]
		fmt.Fprintf(w, "\n%s\n",
			p.Paint.String(show.Bold, fmt.Sprintf("%s %s", strings.ToUpper(side.String()), p.Flow.Addr(side))))
		lines := p.Changes(before, after)
		if len(lines) == 0 {
			lines = []string{"  nothing"}
		}
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}
}
