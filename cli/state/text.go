package state

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// statePrinter prints the state of one flow.
type statePrinter struct {
	app    *app.App
	travel *Travel
	show.State
}

// picture prints both sides at a frame, beside each other: what one sent is
// next to what the other received.
func (p *statePrinter) picture(ref machine.Ref, views *[2]machine.View) {
	w := p.app.Writer()
	fmt.Fprintln(w, p.headline(ref))
	fmt.Fprintln(w)
	if len(p.Sides) == 1 {
		p.print(p.Block(p.Sides[0], &views[p.Sides[0]], nil))
	} else {
		left := p.Block(machine.A, &views[machine.A], &views[machine.B])
		right := p.Block(machine.B, &views[machine.B], &views[machine.A])
		if columns := p.app.Width(); columns > 0 && left.Width()+4+right.Width() > columns {
			p.print(left)
			fmt.Fprintln(w)
			p.print(right)
		} else {
			p.beside(left, right)
		}
	}
	fmt.Fprintln(w)
	if len(p.Sides) == 2 {
		for _, line := range p.Beliefs(views) {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
	}
	for _, side := range p.Sides {
		for _, line := range p.Tables(side, &views[side]) {
			fmt.Fprintln(w, line)
		}
	}
	fmt.Fprintln(w, p.Paint.String(show.Dim, p.Legend(views)))
}

// headline describes the packet.
func (p *statePrinter) headline(ref machine.Ref) string {
	s := fmt.Sprintf("flow %d  %s · frame %s", p.Flow.ID, show.FlowName(p.Flow), p.travel.frame(ref))
	m, ok := p.travel.moment(ref)
	if !ok {
		return s
	}
	s += " · " + m.at.Time().Format("15:04:05.000000")
	switch {
	case m.info == "":
		return s
	case m.flow != p.Flow:
		return s + fmt.Sprintf(" · of flow %d", m.flow.ID)
	case m.from == machine.A:
		return s + " · A→B  " + m.info
	}
	return s + " · B→A  " + m.info
}

func (p *statePrinter) print(b *show.Block) {
	for _, line := range b.Lines {
		fmt.Fprintln(p.app.Writer(), strings.TrimRight(line, " "))
	}
}

func (p *statePrinter) beside(left, right *show.Block) {
	width := left.Width() + 4
	for i := range max(len(left.Lines), len(right.Lines)) {
		line := ""
		n := 0
		if i < len(left.Lines) {
			line, n = left.Lines[i], left.Widths[i]
		}
		if i < len(right.Lines) && right.Lines[i] != "" {
			line += strings.Repeat(" ", width-n) + right.Lines[i]
		}
		fmt.Fprintln(p.app.Writer(), strings.TrimRight(line, " "))
	}
}
