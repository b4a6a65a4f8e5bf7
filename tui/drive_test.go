package tui

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// countingScreen counts the cells that are set on a simulated screen. A hollow
// one does not store them, which saves most of a run's time.
type countingScreen struct {
	tcell.SimulationScreen
	cells  int
	hollow bool
}

func (s *countingScreen) SetContent(x, y int, r rune, more []rune, style tcell.Style) {
	if s.cells++; !s.hollow {
		s.SimulationScreen.SetContent(x, y, r, more, style)
	}
}

// driver runs the terminal UI over a capture without goroutines. Background
// work runs when settle is called, so a run depends only on its input.
type driver struct {
	model  *Model
	store  *store.Store
	screen *countingScreen
	theme  *draw.Theme
	later  []func()
	begun  int // number of background jobs started
}

// driven is shared by all drivers: making it takes longer than a run.
var driven = sync.OnceValue(func() (x struct {
	registry *dissect.Registry
	table    *filter.Table
	theme    *draw.Theme
	keys     []string
},
) {
	x.registry = dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
	x.table = fields.NewTable(fields.Options{Registry: x.registry, Rules: analyze.Rules})
	x.theme, _ = draw.NewTheme("dark", 256)
	for _, b := range bindingTable() {
		for _, k := range b.keys {
			if k != "Ctrl-Z" {
				x.keys = append(x.keys, k)
			}
		}
	}
	// Sequences that are typed as one: lines, counts, marks, and keys without a
	// meaning.
	x.keys = append(x.keys,
		"f f l o w . r t t > 1 Enter", "f r e l . l o s t Enter", "f g a f f e r . s e q > 3 Enter", "f Ctrl-U Enter",
		"f u d p Enter", "f e v e n t Tab Tab Enter",
		"/ 1 Enter", "/ 0 x 0 0 Enter", "/ ~ . Enter", "/ s e q Enter", ": 7 Enter", ": f l o w Space 1 Enter",
		": f l o w Space 2 Enter", ": s o r t Space l o s s Enter",
		": t i m e Space d e l t a Enter", ": t i m e Space a b s o l u t e Enter",
		": c o l u m n s Space t i m e Space i n f o Enter", ": m a r k s Enter", ": w Space x Enter",
		": s o r t Space w a i t Enter", ": r e p l a y Enter", ": h e l p Enter", "b f r a m e > 2 Enter",
		"B f r a m e < 9 Enter", "m a", "' a", "9 9 9 9 9 9 9 9 9 9 9 9 9 ]", "9 9 9 9 9 9 9 9 9 9 9 }",
		"8 8 8 8 8 8 8 8 8 [", "Ctrl-P l o s s Enter", "Ctrl-P f l o w Down PgDn Enter",
		"Ctrl-P Up z q x Enter Esc", "Ctrl-P g a f f Enter Enter",
		"? / m a r k Enter Esc",
		"y h", "y j", "y f", "y c", "7 j", "9 9 9 9 9 9 9 9 9 9 k", "9 9 9 9 9 9 9 G", "0", "é", "世", "Backspace", "Delete",
		"z", "u",
		// Repeated, so that views are opened more often.
		"Enter", "Enter", "Enter", "j", "k", "P", "S", "L", "L", "T", "T", "M", "M", "F", "A", "R")
	return x
})

// newDriver opens a capture and reads all of it. It returns nil if the file is
// no capture.
func newDriver(t testing.TB, path string) *driver {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		return nil
	}
	d := &driver{theme: driven().theme}
	d.store = store.New(in, analyze.Options{Registry: driven().registry}, false)
	d.store.Spawn = func(f func()) { d.later, d.begun = append(d.later, f), d.begun+1 }
	d.screen = &countingScreen{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
	if err := d.screen.Init(); err != nil {
		t.Fatal(err)
	}
	d.model = NewModel(d.store,
		Options{
			Table: driven().table, Theme: "dark", Save: discarded,
			Autopsy: func(f *analyze.Flow, end machine.Instant, each func(analyze.Sink)) []string {
				records := 0
				each(func(*analyze.Record) { records++ })
				if records%2 == 0 {
					return nil
				}
				return []string{fmt.Sprintf("flow %d: %d records until %v", f.ID, records, end)}
			},
		})
	return d
}

// discarded is Options.Save for tests: it discards the packets.
func discarded(path string, _ *capture.Input) (store.Saver, error) {
	if path == "" {
		return nil, errors.New("expected a path")
	}
	return nowhere{}, nil
}

type nowhere struct{}

func (nowhere) Write(*capture.Frame) error { return nil }
func (nowhere) Close() error               { return nil }
func (nowhere) Abort() error               { return nil }

