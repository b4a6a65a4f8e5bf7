package tui

import "github.com/ackscope/ackscope/tui/draw"

func (m *Model) drawHelp(c draw.Canvas) {
	c.Rule(0, "help", true)
	m.text.Lines = nil
	for _, line := range helpLines() {
		m.text.Lines = append(m.text.Lines, draw.WrapLine(line, c.W-2)...)
	}
	m.text.Draw(c.Part(1, 1, c.W-1, c.H-1))
}
