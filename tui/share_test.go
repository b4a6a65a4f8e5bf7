package tui

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/store"
)

// crowd is a capture of so many packets. The first and the last belong to one
// flow, the others to the given number of flows.
func crowd(t *testing.T, packets, flows int) *driver {
	t.Helper()
	x := sample{linkType: 101} // raw IP
	for i := range packets {
		port := uint16(2000 + i%flows)
		if i == 0 || i == packets-1 {
			port = 1000
		}
		b := []byte{0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, byte(port >> 8), byte(port), 10, 1, 0, 1}
		var sum uint32
		for j := 0; j < 20; j += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[j:]))
		}
		binary.BigEndian.PutUint16(b[10:], ^uint16(sum%0xffff))
		b = binary.BigEndian.AppendUint16(b, port)
		b = binary.BigEndian.AppendUint16(b, 7000)
		b = append(b, 0, 16, 0, 0)
		b = binary.BigEndian.AppendUint64(b, uint64(i)*0x9e3779b97f4a7c15)
		x.frames = append(x.frames, capture.Frame{Data: b, Length: len(b)})
		x.frames[i].At = machine.Instant(i) * 1e6
	}
	path := filepath.Join(t.TempDir(), "crowd.pcapng")
	if err := os.WriteFile(path, x.file(), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDriver(t, path)
	t.Cleanup(func() { d.close(t) })
	d.screen.SetSize(160, 50)
	d.store.Start()
	d.settle()
	return d
}

// A key or a drawing does limited work on the UI's thread, however long the
// capture. The screen and a share of steps limit it: the test counts cells and
// steps.
func TestKeysAndDrawingsAreBounded(t *testing.T) {
	const packets, w, h = 100_000, 160, 50
	d := crowd(t, packets, 3*store.FlowsAtOnce)
	d.store.Share = 1 << 14
	// The rows of a list are read from the file at every drawing.
	const steps, cells = 1<<14 + 4*h*store.ReadSteps, 8 * w * h
	most := 0
	check := func(what string) {
		t.Helper()
		most = max(most, d.store.Spent)
		if d.store.Spent > steps {
			t.Errorf("%s: %d steps, expected at most %d", what, d.store.Spent, steps)
		}
	}
	for _, k := range []string{
		"g g", "Enter", "1 0 0 0 0 0 0 0 0 0 0 ]", "L", "[", "T", "M", "F", "A", "R", "S", "P", "}", "{",
		"/ n o w h e r e Enter", "/ ~ n o w h e r e Enter", "G", "g g", ": f l o w Space 0 Enter",
		"/ 0 x f f f f f f f f f f Enter", "1 0 0 0 0 0 0 0 ]", "L", "1 0 0 0 0 0 0 0 [", "z", "q", "q", "q", "s", "i",
		"s s s s s", "/ n o w h e r e Enter", "G", "f u d p Enter", "f f l o w . r t t > 1 Enter",
	} {
		d.key(k)
		check("key " + k)
		d.screen.cells = 0
		d.draw()
		check("drawing after " + k)
		if d.screen.cells > cells {
			t.Errorf("drawing after %s: %d cells, expected at most %d", k, d.screen.cells, cells)
		}
		d.settle()
		d.draw()
		check("drawing after the background of " + k)
	}
	if most < 1<<14 {
		t.Errorf("no key took more than %d steps: the share was never spent", most)
	}
}

// A search that exceeds its share continues in the background, and finds the
// same packet.
func TestASearchGoesOnInTheBackground(t *testing.T) {
	const packets = 20_000
	for _, share := range []int{1 << 40, 1 << 10} {
		d := crowd(t, packets, 2)
		d.store.Share = share
		d.key("g g")
		d.draw()
		d.key("Enter")
		d.draw()
		d.settle()
		begun := d.begun
		d.key("]")
		if goesOn := d.begun > begun; goesOn != (share < packets) {
			t.Errorf("share %d: the step went on in the background: %v", share, goesOn)
		}
		if share < packets && d.model.Selected != 0 {
			t.Errorf("share %d: the selection moved before the search was over", share)
		}
		d.settle()
		if got := d.model.Selected; got != packets-1 {
			t.Errorf("share %d: went to entry %d, expected %d: %s", share, got, packets-1, d.model.Note)
		}
		d.key("5 [")
		d.settle()
		if got := d.model.Selected; got != 0 {
			t.Errorf("share %d: back to entry %d, expected 0", share, got)
		}
		// A search does not move a user who has moved on.
		d.key("] G")
		d.settle()
		if got := d.model.Selected; share < packets && got != packets-1 {
			t.Errorf("share %d: at entry %d", share, got)
		}
	}
}

// More flows than are sorted at once are sorted in the background.
func TestManyFlowsAreSortedInTheBackground(t *testing.T) {
	d := crowd(t, 3*store.FlowsAtOnce, 2*store.FlowsAtOnce)
	d.draw()
	d.settle()
	d.draw()
	d.key("s s s s i")
	d.draw()
	d.settle()
	d.draw()
	order := d.model.screens.Flows.Order
	if len(order) != len(d.store.Flows()) || len(order) <= store.FlowsAtOnce {
		t.Fatalf("%d flows are shown of %d", len(order), len(d.store.Flows()))
	}
	for i := 1; i < len(order); i++ {
		if x, y := order[i-1], order[i]; x.Packets[0]+x.Packets[1] > y.Packets[0]+y.Packets[1] {
			t.Fatalf("flow %d with %v packets is before flow %d with %v", x.ID, x.Packets, y.ID, y.Packets)
		}
	}
}