func (d *driver) close(t testing.TB) {
	d.screen.Fini()
	if err := d.store.Stop(); err != nil {
		t.Error(err)
	}
}

// settle runs the waiting background work.
func (d *driver) settle() {
	for len(d.later) > 0 {
		f := d.later[0]
		d.later = d.later[1:]
		f()
	}
}

// key presses a key, or several that are separated by blanks.
func (d *driver) key(keys string) {
	for k := range strings.SplitSeq(keys, " ") {
		d.store.Lock()
		d.model.Key(k)
		d.model.quit, d.model.suspend = false, false
		d.store.Unlock()
	}
}

func (d *driver) draw() {
	d.store.Lock()
	defer d.store.Unlock()
	d.model.drawAny(draw.NewCanvas(d.screen, d.theme))
}

// play presses keys, with drawings, clicks and changes of size between them.
// next(n) chooses a number below n.
func (d *driver) play(keys int, next func(int) int) {
	d.screen.SetSize(size(next))
	d.store.Start()
	if next(4) == 0 { // what is shown before anything is read
		d.draw()
	}
	d.settle()
	d.draw()
	for range keys {
		d.key(driven().keys[next(len(driven().keys))])
		switch next(16) {
		case 0:
			d.screen.SetSize(size(next))
		case 1:
			w, h := d.screen.Size()
			x, y := next(w+3)-1, next(h+3)-1
			d.store.Lock()
			switch next(4) {
			case 0:
				d.model.doubleClick(x, y)
			case 1:
				d.model.wheel(x, y, next(7)-3)
			case 2:
				d.model.Paste("flow.rtt\x1b[31m \u202e> 1\n")
			default:
				d.model.click(x, y)
			}
			d.store.Unlock()
		}
		if next(3) > 0 {
			d.draw()
		}
		if next(3) > 0 {
			d.settle()
		}
	}
	d.settle()
	d.draw()
}

// size chooses the size of a screen: a usual one, or one that no terminal has.
func size(next func(int) int) (w, h int) {
	switch next(12) {
	case 0:
		return next(3), next(3)
	case 1:
		return next(30), next(10)
	case 2:
		return 200, 60
	case 3:
		return 20 + next(280), 6 + next(90)
	case 4:
		if next(20) == 0 {
			return 1000, 300
		}
	}
	return 80, 24
}

// sample is a capture in memory.
type sample struct {
	linkType uint32
	frames   []capture.Frame
}

// samples are the first frames of captures of every protocol, and of the
// hostile ones.
var samples = sync.OnceValues(func() (out []sample, err error) {
	root := filepath.Join("..", "testdata")
	for _, name := range []string{
		"pcaps/reliable-loss10.client.pcap.gz", "pcaps/reliable-two-clients.server.pcap.gz",
		"pcaps/reliable-ipfrag.client.pcap.gz", "pcaps/reliable-dup10.client.pcap.gz",
		"pcaps/plain-le-stalebug-loss98.client.pcap.gz", "pcaps/article-fragments-loss5.client.pcap.gz",
		"pcaps/yojimbo-clean.client.pcap.gz", "pcaps/article-connect.client.pcap.gz",
		"pcaps/u210_falseack.server.pcapng.gz", "pcaps/u210_loss30.client.pcap.gz",
		"pcaps/u221_lobby.client.pcapng.gz", "pcaps/upy_loss15.client.pcap.gz",
		"pcaps/u21n_poor_notify.client.pcap.gz",
		"pcaps/t210_rechunk.client.pcap.gz", "pcaps/tpy200_clean.client.pcap.gz", "hostile/tui15y.pcapng",
		"hostile/tui-301-85.cap", "hostile/ladder-freeze.cap",
	} {
		x, err := readSample(filepath.Join(root, name), 120)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, x)
	}
	return out, nil
})

// readSample reads the first frames of a capture. The rest may be cut or
// damaged.
func readSample(path string, most int) (x sample, err error) {
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		return x, err
	}
	defer func() { _ = in.Close() }()
	for len(x.frames) < most {
		var f capture.Frame
		if err := in.Next(&f); err != nil {
			if len(x.frames) > 0 {
				return x, nil
			}
			return x, err
		}
		f.Data = slices.Clone(f.Data)
		x.linkType = f.LinkType
		x.frames = append(x.frames, f)
	}
	return x, nil
}

