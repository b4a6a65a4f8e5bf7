package tui

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// printedSide is a side as `ackscope state --json` prints it.
type printedSide struct {
	Frame   uint64
	Flow    int
	Side    string
	Windows []printedWindow
	Gauges  []printedGauge
	Tables  []printedTable
}

type printedWindow struct {
	Name, Cells, Certainty string
	First                  int64
	Next                   int64 // -1 for null
	Size                   int
	Slots                  []printedSlot
}

type printedSlot struct {
	Index      int
	Sequence64 int64
	Cell       string
	Certainty  string
	Frame      uint64
	ByFrame    uint64 `json:"by_frame"`
	Bit        uint8
}

type printedGauge struct {
	Name, Unit, Certainty string
	Value                 float64
}

type printedTable struct {
	Name    string
	Columns []string
	Rows    [][]string
}

// printedView formats a view of the state inspector in the same way.
func printedView(frame uint64, flow int, side machine.Side, v *machine.View) printedSide {
	x := printedSide{
		Frame: frame, Flow: flow, Side: side.String(), Windows: []printedWindow{}, Gauges: []printedGauge{},
		Tables: []printedTable{},
	}
	for i := range v.Windows {
		w := &v.Windows[i]
		y := printedWindow{
			Name: w.Name, Certainty: w.Grade.String(), First: w.First, Next: max(w.Next, -1), Size: w.Size,
			Slots: []printedSlot{},
		}
		for _, c := range w.Cells {
			y.Cells += string(c.Rune())
		}
		for j := range w.Slots {
			s := &w.Slots[j]
			z := printedSlot{
				Index: s.Index, Sequence64: s.Sequence64, Cell: show.CellWords[s.Cell], Certainty: s.Grade.String(),
				Frame: s.Ref.Frame(),
			}
			if s.SettledBy != 0 {
				z.ByFrame, z.Bit = s.SettledBy.Frame(), s.Bit
			}
			y.Slots = append(y.Slots, z)
		}
		x.Windows = append(x.Windows, y)
	}
	for i := range v.Gauges {
		g := &v.Gauges[i]
		x.Gauges = append(x.Gauges, printedGauge{g.Name, g.Unit, g.Grade.String(), math.Round(g.Value*1e6) / 1e6})
	}
	for i := range v.Tables {
		t := &v.Tables[i]
		y := printedTable{Name: t.Name, Columns: append([]string{}, t.Columns...), Rows: [][]string{}}
		for _, row := range t.Rows {
			y.Rows = append(y.Rows, append([]string{}, row...))
		}
		x.Tables = append(x.Tables, y)
	}
	return x
}

// At random packets, the state inspector shows what the command `ackscope
// state` prints.
func TestStateEqualsTheCommand(t *testing.T) {
	program := testenv.Ackscope(t)
	srdp := filepath.Join(t.TempDir(), "srdp.pcapng")
	testenv.Output(t, program, "simulate", "--protocol", "srdp", "--seed", "4", "--clients", "2", "--loss", "15%",
		"--delay", "20ms", "--jitter", "5ms", "--services", "any", "--duration", "6s", "--rate", "20", "--tap",
		"a", "-w", srdp)
	tries := 5
	if testing.Short() {
		tries = 1
	}
	for _, path := range []string{
		testenv.Capture(t, "reliable-loss10.client.pcap.gz"), testenv.Capture(t, "reliable-two-clients.server.pcap.gz"),
		testenv.Capture(t, "u210_falseack.server.pcapng.gz"), testenv.Capture(t, "t210_rechunk.client.pcap.gz"), srdp,
	} {
		m := openPath(t, path)
		rng := rand.New(rand.NewPCG(11, 13))
		for tried := 0; tried < tries; {
			n := rng.IntN(m.Store.Len())
			f := m.Store.FlowOf(n)
			if f == nil || f.Protocol == nil || f.Protocol.NewTracker == nil {
				continue
			}
			tried++
			frame := strconv.FormatUint(m.Store.Entry(n).Ref.Frame(), 10)
			press(m, ":flow "+strconv.Itoa(f.ID)+"<Enter>"+frame+"GS")
			text := textOf(screenOf(t, m, 160, 50))
			out := testenv.Output(t, program, "state", "--json", "--flow", strconv.Itoa(f.ID), "--at", frame, path)
			// A window whose next is unknown has null there.
			decoder := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(out, []byte(`"next":null`), []byte(`"next":-1`))))
			for _, side := range []machine.Side{machine.A, machine.B} {
				want := printedSide{Windows: []printedWindow{}, Gauges: []printedGauge{}, Tables: []printedTable{}}
				if err := decoder.Decode(&want); err != nil {
					t.Fatal(err)
				}
				got := printedView(m.Store.Entry(m.Selected).Ref.Frame(), f.ID, side, &m.screens.State.Views[side])
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, frame %s, side %s: the inspector has\n%+v\nthe command prints\n%+v", filepath.Base(path), frame,
						side, got, want)
				}
				// The screen shows the same: the newest row of the first window.
				if w := want.Windows; len(w) > 0 && w[0].Cells != "" && !strings.Contains(text, newestRow(&w[0], 32)) &&
					!strings.Contains(text, newestRow(&w[0], 16)) {
					t.Errorf("%s, frame %s, side %s: the screen does not show %q:\n%s", filepath.Base(path), frame, side,
						newestRow(&w[0], 32), text)
				}
			}
		}
	}
}

// newestRow returns the last row of a window as the screen formats it: its
// first sequence, then cells in groups of eight.
func newestRow(w *printedWindow, per int64) string {
	last := w.First + int64(len(w.Cells)) - 1
	row := last - last%per
	text := strconv.FormatInt(row, 10) + "  "
	for n := row; n <= last; n++ {
		if n > row && (n-row)%8 == 0 {
			text += " "
		}
		if n < w.First {
			text += " "
			continue
		}
		text += w.Cells[n-w.First : n-w.First+1]
	}
	return text
}
