package screens

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// TestGraphsGrow feeds a capture in ten parts to a screen that stays open. After each part the
// right edge is the newest packet, and the bandwidth of each side is what was captured.
func TestGraphsGrow(t *testing.T) {
	s, pipe, data := growing(t, "reliable-loss10.client.pcap.gz")
	br := browser.New(s, fields.NewTable(fields.Options{}), &browser.Layout{})
	graphs := NewSet(br, nil).Graphs
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	const w, h = 120, 40
	screen.SetSize(w, h)
	theme, err := draw.NewTheme("dark", 256)
	if err != nil {
		t.Fatal(err)
	}
	fed := 0
	for part := 1; part <= 10; part++ {
		frames, last, bytes, size := captured(data, pcapHead+(len(data)-pcapHead)*part/10)
		pipe.more <- size - max(fed, pcapHead)
		fed = size
		await(t, s, func() bool { return s.Len() == frames })
		if part == 1 {
			await(t, s, func() bool { return len(s.Flows()) > 0 && !s.Flows()[0].Pending() })
			s.Lock()
			br.Open(s.Flows()[0].ID)
			s.Unlock()
		}
		await(t, s, func() bool { graphs.Draw(br, draw.NewCanvas(screen, theme)); return graphs.taken == last })
		s.Lock()
		screen.Clear()
		graphs.Draw(br, draw.NewCanvas(screen, theme))
		screen.Show()
		end := graphs.end(br)
		s.Unlock()
		if end != last {
			t.Errorf("part %d: the right edge is at %d, expected %d", part, end, last)
		}
		text := rowsOf(screen)
		if strings.Contains(text, "being gathered") {
			t.Errorf("part %d: it is being gathered:\n%s", part, text)
		}
		span := last.Sub(graphs.series.First).Seconds()
		if want := fmt.Sprintf("+%.3f s", span); !strings.Contains(text, want) {
			t.Errorf("part %d: expected %q below the graphs:\n%s", part, want, text)
		}
		cells := graphs.series.CellAt(last) + 1
		for side := range bytes {
			x := stretch{0, cells, cells - 1, 0}
			rates := graphs.rates(&graphs.series.Series[graph.Bandwidth][side], x, 2*rateWindows)
			sum := 0.0
			for i := range rates {
				sum += rates[i].Max * span / float64(len(rates))
			}
			if math.Abs(sum-bytes[side]) > 0.05*bytes[side] {
				t.Errorf("part %d, side %d: %.0f bytes are shown, and %.0f were captured", part, side, sum, bytes[side])
			}
		}
	}
}

// captured reads the frames of a pcap file that are complete at a size. It returns their number,
// the time of the last one, and where it ends. bytes are those of each sender; the first is A.
func captured(data []byte, size int) (frames int, last machine.Instant, bytes [2]float64, end int) {
	end = pcapHead
	var first []byte
	for end+16 <= size {
		head := data[end:]
		n := int(binary.LittleEndian.Uint32(head[8:]))
		if end+16+n > size {
			break
		}
		frames++
		last = machine.Instant(int64(binary.LittleEndian.Uint32(head))*1e9 + int64(binary.LittleEndian.Uint32(head[4:]))*1e3)
		source := head[16+16+12 : 16+16+16] // Linux cooked, and the address in IPv4
		if first == nil {
			first = source
		}
		side := 0
		if string(source) != string(first) {
			side = 1
		}
		bytes[side] += float64(binary.LittleEndian.Uint32(head[12:]))
		end += 16 + n
	}
	return frames, last, bytes, end
}

// rowsOf returns the text of a screen.
func rowsOf(screen tcell.SimulationScreen) string {
	cells, w, _ := screen.GetContents()
	var b strings.Builder
	for i := range cells {
		if i%w == 0 {
			b.WriteByte('\n')
		}
		if text := strings.Trim(string(cells[i].Runes), "\x00"); text != "" {
			b.WriteString(text)
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