// file returns a sample as pcapng with nanoseconds, which can hold any time.
func (x *sample) file() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0x0a0d0d0a)
	b = le.AppendUint32(b, 28)
	b = le.AppendUint32(b, 0x1a2b3c4d)
	b = le.AppendUint32(b, 1) // version 1.0
	b = le.AppendUint64(b, math.MaxUint64)
	b = le.AppendUint32(b, 28)
	b = le.AppendUint32(b, 1) // interface
	b = le.AppendUint32(b, 32)
	b = le.AppendUint32(b, x.linkType)
	b = le.AppendUint32(b, 0)
	b = append(b, 9, 0, 1, 0, 9, 0, 0, 0) // if_tsresol: 10^-9 s
	b = append(b, 0, 0, 0, 0)
	b = le.AppendUint32(b, 32)
	for i := range x.frames {
		f := &x.frames[i]
		n := (len(f.Data) + 3) &^ 3
		b = le.AppendUint32(b, 6) // enhanced packet
		b = le.AppendUint32(b, uint32(32+n))
		b = le.AppendUint32(b, 0)
		b = le.AppendUint32(b, uint32(uint64(f.At)>>32))
		b = le.AppendUint32(b, uint32(f.At))
		b = le.AppendUint32(b, uint32(len(f.Data)))
		b = le.AppendUint32(b, uint32(max(f.Length, len(f.Data))))
		b = append(append(b, f.Data...), make([]byte, n-len(f.Data))...)
		b = le.AppendUint32(b, uint32(32+n))
	}
	return b
}

// mutate returns the file of a part of a sample with some faults. The faults
// are wrong times, flipped bits, a cut file, and records that are cut, doubled,
// swapped or dropped.
func (x *sample) mutate(rng *rand.Rand) []byte {
	n := min(len(x.frames), 2+rng.IntN(60))
	from := rng.IntN(len(x.frames) - n + 1)
	y := sample{linkType: x.linkType, frames: slices.Clone(x.frames[from : from+n])}
	const year = int64(365 * 24 * 3600e9)
	for range rng.IntN(8) {
		i := rng.IntN(len(y.frames))
		f := &y.frames[i]
		switch rng.IntN(12) {
		case 0:
			f.At = machine.Instant(rng.Uint64())
		case 1:
			f.At ^= 1 << rng.IntN(64)
		case 2:
			later, earlier := machine.Instant(rng.Int64N(200*year)), machine.Instant(rng.Int64N(200*year))
			for j := i; j < len(y.frames); j++ {
				y.frames[j].At += later - earlier
			}
		case 3:
			f.At = y.frames[rng.IntN(len(y.frames))].At
		case 4, 5, 6:
			f.Data = slices.Clone(f.Data)
			for range 1 + rng.IntN(4) {
				if len(f.Data) > 0 {
					f.Data[rng.IntN(len(f.Data))] ^= 1 << rng.IntN(8)
				}
			}
		case 7:
			f.Data = f.Data[:rng.IntN(len(f.Data)+1)]
		case 8:
			y.frames = slices.Insert(y.frames, i, y.frames[rng.IntN(len(y.frames))])
		case 9:
			j := rng.IntN(len(y.frames))
			y.frames[i], y.frames[j] = y.frames[j], y.frames[i]
		case 10:
			if len(y.frames) > 1 {
				y.frames = slices.Delete(y.frames, i, i+1)
			}
		case 11:
			slow := machine.Instant(1) << rng.IntN(34)
			for j := range y.frames { // slow all frames down, up to centuries
				y.frames[j].At = y.frames[0].At + (y.frames[j].At-y.frames[0].At)*slow
			}
		}
	}
	b := y.file()
	switch rng.IntN(10) {
	case 0:
		b = b[:rng.IntN(len(b)+1)]
	case 1:
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
	}
	return b
}

// FuzzTUI opens a file and plays keys, one for each byte of the input.
func FuzzTUI(f *testing.F) {
	list, err := samples()
	if err != nil {
		f.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(17, 12))
	for i := range list {
		keys := make([]byte, 80)
		for j := range keys {
			keys[j] = byte(rng.Uint32())
		}
		list[i].frames = list[i].frames[:min(len(list[i].frames), 24)]
		f.Add(list[i].file(), keys)
	}
	f.Fuzz(func(t *testing.T, file, keys []byte) {
		path := filepath.Join(t.TempDir(), "capture")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		d := newDriver(t, path)
		if d == nil {
			return
		}
		defer d.close(t)
		const most = 20 // keys: an input should take milliseconds
		d.screen.hollow = true
		at := 0
		d.play(min(len(keys)/4, most), func(n int) int {
			if n <= 0 || len(keys) == 0 {
				return 0
			}
			b := keys[at%len(keys)]
			at++
			return int(b) * 13 % n // 13 spreads the bytes over the keys, of which there are more than 128
		})
	})
}
